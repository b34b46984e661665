import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { tempProject } from './temp-project.ts';

it('a temporary project has its files, changes with them, and leaves nothing behind', async () => {
  const project = await tempProject({ 'src/a.ts': 'a', 'README.md': 'b' });
  expect(readFileSync(project.path('src/a.ts'), 'utf8')).toBe('a');
  await project.write('deep/er/c.bin', new Uint8Array([0, 1]));
  expect([...readFileSync(project.path('deep/er/c.bin'))]).toEqual([0, 1]);
  await project.remove('src');
  expect(existsSync(project.path('src/a.ts'))).toBe(false);
  expect(() => project.path('../outside')).toThrow('outside');
  await project.dispose();
  expect(existsSync(project.root)).toBe(false);
});

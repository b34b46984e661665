import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createSandbox } from '../../src/workspace/sandbox.ts';
import { measureFiles } from '../../src/workspace/walk.ts';
import { tempTree } from './temp-tree.ts';

async function measure(root: string, references: string[], maxBytes = 10_000) {
  const sandbox = createSandbox({ roots: [root], allowSecrets: false });
  const files = await measureFiles(sandbox, references, { root, home: '/home/u', maxBytes });
  return Object.fromEntries(files.map(({ path, bytes }) => [path.slice(root.length + 1), bytes]));
}

describe('measureFiles', () => {
  it('tells the sizes of files and of all files in directories, each once', async () => {
    const root = tempTree({ 'a.ts': '12345', 'src/b.ts': '123', 'src/deep/c.ts': '1' });
    expect(await measure(root, ['a.ts', 'src', './a.ts', join(root, 'src/b.ts')])).toEqual({
      'a.ts': 5,
      'src/b.ts': 3,
      'src/deep/c.ts': 1,
    });
  });

  it('guesses the size of named lines, never above that of the file', async () => {
    const root = tempTree({ 'a.ts': 'x'.repeat(9_000), 'b.ts': '12' });
    expect(await measure(root, ['a.ts:1-10', 'b.ts:1-10'])).toEqual({ 'a.ts': 400, 'b.ts': 2 });
  });

  it('counts nothing for what may not be read or is not there', async () => {
    const root = tempTree({ '.env': 'KEY=1', 'big.ts': 'x'.repeat(20_000), 'a.ts': '1' });
    expect(await measure(root, ['.env', 'big.ts', '/etc/hostname', 'none.ts', '', 'a.ts'])).toEqual({ 'a.ts': 1 });
  });
});

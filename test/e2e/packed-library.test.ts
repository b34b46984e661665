import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PackedPackage, packedPackage } from '../support/packed-package.ts';

let packed: PackedPackage;

beforeAll(async () => {
  packed = await packedPackage();
});
afterAll(() => packed.dispose());

const offline = { OFFLINE: 'on' };

describe('the packed library in a folder of its own', () => {
  it.each(['package.json', undefined])('runs the snippet of the README without git, with %s', async file => {
    const readme = await readFile('README.md', 'utf8');
    const [, snippet = ''] = /^```ts\n(import[\s\S]*?)^```$/m.exec(readme) ?? [];
    const elsewhere = file === undefined ? "process.chdir('empty');\n" : '';
    await packed.write('empty/.keep', '');
    await packed.remove(file === undefined ? 'package.json' : 'none');
    await packed.write('readme.mjs', `${snippet.replace(/^import.*/, line => `${line}\n${elsewhere}`)}`);
    const { code, stdout, stderr } = await packed.run('readme.mjs', offline);
    expect(stderr).toBe('');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/\S/)]);
  });
});

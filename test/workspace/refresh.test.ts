import { mkdirSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkFile, readFile } from '../../src/workspace/read-file.ts';
import { createSandbox } from '../../src/workspace/sandbox.ts';
import { tempTree } from './temp-tree.ts';

const options = { maxBytes: 1_000 };

async function known() {
  const root = tempTree({ 'a.ts': 'one\n' });
  const sandbox = createSandbox({ roots: [root], allowSecrets: false });
  const path = join(root, 'a.ts');
  const file = await readFile(sandbox, path, options);
  if ('code' in file) throw new Error(file.reason);
  return { root, sandbox, path, file };
}

describe('checkFile', () => {
  it('calls a file unchanged that nobody touched', async () => {
    const { sandbox, file } = await known();
    expect(await checkFile(sandbox, file, options)).toBe('unchanged');
  });

  it('reads nothing while size and time are the same', async () => {
    const { sandbox, file } = await known();
    // a cap below the size would refuse any reading
    expect(await checkFile(sandbox, file, { maxBytes: 1 })).toBe('unchanged');
  });

  it('calls a file unchanged that was only touched', async () => {
    const { sandbox, path, file } = await known();
    utimesSync(path, 1, 1);
    expect(await checkFile(sandbox, file, options)).toBe('unchanged');
  });

  it('sees another text of the same size', async () => {
    const { sandbox, path, file } = await known();
    writeFileSync(path, 'two\n');
    utimesSync(path, 1, 1);
    expect(await checkFile(sandbox, file, options)).toMatchObject({ changed: { path, text: 'two\n', mtimeMs: 1_000 } });
  });

  it('sees another size even when the time was set back', async () => {
    const { sandbox, path, file } = await known();
    const { atime, mtime } = statSync(path);
    writeFileSync(path, 'longer\n');
    utimesSync(path, atime, mtime);
    expect(await checkFile(sandbox, file, options)).toMatchObject({ changed: { text: 'longer\n' } });
  });

  it('says that a file was deleted', async () => {
    const { sandbox, path, file } = await known();
    rmSync(path);
    expect(await checkFile(sandbox, file, options)).toBe('deleted');
  });

  it('refuses a file that became a directory or a way out', async () => {
    const { root, sandbox, path, file } = await known();
    renameSync(path, join(root, 'b.ts'));
    mkdirSync(path);
    expect(await checkFile(sandbox, file, options)).toMatchObject({ skip: { code: 'not_regular' } });
    rmSync(path, { recursive: true });
    symlinkSync('/etc/passwd', path);
    expect(await checkFile(sandbox, file, options)).toMatchObject({ skip: { code: 'outside_roots' } });
  });

  it('says that a file has grown too large', async () => {
    const { sandbox, path, file } = await known();
    writeFileSync(path, 'x'.repeat(2_000));
    expect(await checkFile(sandbox, file, options)).toMatchObject({ skip: { code: 'too_large' } });
  });
});

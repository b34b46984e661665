import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findFiles, listSourceFiles } from '../../src/workspace/find-files.ts';
import { createSandbox } from '../../src/workspace/sandbox.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

let project: TempProject;
beforeEach(async () => {
  project = await tempProject({
    'src/a.ts': 'a\n',
    'src/deep/b.py': 'b\n',
    'src/c.test.ts': 'c\n',
    'src/d.json': '{}\n',
    'notes.md': 'n\n',
  });
});
afterEach(() => project.dispose());

function list(references: string[], more: { maxFiles?: number; signal?: AbortSignal } = {}) {
  const sandbox = createSandbox({ roots: [project.root], allowSecrets: false });
  return listSourceFiles(sandbox, references, { root: project.root, home: project.root, ...more });
}
const inside = (...paths: string[]) => paths.map(path => join(project.root, path));

describe('listing source files', () => {
  it('takes named files whatever they are, and of folders the source files alone, each once', async () => {
    expect(await list(['notes.md', 'src', './src/a.ts', 'src/a.ts:1-1'])).toEqual(
      inside('notes.md', 'src/a.ts', 'src/deep/b.py'),
    );
  });

  it('leaves out what is not there or lies outside', async () => {
    await mkdir(join(project.root, 'empty'));
    await symlink('/etc', join(project.root, 'link'));
    expect(await list(['gone.ts', '/etc/passwd', 'link', 'empty', ''])).toEqual([]);
  });

  it('refuses more than it may count', async () => {
    await expect(list(['src'], { maxFiles: 1 })).rejects.toMatchObject({
      details: { code: 'LIMIT', data: { named: 2, limit: 1 } },
    });
  });

  it('stops when it is told to', async () => {
    await expect(list(['src'], { signal: AbortSignal.abort() })).rejects.toThrow();
  });
});

it('finds all files of a very large directory', async () => {
  const real = createSandbox({ roots: [project.root], allowSecrets: false });
  const entries = Array.from({ length: 150_000 }, (_, at) => ({ name: `f${at}.ts`, kind: 'file' as const }));
  const sandbox = { ...real, list: async (path: string) => ({ path, entries, complete: true }) };
  const found = await findFiles(sandbox, { starts: [project.root], signal: new AbortController().signal });
  expect(found).toHaveLength(150_000);
});

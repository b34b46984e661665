import { mkdir, readdir, readFile, rename, stat, symlink } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { reasonToProtect } from '../../src/workspace/protected-files.ts';
import { createSandbox, type Sandbox } from '../../src/workspace/sandbox.ts';
import { makeFolders, probeInside, writeInside } from '../../src/workspace/write-file.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

let project: TempProject;
let outside: TempProject;
let sandbox: Sandbox;

beforeEach(async () => {
  project = await tempProject({ 'out/a.md': 'before' });
  outside = await tempProject();
  sandbox = createSandbox({ roots: [project.root], allowSecrets: false });
});

afterEach(async () => {
  await project.dispose();
  await outside.dispose();
});

const writing = (change: object = {}) => ({
  directory: project.path('out'),
  name: 'a.md',
  text: 'after',
  unique: 'call-1',
  ...change,
});

/** The same sandbox, in which something happens right after a directory was found to be inside. */
function swapping(swap: () => Promise<void>): Sandbox {
  return {
    ...sandbox,
    async assertWithin(path) {
      const real = await sandbox.assertWithin(path);
      await swap();
      return real;
    },
  };
}

async function swapForLink(): Promise<void> {
  await rename(project.path('out'), project.path('moved'));
  await symlink(outside.root, project.path('out'));
}

describe('a file that is written', () => {
  it('takes the place of the one of its name, and says so', async () => {
    expect(await writeInside(sandbox, writing())).toEqual({ path: project.path('out/a.md'), replaced: true });
    expect(await readFile(project.path('out/a.md'), 'utf8')).toBe('after');
    expect(await readdir(project.path('out'))).toEqual(['a.md']);
  });

  it('gets the next free number where what is there is kept, one for each of many at once', async () => {
    const all = Array.from({ length: 8 }, (_, index) =>
      writing({ keep: true, unique: `call-${index}`, text: `${index}` }),
    );
    const written = await Promise.all(all.map(one => writeInside(sandbox, one)));
    expect(new Set(written.map(({ path }) => path)).size).toBe(8);
    expect(written.every(({ replaced }) => !replaced)).toBe(true);
    for (const [index, { path }] of written.entries()) expect(await readFile(path, 'utf8')).toBe(`${index}`);
    expect(await readFile(project.path('out/a.md'), 'utf8')).toBe('before');
    expect((await readdir(project.path('out'))).toSorted()).toHaveLength(9);
  });

  it('is for the user alone unless the mode says more', async () => {
    await writeInside(sandbox, writing({ name: 'own.md' }));
    await writeInside(sandbox, writing({ name: 'shared.md', mode: 0o644, keep: true }));
    expect((await stat(project.path('out/own.md'))).mode & 0o777).toBe(0o600);
    expect((await stat(project.path('out/shared.md'))).mode & 0o777).toBe(0o644 & ~process.umask());
  });

  it.each([{ keep: true }, { keep: false }])(
    'never lands where its directory was swapped for a link after it was checked ($keep)',
    async ({ keep }) => {
      await expect(writeInside(swapping(swapForLink), writing({ keep }))).rejects.toMatchObject({ kind: 'security' });
      expect(await readdir(outside.root)).toEqual([]);
    },
  );

  it.each([
    ...[
      'x:1.code-workspace',
      'a:b.pth',
      '.aider:x',
      'agents.md:x',
      'AGENTS.md ',
      'x:y.jenkinsfile',
      '.git:x',
      '.gi\u200dt',
    ],
    ...['server:8443.pem', '.env.example:prod'],
  ])('is refused where %j may be a name of the lists to some system', async name => {
    await expect(writeInside(sandbox, writing({ name, text: '{}' }))).rejects.toMatchObject({ kind: 'security' });
    expect(await readdir(project.path('out'))).toEqual(['a.md']);
  });

  it('is package.json, whose description is free, only where every system calls it so', async () => {
    const change = { before: '{}', after: '{"name":"x"}' };
    expect(await reasonToProtect(sandbox, project.path('package.json'), change)).toBeUndefined();
    expect(await reasonToProtect(sandbox, project.path('package.json:x.pth'), change)).toBeDefined();
  });

  it('that is too long a name for the system is refused in words', async () => {
    const name = `${'x'.repeat(300)}.md`;
    await expect(writeInside(sandbox, writing({ name }))).rejects.toMatchObject({
      kind: 'input',
      details: { next: 'Choose a shorter name.' },
    });
    expect(await readdir(project.path('out'))).toEqual(['a.md']);
  });
});

describe('a directory that is tried', () => {
  it('is left as it was', async () => {
    await probeInside(sandbox, project.path('out'), 'call-1');
    expect(await readdir(project.path('out'))).toEqual(['a.md']);
  });

  it('that was swapped for a link is refused, and nothing is left where that leads', async () => {
    const probe = probeInside(swapping(swapForLink), project.path('out'), 'call-1');
    await expect(probe).rejects.toMatchObject({ kind: 'security' });
    expect(await readdir(outside.root)).toEqual([]);
  });
});

describe('a directory that is made', () => {
  it('comes with the folders above it, and one that is there is itself', async () => {
    expect(await makeFolders(sandbox, project.path('new/deep/er'))).toBe(project.path('new/deep/er'));
    expect((await stat(project.path('new/deep/er'))).isDirectory()).toBe(true);
    expect(await makeFolders(sandbox, project.path('out'))).toBe(project.path('out'));
  });

  it('is where a link inside the roots leads', async () => {
    await mkdir(project.path('real'));
    await symlink(project.path('real'), project.path('link'));
    expect(await makeFolders(sandbox, project.path('link/deeper'))).toBe(project.path('real/deeper'));
  });

  it('never stays outside when a folder on the way is swapped for a link', async () => {
    const made = makeFolders(swapping(swapForLink), project.path('out/new/deep'));
    await expect(made).rejects.toMatchObject({ kind: 'security' });
    expect(await readdir(outside.root)).toEqual([]);
  });
});

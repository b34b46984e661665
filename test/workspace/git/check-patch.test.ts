import { readFile, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemEnvironment } from '../../../src/app/system-environment.ts';
import { createGit, type Git } from '../../../src/workspace/git/git.ts';
import { createSandbox } from '../../../src/workspace/sandbox.ts';
import { type GitRepository, gitRepository } from '../../support/git-repository.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

let project: TempProject;
let repo: GitRepository;
let git: Git;

beforeEach(async () => {
  project = await tempProject({ 'outside/file.txt': 'one\n' });
  repo = await gitRepository(join(project.root, 'repo'));
  await repo.write('a.txt', 'one\ntwo\nthree\n');
  await repo.write('twice.txt', 'x\nsame\ny\nx\nsame\ny\n');
  await repo.write('open.txt', 'first\nlast');
  await repo.write('sub/b.txt', 'one\n');
  await repo.commit();
  const around = systemEnvironment();
  const sandbox = createSandbox({ roots: [repo.path], allowSecrets: false });
  const mask = async (text: string) => ({ text, found: {} });
  git = createGit({ sandbox, homeDir: project.root, mask, clock: around.clock, childEnv: process.env });
});
afterEach(() => project.dispose());

const check = (patch: string) => git.checkPatch({ patch, root: repo.path });
const change = (path: string, from = 'one', to = 'ONE') =>
  `--- a/${path}\n+++ b/${path}\n@@ -1 +1 @@\n-${from}\n+${to}\n`;
/** Applies what came out by plain git, as a user would. */
async function applied(patch: string, path: string): Promise<string> {
  const sound = await check(patch);
  if (!sound.ok) throw new Error(sound.reason);
  await repo.write('.git/x.patch', sound.patch);
  await repo.git('apply', '.git/x.patch');
  return readFile(join(repo.path, path), 'utf8');
}

describe('a patch that git takes', () => {
  it.each([
    ['as git writes it', change('a.txt'), 'a.txt', 'ONE\ntwo\nthree\n'],
    ['without a/ and b/', '--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+ONE\n', 'a.txt', 'ONE\ntwo\nthree\n'],
    [
      'with dates behind the names',
      change('a.txt').replace('a/a.txt', 'a/a.txt\t2026-01-01'),
      'a.txt',
      'ONE\ntwo\nthree\n',
    ],
    [
      'with wrong counts and places',
      change('a.txt', 'three', '3').replace('-1 +1', '-77,9 +78,4'),
      'a.txt',
      'one\ntwo\n3\n',
    ],
    [
      'at the place that it names, of two',
      change('twice.txt', 'same', 'SAME').replace('-1 +1', '-5 +5'),
      'twice.txt',
      'x\nsame\ny\nx\nSAME\ny\n',
    ],
    [
      'that changes a last line without a line end',
      change('open.txt', 'last', 'end').replace('-1 +1', '-2 +2'),
      'open.txt',
      'first\nend\n',
    ],
    [
      'that adds behind such a line',
      '--- a/open.txt\n+++ b/open.txt\n@@ -2 +2,2 @@\n last\n+more\n',
      'open.txt',
      'first\nlast\nmore\n',
    ],
    ['that removes all of a file', '--- a/sub/b.txt\n+++ b/sub/b.txt\n@@ -1 +0,0 @@\n-one\n', 'sub/b.txt', ''],
    [
      'that makes a file in a new folder',
      '--- /dev/null\n+++ b/new/c.txt\n@@ -0,0 +1 @@\n+hello\n',
      'new/c.txt',
      'hello\n',
    ],
    [
      'with a removed line like the head of a file',
      '--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+-- two\n',
      'a.txt',
      'one\n-- two\nthree\n',
    ],
  ])('%s', async (_what, patch, path, text) => {
    expect(await applied(patch, path)).toBe(text);
  });

  it('counts what it changes, by paths of the repository, from a folder below its top', async () => {
    const sound = await git.checkPatch({ patch: change('b.txt'), root: join(repo.path, 'sub') });
    expect(sound).toMatchObject({ ok: true, files: [{ path: 'sub/b.txt', added: 1, removed: 1, isNew: false }] });
  });
});

describe('a patch that is withheld', () => {
  it.each([
    ['no patch', 'just words', /no unified diff/],
    ['without a change', '--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n one\n', /changes nothing/],
    ['for lines that are not there', change('a.txt', 'ONE', 'two'), /not there/],
    ['for lines that stand at two places, at none of which it points', change('twice.txt', 'same', 'SAME'), /2 places/],
    ['for a file that is not there', change('none.txt'), /unknown file/],
    ['for a new file that is there', '--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n', /there already/],
    ['that climbs out of the repository', change('../outside/file.txt'), /outside/],
    ['for an absolute path elsewhere', change('/etc/hostname').replaceAll(/[ab]\/\/etc/g, '/etc'), /outside/],
    ['for what git runs', '--- /dev/null\n+++ b/.git/hooks/pre-commit\n@@ -0,0 +1 @@\n+x\n', /\.git/],
    ['for what git runs, in other letters', '--- /dev/null\n+++ b/.GIT/config\n@@ -0,0 +1 @@\n+x\n', /\.git/],
    ['for a secret file', '--- /dev/null\n+++ b/.env\n@@ -0,0 +1 @@\n+KEY=1\n', /secret/],
    ['that deletes a file', '--- a/a.txt\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n', /deletes/],
    ['that renames a file', '--- a/a.txt\n+++ b/z.txt\n@@ -1 +1 @@\n-one\n+ONE\n', /renames/],
    [
      'that makes a link',
      'diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n',
      /more than change/,
    ],
    [
      'that changes permissions',
      `diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n${change('a.txt')}`,
      /more than change/,
    ],
    ['with bytes', 'diff --git a/x b/x\nGIT binary patch\nliteral 3\nabc\n', /more than change/],
    ['with one file twice', `${change('a.txt')}${change('a.txt', 'two', 'TWO')}`, /two places/],
    ['that is huge', 'x'.repeat(600_000), /too large/],
  ])('%s', async (_what, patch, why) => {
    const checked = await check(patch);
    expect(checked.ok ? 'it is not' : checked.reason).toMatch(why);
    expect(await repo.git('status', '--porcelain')).toBe('');
  });

  it('leads through a link, even one within the project', async () => {
    await symlink(join(project.root, 'outside'), join(repo.path, 'door'));
    await symlink(join(repo.path, 'sub'), join(repo.path, 'alias'));
    for (const path of ['door/file.txt', 'alias/b.txt']) expect(await check(change(path))).toMatchObject({ ok: false });
    const made = '--- /dev/null\n+++ b/door/new.txt\n@@ -0,0 +1 @@\n+x\n';
    expect(await check(made)).toMatchObject({ ok: false });
  });

  it('is for files that no repository holds', async () => {
    const sandbox = createSandbox({ roots: [join(project.root, 'outside')], allowSecrets: false });
    const mask = async (text: string) => ({ text, found: {} });
    const alone = createGit({ sandbox, homeDir: '', mask, clock: systemEnvironment().clock, childEnv: process.env });
    const checked = await alone.checkPatch({ patch: change('file.txt'), root: join(project.root, 'outside') });
    expect(checked).toMatchObject({ ok: false, reason: expect.stringMatching(/no git repository/) });
  });
});

describe('applying a patch', () => {
  it('starts no program that the repository names', async () => {
    await repo.write('.gitattributes', '*.txt filter=evil\n');
    await repo.git('config', 'filter.evil.clean', `touch ${project.path('ran')} && cat`);
    await repo.git('config', 'filter.evil.smudge', `touch ${project.path('ran')} && cat`);
    const backup = project.path('backup');
    await git.applyPatch({ patch: change('a.txt'), root: repo.path, backup });
    expect(await readFile(join(repo.path, 'a.txt'), 'utf8')).toBe('ONE\ntwo\nthree\n');
    await expect(stat(project.path('ran'))).rejects.toThrow();
  });

  it('changes nothing when one of its files does not fit, and nothing when there is no room for the backup', async () => {
    const backup = project.path('backup');
    const half = `${change('a.txt')}${change('sub/b.txt', 'gone', 'x')}`;
    await expect(git.applyPatch({ patch: half, root: repo.path, backup })).rejects.toMatchObject({ kind: 'input' });
    const blocked = project.path('outside/file.txt/below');
    await expect(git.applyPatch({ patch: change('a.txt'), root: repo.path, backup: blocked })).rejects.toMatchObject({
      kind: 'storage',
    });
    expect(await repo.git('status', '--porcelain')).toBe('');
  });
});

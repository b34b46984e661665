import { chmod, mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemEnvironment } from '../../../src/app/system-environment.ts';
import { createMask } from '../../../src/observability/secret-masking.ts';
import type { ChangesRequest } from '../../../src/workspace/git/changes.ts';
import { createGit, createGitHistory, type Git } from '../../../src/workspace/git/git.ts';
import type { GitOptions } from '../../../src/workspace/git/run-git.ts';
import { createSandbox } from '../../../src/workspace/sandbox.ts';
import { type GitRepository, gitRepository } from '../../support/git-repository.ts';

let base: string;
let root: string;
let repo: GitRepository;
let git: Git;

function optionsFor(roots: string[]): GitOptions {
  const { mask } = createMask({ secret: 'test', keys: [] });
  const sandbox = createSandbox({ roots, allowSecrets: false });
  return { ...systemEnvironment(), sandbox, mask };
}

const gitFor = (roots: string[]): Git => createGit(optionsFor(roots));
const historyFor = (roots: string[]) => createGitHistory(optionsFor(roots));

const wanted = (more: Partial<ChangesRequest> = {}): ChangesRequest => ({
  path: root,
  root,
  staged: true,
  unstaged: true,
  scope: 'thread',
  ...more,
});

const only = async (more: Partial<ChangesRequest> = {}) => (await git.changes(wanted(more))).repositories[0]!;

beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'polylogue-git-')));
  root = join(base, 'project');
  repo = await gitRepository(root);
  await repo.write('a.ts', 'one\ntwo\nthree\n');
  await repo.write('old name.ts', `${'same line\n'.repeat(20)}`);
  await repo.commit();
  git = gitFor([root]);
});
afterEach(() => rm(base, { recursive: true, force: true }));

describe('the changes of a repository', () => {
  it('tell staged, unstaged and new files apart, each with its lines and its patch', async () => {
    await repo.write('a.ts', 'one\n2\nthree\n');
    await repo.git('add', 'a.ts');
    await repo.write('a.ts', 'one\n2\nthree\nfour\n');
    await repo.write('dir/nü.ts', 'new\n');
    const { branch, head, files } = await only();
    expect(branch).toBe('main');
    expect(head).toMatch(/^[0-9a-f]{40}$/);
    expect(files).toMatchObject([
      { path: 'a.ts', area: 'staged', status: 'modified', added: 1, removed: 1 },
      { path: 'a.ts', area: 'unstaged', status: 'modified', added: 1, removed: 0 },
      { path: 'dir/nü.ts', area: 'untracked', status: 'added', added: 1 },
    ]);
    expect(files.map(file => file.patch)).toEqual([
      expect.stringContaining('-two\n+2\n'),
      expect.stringContaining('+four\n'),
      expect.stringContaining('+new\n'),
    ]);
  });

  it('leave out what was not asked for', async () => {
    await repo.write('staged.ts', 'x\n');
    await repo.git('add', '.');
    await repo.write('a.ts', 'changed\n');
    expect((await only({ unstaged: false })).files.map(file => file.path)).toEqual(['staged.ts']);
    expect((await only({ staged: false })).files.map(file => file.path)).toEqual(['a.ts']);
  });

  it('follow a renamed file, also with an unusual name, and name what has no lines', async () => {
    await repo.git('mv', 'old name.ts', 'neu "er".ts');
    await repo.write('picture.png', new Uint8Array([137, 80, 78, 71, 0, 1, 2, 0]));
    await repo.write('mode.sh', 'x\n');
    await repo.git('add', '.');
    const { files } = await only();
    const byPath = new Map(files.map(file => [file.path, file]));
    expect(byPath.get('neu "er".ts')).toMatchObject({ status: 'renamed', from: 'old name.ts', added: 0, removed: 0 });
    expect(byPath.get('neu "er".ts')?.patch).toContain('rename from');
    expect(byPath.get('picture.png')).toMatchObject({ binary: true, withheld: 'binary' });
    expect(byPath.get('picture.png')?.patch).toBeUndefined();
    await repo.commit();
    await chmod(join(root, 'mode.sh'), 0o755);
    expect((await only()).files).toMatchObject([{ path: 'mode.sh', patch: expect.stringContaining('new mode') }]);
  });

  it('are not confused by content that looks like a patch', async () => {
    await repo.write('a.ts', 'one\n\rdiff --git a/x b/x\n--- a/evil\n+++ b/evil\n@@ -1 +1 @@\n');
    await repo.write('z.ts', 'last\n');
    await repo.git('add', '.');
    const { files } = await only();
    expect(files.map(file => file.path)).toEqual(['a.ts', 'z.ts']);
    expect(files[0]?.patch).toContain('+++ b/evil');
    expect(files[1]?.patch).toContain('+last');
  });

  it('show a submodule as the commit it points to', async () => {
    const inner = await gitRepository(join(base, 'inner'));
    await inner.write('i.ts', 'x\n');
    await inner.commit();
    await repo.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', inner.path, 'sub');
    const changed = (await git.changes(wanted())).repositories;
    expect(changed.map(({ path }) => path)).toEqual([root, join(root, 'sub')]);
    expect(changed[0]?.files.find(file => file.path === 'sub')).toMatchObject({
      submodule: true,
      status: 'added',
      patch: expect.stringContaining('Subproject commit'),
    });
  });

  it('work before the first commit', async () => {
    const fresh = await gitRepository(join(root, 'fresh'));
    await fresh.write('first.ts', 'x\n');
    await fresh.git('add', '.');
    const { repositories } = await git.changes(wanted({ path: 'fresh' }));
    expect(repositories).toMatchObject([{ branch: 'main', files: [{ path: 'first.ts', area: 'staged' }] }]);
    expect(repositories[0]?.head).toBeUndefined();
  });

  it('name a file in the middle of a merge', async () => {
    await repo.git('checkout', '--quiet', '-b', 'other');
    await repo.write('a.ts', 'theirs\n');
    await repo.commit();
    await repo.git('checkout', '--quiet', 'main');
    await repo.write('a.ts', 'ours\n');
    await repo.commit();
    await expect(repo.git('merge', 'other')).rejects.toThrow();
    const { conflicted, files } = await only();
    expect(conflicted).toEqual(['a.ts']);
    expect(files.map(({ area, status }) => `${area} ${status}`)).toEqual(['staged conflicted', 'unstaged conflicted']);
  });
});

describe('a comparison', () => {
  it('begins where the work on top of the branch began, and shows committed, changed and new files', async () => {
    await repo.git('checkout', '--quiet', '-b', 'feature');
    await repo.write('feature.ts', 'x\n');
    await repo.commit();
    await repo.git('checkout', '--quiet', 'main');
    await repo.write('elsewhere.ts', 'x\n');
    await repo.commit();
    await repo.git('checkout', '--quiet', 'feature');
    await repo.write('a.ts', 'one\n');
    await repo.write('fresh.ts', 'x\n');
    const { files, comparedWith } = await only({ compareTo: 'main', staged: false, unstaged: false });
    expect(comparedWith).toBe((await repo.git('merge-base', 'main', 'feature')).trim());
    expect(files.map(({ path, area }) => [path, area])).toEqual([
      ['a.ts', 'compared'],
      ['feature.ts', 'compared'],
      ['fresh.ts', 'untracked'],
    ]);
  });

  it.each(['--output=x', '-p', 'main..other', 'a b', 'HEAD:a.ts', 'x\0y'])(
    'refuses %j, and writes nothing',
    async ref => {
      await expect(git.changes(wanted({ compareTo: ref }))).rejects.toMatchObject({ kind: 'input' });
      expect((await readdir(root)).sort()).toEqual(['.git', 'a.ts', 'old name.ts']);
    },
  );

  it('says that there is no such commit', async () => {
    await expect(git.changes(wanted({ compareTo: 'nowhere' }))).rejects.toThrow(/"nowhere" names no commit/);
  });
});

describe('several repositories', () => {
  it('are found below a folder, to depth 5, hidden and build folders left out', async () => {
    const above = join(base, 'above');
    for (const place of ['one', 'deep/er/two', 'd1/d2/d3/d4/five', 'd1/d2/d3/d4/d5/six', 'node_modules/dep'])
      await gitRepository(join(above, place));
    const { repositories } = await gitFor([above]).changes(wanted({ path: above, root: above }));
    expect(repositories.map(({ path }) => path.slice(above.length + 1)).sort()).toEqual([
      'd1/d2/d3/d4/five',
      'deep/er/two',
      'one',
    ]);
  });

  it('are one when the folder is inside of it', async () => {
    await repo.write('src/x.ts', 'x\n');
    expect((await only({ path: 'src' })).path).toBe(root);
  });

  it('are refused when there is none, or when the folder is out of the roots', async () => {
    const empty = join(base, 'empty');
    await mkdir(empty);
    await expect(gitFor([empty]).changes(wanted({ path: empty }))).rejects.toThrow(/no git repository/);
    await expect(git.changes(wanted({ path: base }))).rejects.toMatchObject({ kind: 'security' });
    await expect(git.changes(wanted({ path: '../empty' }))).rejects.toMatchObject({ kind: 'security' });
  });
});

describe('a repository of a stranger', () => {
  const script = '#!/bin/sh\ntouch "$0.ran"\n';

  it('starts no program of its own, whatever its settings name', async () => {
    const evil = join(base, 'evil.sh');
    await writeFile(evil, script);
    await chmod(evil, 0o755);
    await repo.write('.gitattributes', '*.ts filter=bad.one diff=worse\n');
    await repo.commit();
    for (const name of ['pre-commit', 'post-index-change', 'post-checkout', 'fsmonitor-watchman']) {
      await writeFile(join(root, '.git/hooks', name), script);
      await chmod(join(root, '.git/hooks', name), 0o755);
    }
    const settings: [string, string][] = [
      ['core.fsmonitor', evil],
      ['core.pager', evil],
      ['diff.external', evil],
      ['diff.worse.textconv', evil],
      ['diff.worse.command', evil],
      ['filter.bad.one.clean', evil],
      ['filter.bad.one.smudge', evil],
      ['filter.bad.one.process', evil],
      ['filter.bad.one.required', 'true'],
      ['pager.diff', evil],
      ['pager.status', evil],
      ['alias.diff', `!${evil}`],
      ['core.sshCommand', evil],
      ['core.worktree', base],
    ];
    for (const [name, value] of settings) await repo.git('config', name, value);
    await writeFile(join(root, 'a.ts'), 'changed\n');
    await writeFile(join(root, 'new.ts'), 'new\n');
    const { files, path } = await only({ compareTo: 'main' });
    expect(path).toBe(root);
    expect(files.map(file => file.path)).toEqual(['a.ts', 'new.ts']);
    expect((await only()).files.map(file => file.path)).toEqual(['a.ts', 'new.ts']);
    const left = [...(await readdir(base)), ...(await readdir(join(root, '.git/hooks')))];
    expect(left.filter(name => name.endsWith('.ran'))).toEqual([]);
    // The same settings do run something where nobody takes care.
    await repo.git('-c', `core.worktree=${root}`, 'diff').catch(() => undefined);
    expect((await readdir(base)).filter(name => name.endsWith('.ran'))).toEqual(['evil.sh.ran']);
  });

  it('can not show the data of another one', async () => {
    const other = await gitRepository(join(base, 'other'));
    await other.write('private.ts', 'private\n');
    await other.commit();
    const pointing = join(root, 'pointing');
    await mkdir(pointing);
    await writeFile(join(pointing, '.git'), `gitdir: ${other.path}/.git\n`);
    await expect(git.changes(wanted({ path: 'pointing' }))).rejects.toMatchObject({ kind: 'security' });
    await rm(join(pointing, '.git'));
    await symlink(join(other.path, '.git'), join(pointing, '.git'));
    await expect(git.changes(wanted({ path: 'pointing' }))).rejects.toMatchObject({ kind: 'security' });
    await rm(pointing, { recursive: true });
    await writeFile(join(root, '.git/objects/info/alternates'), `${other.path}/.git/objects\n`);
    await expect(git.changes(wanted())).rejects.toMatchObject({ kind: 'security' });
  });

  it('shows nothing through a new link that leads out', async () => {
    await writeFile(join(base, 'outside.txt'), 'outside\n');
    await symlink(join(base, 'outside.txt'), join(root, 'link.txt'));
    const { files } = await only();
    expect(files).toMatchObject([{ path: 'link.txt', withheld: `a link to ${join(base, 'outside.txt')}` }]);
    expect(JSON.stringify(files)).not.toContain('outside\\n');
  });
});

describe('secrets in a change', () => {
  const token = `ghp_${'aB3dE5fG7hJ9'.repeat(3)}`;

  it('are masked, and told by file and line', async () => {
    await repo.write('a.ts', `one\ntwo\nthree\nconst token = '${token}';\n`);
    const [file] = (await only()).files;
    expect(file?.patch).not.toContain(token);
    expect(file?.patch).toContain('[masked:');
    expect(file?.secrets).toMatchObject([{ line: 4 }]);
  });

  it('are told by their line, also where settings have git write empty lines without a mark', async () => {
    await repo.git('config', 'diff.suppressBlankEmpty', 'true');
    await repo.write('blank.ts', 'a\n\nb\n\nc\n');
    await repo.commit();
    await repo.write('blank.ts', `a\n\nb\n\nc\nconst token = '${token}';\n`);
    expect((await only()).files[0]?.secrets).toMatchObject([{ line: 6 }]);
  });

  it('are found when they stand in several lines, and are no news when they are taken out', async () => {
    const body = Array.from({ length: 6 }, (_, at) => `${'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC'.repeat(2)}${at}`);
    const pem = ['-----BEGIN PRIVATE KEY-----', ...body, '-----END PRIVATE KEY-----', ''].join('\n');
    await repo.write('b.ts', `// key\n${pem}const after = '${token}';\n`);
    await repo.git('add', '.');
    const [added] = (await only()).files;
    for (const line of body) expect(added?.patch).not.toContain(line);
    expect(added?.secrets.map(({ line }) => line)).toEqual([3, 10]);
    await repo.commit();
    await repo.write('b.ts', '// key\n');
    const [removed] = (await only()).files;
    expect(removed?.secrets).toEqual([]);
    for (const line of [...body, token]) expect(removed?.patch).not.toContain(line);
  });

  it('stay in files that hold nothing else', async () => {
    await repo.write('.env', `TOKEN=${token}\n`);
    await repo.git('add', '--force', '.env');
    expect((await only()).files).toMatchObject([{ path: '.env', secretFile: true, secrets: [] }]);
    expect((await only()).files[0]?.patch).toBeUndefined();
  });
});

it('shows a commit without its secret files, and all of the others, whatever the settings of git', async () => {
  await repo.write('.env', 'NAME=value\n');
  await repo.write('b.ts', 'new\n');
  await repo.commit('Größe');
  const plain = await historyFor([root]).show({ folder: root, scope: 'thread', ref: 'HEAD' });
  expect(plain).toContain('diff of .env: left out, it is a secret file');
  expect(plain).toContain('+++ b/b.ts');
  const settings = { 'diff.noprefix': 'true', 'log.showRoot': 'false', 'i18n.logOutputEncoding': 'ISO-8859-1' };
  for (const [name, value] of Object.entries(settings)) await repo.git('config', name, value);
  await repo.git('config', 'diff.orderFile', 'gone.txt');
  expect(await historyFor([root]).show({ folder: root, scope: 'thread', ref: 'HEAD' })).toBe(plain);
  const first = await historyFor([root]).show({ folder: root, scope: 'thread', ref: 'HEAD~1' });
  expect(first).toContain('+++ b/a.ts');
});

it.each(['combined', 'dense-combined', 'off'])(
  'shows a merge without its secret files, where the settings of git say that merges are %s',
  async how => {
    await repo.git('checkout', '--quiet', '-b', 'other');
    await repo.write('.env', 'NAME=theirs\n');
    await repo.write('b.ts', 'theirs\n');
    await repo.commit();
    await repo.git('checkout', '--quiet', 'main');
    await repo.write('.env', 'NAME=ours\n');
    await repo.commit();
    await expect(repo.git('merge', 'other')).rejects.toThrow();
    await repo.write('.env', 'NAME=merged\n');
    await repo.commit();
    await repo.git('config', 'log.diffMerges', how);
    const shown = await historyFor([root]).show({ folder: root, scope: 'thread', ref: 'HEAD' });
    expect(shown).not.toContain('NAME=');
    expect(shown).toContain('diff of .env: left out, it is a secret file');
    expect(shown).toContain('+++ b/b.ts');
  },
);

it('is ended with the call', async () => {
  const controller = new AbortController();
  controller.abort();
  await expect(git.changes(wanted({ signal: controller.signal }))).rejects.toMatchObject({ kind: 'cancelled' });
});

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { defaultRoots } from '../../src/workspace/roots.ts';
import { tempTree } from './temp-tree.ts';

describe('defaultRoots', () => {
  it('takes what the operator set, whatever it is', async () => {
    const found = await defaultRoots({
      explicit: ['/', '~', 'sub', ''],
      projectRoot: '/x',
      cwd: '/work',
      home: '/home/u',
    });
    expect(found.roots).toEqual(['/', '/home/u', '/work/sub']);
  });

  it('takes the project of the host before the working directory', async () => {
    const project = tempTree();
    const found = await defaultRoots({ explicit: [], projectRoot: project, cwd: '/', home: '/home/u' });
    expect(found.roots).toEqual([project]);
  });

  it.each(['folder', 'file'])('finds the git top level by a .git %s', async kind => {
    const top = tempTree({ 'a/b/c.ts': '' });
    if (kind === 'folder') mkdirSync(join(top, '.git'));
    else writeFileSync(join(top, '.git'), 'gitdir: elsewhere');
    expect((await defaultRoots({ explicit: [], cwd: join(top, 'a/b'), home: '/home/u' })).roots).toEqual([top]);
  });

  it.each([
    ...[
      'package.json',
      'pyproject.toml',
      'go.mod',
      'Cargo.toml',
      'pom.xml',
      'build.gradle.kts',
      'tsconfig.json',
      'setup.cfg',
    ],
    ...['Makefile', 'App.csproj', 'App.sln', 'MODULE.bazel', 'Project.toml', 'tool.cabal', '.hg/store', 'app.gemspec'],
  ])('takes a folder with %s', async file => {
    const top = tempTree({ [`app/${file}`]: '', 'app/src/a.ts': '' });
    for (const cwd of [join(top, 'app/src'), join(top, 'app')]) {
      const found = await defaultRoots({ explicit: [], cwd, home: '/home/u' });
      expect(found).toMatchObject({ roots: [join(top, 'app')], isGuess: true });
    }
  });

  it.each([
    ['app/package.json', 'app/deploy/Dockerfile'],
    ['app/pom.xml', 'app/web/Makefile'],
    ['app/.hg/store', 'app/native/CMakeLists.txt'],
    ['app/.jj/repo', 'app/web/package.json'],
  ])('takes what %s declares before %s within it', async (declares, within) => {
    const top = tempTree({ [declares]: '', [within]: '' });
    const found = await defaultRoots({ explicit: [], cwd: join(top, within, '..'), home: '/home/u' });
    expect(found.roots).toEqual([join(top, 'app')]);
  });

  it('takes the repository around a project file, but not a home directory by one', async () => {
    const root = tempTree({
      'repo/.git/HEAD': '',
      'repo/packages/a/package.json': '',
      'homes/u/.git/HEAD': '',
      'homes/u/package.json': '',
      'homes/u/notes/todo.md': '',
      'homes/u/app/package.json': '',
    });
    const home = join(root, 'homes/u');
    const rootsAt = async (cwd: string) => (await defaultRoots({ explicit: [], cwd: join(root, cwd), home })).roots;
    expect(await rootsAt('repo/packages/a')).toEqual([join(root, 'repo')]);
    expect(await rootsAt('homes/u')).toEqual([]);
    expect(await rootsAt('homes/u/notes')).toEqual([]);
    expect(await rootsAt('homes/u/app')).toEqual([join(home, 'app')]);
  });

  it.each([
    ['homes/u/package.json', 'homes/u/app/Makefile', 'app'],
    ['homes/u/.hg/store', 'homes/u/app/package.json', 'app'],
    ['homes/u/.git/HEAD', 'homes/u/app/.svn/entries', 'app'],
    ['homes/u/app/a/package.json/x.ts', 'homes/u/app/go.mod', 'app'],
    ['homes/u/app/a/WORKSPACE/x.ts', 'homes/u/app/App.xcodeproj/project.pbxproj', 'app'],
    ['homes/u/app/package.json/x.ts', 'homes/u/app/a/.keep', undefined],
  ])('is not kept from a project by %s: there is %s', async (stray, file, found) => {
    const root = tempTree({ [stray]: '', [file]: '', 'homes/u/app/a/b.ts': '' });
    const home = join(root, 'homes/u');
    const { roots } = await defaultRoots({ explicit: [], cwd: join(home, 'app/a'), home });
    expect(roots).toEqual(found === undefined ? [] : [join(home, found)]);
  });

  it('has no root outside a repository, and says what to set', async () => {
    const found = await defaultRoots({ explicit: [], cwd: tempTree(), home: '/home/u' });
    expect(found.roots).toEqual([]);
    expect(found.reason).toContain('POLYLOGUE_ROOTS');
  });

  it.each(['/', '/home', '/home/someone', '/root', '/Users/someone'])(
    'never takes %s by default',
    async projectRoot => {
      const found = await defaultRoots({ explicit: [], projectRoot, cwd: '/', home: '' });
      expect(found.roots).toEqual([]);
      expect(found.reason).toContain('POLYLOGUE_ROOTS');
    },
  );

  // There, the environment of every process of this user can be read, with all keys in it.
  it.each(['/proc', '/proc/self', '/sys', '/sys/kernel'])('takes %s only by the operator’s word', async folder => {
    expect((await defaultRoots({ explicit: [], projectRoot: folder, cwd: '/', home: '' })).roots).toEqual([]);
    expect((await defaultRoots({ explicit: [folder], cwd: '/', home: '' })).roots).toEqual([folder]);
  });

  it('never takes the home directory, what lies above it, or a repository in it by default', async () => {
    const root = tempTree({ 'homes/u/.git/HEAD': '', 'homes/u/project/.git/HEAD': '' });
    const home = join(root, 'homes/u');
    for (const projectRoot of [home, join(root, 'homes'), root]) {
      expect((await defaultRoots({ explicit: [], projectRoot, cwd: '/', home })).roots).toEqual([]);
    }
    expect((await defaultRoots({ explicit: [], cwd: home, home })).roots).toEqual([]);
    expect((await defaultRoots({ explicit: [], cwd: join(home, 'project'), home })).roots).toEqual([
      join(home, 'project'),
    ]);
  });
});

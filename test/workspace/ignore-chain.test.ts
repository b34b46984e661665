import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createSandbox } from '../../src/workspace/sandbox.ts';
import { walkDirectory } from '../../src/workspace/walk.ts';
import { processTime } from '../support/own-time.ts';
import { seeded, tempTree, write } from './temp-tree.ts';

const limits = { maxDepth: 100, maxEntries: 200_000 };
const gitEnv = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' };

function git(root: string, args: string[], input?: string): string {
  try {
    return execFileSync('git', args, { cwd: root, input, env: gitEnv, encoding: 'utf8', maxBuffer: 1 << 26 });
  } catch (error) {
    // check-ignore says with status 1 that no path is ignored
    if (args[0] === 'check-ignore' && (error as { status?: number }).status === 1) return '';
    throw error;
  }
}

async function walked(root: string, start = root): Promise<string[]> {
  const walk = await walkDirectory(createSandbox({ roots: [root], allowSecrets: false }), start, limits);
  return walk.files.map(path => relative(root, path)).sort();
}

const names = [
  'a',
  'b',
  'ab',
  'foo',
  'bar.txt',
  'x y',
  'é.txt',
  'à',
  'ü à',
  '[z]',
  '#h',
  '!n',
  'a*b',
  'A',
  'f\\o',
  'b ',
  '-x',
  'c..',
  'q?',
];

function randomPattern(random: () => number): string {
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)]!;
  const pieces = [
    'a',
    'b',
    'ab',
    'foo',
    'bar.txt',
    '*.txt',
    '*.log',
    '*.f',
    'a.f',
    'foo.l*',
    '??.f',
    '*',
    '?',
    'a*',
    '*b',
    '[ab]',
    '[!a]',
    '[a-c]*',
    'f?o',
    '**',
    'é*',
    'à',
    '?.txt',
    '??.txt',
    '\\#h',
    '\\!n',
    '\\[z]',
    'x y',
    'x\\ y',
    '[[:alpha:]]',
    'a\\*b',
    'A',
    '-x',
    '*à',
    'f\\\\o',
    'b\\ ',
    'c..',
    'q\\?',
    'ü *',
  ];
  const depth = 1 + Math.floor(random() ** 2 * 3);
  const body = Array.from({ length: depth }, () => pick(pieces)).join('/');
  const start = random() < 0.25 ? '/' : '';
  const end = random() < 0.3 ? '/' : random() < 0.05 ? '  ' : '';
  return `${random() < 0.3 ? '!' : ''}${start}${body}${end}`;
}

function randomTree(seed: number): { files: string[]; rules: Record<string, string> } {
  const random = seeded(seed);
  const pick = () => names[Math.floor(random() * names.length)]!;
  const folders = [
    '',
    ...Array.from({ length: 60 }, () => Array.from({ length: 1 + Math.floor(random() * 3) }, pick).join('/')),
  ];
  // a name is a file in one place and a folder in another, never both in one
  const files = new Set(
    folders.flatMap(folder =>
      Array.from({ length: 12 }, () => join(folder, `${pick()}${random() < 0.5 ? '.f' : '.log'}`)),
    ),
  );
  const lines = () =>
    Array.from({ length: 1 + Math.floor(random() * 5) }, () => randomPattern(random)).join(
      random() < 0.1 ? '\r\n' : '\n',
    );
  const rules: Record<string, string> = { '.gitignore': `# rules\n\n${lines()}\n`, '.git/info/exclude': lines() };
  for (const folder of folders) if (random() < 0.3) rules[join(folder, '.gitignore')] = lines();
  return { files: [...files], rules };
}

describe('ignore rules', () => {
  it('ignores exactly what git ignores', async () => {
    let compared = 0;
    for (let seed = 1; seed <= 12; seed++) {
      const root = tempTree();
      git(root, ['init', '-q']);
      const { files, rules } = randomTree(seed);
      write(root, Object.fromEntries(files.map(name => [name, 'x'])));
      write(root, rules);
      const all = [...files, ...Object.keys(rules).filter(name => !name.startsWith('.git/'))];
      const ignored = new Set(git(root, ['check-ignore', '-z', '--stdin', '--no-index'], all.join('\0')).split('\0'));
      const expected = all.filter(name => !ignored.has(name)).sort();
      expect(await walked(root), `seed ${seed}`).toEqual(expected);
      expect(ignored.size, `seed ${seed}`).toBeGreaterThan(1);
      compared += all.length;
    }
    expect(compared).toBeGreaterThan(4_000);
  });

  it('looks afresh at what is in a folder that a deeper file took back', async () => {
    const root = tempTree({
      '.gitignore': 'gen/\n',
      'sub/.gitignore': '!gen/\n',
      'sub/gen/kept.ts': '',
      'sub/gen/in ner/kept.ts': '',
      'sub/gen/in ner/gen/kept.ts': '',
      'gen/lost.ts': '',
    });
    git(root, ['init', '-q']);
    const kept = [
      '.gitignore',
      'sub/.gitignore',
      'sub/gen/in ner/gen/kept.ts',
      'sub/gen/in ner/kept.ts',
      'sub/gen/kept.ts',
    ];
    expect(git(root, ['ls-files', '-coz', '--exclude-standard']).split('\0').filter(Boolean).sort()).toEqual(kept);
    expect(await walked(root)).toEqual(kept);
  });

  it('lets .polylogueignore win over .gitignore, at any depth', async () => {
    const root = tempTree({
      '.gitignore': '*.gen.ts\n',
      '.polylogueignore': '!*.gen.ts\n*.big\n',
      'a/.gitignore': '!x.big\n',
      'a/x.big': '',
      'a/api.gen.ts': '',
    });
    expect(await walked(root)).toEqual(['.gitignore', '.polylogueignore', 'a/.gitignore', 'a/api.gen.ts']);
  });

  it('honours the rules above the directory that was named', async () => {
    const root = tempTree({ '.gitignore': '*.tmp\n', 'a/b/x.tmp': '', 'a/b/x.ts': '' });
    expect(await walked(root, join(root, 'a/b'))).toEqual(['a/b/x.ts']);
  });

  it('walks an ignored directory that was named itself', async () => {
    const root = tempTree({
      '.gitignore': 'out/\n',
      'out/deep/x.ts': '',
      'out/deep/.gitignore': '*.o',
      'out/deep/x.o': '',
    });
    expect(await walked(root, join(root, 'out/deep'))).toEqual(['out/deep/.gitignore', 'out/deep/x.ts']);
  });

  it('starts anew in a repository within a repository', async () => {
    const root = tempTree({ '.gitignore': '*.ts\n!/inner/\n', 'inner/x.ts': '', 'inner/y.log': '', 'x.ts': '' });
    git(root, ['init', '-q']);
    mkdirSync(join(root, 'inner/.git/info'), { recursive: true });
    write(root, { 'inner/.git/info/exclude': '*.log\n' });
    expect(await walked(root)).toEqual(['.gitignore', 'inner/x.ts']);
  });

  it('finds info/exclude of a work tree of its own', async () => {
    const root = tempTree({ 'main/x.ts': '' });
    const main = join(root, 'main');
    git(main, ['init', '-q', '-b', 'main']);
    git(main, ['-c', 'user.name=n', '-c', 'user.email=e', 'commit', '-q', '--allow-empty', '-m', 'first']);
    git(main, ['worktree', 'add', '-q', '../tree']);
    write(root, { 'main/.git/info/exclude': '*.secretish\n', 'tree/a.secretish': '', 'tree/a.ts': '' });
    expect(await walked(root, join(root, 'tree'))).toEqual(['tree/.git', 'tree/a.ts']);
  });

  it('does not follow a rule file that is a link', async () => {
    const root = tempTree({ rules: '*.ts\n', 'a.ts': '' });
    symlinkSync('rules', join(root, '.gitignore'));
    expect(await walked(root)).toEqual(['a.ts', 'rules']);
  });

  it('leaves out patterns that would take for ever, and says so', async () => {
    const deep = `${'a/'.repeat(60)}`;
    const root = tempTree({
      '.gitignore': `${'**/a/'.repeat(12)}b\n*.log\n`,
      [`${deep}x.ts`]: '',
      [`${deep}x.log`]: '',
    });
    const started = processTime();
    const walk = await walkDirectory(createSandbox({ roots: [root], allowSecrets: false }), root, limits);
    expect(processTime() - started).toBeLessThan(5_000);
    expect(walk.files.map(path => relative(root, path))).toEqual(['.gitignore', `${deep}x.ts`]);
    expect(walk.skipped).toMatchObject([{ path: join(root, '.gitignore'), code: 'unreadable' }]);
    expect(walk.skipped[0]?.reason).toContain('1 of its patterns');
  });
});

import { execFileSync } from 'node:child_process';
import { closeSync, linkSync, mkdirSync, openSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isAppError } from '../../src/core/errors.ts';
import { type CollectOptions, collectFiles } from '../../src/workspace/collect-files.ts';
import { createSandbox } from '../../src/workspace/sandbox.ts';
import { longestTurn } from '../support/longest-turn.ts';
import { tempTree } from './temp-tree.ts';

const limits = { maxNamedFiles: 50, maxBytes: 10_485_760 };

async function collect(root: string, references: string[], options: Partial<CollectOptions> = {}) {
  const sandbox = createSandbox({ roots: [root], allowSecrets: false });
  const { files, skipped } = await collectFiles(sandbox, references, { root, home: '/home/u', ...limits, ...options });
  return { files, names: files.map(file => relative(root, file.path)), skipped };
}

const skips = (skipped: { path: string; code: string }[], root: string) =>
  skipped.map(({ path, code }) => [relative(root, path), code]).sort();

describe('collectFiles: what is named', () => {
  it('keeps the order and takes each file once, whatever it is called', async () => {
    const root = tempTree({ 'b.ts': 'b', 'a.ts': 'a' });
    symlinkSync('b.ts', join(root, 'link.ts'));
    const { names, files } = await collect(root, [
      'b.ts',
      'a.ts',
      './b.ts',
      'link.ts',
      join(root, 'b.ts'),
      `file://${root}/a.ts`,
    ]);
    expect(names).toEqual(['b.ts', 'a.ts']);
    expect(files.every(file => file.named)).toBe(true);
  });

  it('joins ranges of one file, and the whole file swallows them', async () => {
    const root = tempTree({ 'a.ts': '1\n2\n3\n4\n5\n', 'b.ts': '1\n2\n' });
    const { files } = await collect(root, ['a.ts:2-3', 'b.ts:1', 'a.ts:4', 'b.ts']);
    expect(files).toMatchObject([{ range: { from: 2, to: 4 } }, { path: join(root, 'b.ts') }]);
    expect(files[1]).not.toHaveProperty('range');
  });

  it('reports a range that does not exist and takes the others', async () => {
    const root = tempTree({ 'a.ts': '1\n2\n3\n4\n5\n' });
    const { files, skipped } = await collect(root, ['a.ts:2', 'a.ts:80-90', 'a.ts:3-1', 'a.ts:3-4']);
    expect(files).toMatchObject([{ range: { from: 2, to: 4 } }]);
    expect(skipped.map(each => `${each.path} ${each.code}`)).toEqual(['a.ts:80-90 bad_range', 'a.ts:3-1 bad_range']);
  });

  it('lists each file that cannot be read under the name it was given', async () => {
    const root = tempTree({ 'a.ts': 'a', '.env': 'KEY=1', 'b.bin': '\0', 'big.ts': 'x'.repeat(200), 'sub/x.ts': '' });
    const references = ['no.ts', '.env', 'b.bin', '../out.ts', 'big.ts', 'a.ts:9', 'sub:3', ''];
    const { names, skipped } = await collect(root, references, { maxBytes: 100 });
    expect(names).toEqual([]);
    expect(skipped.map(({ path, code }) => `${path} ${code}`).sort()).toEqual(
      [
        'no.ts not_found',
        '.env secret',
        'b.bin binary',
        '../out.ts outside_roots',
        'big.ts too_large',
        'sub:3 bad_range',
        'a.ts:9 bad_range',
        ' bad_path',
      ].sort(),
    );
  });

  it('refuses more than fifty named files, with the numbers', async () => {
    const root = tempTree({ 'a.ts': 'a' });
    const references = Array.from({ length: 51 }, (_, at) => `${at}.ts`);
    const error = await collect(root, references).catch((thrown: unknown) => thrown);
    expect(isAppError(error) && error.details).toMatchObject({
      code: 'LIMIT',
      class: 'files',
      data: { named: 51, limit: 50 },
    });
    expect((await collect(root, references.slice(1))).skipped).toHaveLength(50);
  });

  it('takes a file named in words that look like an option or a trick', async () => {
    const root = tempTree({ '--output=x': '1', 'a\nb.ts': '2', 'a\u202e.ts': '3' });
    const { names } = await collect(root, ['--output=x', 'a\nb.ts', 'a\u202e.ts']);
    expect(names).toEqual(['--output=x', 'a\nb.ts', 'a\u202e.ts']);
  });
});

describe('collectFiles: directories', () => {
  it('puts named files first, then source, tests, docs, configuration, logs and generated files, the smaller first', async () => {
    const root = tempTree({
      'src/big.ts': 'x'.repeat(50),
      'src/small.ts': 'x',
      'src/made.ts': '// @generated\n',
      'test/a.test.ts': 'x',
      'README.md': 'x',
      'package.json': '{}',
      'package-lock.json': '{}',
      'run.log': 'x',
      'named.ts': 'x',
    });
    const { names, files } = await collect(root, ['.', 'named.ts']);
    expect(names).toEqual([
      'named.ts',
      'src/small.ts',
      'src/big.ts',
      'test/a.test.ts',
      'README.md',
      'package.json',
      'run.log',
      'package-lock.json',
      'src/made.ts',
    ]);
    expect(files.map(file => file.named)).toEqual([true, ...Array.from({ length: 8 }, () => false)]);
  });

  it('does not enter hidden and build folders, but those that only sound like one', async () => {
    const root = tempTree({
      '.git/config': 'x',
      '.venv/a.py': 'x',
      'node_modules/m/i.js': 'x',
      'dist/a.js': 'x',
      'build/a.js': 'x',
      'target/a.rs': 'x',
      'p.egg-info/a.py': 'x',
      'env/pyvenv.cfg': 'x',
      'env/a.py': 'x',
      'vendor/modules.txt': 'x',
      'vendor/a.go': 'x',
      'cache/CACHEDIR.TAG': 'x',
      'cache/a.c': 'x',
      'sub/env/a.ts': 'x',
      'sub/vendor/a.ts': 'x',
      'sub/out/a.ts': 'x',
      'sub/constructor/a.ts': 'x',
      '.hidden.ts': 'x',
    });
    const { names } = await collect(root, ['.']);
    expect(names).toEqual(['.hidden.ts', 'sub/constructor/a.ts', 'sub/env/a.ts', 'sub/out/a.ts', 'sub/vendor/a.ts']);
  });

  it('enters a build or hidden folder that was named', async () => {
    const root = tempTree({ 'dist/a.js': 'x', '.github/ci.yml': 'x', 'env/pyvenv.cfg': 'x' });
    expect((await collect(root, ['dist', '.github', 'env'])).names).toEqual([
      'dist/a.js',
      '.github/ci.yml',
      'env/pyvenv.cfg',
    ]);
  });

  it('says what it could not read: binary, secret, too large, links, pipes', async () => {
    const root = tempTree({ 'a.ts': 'a', 'b.png': '\x89PNG\0', '.env': 'KEY=1', 'big.txt': 'x'.repeat(300) });
    symlinkSync('a.ts', join(root, 'in'));
    symlinkSync('/etc', join(root, 'out'));
    execFileSync('mkfifo', [join(root, 'pipe')]);
    const { names, skipped } = await collect(root, ['.'], { maxBytes: 100 });
    expect(names).toEqual(['a.ts']);
    expect(skips(skipped, root)).toEqual([
      ['.env', 'secret'],
      ['b.png', 'binary'],
      ['big.txt', 'too_large'],
      ['in', 'not_regular'],
      ['out', 'outside_roots'],
      ['pipe', 'not_regular'],
    ]);
  });

  it('says of an empty or wholly ignored directory that nothing was in it', async () => {
    const root = tempTree({ 'ignored/.gitignore': '*', 'ignored/a.ts': 'x' });
    mkdirSync(join(root, 'empty'));
    const { skipped } = await collect(root, ['empty', 'ignored']);
    expect(skipped).toMatchObject([
      { path: 'empty', code: 'empty_directory' },
      { path: 'ignored', code: 'empty_directory' },
    ]);
  });

  it('counts what it leaves out beyond the first twenty', async () => {
    const files = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`${at}.bin`, '\0']));
    const { skipped } = await collect(tempTree({ ...files, 'a.ts': 'a' }), ['.']);
    expect(skipped).toHaveLength(21);
    expect(skipped.at(-1)).toMatchObject({ code: 'binary', reason: expect.stringMatching(/39 more.*40 binary/) });
  });

  it('takes the best files of a directory that has too many, and says how many are left', async () => {
    const root = tempTree({ 'a.md': 'x', 'deep/er/b.ts': 'x', 'c.ts': 'x', 'd.json': 'x' });
    const { names, skipped } = await collect(root, ['.'], { maxFilesPerDirectory: 2 });
    expect(names).toEqual(['c.ts', 'deep/er/b.ts']);
    expect(skipped).toMatchObject([
      { path: '.', code: 'too_many_files', reason: expect.stringMatching(/^2 of its 4 files/) },
    ]);
  });

  it('stops at the bytes that directories have together', async () => {
    const root = tempTree({
      'a.ts': 'x'.repeat(60),
      'b.ts': 'x'.repeat(50),
      'c.md': 'x'.repeat(40),
      'named.ts': 'x'.repeat(90),
    });
    const { names, skipped } = await collect(root, ['.', 'named.ts'], { maxDirectoryBytes: 100 });
    expect(names).toEqual(['named.ts', 'b.ts', 'c.md']);
    expect(skips(skipped, root)).toEqual([['a.ts', 'over_budget']]);
  });

  it('takes a file of two directories once', async () => {
    const root = tempTree({ 'a/x.ts': 'x', 'a/b/y.ts': 'y' });
    expect((await collect(root, ['a/b', 'a', 'a/b/'])).names).toEqual(['a/b/y.ts', 'a/x.ts']);
  });

  it('gives the same answer every time', async () => {
    const root = tempTree(
      Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`${at % 7}/${at}.ts`, 'x'.repeat(at % 5)])),
    );
    const first = await collect(root, ['.']);
    expect((await collect(root, ['.'])).names).toEqual(first.names);
    expect(first.names).toHaveLength(200);
  });
});

describe('collectFiles: trees made to hurt', () => {
  it('survives circles of links', async () => {
    const root = tempTree({ 'a/b/x.ts': 'x' });
    symlinkSync('..', join(root, 'a/b/up'));
    symlinkSync('self', join(root, 'a/self'));
    const { names, skipped } = await collect(root, ['.']);
    expect(names).toEqual(['a/b/x.ts']);
    expect(skips(skipped, root)).toEqual([
      ['a/b/up', 'not_regular'],
      ['a/self', 'unreadable'],
    ]);
  });

  it('goes through a directory of 100,000 entries without holding up others', async () => {
    const root = tempTree({ 'keep.ts': 'x', '.gitignore': '*.f\n' });
    // More names for one file cost a third of a file each; a file may have 65,000 names on ext4.
    for (let at = 0; at < 100_000; at++) {
      const first = at - (at % 50_000);
      if (at === first) writeFileSync(join(root, `${at}.f`), '');
      else linkSync(join(root, `${first}.f`), join(root, `${at}.f`));
    }
    const longest = await longestTurn(async () =>
      expect((await collect(root, ['.'])).names).toEqual(['keep.ts', '.gitignore']),
    );
    expect(longest).toBeLessThan(1_500);
  });

  it('stops after as many entries as it may look at', async () => {
    const root = tempTree(Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`${at}.ts`, 'x'])));
    const { files, skipped } = await collect(root, ['.'], { maxEntries: 30 });
    expect(files).toHaveLength(30);
    expect(skipped).toMatchObject([{ code: 'too_many_files' }]);
  });

  it('stops at a depth that no project has', async () => {
    const root = tempTree({ 'a.ts': 'x', [`${'d/'.repeat(600)}deep.ts`]: 'x' });
    const { names, skipped } = await collect(root, ['.']);
    expect(names).toEqual(['a.ts']);
    expect(skipped).toMatchObject([{ code: 'too_many_files', reason: expect.stringContaining('100 levels') }]);
  });

  it('refuses a sparse file of 5 GB in passing', async () => {
    const root = tempTree({ 'a.ts': 'x', big: '' });
    truncateSync(join(root, 'big'), 5 * 2 ** 30);
    const { names, skipped } = await collect(root, ['.']);
    expect(names).toEqual(['a.ts']);
    expect(skips(skipped, root)).toEqual([['big', 'too_large']]);
  });

  it('reports a name that is no UTF-8', async () => {
    const root = tempTree({ 'a.ts': 'x' });
    closeSync(openSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0xfe])]), 'w'));
    const { names, skipped } = await collect(root, ['.']);
    expect(names).toEqual(['a.ts']);
    expect(skipped).toMatchObject([{ code: 'bad_path' }]);
  });

  it('stops when the signal is aborted', async () => {
    const root = tempTree(Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`${at % 40}/${at}.ts`, 'x'])));
    const controller = new AbortController();
    setImmediate(() => controller.abort());
    await expect(collect(root, ['.'], { signal: controller.signal })).rejects.toMatchObject({ kind: 'cancelled' });
  });
});

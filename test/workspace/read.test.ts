import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, chmodSync, linkSync, statSync, symlinkSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isSkip } from '../../src/workspace/paths.ts';
import { readBytes, readFile, readTextFile } from '../../src/workspace/read-file.ts';
import { createSandbox } from '../../src/workspace/sandbox.ts';
import { processTime } from '../support/own-time.ts';
import { tempTree } from './temp-tree.ts';

const read = (root: string, input: string, { roots = [root], maxBytes = 1_000_000 } = {}) =>
  readTextFile(createSandbox({ roots, allowSecrets: false }), input, { root, home: '/home/u', maxBytes });

async function codeOf(outcome: ReturnType<typeof read>): Promise<string> {
  const result = await outcome;
  return isSkip(result) ? result.code : 'read';
}

describe('readTextFile', () => {
  it('reads a text with its fingerprint', async () => {
    const bytes = Buffer.from('\ufeffa\r\nb\n');
    const root = tempTree({ 'a.ts': bytes });
    expect(await read(root, 'a.ts')).toEqual({
      file: {
        path: join(root, 'a.ts'),
        text: 'a\nb\n',
        lines: 2,
        size: bytes.length,
        mtimeMs: statSync(join(root, 'a.ts')).mtimeMs,
        sha256: createHash('sha256').update(bytes).digest('hex'),
      },
    });
  });

  it('reads an empty file', async () => {
    expect(await read(tempTree({ 'a.ts': '' }), 'a.ts')).toMatchObject({ file: { text: '', lines: 0, size: 0 } });
  });

  it.each([
    ['a.ts:2', { from: 2, to: 2 }],
    ['a.ts:2-3', { from: 2, to: 3 }],
    ['a.ts:2-99', { from: 2, to: 3 }],
  ])('cuts the range of %s to the lines there are, and keeps the text whole', async (input, range) => {
    const root = tempTree({ 'a.ts': '1\n2\n3\n' });
    expect(await read(root, input)).toMatchObject({ file: { text: '1\n2\n3\n' }, range });
  });

  it.each(['a.ts:0', 'a.ts:3-2', 'a.ts:4', 'a.ts:4-9', 'a.ts:999999999'])(
    'explains what lines there are for %s',
    async input => {
      const outcome = await read(tempTree({ 'a.ts': '1\n2\n3\n' }), input);
      expect(outcome).toMatchObject({
        path: input,
        code: 'bad_range',
        reason: expect.stringContaining('lines 1 to 3'),
      });
    },
  );

  it('says of an empty file that it has no lines', async () => {
    const outcome = await read(tempTree({ 'a.ts': '' }), 'a.ts:1');
    expect(outcome).toMatchObject({ code: 'bad_range', reason: expect.stringContaining('empty') });
  });

  it('prefers a file whose name ends like a range', async () => {
    const root = tempTree({ 'a:2': 'colon', a: '1\n2\n' });
    expect(await read(root, 'a:2')).toMatchObject({ file: { path: join(root, 'a:2'), text: 'colon' } });
    expect(await read(root, 'a:1')).toMatchObject({ file: { path: join(root, 'a') }, range: { from: 1, to: 1 } });
  });

  it('refuses a sparse file of 5 GB without reading it', async () => {
    const root = tempTree({ big: '' });
    truncateSync(join(root, 'big'), 5 * 2 ** 30);
    const started = processTime();
    expect(await codeOf(read(root, 'big'))).toBe('too_large');
    expect(processTime() - started).toBeLessThan(1_000);
  });

  it('counts the bytes it reads, to the byte', async () => {
    const root = tempTree({ 'a.ts': 'x'.repeat(100) });
    expect(await codeOf(read(root, 'a.ts', { maxBytes: 100 }))).toBe('read');
    expect(await codeOf(read(root, 'a.ts', { maxBytes: 99 }))).toBe('too_large');
  });

  it('reads what a file has grown to, up to the limit', async () => {
    const root = tempTree({ log: 'start\n' });
    const path = join(root, 'log');
    const sandbox = createSandbox({ roots: [root], allowSecrets: false });
    const openThenGrow = async (maxBytes: number) => {
      const opened = await sandbox.open(path);
      if ('code' in opened) throw new Error(opened.reason);
      appendFileSync(path, 'x'.repeat(3_000_000));
      return readBytes(opened, path, { maxBytes });
    };
    expect(await openThenGrow(4_000_000)).toHaveLength(3_000_006);
    expect(await openThenGrow(4_000_000)).toMatchObject({ code: 'too_large' });
  });

  it('takes a binary file, a file with a NUL and a file of control characters for binary', async () => {
    const root = tempTree({
      'a.ts': 'a\0b',
      'b.ts': Buffer.from([0x89, 0x50, 0x4e, 0x47, 1, 2, 0]),
      'c.ts': '\x01\x02',
    });
    for (const name of ['a.ts', 'b.ts', 'c.ts']) expect(await codeOf(read(root, name))).toBe('binary');
  });

  it('reads UTF-16 with a mark', async () => {
    const root = tempTree({ 'a.txt': Buffer.from('\ufeffné\r\n', 'utf16le') });
    expect(await read(root, 'a.txt')).toMatchObject({ file: { text: 'né\n', lines: 1 } });
  });

  it.each([
    ['nothing.ts', 'not_found'],
    ['sub', 'not_regular'],
    ['pipe', 'not_regular'],
    ['loop', 'unreadable'],
    ['out', 'outside_roots'],
    ['../x', 'outside_roots'],
    ['.env', 'secret'],
    ['hard', 'read'],
    ['/dev/zero', 'outside_roots'],
    ['/proc/self/mem', 'outside_roots'],
    ['file:///proc/self/environ', 'outside_roots'],
    ['~/x', 'outside_roots'],
    ['', 'bad_path'],
  ])('answers %j with %s', async (input, code) => {
    const root = tempTree({ 'sub/a.ts': 'a', '.env': 'KEY=1' });
    execFileSync('mkfifo', [join(root, 'pipe')]);
    symlinkSync('loop', join(root, 'loop'));
    symlinkSync('/etc/passwd', join(root, 'out'));
    linkSync(join(root, 'sub/a.ts'), join(root, 'hard'));
    const started = processTime();
    const outcome = await read(root, input);
    expect(processTime() - started).toBeLessThan(1_000);
    expect(isSkip(outcome) ? outcome.code : 'read').toBe(code);
    if (isSkip(outcome)) expect(outcome.reason).toMatch(/^[A-Z].*\.$/s);
  });

  it('is bounded even where a root lets it into /proc and /dev', async () => {
    const outcomes = ['/proc/self/mem', '/proc/self/environ', '/dev/zero', '/dev/full'].map(path =>
      codeOf(read('/', path, { roots: ['/proc', '/dev'], maxBytes: 1_000_000 })),
    );
    expect(await Promise.all(outcomes)).toEqual(['unreadable', 'binary', 'not_regular', 'not_regular']);
  });

  it('says that a file without read permission is unreadable', async () => {
    const root = tempTree({ 'a.ts': 'a' });
    chmodSync(root, 0o755);
    chmodSync(join(root, 'a.ts'), 0);
    // root may read everything, so it must not be root that tries
    const wasRoot = process.geteuid?.() === 0;
    if (wasRoot) process.seteuid?.(65_534);
    try {
      expect(await codeOf(read(root, 'a.ts'))).toBe('unreadable');
    } finally {
      if (wasRoot) process.seteuid?.(0);
    }
  });

  it('stops when the signal is aborted', async () => {
    const root = tempTree({ 'a.ts': 'a' });
    const sandbox = createSandbox({ roots: [root], allowSecrets: false });
    const options = { maxBytes: 10, signal: AbortSignal.abort() };
    await expect(readFile(sandbox, join(root, 'a.ts'), options)).rejects.toMatchObject({ kind: 'cancelled' });
  });
});

import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readFile } from '../../src/workspace/read-file.ts';
import { createSandbox } from '../../src/workspace/sandbox.ts';
import { tempTree } from './temp-tree.ts';

/** Some thousand tries, against more changes. */
const lastsMs = 400;
/** For a thread that a crowded machine does not let run. */
const mostMs = 30_000;

/** Runs `step` in a thread of its own, over and over, as fast as the machine can. */
function hammer(step: string, data: unknown): void {
  const source = `
    const fs = require('node:fs');
    const data = require('node:worker_threads').workerData;
    const step = ${step};
    for (;;) step(fs, data);`;
  const worker = new Worker(source, { eval: true, workerData: data });
  onTestFinished(async () => void (await worker.terminate()));
}

/** What comes of it, over and over, until each of these did. */
async function outcomesOf(expected: readonly string[], work: () => Promise<string>): Promise<Map<string, number>> {
  const outcomes = new Map<string, number>();
  const began = performance.now();
  const isOver = (ms: number) => ms > mostMs || (ms > lastsMs && expected.every(each => outcomes.has(each)));
  while (!isOver(performance.now() - began)) {
    const outcome = await work();
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }
  return outcomes;
}

describe.each([
  ['where descriptors are links', '/proc/self/fd'],
  ['where they are not', '/nowhere/fd'],
])('a file that changes while it is opened, %s', (_mode, descriptors) => {
  it.each([
    ['the file', 'app/a.txt', 'a.txt', 'outside/a.txt'],
    ['a folder above it', 'app/folder', 'folder/a.txt', 'outside'],
    ['a folder further up', 'app/folder', 'folder/deep/a.txt', 'outside'],
  ])('never gives out what is outside, however %s is swapped', async (_, swapped, asked, target) => {
    const root = tempTree({
      ...{ 'outside/a.txt': 'SECRET', 'outside/deep/a.txt': 'SECRET', 'app/a.txt': 'inside' },
      ...{ 'app/folder/a.txt': 'inside', 'app/folder/deep/a.txt': 'inside' },
    });
    const inside = join(root, swapped);
    symlinkSync(join(root, target), join(root, 'app/evil'));
    const sandbox = createSandbox({ roots: [join(root, 'app')], allowSecrets: false, descriptors });
    hammer(
      '(fs, { a, b, c }) => { fs.renameSync(a, c); fs.renameSync(b, a); fs.renameSync(a, b); fs.renameSync(c, a); }',
      { a: inside, b: join(root, 'app/evil'), c: join(root, 'app/aside') },
    );
    const outcomes = await outcomesOf(['inside', 'outside_roots'], async () => {
      const file = await readFile(sandbox, join(root, 'app', asked), { maxBytes: 100 });
      return 'code' in file ? file.code : file.text;
    });
    expect([...outcomes.keys()]).not.toContain('SECRET');
    expect(outcomes.get('inside')).toBeGreaterThan(0);
    expect(outcomes.get('outside_roots')).toBeGreaterThan(0);
  });

  it('never lists what is outside, however the folder is swapped', async () => {
    const root = tempTree({ 'outside/SECRET': '', 'app/folder/inside': '' });
    symlinkSync(join(root, 'outside'), join(root, 'app/evil'));
    const sandbox = createSandbox({ roots: [join(root, 'app')], allowSecrets: false, descriptors });
    hammer(
      '(fs, { a, b, c }) => { fs.renameSync(a, c); fs.renameSync(b, a); fs.renameSync(a, b); fs.renameSync(c, a); }',
      { a: join(root, 'app/folder'), b: join(root, 'app/evil'), c: join(root, 'app/aside') },
    );
    const outcomes = await outcomesOf(['inside'], async () => {
      const listing = await sandbox.list(join(root, 'app/folder'), 10);
      return 'code' in listing ? listing.code : listing.entries.map(entry => entry.name).join();
    });
    expect([...outcomes.keys()]).not.toContain('SECRET');
    expect(outcomes.get('inside')).toBeGreaterThan(0);
  });

  it('comes out as read or as missing when it vanishes and returns, and leaves nothing open', async () => {
    const root = tempTree();
    const path = join(root, 'a.txt');
    const sandbox = createSandbox({ roots: [root], allowSecrets: false, descriptors });
    const before = readdirSync('/proc/self/fd').length;
    hammer("(fs, path) => { fs.writeFileSync(path, 'text'); fs.rmSync(path); }", path);
    const outcomes = await outcomesOf(['not_found'], async () => {
      const file = await readFile(sandbox, path, { maxBytes: 100 });
      return 'code' in file ? file.code : 'read';
    });
    expect(outcomes.get('not_found')).toBeGreaterThan(0);
    for (const outcome of outcomes.keys()) expect(['read', 'not_found', 'unreadable']).toContain(outcome);
    // the thread that swaps has a few descriptors of its own
    expect(readdirSync('/proc/self/fd').length).toBeLessThan(before + 30);
  });

  it('is read when an editor saves by renaming all the time', async () => {
    const root = tempTree({ 'a.txt': 'text' });
    const sandbox = createSandbox({ roots: [root], allowSecrets: false, descriptors });
    mkdirSync(join(root, 'tmp'));
    writeFileSync(join(root, 'tmp/a'), 'text');
    hammer("(fs, { from, to }) => { fs.writeFileSync(from, 'text'); fs.renameSync(from, to); }", {
      from: join(root, 'tmp/a'),
      to: join(root, 'a.txt'),
    });
    const outcomes = await outcomesOf(['read'], async () => {
      const file = await readFile(sandbox, join(root, 'a.txt'), { maxBytes: 100 });
      return 'code' in file ? file.code : 'read';
    });
    // where the way is watched, a folder that never rests may also be refused; nobody may hear that the file is gone
    expect(outcomes.get('read')).toBeGreaterThan(0);
    expect(outcomes.has('not_found')).toBe(false);
  });
});

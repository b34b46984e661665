import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { execPath } from 'node:process';
import { expect, it, onTestFinished, vi } from 'vitest';
import { runTree } from '../../src/workspace/process-tree.ts';
import { realClock } from '../support/clock.ts';
import { waitUntil } from '../support/wait-until.ts';

/** Some programs that run until `signal` is aborted; resolves once all do. */
async function start(count: number, signal: AbortSignal, platform: string = process.platform) {
  let started = 0;
  const runs = Array.from({ length: count }, () =>
    runTree({
      file: execPath,
      args: ['-e', 'console.log("up"); setInterval(() => 1, 1000)'],
      cwd: process.cwd(),
      env: { MARK: 'process-tree-test' },
      mark: 'MARK=process-tree-test',
      platform,
      clock: realClock(),
      signal,
      graceMs: 0,
      onOutput: () => void started++,
    }),
  );
  await waitUntil('all programs run', () => started >= runs.length);
  return runs;
}

it('listens once for the end of this process, however many programs run, and leaves its limits as they are', async () => {
  const before = { limit: process.getMaxListeners(), listeners: process.listenerCount('exit') };
  const ender = new AbortController();
  const runs = await start(12, ender.signal);
  expect(process.getMaxListeners()).toBe(before.limit);
  expect(process.listenerCount('exit')).toBe(before.listeners + 1);
  ender.abort();
  await Promise.all(runs);
  expect(process.listenerCount('exit')).toBe(before.listeners);
});

it('ends all programs with this process, also where the system shows no processes', async () => {
  const before = process.listeners('exit');
  const ender = new AbortController();
  onTestFinished(() => ender.abort());
  const runs = await start(2, ender.signal, 'linux');
  const list = vi.spyOn(fs, 'readdirSync').mockImplementation(() => {
    throw new Error('EACCES: permission denied');
  });
  syncBuiltinESMExports();
  onTestFinished(() => {
    list.mockRestore();
    syncBuiltinESMExports();
  });
  for (const atExit of process.listeners('exit')) if (!before.includes(atExit)) atExit(0);
  expect(list).toHaveBeenCalled();
  expect((await Promise.all(runs)).map(({ signal }) => signal)).toEqual(['SIGKILL', 'SIGKILL']);
});

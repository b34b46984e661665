import { execPath } from 'node:process';
import { expect, it } from 'vitest';
import { runTree } from '../../src/workspace/process-tree.ts';
import { realClock } from '../support/clock.ts';
import { waitUntil } from '../support/wait-until.ts';

it('listens once for the end of this process, however many programs run, and leaves its limits as they are', async () => {
  const before = { limit: process.getMaxListeners(), listeners: process.listenerCount('exit') };
  const ender = new AbortController();
  let started = 0;
  const runs = Array.from({ length: 12 }, () =>
    runTree({
      file: execPath,
      args: ['-e', 'console.log("up"); setInterval(() => 1, 1000)'],
      cwd: process.cwd(),
      env: { MARK: 'process-tree-test' },
      mark: 'MARK=process-tree-test',
      platform: process.platform,
      clock: realClock(),
      signal: ender.signal,
      graceMs: 0,
      onOutput: () => void started++,
    }),
  );
  await waitUntil('all programs run', () => started >= runs.length);
  expect(process.getMaxListeners()).toBe(before.limit);
  expect(process.listenerCount('exit')).toBe(before.listeners + 1);
  ender.abort();
  await Promise.all(runs);
  expect(process.listenerCount('exit')).toBe(before.listeners);
});

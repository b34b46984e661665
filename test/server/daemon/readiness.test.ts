import { expect, it } from 'vitest';
import { storageError } from '../../../src/core/errors.ts';
import { createReadiness } from '../../../src/server/daemon/daemon.ts';
import { aheadBy, manualClock, realClock } from '../../support/clock.ts';
import { testDaemon } from '../../support/daemon.ts';
import { startRedis } from '../../support/redis-server.ts';
import { tempProject } from '../../support/temp-project.ts';

it('a store is looked at once in three seconds at the most, and what is wrong with it is said', async () => {
  const clock = manualClock();
  const answers: (() => Promise<unknown>)[] = [
    async () => 'mark',
    () => Promise.reject(storageError('unavailable', 'The disk is gone.')),
    () => Promise.reject(new Error('secret path')),
    () => new Promise(() => {}),
  ];
  let looks = 0;
  const notReady = createReadiness(() => answers[looks++]!(), clock);
  expect([await notReady(), await notReady(), looks]).toEqual([undefined, undefined, 1]);
  await clock.advance(3_000);
  expect(await notReady()).toBe('The disk is gone.');
  await clock.advance(3_000);
  expect(await notReady()).toBe('The store failed.');
  await clock.advance(3_000);
  const late = notReady();
  await clock.advance(2_000);
  expect([await late, looks, clock.pending()]).toEqual(['The store does not answer.', 4, 0]);
});

it('a Redis that can be read and takes no writes is not ready', async () => {
  const [server, project] = await Promise.all([startRedis(), tempProject()]);
  // Each time it is asked three seconds after it looked last.
  let ahead = 0;
  const clock = aheadBy(realClock(), () => ahead);
  const env = { POLYLOGUE_STORE: 'redis', REDIS_URL: server.url };
  const daemon = await testDaemon({ root: project.root, env, clock });
  const answer = async () => {
    ahead += 3_000;
    return (await daemon.ask('/readyz')).status;
  };
  expect(await answer()).toBe(200);
  await server.command('CONFIG', 'SET', 'maxmemory', '1');
  await expect.poll(answer, { timeout: 20_000, interval: 200 }).toBe(503);
  await server.command('CONFIG', 'SET', 'maxmemory', '0');
  await expect.poll(answer, { timeout: 20_000, interval: 200 }).toBe(200);
  await daemon.close();
  await Promise.all([server.dispose(), project.dispose()]);
});

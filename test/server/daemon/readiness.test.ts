import { expect, it } from 'vitest';
import { storageError } from '../../../src/core/errors.ts';
import { createReadiness } from '../../../src/server/daemon/daemon.ts';
import { manualClock } from '../../support/clock.ts';

it('a store is looked at once a second at the most, and what is wrong with it is said', async () => {
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
  await clock.advance(1_000);
  expect(await notReady()).toBe('The disk is gone.');
  await clock.advance(1_000);
  expect(await notReady()).toBe('The store failed.');
  await clock.advance(1_000);
  const late = notReady();
  await clock.advance(2_000);
  expect([await late, looks, clock.pending()]).toEqual(['The store does not answer.', 4, 0]);
});

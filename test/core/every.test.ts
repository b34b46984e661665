import { expect, it } from 'vitest';
import { every } from '../../src/core/concurrency.ts';
import { manualClock } from '../support/clock.ts';

it('repeats a work after each that is done, and no more once it is stopped, also in the middle of one', async () => {
  const clock = manualClock();
  const begun: PromiseWithResolvers<void>[] = [];
  const work = () => {
    const one = Promise.withResolvers<void>();
    begun.push(one);
    return one.promise;
  };
  const stop = every(clock, 100, work, 10);
  await clock.advance(10);
  expect(begun).toHaveLength(1);
  // The next one waits for this one.
  await clock.advance(1_000);
  expect(begun).toHaveLength(1);
  begun[0]?.resolve();
  await clock.advance(0);
  await clock.advance(100);
  expect(begun).toHaveLength(2);
  stop();
  begun[1]?.resolve();
  await clock.advance(1_000);
  expect(begun).toHaveLength(2);
  expect(clock.pending()).toBe(0);
});

it('does not begin where it is stopped before', async () => {
  const clock = manualClock();
  every(clock, 100, () => expect.fail('it was stopped'))();
  await clock.advance(1_000);
  expect(clock.pending()).toBe(0);
});

import { expect, it } from 'vitest';
import { createProcessLease } from '../../../src/calls/durable/process-lease.ts';
import { createMemoryStore } from '../../../src/storage/memory/memory.ts';
import { manualClock } from '../../support/clock.ts';

it('is seen by others from the beginning of a job on, also right after the store was gone for a while', async () => {
  const clock = manualClock();
  const whole = createMemoryStore();
  let isGone = false;
  let leases = 0;
  const lease: typeof whole.lease = async (...args) => {
    leases += 1;
    if (isGone) throw new Error('gone');
    return whole.lease(...args);
  };
  const parts = { store: { ...whole, lease }, clock, emit() {} };
  const holding = createProcessLease({ ...parts, holder: 'one' });
  const other = createProcessLease({ ...parts, store: whole, holder: 'two' });

  await Promise.all([holding.begin(), holding.begin(), holding.begin()]);
  await clock.advance(1_900);
  await holding.begin();
  expect(leases).toBe(1);
  expect(await other.isDead('one')).toBe(false);

  isGone = true;
  await clock.advance(9_000);
  isGone = false;
  await holding.begin();
  expect(await other.isDead('one')).toBe(false);

  for (let each = 0; each < 5; each += 1) holding.end();
  await holding.close();
  expect(await other.isDead('one')).toBe(true);
  expect(clock.pending()).toBe(0);
});

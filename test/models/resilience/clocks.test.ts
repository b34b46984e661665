import { describe, expect, it } from 'vitest';
import { limitsFor, startTimeouts } from '../../../src/models/resilience/limiter.ts';
import { manualClock } from '../../support/clock.ts';

const limits = { firstByteMs: 120_000, idleMs: 60_000, totalMs: 300_000 };

function start(parent = new AbortController().signal, remainingMs = limits.totalMs) {
  const clock = manualClock();
  return { clock, clocks: startTimeouts({ clock, limits, remainingMs, parent }) };
}

describe('the clocks of an attempt', () => {
  it('end it when no byte came in time', async () => {
    const { clock, clocks } = start();
    await clock.advance(119_999);
    expect(clocks.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(clocks.signal.aborted).toBe(true);
    expect(clocks.expired()?.details).toMatchObject({
      class: 'timeout',
      retryable: true,
      data: { clock: 'first_byte' },
    });
    expect(clocks.expired()?.message).toContain('120 s');
  });

  it('end it when the answer stalls', async () => {
    const { clock, clocks } = start();
    clocks.progress(1);
    await clock.advance(50_000);
    clocks.progress(100);
    await clock.advance(59_999);
    expect(clocks.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(clocks.expired()?.details.data).toMatchObject({ clock: 'idle' });
    expect(clocks.expired()?.message).toContain('nothing more');
  });

  it('begin with the first character, and go on with as few as count as an answer', async () => {
    const { clock, clocks } = start();
    clocks.progress(0);
    await clock.advance(100_000);
    clocks.progress(1);
    await clock.advance(50_000);
    clocks.progress(16);
    await clock.advance(50_000);
    expect(clocks.signal.aborted).toBe(false);
    clocks.progress(15);
    await clock.advance(10_000);
    expect(clocks.expired()?.message).toContain(`15 characters`);
  });

  it('do not take a slow drip for progress', async () => {
    const { clock, clocks } = start();
    for (let second = 0; second < 75 && !clocks.signal.aborted; second += 5) {
      clocks.progress(1);
      await clock.advance(5000);
    }
    expect(clocks.expired()?.details.data).toMatchObject({ clock: 'idle' });
    expect(clocks.expired()?.message).toContain('characters');
  });

  it('end it at the total, however lively it is, and that is not tried again', async () => {
    const { clock, clocks } = start(undefined, 100_000);
    for (let second = 0; second < 100; second++) {
      clocks.progress(1000);
      await clock.advance(1000);
    }
    expect(clocks.expired()?.details).toMatchObject({ retryable: false, data: { clock: 'total' } });
  });

  it('pass the caller on, with its reason and without an expiry', () => {
    const caller = new AbortController();
    const { clocks } = start(caller.signal);
    caller.abort('enough');
    expect(clocks.signal.reason).toBe('enough');
    expect(clocks.expired()).toBeUndefined();
    expect(start(caller.signal).clocks.signal.reason).toBe('enough');
  });

  it('blame no limit for what the caller ended before', async () => {
    const caller = new AbortController();
    const { clock, clocks } = start(caller.signal);
    caller.abort();
    await clock.advance(300_000);
    expect(clocks.expired()).toBeUndefined();
  });

  it('leave no timer behind', () => {
    const { clock, clocks } = start();
    clocks.progress(100);
    clocks.stop(false);
    expect(clock.pending()).toBe(0);
    expect(clocks.signal.aborted).toBe(false);
    clocks.stop(true);
    expect(clocks.signal.aborted).toBe(true);
  });

  it('wait only briefly for the end of the stream once the answer is finished', async () => {
    const { clock, clocks } = start();
    clocks.settle();
    await clock.advance(1000);
    expect(clocks.signal.aborted).toBe(true);
  });
});

describe('limitsFor', () => {
  it('gives reasoning models and local endpoints more, and leaves what the caller set', () => {
    expect(limitsFor(limits, { reasoning: false, local: false })).toEqual(limits);
    expect(limitsFor(limits, { reasoning: true, local: false })).toEqual({
      firstByteMs: 480_000,
      idleMs: 240_000,
      totalMs: 1_200_000,
    });
    expect(limitsFor(limits, { reasoning: true, local: true }).idleMs).toBe(600_000);
    expect(limitsFor(limits, { reasoning: true, local: true }, { totalMs: 5 })).toMatchObject({
      totalMs: 5,
      idleMs: 600_000,
    });
    expect(limitsFor({ ...limits, exact: true }, { reasoning: true, local: true }).totalMs).toBe(limits.totalMs);
  });
});

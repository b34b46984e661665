import { performance } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../src/core/ports.ts';

export interface ManualClock extends Clock {
  /**
   * Moves time on by `ms` and fires every timer and sleep that falls due, in the order of their times; what they start in
   * turn is fired too when it falls into the same stretch. Await it: between two timers the event loop gets a turn.
   */
  advance(ms: number): Promise<void>;
  /** Timers and sleeps that have not fired yet. */
  pending(): number;
}

interface Timer {
  at: number;
  run: () => void;
}

/** A clock that stands still until a test moves it. `start` is the time of day in epoch milliseconds. */
export function manualClock(start = 1_800_000_000_000): ManualClock {
  let elapsed = 0;
  const timers = new Set<Timer>();

  const after = (ms: number, run: () => void): (() => void) => {
    const timer = { at: elapsed + Math.max(0, ms), run };
    timers.add(timer);
    return () => void timers.delete(timer);
  };

  const earliest = (until: number): Timer | undefined => {
    let found: Timer | undefined;
    for (const timer of timers) if (timer.at <= until && (!found || timer.at < found.at)) found = timer;
    return found;
  };

  return {
    now: () => start + elapsed,
    monotonic: () => elapsed,
    storeTime: () => start + elapsed,
    sinceBoot: () => ({ boot: `manual ${start}`, ms: elapsed }),
    after,
    sleep: (ms, signal) => sleepOn(after, ms, signal),
    pending: () => timers.size,
    async advance(ms) {
      const until = elapsed + ms;
      await turn();
      for (let timer = earliest(until); timer; timer = earliest(until)) {
        timers.delete(timer);
        elapsed = Math.max(elapsed, timer.at);
        timer.run();
        await turn();
      }
      elapsed = until;
    },
  };
}

/** The machine's own clock, for tests that talk to real sockets. */
export function realClock(): Clock {
  const after = (ms: number, run: () => void): (() => void) => {
    const timer = setTimeout(run, ms).unref();
    return () => clearTimeout(timer);
  };
  const awake = (ms: number, run: () => void): (() => void) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  };
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    storeTime: () => Date.now(),
    sinceBoot: () => ({ boot: 'real', ms: Number(process.hrtime.bigint() / 1_000n) / 1_000 }),
    after,
    sleep: (ms, signal) => sleepOn(awake, ms, signal),
  };
}

/** The clock as if `ms()` more had passed, by all that it tells. */
export function aheadBy(clock: Clock, ms: () => number): Clock {
  const { boot } = clock.sinceBoot();
  return {
    ...clock,
    now: () => clock.now() + ms(),
    monotonic: () => clock.monotonic() + ms(),
    storeTime: () => clock.storeTime() + ms(),
    sinceBoot: () => ({ boot, ms: clock.sinceBoot().ms + ms() }),
  };
}

function sleepOn(after: Clock['after'], ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const abort = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = after(ms, () => {
      signal?.removeEventListener('abort', abort);
      resolve();
    });
    signal?.addEventListener('abort', abort, { once: true });
  });
}

import { performance } from 'node:perf_hooks';
import type { Clock } from '../../src/core/ports.ts';
import { realClock } from './clock.ts';

/** What is longer between two looks, the machine spent on something else: that time does not pass. */
const mostMs = 4;
const stepMs = 3;

/**
 * A clock that runs `factor` times as fast as this process is let run: pauses of half a minute pass in a moment, sockets take
 * what they take, and a machine that did something else for a second lets no limit run out.
 */
export function fastClock(factor: number, start = Date.now()): Clock {
  const real = realClock();
  let passed = 0;
  let last = performance.now();
  const look = () => {
    const now = performance.now();
    passed += Math.min(mostMs, now - last);
    last = now;
    return passed;
  };
  const after = (ms: number, run: () => void): (() => void) => {
    const due = look() + ms / factor;
    let stop = () => {};
    const step = () => {
      const left = due - look();
      if (left <= 0) run();
      else stop = real.after(Math.min(stepMs, left), step);
    };
    stop = real.after(Math.min(stepMs, ms / factor), step);
    return () => stop();
  };
  return {
    now: () => start + look() * factor,
    monotonic: () => look() * factor,
    storeTime: () => start + look() * factor,
    sinceBoot: () => ({ boot: `fast ${start}`, ms: look() * factor }),
    after,
    async sleep(ms, signal) {
      signal?.throwIfAborted();
      for (const due = look() + ms / factor; look() < due; )
        await real.sleep(Math.min(stepMs, Math.max(1, due - passed)), signal);
    },
  };
}

/** What `sharedFastClock` begins at: of the machine's clock that never jumps, the same in all processes. */
export function clockOrigin(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

/** `factor` times as fast as the machine's time since `origin`: processes with the same origin read the same time. */
export function sharedFastClock(factor: number, origin: number): Clock {
  const real = realClock();
  const monotonic = () => (clockOrigin() - origin) * factor;
  const now = () => 1_800_000_000_000 + monotonic();
  return {
    now,
    monotonic,
    storeTime: now,
    sinceBoot: () => ({ boot: 'shared', ms: monotonic() }),
    after: (ms, run) => real.after(ms / factor, run),
    sleep: (ms, signal) => real.sleep(ms / factor, signal),
  };
}

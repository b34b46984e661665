import type { Clock } from '../../src/domain/ports.ts';
import { realClock } from './clock.ts';

/**
 * The machine's clock, running `factor` times as fast since `origin` (epoch milliseconds): pauses of half a minute pass in a
 * moment while sockets take what they take. Processes with the same origin read the same time.
 */
export function fastClock(factor: number, origin = Date.now()): Clock {
  const real = realClock();
  return {
    now: () => origin + (Date.now() - origin) * factor,
    monotonic: () => real.monotonic() * factor,
    after: (ms, run) => real.after(ms / factor, run),
    sleep: (ms, signal) => real.sleep(ms / factor, signal),
  };
}

import { performance } from 'node:perf_hooks';

const everyMs = 5;
/** A longer gap between two ticks is time in which the machine did something else. */
const mostMs = 25;

/**
 * Counts how long this process waits from now on, in milliseconds, without the time in which the machine did not let it run
 * at all. Only for work that leaves the event loop free; the answer is read once.
 */
export function waitedTime(): () => number {
  let waited = 0;
  let last = performance.now();
  const look = () => {
    const now = performance.now();
    waited += Math.min(mostMs, now - last);
    last = now;
  };
  const timer = setInterval(look, everyMs);
  return () => {
    clearInterval(timer);
    look();
    return waited;
  };
}

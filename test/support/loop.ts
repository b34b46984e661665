import { performance } from 'node:perf_hooks';

const everyMs = 5;

/** Watches whether the event loop keeps ticking; the result says how often it did, and the longest pause in ms. */
export function watchLoop(): () => { ticks: number; longest: number } {
  let last = performance.now();
  let longest = 0;
  let ticks = 0;
  const look = () => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  };
  const timer = setInterval(() => {
    ticks++;
    look();
  }, everyMs);
  return () => {
    clearInterval(timer);
    look();
    return { ticks, longest };
  };
}

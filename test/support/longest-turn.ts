import { ownTime } from './own-time.ts';

/**
 * The longest time, in milliseconds of this thread's own processor time, that anything else had to wait for its turn while
 * `work` went on. Time that other programs took is not counted.
 */
export async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = ownTime();
  let going = true;
  const tick = () => {
    const now = ownTime();
    longest = Math.max(longest, now - last);
    last = now;
    if (going) setImmediate(tick);
  };
  setImmediate(tick);
  await work();
  tick();
  going = false;
  return longest;
}

import { ownTime } from './own-time.ts';

/**
 * The longest time, in milliseconds of this thread's own processor time, that anything else had to wait for its turn while
 * `work` went on. Time that other programs took is not counted. A processor that is shared or just cleans up can only make
 * it longer: `work` is done up to three times, until that time is below `enough`.
 */
export async function longestTurn(work: () => Promise<unknown>, enough = Number.POSITIVE_INFINITY): Promise<number> {
  let shortest = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 3 && (run === 0 || shortest >= enough); run++)
    shortest = Math.min(shortest, await turnIn(work));
  return shortest;
}

async function turnIn(work: () => Promise<unknown>): Promise<number> {
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

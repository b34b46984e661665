/**
 * The longest time, in milliseconds of this thread's own processor time, that anything else had to wait for its turn while
 * `work` went on. Time that other programs took is not counted.
 */
export async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  const used = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  };
  let longest = 0;
  let last = used();
  let going = true;
  const tick = () => {
    const now = used();
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

/** Runs over all items, at most `limit` at a time; results are in the order of the items. The first failure ends it. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  limit: number,
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const queue = items.entries();
  let failed = false;
  async function work(): Promise<void> {
    for (const [index, item] of queue) {
      if (failed) return;
      try {
        results[index] = await run(item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  }
  const workers = Array.from({ length: Math.min(limit, items.length) }, work);
  // every worker is waited for, so that nothing goes on behind a call that has failed
  const settled = await Promise.allSettled(workers);
  for (const outcome of settled) if (outcome.status === 'rejected') throw outcome.reason;
  return results;
}

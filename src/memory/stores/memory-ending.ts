import type { ThreadId } from '../../core/ids.ts';
import type { ThreadHead } from '../../core/thread.ts';
import type { Unused } from '../../storage/store.ts';

/** The threads that a prune takes: whose time is over, but for originals of forks that stay. */
export function endingThreads(
  threads: ReadonlyMap<ThreadId, { head: ThreadHead }>,
  now: number,
  unused: Unused | undefined,
): Set<ThreadId> {
  const isOver = ({ expiresAt, owner, updatedAt }: ThreadHead) =>
    expiresAt <= now || (unused !== undefined && owner === unused.owner && updatedAt < unused.since);
  const ending = new Set<ThreadId>();
  for (const [id, { head }] of threads) if (isOver(head)) ending.add(id);
  for (const [id, { head }] of threads) {
    if (ending.has(id)) continue;
    for (let at = head.parent?.thread; at !== undefined && ending.delete(at); )
      at = threads.get(at)?.head.parent?.thread;
  }
  return ending;
}

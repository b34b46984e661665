import type { ThreadId } from '../../core/ids.ts';
import type { Store, ThreadChange } from '../../storage/store.ts';

/** Changes of one thread that nobody waits for one by one: a store takes what came together in one go. */
export interface Commits {
  /** `weight`: characters that wait in memory with it. Throws what an earlier change failed with. */
  add(change: ThreadChange, weight: number): Promise<void>;
  settled(): Promise<void>;
}

const mostWaiting = 64;
const mostWeight = 8 * 1024 * 1024;

export function createCommits(store: Store, id: ThreadId): Commits {
  let waiting: Promise<number>[] = [];
  let total = 0;

  async function settled(): Promise<void> {
    const all = waiting;
    waiting = [];
    total = 0;
    await Promise.all(all);
  }

  return {
    async add(change, weight) {
      const commit = store.commit(id, change);
      // What it failed with is thrown by `settled`, which may come later.
      commit.catch(() => {});
      waiting.push(commit);
      total += weight;
      if (waiting.length >= mostWaiting || total >= mostWeight) await settled();
    },
    settled,
  };
}

import { isThreadId } from '../../domain/ids.ts';
import type { Unused } from '../store.ts';
import { inBatches } from './redis-blobs.ts';
import type { RedisFacts } from './redis-facts.ts';
import type { RedisJobs } from './redis-jobs.ts';
import { ownerHash } from './redis-keys.ts';
import { endedRanges, isOver } from './redis-prunable.ts';
import { allTextsOf } from './redis-script.ts';
import type { RedisSpend } from './redis-spend.ts';
import type { RedisParts, RedisThreads } from './redis-threads.ts';
import { tombstoneLifeMs } from './thread-change.ts';

const step = 200;

/** Tidies up what expired, owner by owner. The server would forget all of it by itself, only later. */
export function redisPrune(
  { wire, keys }: RedisParts,
  { threads, jobs, facts, spend }: { threads: RedisThreads; jobs: RedisJobs; facts: RedisFacts; spend: RedisSpend },
): (now: number, unused?: Unused) => Promise<number> {
  async function hasForks(id: string): Promise<boolean> {
    const name = `${keys.thread(id).head}:forks`;
    const forks = allTextsOf(await wire.send(name, ['SMEMBERS', name]));
    const found = await inBatches(forks.filter(isThreadId), fork => threads.find(fork));
    return found.some(({ state }) => state === 'stored');
  }

  /** True when the thread went. An index entry without a thread that ended goes, too. */
  async function bury(id: string, name: string, now: number, unused: Unused | undefined): Promise<boolean> {
    const found = isThreadId(id) ? await threads.find(id) : undefined;
    if (found?.state !== 'stored') {
      await wire.send(name, ['ZREM', name, id]);
      return false;
    }
    const { head } = found.value;
    if (!isOver(head, now, unused)) {
      const { ends } = keys.owner(ownerHash(head.owner));
      if (name === ends) await wire.send(ends, ['ZADD', ends, 'XX', String(head.expiresAt), id]);
      return false;
    }
    return !(await hasForks(id)) && threads.bury(found.value, head.expiresAt <= now ? 'expired' : 'deleted', now);
  }

  async function buryEnded(owner: string, now: number, unused: Unused | undefined): Promise<number> {
    let total = 0;
    // Again, because a thread that others were forked off may go once they went.
    for (let last = -1; last !== total; ) {
      last = total;
      for (const [name, until] of endedRanges(keys, owner, now, unused)) {
        for (let at = 0; ; at += step) {
          const range = ['ZRANGE', name, '-inf', until, 'BYSCORE', 'LIMIT', String(at), String(step)];
          const ids = allTextsOf(await wire.send(name, range));
          const gone = (await inBatches(ids, id => bury(id, name, now, unused))).filter(Boolean).length;
          total += gone;
          at -= gone;
          if (ids.length < step) break;
        }
      }
    }
    return total;
  }

  async function forget(owner: string, now: number): Promise<void> {
    const { gone } = keys.owner(owner);
    const range = ['ZRANGE', gone, '-inf', String(now - tombstoneLifeMs), 'BYSCORE'];
    const ids = allTextsOf(await wire.send(gone, range));
    await inBatches(ids, async id => {
      // It may have come back since, also with somebody else.
      const found = isThreadId(id) ? await threads.find(id) : undefined;
      if (found?.state !== 'stored') await wire.send(keys.thread(id).head, ['UNLINK', keys.thread(id).head]);
    });
    if (ids.length > 0) await wire.send(gone, ['ZREM', gone, ...ids]);
  }

  return async (now, unused) => {
    await facts.dropExpiredFacts(now);
    let total = 0;
    for (const owner of allTextsOf(await wire.send(keys.owners, ['SMEMBERS', keys.owners]))) {
      await forget(owner, now);
      await jobs.dropExpired(owner, now);
      total += await buryEnded(owner, now, unused);
      await spend.prune(owner, now);
    }
    return total;
  };
}

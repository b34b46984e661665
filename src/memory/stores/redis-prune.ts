import { isThreadId } from '../../domain/ids.ts';
import { inBatches } from './redis-blobs.ts';
import type { RedisFacts } from './redis-facts.ts';
import type { RedisJobs } from './redis-jobs.ts';
import { unlessDamaged } from './redis-rows.ts';
import { allTextsOf } from './redis-script.ts';
import type { RedisSpend } from './redis-spend.ts';
import type { RedisParts, RedisThreads } from './redis-threads.ts';
import { tombstoneLifeMs } from './thread-change.ts';

const step = 200;

/** Tidies up what expired, owner by owner. The server would forget all of it by itself, only later. */
export function redisPrune(
  { wire, keys }: RedisParts,
  { threads, jobs, facts, spend }: { threads: RedisThreads; jobs: RedisJobs; facts: RedisFacts; spend: RedisSpend },
): (now: number) => Promise<number> {
  async function hasForks(id: string): Promise<boolean> {
    const name = `${keys.thread(id).head}:forks`;
    const forks = allTextsOf(await wire.send(name, ['SMEMBERS', name]));
    const found = await inBatches(forks.filter(isThreadId), fork => unlessDamaged(threads.find(fork)));
    return found.some(fork => !fork || fork.state === 'stored');
  }

  /** True when the thread went. An index entry without a thread that expired goes, too. */
  async function bury(id: string, ends: string, now: number): Promise<boolean> {
    const found = isThreadId(id) ? await unlessDamaged(threads.find(id)) : undefined;
    // One that is damaged goes when the server forgets it.
    if (found?.state !== 'stored') {
      await wire.send(ends, ['ZREM', ends, id]);
      return false;
    }
    const { expiresAt } = found.value.head;
    if (expiresAt > now) {
      await wire.send(ends, ['ZADD', ends, 'XX', String(expiresAt), id]);
      return false;
    }
    return !(await hasForks(id)) && threads.bury(found.value, 'expired', now);
  }

  async function buryExpired(owner: string, now: number): Promise<number> {
    const { ends } = keys.owner(owner);
    let total = 0;
    // Again, because a thread that others were forked off may go once they went.
    for (let last = -1; last !== total; ) {
      last = total;
      for (let at = 0; ; at += step) {
        const range = ['ZRANGE', ends, '-inf', String(now), 'BYSCORE', 'LIMIT', String(at), String(step)];
        const ids = allTextsOf(await wire.send(ends, range));
        const gone = (await inBatches(ids, id => bury(id, ends, now))).filter(Boolean).length;
        total += gone;
        at -= gone;
        if (ids.length < step) break;
      }
    }
    return total;
  }

  async function forget(owner: string, now: number): Promise<void> {
    const { gone } = keys.owner(owner);
    const range = ['ZRANGE', gone, '-inf', String(now - tombstoneLifeMs), 'BYSCORE'];
    const ids = allTextsOf(await wire.send(gone, range));
    await inBatches(ids, id => wire.send(keys.thread(id).head, ['UNLINK', keys.thread(id).head]));
    if (ids.length > 0) await wire.send(gone, ['ZREM', gone, ...ids]);
  }

  return async now => {
    await facts.dropExpiredFacts(now);
    let total = 0;
    for (const owner of allTextsOf(await wire.send(keys.owners, ['SMEMBERS', keys.owners]))) {
      await forget(owner, now);
      await jobs.dropExpired(owner, now);
      total += await buryExpired(owner, now);
      await spend.prune(owner, now);
    }
    return total;
  };
}

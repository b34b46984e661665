import { isThreadId } from '../../core/ids.ts';
import { inBatches } from '../../memory/stores/redis-blobs.ts';
import { forksOf, isUnused } from '../../memory/stores/redis-prunable.ts';
import { tombstoneLifeMs } from '../../memory/stores/thread-change.ts';
import type { Unused } from '../store.ts';
import type { RedisFacts } from './facts.ts';
import type { RedisJobs } from './jobs.ts';
import { ownerHash } from './keys.ts';
import { unlessDamaged } from './records.ts';
import { allTextsOf } from './script.ts';
import type { RedisSpend } from './spend.ts';
import type { RedisParts, RedisThreads } from './threads.ts';

const step = 200;

/** Tidies up what expired, owner by owner. The server would forget all of it by itself, only later. */
export function redisPrune(
  { wire, keys }: RedisParts,
  { threads, jobs, facts, spend }: { threads: RedisThreads; jobs: RedisJobs; facts: RedisFacts; spend: RedisSpend },
): (now: number, unused?: Unused) => Promise<number> {
  const parts = { wire, keys };
  const hasForks = async (id: string) => (await forksOf(parts, threads, id)).length > 0;

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

  /** The same before its time, if nobody used it since. */
  async function buryUnused(id: string, unused: Unused, now: number): Promise<boolean> {
    const found = isThreadId(id) ? await unlessDamaged(threads.find(id)) : undefined;
    if (found?.state !== 'stored' || !isUnused(found.value.head, unused)) return false;
    return !(await hasForks(id)) && threads.bury(found.value, 'unused', now);
  }

  /** Goes through a list up to a score; what goes leaves the list. */
  async function buryAll(list: string, upTo: string, end: (id: string) => Promise<boolean>): Promise<number> {
    let total = 0;
    for (let at = 0; ; at += step) {
      const range = ['ZRANGE', list, '-inf', upTo, 'BYSCORE', 'LIMIT', String(at), String(step)];
      const ids = allTextsOf(await wire.send(list, range));
      const gone = (await inBatches(ids, end)).filter(Boolean).length;
      total += gone;
      at -= gone;
      if (ids.length < step) return total;
    }
  }

  async function buryOver(owner: string, now: number, unused: Unused | undefined): Promise<number> {
    const { ends, threads: byUse } = keys.owner(owner);
    let total = 0;
    // Again, because a thread that others were forked off may go once they went.
    for (let last = -1; last !== total; ) {
      last = total;
      total += await buryAll(ends, String(now), id => bury(id, ends, now));
      if (!unused || ownerHash(unused.owner) !== owner) continue;
      total += await buryAll(byUse, `(${unused.since}`, id => buryUnused(id, unused, now));
    }
    return total;
  }

  async function forget(owner: string, now: number): Promise<void> {
    const { gone } = keys.owner(owner);
    const range = ['ZRANGE', gone, '-inf', String(now - tombstoneLifeMs), 'BYSCORE'];
    const ids = allTextsOf(await wire.send(gone, range));
    const dead = (
      await inBatches(ids.filter(isThreadId), async id => [id, await unlessDamaged(threads.find(id))] as const)
    )
      .filter(([, found]) => found && found.state !== 'stored')
      .map(([id]) => keys.thread(id).head);
    await inBatches(dead, head => wire.send(head, ['UNLINK', head]));
    if (ids.length > 0) await wire.send(gone, ['ZREM', gone, ...ids]);
  }

  return async (now, unused) => {
    await facts.dropExpiredFacts(now);
    let total = 0;
    for (const owner of allTextsOf(await wire.send(keys.owners, ['SMEMBERS', keys.owners]))) {
      await forget(owner, now);
      await jobs.dropExpired(owner, now);
      total += await buryOver(owner, now, unused);
      await spend.prune(owner, now);
    }
    return total;
  };
}

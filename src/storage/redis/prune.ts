import { isThreadId, type ThreadId } from '../../core/ids.ts';
import { isUnused, tombstoneLifeMs } from '../records.ts';
import type { Store, Unused } from '../store.ts';
import type { RedisClient } from './cluster-client.ts';
import type { RedisFacts } from './facts.ts';
import type { RedisJobs } from './jobs.ts';
import { ownerHash, type RedisKeys } from './keys.ts';
import { inBatches, type StoredHead, unlessDamaged } from './records.ts';
import { allTextsOf, pairsOf, partsOf } from './script.ts';
import type { RedisSpend } from './spend.ts';
import { readThread } from './thread-scripts.ts';
import type { RedisParts, RedisThreads } from './threads.ts';

interface PruneParts {
  threads: RedisThreads;
  jobs: RedisJobs;
  facts: RedisFacts;
  spend: RedisSpend;
}

/** Tidies up what expired; the server would forget all of it by itself, only later. */
export function redisPrune(
  { client, keys }: RedisParts,
  { threads, jobs, facts, spend }: PruneParts,
): Pick<Store, 'prune' | 'prunable'> {
  const ownersOf = async () => allTextsOf(await client.send(keys.owners, ['SMEMBERS', keys.owners]));

  const ranged = async (list: string, upTo: string): Promise<string[]> =>
    allTextsOf(await client.send(list, ['ZRANGE', list, '-inf', upTo, 'BYSCORE']));

  /** The stored threads that begin with this one; a damaged one counts. */
  async function forksOf(id: string): Promise<ThreadId[]> {
    const name = `${keys.thread(id).head}:forks`;
    const forks = allTextsOf(await client.send(name, ['SMEMBERS', name])).filter(isThreadId);
    const found = await inBatches(forks, fork => unlessDamaged(threads.find(fork)));
    return forks.filter((_, index) => !found[index] || found[index].state === 'stored');
  }

  /** An owner's threads whose time is over. The lists only say where to look; `mends` puts right what they have wrong. */
  async function over(owner: string, now: number, unused: Unused | undefined, mends: boolean): Promise<StoredHead[]> {
    const { ends, threads: byUse } = keys.owner(owner);
    const ids = await ranged(ends, String(now));
    if (unused && ownerHash(unused.owner) === owner) ids.push(...(await ranged(byUse, `(${unused.since}`)));
    const found = await inBatches([...new Set(ids)], async id => {
      const thread = isThreadId(id) ? await unlessDamaged(threads.find(id)) : undefined;
      if (thread?.state !== 'stored') {
        // One that is damaged goes when the server forgets it.
        if (mends) await client.send(ends, ['ZREM', ends, id]);
        return undefined;
      }
      const { head } = thread.value;
      if (head.expiresAt <= now || (unused && isUnused(head, unused))) return thread.value;
      if (mends) await client.send(ends, ['ZADD', ends, 'XX', String(head.expiresAt), id]);
      return undefined;
    });
    return found.filter(each => each !== undefined);
  }

  /** Those that go: whose time is over, but for originals of forks that stay. */
  async function going(owners: readonly string[], now: number, unused: Unused | undefined, mends: boolean) {
    const found = new Map<ThreadId, StoredHead>();
    for (const owner of owners) {
      for (const stored of await over(owner, now, unused, mends)) found.set(stored.head.id, stored);
    }
    const forks = await inBatches([...found.keys()], async id => [id, await forksOf(id)] as const);
    for (let last = -1; last !== found.size; ) {
      last = found.size;
      for (const [id, children] of forks) if (children.some(child => !found.has(child))) found.delete(id);
    }
    return found;
  }

  async function bury(stored: StoredHead, all: ReadonlyMap<ThreadId, unknown>, now: number): Promise<boolean> {
    const { id, expiresAt } = stored.head;
    // It may have been forked since.
    if ((await forksOf(id)).some(fork => !all.has(fork))) return false;
    return threads.bury(stored, expiresAt <= now ? 'expired' : 'unused', now);
  }

  /** Ids of threads that went long ago. */
  async function forget(owner: string, now: number): Promise<void> {
    const { gone } = keys.owner(owner);
    const ids = await ranged(gone, String(now - tombstoneLifeMs));
    await inBatches(ids.filter(isThreadId), async id => {
      const found = await unlessDamaged(threads.find(id));
      const { head } = keys.thread(id);
      if (found && found.state !== 'stored') await client.send(head, ['UNLINK', head]);
    });
    if (ids.length > 0) await client.send(gone, ['ZREM', gone, ...ids]);
  }

  return {
    async prunable(now, unused) {
      const ids = [...(await going(await ownersOf(), now, unused, false)).keys()];
      const blobs = await lostTexts(client, keys, ids);
      const rows = await inBatches(ids, async id =>
        bytesIn(await client.run(readThread, keys.thread(id).all, [], 'bulk')),
      );
      const bytes = [...blobs, ...rows].reduce((sum, size) => sum + size, 0);
      return { threads: ids.length, blobs: blobs.length, bytes };
    },

    async prune(now, unused) {
      await facts.dropExpiredFacts(now);
      const owners = await ownersOf();
      for (const owner of owners) {
        await forget(owner, now);
        await jobs.dropExpired(owner, now);
      }
      const all = await going(owners, now, unused, true);
      const buried = await inBatches([...all.values()], stored => bury(stored, all, now));
      for (const owner of owners) await spend.prune(owner, now);
      return buried.filter(Boolean).length;
    },
  };
}

/** Of all texts in a reply, however deep. */
function bytesIn(reply: unknown): number {
  if (typeof reply === 'string') return Buffer.byteLength(reply);
  return partsOf(reply).reduce<number>((sum, part) => sum + bytesIn(part), 0);
}

/** The texts that nobody refers to but these threads: the bytes of each. */
async function lostTexts(client: RedisClient, keys: RedisKeys, ids: readonly ThreadId[]): Promise<number[]> {
  const uses = new Map<string, Set<string>>();
  await inBatches(ids, async id => {
    const name = `${keys.thread(id).head}:blobs`;
    for (const [sha, user] of pairsOf(await client.send(name, ['HGETALL', name]))) {
      uses.set(sha, (uses.get(sha) ?? new Set()).add(user));
    }
  });
  const lost = await inBatches([...uses], async ([sha, users]) => {
    const [text, list] = keys.blob(sha);
    if (Number(await client.send(list, ['SCARD', list])) > users.size) return 0;
    return Number(await client.send(text, ['STRLEN', text]));
  });
  return lost.filter(bytes => bytes > 0);
}

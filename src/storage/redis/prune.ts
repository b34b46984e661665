import { isThreadId, type ThreadId } from '../../core/ids.ts';
import { isUnused, tombstoneLifeMs } from '../records.ts';
import type { Store, Unused } from '../store.ts';
import type { RedisFacts } from './facts.ts';
import type { RedisJobs } from './jobs.ts';
import { ownerHash } from './keys.ts';
import { inBatches, unlessDamaged } from './records.ts';
import { allTextsOf, pairsOf, partsOf } from './script.ts';
import type { RedisSpend } from './spend.ts';
import { readThread } from './thread-scripts.ts';
import type { RedisParts, RedisThreads } from './threads.ts';

/** The stored threads that begin with this one; a damaged one counts. */
export async function forksOf(
  { client, keys }: Pick<RedisParts, 'client' | 'keys'>,
  threads: Pick<RedisThreads, 'find'>,
  id: string,
): Promise<ThreadId[]> {
  const name = `${keys.thread(id).head}:forks`;
  const forks = allTextsOf(await client.send(name, ['SMEMBERS', name])).filter(isThreadId);
  const found = await inBatches(forks, fork => unlessDamaged(threads.find(fork)));
  return forks.filter((_, index) => !found[index] || found[index].state === 'stored');
}

/** Counts what a prune would take. */
export function redisPrunable({ client, keys }: RedisParts, threads: RedisThreads): Store['prunable'] {
  async function ranged(list: string, upTo: string): Promise<ThreadId[]> {
    return allTextsOf(await client.send(list, ['ZRANGE', list, '-inf', upTo, 'BYSCORE'])).filter(isThreadId);
  }

  async function candidates(now: number, unused: Unused | undefined): Promise<Set<ThreadId>> {
    const over = new Set<ThreadId>();
    const owners = allTextsOf(await client.send(keys.owners, ['SMEMBERS', keys.owners]));
    for (const owner of owners) for (const id of await ranged(keys.owner(owner).ends, String(now))) over.add(id);
    if (unused) {
      const { threads: byUse } = keys.owner(ownerHash(unused.owner));
      for (const id of await ranged(byUse, `(${unused.since}`)) over.add(id);
    }
    await inBatches([...over], async id => {
      const found = await unlessDamaged(threads.find(id));
      if (found?.state !== 'stored') return over.delete(id);
      const { head } = found.value;
      // The lists only say where to look.
      return head.expiresAt <= now || (unused && isUnused(head, unused)) || over.delete(id);
    });
    return over;
  }

  /** A thread stays while another that stays begins with it. */
  async function withoutOriginals(going: Set<ThreadId>): Promise<Set<ThreadId>> {
    const forks = await inBatches([...going], async id => [id, await forksOf({ client, keys }, threads, id)] as const);
    for (let last = -1; last !== going.size; ) {
      last = going.size;
      for (const [id, children] of forks) if (children.some(child => !going.has(child))) going.delete(id);
    }
    return going;
  }

  async function bytesOf(id: ThreadId): Promise<number> {
    return bytesIn(await client.run(readThread, keys.thread(id).all, [], 'bulk'));
  }

  /** The texts that nobody refers to but these threads, and their bytes. */
  async function texts(going: ReadonlySet<ThreadId>): Promise<number[]> {
    const uses = new Map<string, Set<string>>();
    await inBatches([...going], async id => {
      const name = `${keys.thread(id).head}:blobs`;
      for (const [sha, user] of pairsOf(await client.send(name, ['HGETALL', name]))) {
        uses.set(sha, (uses.get(sha) ?? new Set()).add(user));
      }
    });
    const lost = await inBatches([...uses], async ([sha, users]) => {
      const [text, list] = keys.blob(sha);
      if (Number(await client.send(list, ['SCARD', list])) > users.size) return [];
      const bytes = Number(await client.send(text, ['STRLEN', text]));
      return bytes > 0 ? [bytes] : [];
    });
    return lost.flat();
  }

  return async (now, unused) => {
    const going = await withoutOriginals(await candidates(now, unused));
    const blobs = await texts(going);
    const rows = await inBatches([...going], bytesOf);
    const bytes = [...blobs, ...rows].reduce((sum, size) => sum + size, 0);
    return { threads: going.size, blobs: blobs.length, bytes };
  };
}

/** Of all texts in a reply, however deep. */
function bytesIn(reply: unknown): number {
  if (typeof reply === 'string') return Buffer.byteLength(reply);
  return partsOf(reply).reduce<number>((sum, part) => sum + bytesIn(part), 0);
}

const step = 200;

/** Tidies up what expired, owner by owner. The server would forget all of it by itself, only later. */
export function redisPrune(
  { client, keys }: RedisParts,
  { threads, jobs, facts, spend }: { threads: RedisThreads; jobs: RedisJobs; facts: RedisFacts; spend: RedisSpend },
): Store['prune'] {
  const parts = { client, keys };
  const hasForks = async (id: string) => (await forksOf(parts, threads, id)).length > 0;

  /** True when the thread went. An index entry without a thread that expired goes, too. */
  async function bury(id: string, ends: string, now: number): Promise<boolean> {
    const found = isThreadId(id) ? await unlessDamaged(threads.find(id)) : undefined;
    // One that is damaged goes when the server forgets it.
    if (found?.state !== 'stored') {
      await client.send(ends, ['ZREM', ends, id]);
      return false;
    }
    const { expiresAt } = found.value.head;
    if (expiresAt > now) {
      await client.send(ends, ['ZADD', ends, 'XX', String(expiresAt), id]);
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
      const ids = allTextsOf(await client.send(list, range));
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
    const ids = allTextsOf(await client.send(gone, range));
    const dead = (
      await inBatches(ids.filter(isThreadId), async id => [id, await unlessDamaged(threads.find(id))] as const)
    )
      .filter(([, found]) => found && found.state !== 'stored')
      .map(([id]) => keys.thread(id).head);
    await inBatches(dead, head => client.send(head, ['UNLINK', head]));
    if (ids.length > 0) await client.send(gone, ['ZREM', gone, ...ids]);
  }

  return async (now, unused) => {
    await facts.dropExpiredFacts(now);
    let total = 0;
    for (const owner of allTextsOf(await client.send(keys.owners, ['SMEMBERS', keys.owners]))) {
      await forget(owner, now);
      await jobs.dropExpired(owner, now);
      total += await buryOver(owner, now, unused);
      await spend.prune(owner, now);
    }
    return total;
  };
}

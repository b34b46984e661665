import { isThreadId, type ThreadId } from '../../core/ids.ts';
import { ownerHash } from '../../storage/redis/keys.ts';
import { type StoredHead, unlessDamaged } from '../../storage/redis/records.ts';
import { allTextsOf, pairsOf, partsOf } from '../../storage/redis/script.ts';
import { readThread } from '../../storage/redis/thread-scripts.ts';
import type { RedisParts, RedisThreads } from '../../storage/redis/threads.ts';
import type { Prunable, Unused } from '../../storage/store.ts';
import { inBatches } from './redis-blobs.ts';

export function isUnused({ owner, updatedAt }: StoredHead['head'], unused: Unused): boolean {
  return owner === unused.owner && updatedAt < unused.since;
}

/** The stored threads that begin with this one; a damaged one counts. */
export async function forksOf(
  { wire, keys }: Pick<RedisParts, 'wire' | 'keys'>,
  threads: Pick<RedisThreads, 'find'>,
  id: string,
): Promise<ThreadId[]> {
  const name = `${keys.thread(id).head}:forks`;
  const forks = allTextsOf(await wire.send(name, ['SMEMBERS', name])).filter(isThreadId);
  const found = await inBatches(forks, fork => unlessDamaged(threads.find(fork)));
  return forks.filter((_, index) => !found[index] || found[index].state === 'stored');
}

/** Counts what a prune would take. */
export function redisPrunable(
  { wire, keys }: Pick<RedisParts, 'wire' | 'keys'>,
  threads: RedisThreads,
): (now: number, unused?: Unused) => Promise<Prunable> {
  async function ranged(list: string, upTo: string): Promise<ThreadId[]> {
    return allTextsOf(await wire.send(list, ['ZRANGE', list, '-inf', upTo, 'BYSCORE'])).filter(isThreadId);
  }

  async function candidates(now: number, unused: Unused | undefined): Promise<Set<ThreadId>> {
    const over = new Set<ThreadId>();
    const owners = allTextsOf(await wire.send(keys.owners, ['SMEMBERS', keys.owners]));
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
    const forks = await inBatches([...going], async id => [id, await forksOf({ wire, keys }, threads, id)] as const);
    for (let last = -1; last !== going.size; ) {
      last = going.size;
      for (const [id, children] of forks) if (children.some(child => !going.has(child))) going.delete(id);
    }
    return going;
  }

  async function bytesOf(id: ThreadId): Promise<number> {
    return bytesIn(await wire.run(readThread, keys.thread(id).all, [], 'bulk'));
  }

  /** The texts that nobody refers to but these threads, and their bytes. */
  async function texts(going: ReadonlySet<ThreadId>): Promise<number[]> {
    const uses = new Map<string, Set<string>>();
    await inBatches([...going], async id => {
      const name = `${keys.thread(id).head}:blobs`;
      for (const [sha, user] of pairsOf(await wire.send(name, ['HGETALL', name]))) {
        uses.set(sha, (uses.get(sha) ?? new Set()).add(user));
      }
    });
    const lost = await inBatches([...uses], async ([sha, users]) => {
      const [text, list] = keys.blob(sha);
      if (Number(await wire.send(list, ['SCARD', list])) > users.size) return [];
      const bytes = Number(await wire.send(text, ['STRLEN', text]));
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

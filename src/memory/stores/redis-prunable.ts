import { isThreadId, type ThreadId } from '../../domain/ids.ts';
import type { ThreadHead } from '../../domain/thread.ts';
import type { Prunable, Unused } from '../store.ts';
import { inBatches } from './redis-blobs.ts';
import { ownerHash, type RedisKeys } from './redis-keys.ts';
import { allTextsOf } from './redis-script.ts';
import type { RedisParts, RedisThreads } from './redis-threads.ts';

type Ending = Pick<ThreadHead, 'owner' | 'updatedAt' | 'expiresAt'>;

export function isOver({ owner, updatedAt, expiresAt }: Ending, now: number, unused: Unused | undefined): boolean {
  return expiresAt <= now || (unused !== undefined && owner === unused.owner && updatedAt < unused.since);
}

/** Where an owner's threads stand whose time is over: the name of an index, and how far in it. */
export function endedRanges(
  keys: RedisKeys,
  owner: string,
  now: number,
  unused: Unused | undefined,
): [name: string, until: string][] {
  const { ends, threads } = keys.owner(owner);
  const expired: [string, string] = [ends, String(now)];
  return unused !== undefined && ownerHash(unused.owner) === owner
    ? [expired, [threads, `(${unused.since}`]]
    : [expired];
}

/** Counts what a prune would take: each thread is read for it, since nothing else tells how large it is. */
export function redisPrunable(
  { wire, keys }: RedisParts,
  threads: RedisThreads,
): (now: number, unused?: Unused) => Promise<Prunable> {
  async function ended(now: number, unused: Unused | undefined): Promise<Set<ThreadId>> {
    const found = new Set<ThreadId>();
    for (const owner of allTextsOf(await wire.send(keys.owners, ['SMEMBERS', keys.owners]))) {
      for (const [name, until] of endedRanges(keys, owner, now, unused)) {
        const ids = allTextsOf(await wire.send(name, ['ZRANGE', name, '-inf', until, 'BYSCORE'])).filter(isThreadId);
        const heads = await inBatches(ids, id => threads.find(id));
        for (const [index, head] of heads.entries()) {
          const id = ids[index];
          if (id && head.state === 'stored' && isOver(head.value.head, now, unused)) found.add(id);
        }
      }
    }
    return found;
  }

  async function forksOf(id: ThreadId): Promise<ThreadId[]> {
    const name = `${keys.thread(id).head}:forks`;
    const ids = allTextsOf(await wire.send(name, ['SMEMBERS', name])).filter(isThreadId);
    const heads = await inBatches(ids, fork => threads.find(fork));
    return ids.filter((_, index) => heads[index]?.state === 'stored');
  }

  /** Takes out the originals of forks that stay, until there are none. */
  async function withoutOriginals(ids: Set<ThreadId>): Promise<void> {
    const forks = new Map<ThreadId, ThreadId[]>();
    for (const id of ids) forks.set(id, await forksOf(id));
    for (let before = -1; before !== ids.size; ) {
      before = ids.size;
      for (const id of ids) if (forks.get(id)?.some(fork => !ids.has(fork))) ids.delete(id);
    }
  }

  /** Texts by how many of their users are among these threads, and what stands in their place in the store. */
  async function textsOf(ids: ReadonlySet<ThreadId>): Promise<{ blobs: number; bytes: number }> {
    const uses = new Map<string, number>();
    for (const id of ids) {
      const name = keys.thread(id).all[5] ?? '';
      for (const sha of allTextsOf(await wire.send(name, ['HKEYS', name]))) uses.set(sha, (uses.get(sha) ?? 0) + 1);
    }
    const sizes = await inBatches([...uses], async ([sha, count]) => {
      const [text, users] = keys.blob(sha);
      const others = Number(await wire.send(users, ['SCARD', users])) - count;
      return others > 0 ? 0 : Number(await wire.send(text, ['STRLEN', text]));
    });
    const gone = sizes.filter(size => size > 0);
    return { blobs: gone.length, bytes: gone.reduce((sum, size) => sum + size, 0) };
  }

  return async (now, unused) => {
    const ids = await ended(now, unused);
    await withoutOriginals(ids);
    const { blobs, bytes } = await textsOf(ids);
    const sizes = await inBatches([...ids], async id => {
      const found = await threads.read(id, 0);
      return found.state === 'live' ? Buffer.byteLength(JSON.stringify(found.value)) : 0;
    });
    return { threads: ids.size, blobs, bytes: sizes.reduce((sum, size) => sum + size, bytes) };
  };
}

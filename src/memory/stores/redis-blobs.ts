import { storageError } from '../../core/errors.ts';
import type { Sha256 } from '../../core/ids.ts';
import { sealBlob } from '../../storage/records.ts';
import type { RedisWire } from '../../storage/redis/cluster-client.ts';
import type { RedisKeys } from '../../storage/redis/keys.ts';
import { dropBlob, keepBlob, referToBlob } from '../../storage/redis/thread-scripts.ts';

/** Texts by hash. Each has its users, and goes with the last of them; whatever happens, it goes when its time is over. */
export interface RedisBlobs {
  read(hashes: readonly Sha256[]): Promise<Map<Sha256, string>>;
  /** Adds a user to texts, writing those that are new. Answers the hashes of all that are there then. */
  refer(user: string, hashes: Iterable<Sha256>, texts: ReadonlyMap<Sha256, string>, lifeMs: number): Promise<Sha256[]>;
  /** Ends the use of texts; those without another user go. */
  drop(uses: readonly (readonly [sha: string, user: string])[]): Promise<void>;
  keep(hashes: readonly string[], lifeMs: number): Promise<void>;
}

const sealChars = 64;
/** So many commands at once keep the connection busy without making others wait. */
const together = 50;

/** Like `Promise.all`, a few at a time. */
export async function inBatches<Item, Result>(
  items: readonly Item[],
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let at = 0; at < items.length; at += together) {
    results.push(...(await Promise.all(items.slice(at, at + together).map(run))));
  }
  return results;
}

export function redisBlobs(wire: RedisWire, keys: RedisKeys): RedisBlobs {
  async function read(sha: Sha256): Promise<readonly [Sha256, string] | undefined> {
    const [key] = keys.blob(sha);
    const kept = await wire.fetch(key, ['GET', key]);
    if (typeof kept !== 'string') return undefined;
    const text = kept.slice(sealChars);
    if (sealBlob(sha, text) === kept.slice(0, sealChars)) return [sha, text];
    throw storageError('corrupt', `A stored text (${sha.slice(0, 12)}…) is damaged in Redis and is not served.`, {
      next: 'Begin a new thread and name the files again; other threads are affected only where they sent the same text.',
      data: { blob: sha },
    });
  }

  async function refer(user: string, sha: Sha256, text: string | undefined, life: string): Promise<boolean> {
    const names = keys.blob(sha);
    if (Number(await wire.run(referToBlob, names, [user, life])) === 1) return true;
    if (text === undefined) return false;
    const body = text.toWellFormed();
    await wire.run(referToBlob, names, [user, life, sealBlob(sha, body) + body]);
    return true;
  }

  return {
    async read(hashes) {
      const found = await inBatches([...new Set(hashes)], read);
      return new Map(found.filter(each => each !== undefined));
    },
    async refer(user, hashes, texts, lifeMs) {
      const wanted = [...new Set(hashes)];
      const there = await inBatches(wanted, sha => refer(user, sha, texts.get(sha), String(lifeMs)));
      return wanted.filter((_, index) => there[index]);
    },
    async drop(uses) {
      await inBatches(uses, ([sha, user]) => wire.run(dropBlob, keys.blob(sha), [user]));
    },
    async keep(hashes, lifeMs) {
      await inBatches(hashes, sha => wire.run(keepBlob, keys.blob(sha), [String(lifeMs)]));
    },
  };
}

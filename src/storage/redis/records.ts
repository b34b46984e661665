import { inParallel } from '../../core/concurrency.ts';
import { isAppError, storageError } from '../../core/errors.ts';
import type { Sha256, ThreadId } from '../../core/ids.ts';
import type { ThreadHead } from '../../core/thread.ts';
import type { GoneLookup, HeadState, Origin, RecordOf, StoredRecord } from '../records.ts';
import { damagedText, goneAs, openRecord, sealBlob, sealRecord, wholeHead } from '../records.ts';
import type { RedisClient } from './cluster-client.ts';
import type { RedisKeys } from './keys.ts';
import { textsOf } from './script.ts';
import { dropBlob, keepBlob, referToBlob } from './thread-scripts.ts';

export type RedisBlobs = ReturnType<typeof redisBlobs>;

const sealChars = 64;

/** So many commands at once keep the connection busy without making others wait. */
const together = 50;

/** Like `Promise.all`, a few at a time. */
export const inBatches = <Item, Result>(items: readonly Item[], run: (item: Item) => Promise<Result>) =>
  inParallel(items, together, run);

/** Texts by hash. Each has its users, and goes with the last of them; whatever happens, it goes when its time is over. */
export function redisBlobs(client: RedisClient, keys: RedisKeys) {
  async function read(sha: Sha256): Promise<readonly [Sha256, string] | undefined> {
    const kept = await client.fetch('GET', keys.blob(sha)[0]);
    if (typeof kept !== 'string') return undefined;
    const text = kept.slice(sealChars);
    if (sealBlob(sha, text) === kept.slice(0, sealChars)) return [sha, text];
    throw damagedText(sha, 'in Redis');
  }

  async function refer(user: string, sha: Sha256, text: string | undefined, life: number): Promise<boolean> {
    const names = keys.blob(sha);
    if (Number(await client.run(referToBlob, names, [user, life])) === 1) return true;
    if (text === undefined) return false;
    const body = text.toWellFormed();
    await client.run(referToBlob, names, [user, life, sealBlob(sha, body) + body]);
    return true;
  }

  return {
    async read(hashes: readonly Sha256[]): Promise<Map<Sha256, string>> {
      return new Map((await inBatches([...new Set(hashes)], read)).filter(each => each !== undefined));
    },
    /** Adds a user to texts, writing those that are new. Answers the hashes of all that are there then. */
    async refer(user: string, hashes: Iterable<Sha256>, texts: ReadonlyMap<Sha256, string>, lifeMs: number) {
      const wanted = [...new Set(hashes)];
      const there = await inBatches(wanted, sha => refer(user, sha, texts.get(sha), lifeMs));
      return wanted.filter((_, index) => there[index]);
    },
    /** Ends the use of texts; those without another user go. */
    async drop(uses: readonly (readonly [sha: string, user: string])[]): Promise<void> {
      await inBatches(uses, ([sha, user]) => client.run(dropBlob, keys.blob(sha), [user]));
    },
    async keep(hashes: readonly string[], lifeMs: number): Promise<void> {
      await inBatches(hashes, sha => client.run(keepBlob, keys.blob(sha), [lifeMs]));
    },
  };
}

/** A record as one text: its checksum, then its JSON. */
export function packRecord(record: StoredRecord): string {
  const { body, seal } = sealRecord(record);
  return seal + body;
}

/** The record, or undefined when it is damaged or of another kind. */
export const unpackRecord = <Kind extends StoredRecord['kind']>(
  text: string | undefined,
  kind: Kind,
): RecordOf<Kind> | undefined =>
  text === undefined ? undefined : openRecord(text.slice(sealChars), text.slice(0, sealChars), kind);

export function damaged(id: string, what: string): never {
  throw storageError('corrupt', `Thread ${id} is not served: ${what} is damaged in Redis, or was evicted.`, {
    next: 'Begin a new thread, and delete this one; see that maxmemory-policy is noeviction. Other threads are not affected.',
    data: { thread: id },
  });
}

/** Undefined for what is damaged: it must not hide the others. Every other failure stays one. */
export async function unlessDamaged<Result>(reading: Promise<Result>): Promise<Result | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isAppError(error) && error.details.class === 'corrupt') return undefined;
    throw error;
  }
}

/** What is kept of a thread that is there, without its turns. */
export interface StoredHead {
  head: HeadState;
  origin: Origin;
  /** Counts its changes. */
  version: string;
  /** Epoch milliseconds until which the texts it refers to are kept. */
  textsUntil: number;
}

/** A thread as it stands in the store, whether its time ended or not; only a tombstone says that it expired. */
export type FoundHead = { state: 'stored'; value: StoredHead } | GoneLookup | { state: 'unknown' };

const headFields = ['s', 'at', 'exp', 'head', 'origin', 'v', 'texts'] as const;

/** Reads the fields of a head, in the order of `headFields`. */
export function foundHead(id: ThreadId, fields: unknown): FoundHead {
  const [state, at, , body, begin, version = '', texts] = textsOf(fields);
  if (state === undefined) return { state: 'unknown' };
  if (state === 'expired' || state === 'deleted') return goneAs(state, Number(at));
  const head = unpackRecord(body, 'head')?.head;
  const origin = unpackRecord(begin, 'origin')?.origin;
  if (head?.id !== id || origin?.id !== id) return damaged(id, 'its head');
  return { state: 'stored', value: { head, origin, version, textsUntil: Number(texts ?? 0) } };
}

export const findHead = async (client: RedisClient, keys: RedisKeys, id: ThreadId): Promise<FoundHead> =>
  foundHead(id, await client.send('HMGET', keys.thread(id).head, ...headFields));

export const publicHead = ({ head, origin }: StoredHead): ThreadHead => wholeHead(head, origin);

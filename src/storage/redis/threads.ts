import { isAppError, storageError } from '../../core/errors.ts';
import type { Sha256, ThreadId } from '../../core/ids.ts';
import type { Clock, Random } from '../../core/ports.ts';
import type { Thread, ThreadHead } from '../../core/thread.ts';
import type { RedisBlobs } from '../../memory/stores/redis-blobs.ts';
import { lives, redisKeeping, textLife } from '../../memory/stores/redis-keep.ts';
import { changeParts, threadOf } from '../../memory/stores/redis-thread-parts.ts';
import {
  blobsOfTurns,
  changedHead,
  refuseExisting,
  refuseNotLive,
  tombstoneLifeMs,
} from '../../memory/stores/thread-change.ts';
import { splitHead } from '../records.ts';
import type { Lookup, ThreadChange } from '../store.ts';
import type { RedisWire } from './cluster-client.ts';
import type { RedisKeys } from './keys.ts';
import { damaged, type FoundHead, foundHead, headFields, packRecord, publicHead, type StoredHead } from './records.ts';
import { pairsOf, partsOf, textsOf } from './script.ts';
import type { RedisIndex } from './thread-index.ts';
import { buryThread, commitThread, createThread, readThread } from './thread-scripts.ts';

export interface RedisParts {
  wire: RedisWire;
  keys: RedisKeys;
  clock: Clock;
  random: Random;
}

export interface RedisThreads {
  create(head: ThreadHead, over?: 'revive'): Promise<void>;
  read(id: ThreadId, now: number): Promise<Lookup<Thread>>;
  find(id: ThreadId): Promise<FoundHead>;
  commit(id: ThreadId, change: ThreadChange): Promise<number>;
  /**
   * Leaves a tombstone; false when the thread is not alive (`deleted`), has not expired (`expired`), or changed meanwhile
   * (`unused`, which counts as deleted).
   */
  bury(stored: StoredHead, why: 'expired' | 'deleted' | 'unused', now: number): Promise<boolean>;
}

/** Each try that fails is a success of another process: so many in a row mean that something is wrong. */
const maxTries = 100;

export function redisThreads(parts: RedisParts, blobs: RedisBlobs, index: RedisIndex): RedisThreads {
  const { wire, keys, clock, random } = parts;
  const keeping = redisKeeping(wire, keys, blobs);

  async function find(id: ThreadId): Promise<FoundHead> {
    const { head } = keys.thread(id);
    return foundHead(id, await wire.send(head, ['HMGET', head, ...headFields]));
  }

  async function write(id: ThreadId, stored: StoredHead, change: ThreadChange): Promise<number | undefined> {
    const head = changedHead(stored.head, change);
    const nonce = random.uuid();
    const now = change.updatedAt;
    const lifeMs = Math.max(0, change.expiresAt - now);
    const texts = new Map<Sha256, string>();
    for (const { sha256, text } of change.blobs ?? []) if (!texts.has(sha256)) texts.set(sha256, text);
    const until = await keeping.texts(id, stored.textsUntil, lifeMs, now);
    if (head.parent) await keeping.ancestors(head, lifeMs, now);
    const wanted = [...texts.keys(), ...blobsOfTurns(change.turns ?? [])];
    const referred = await blobs.refer(nonce, wanted, texts, textLife(lifeMs));
    const undo = (hashes: readonly string[]) =>
      // What is left over goes when its time is over.
      blobs.drop(hashes.map(sha => [sha, nonce] as const)).catch(() => undefined);
    const facts = [nonce, stored.version, String(head.expiresAt), packRecord({ kind: 'head', head }), String(until)];
    const rest = changeParts(id, head.seq, change, referred, nonce);
    try {
      const args = [...facts, ...lives(lifeMs), ...rest];
      const [written, ...known] = textsOf(await wire.run(commitThread, keys.thread(id).all, args));
      await undo(written === '1' ? known.filter(sha => sha !== undefined) : referred);
      return written === '1' ? head.seq : undefined;
    } catch (error) {
      // Where it is not known whether the change was made, the texts stay until their time is over.
      if (isAppError(error) && error.details.class === 'storage_full') await undo(referred);
      throw error;
    }
  }

  return {
    find,

    async create(head, over) {
      const { parent, id } = head;
      const [origin, known] = splitHead(head);
      const lifeMs = Math.max(0, head.expiresAt - head.updatedAt);
      if (parent) {
        const forks = `${keys.thread(parent.thread).head}:forks`;
        await wire.send(forks, ['SADD', forks, id]);
        await keeping.ancestors(head, lifeMs, head.updatedAt);
      }
      const records = [packRecord({ kind: 'head', head: known }), packRecord({ kind: 'origin', origin })];
      const args = [random.uuid(), String(head.expiresAt), ...records, lives(lifeMs)[0], over ?? ''];
      const written = await wire.run(createThread, keys.thread(id).all, args);
      if (Number(written) !== 1) refuseExisting(id);
      if (over) await index.revive(known);
      await index.put(known);
    },

    async read(id, now) {
      const [fields, ...rest] = partsOf(await wire.run(readThread, keys.thread(id).all, [], 'bulk'));
      const found = foundHead(id, fields);
      if (found.state !== 'stored') return found;
      const { head } = found.value;
      if (head.expiresAt <= now) return { state: 'expired', expiredAt: head.expiresAt };
      const thread = threadOf(publicHead(found.value), head.startSeq, rest);
      if (thread) return { state: 'live', value: thread };
      // Of a thread that ended long ago only the head is left.
      if (head.expiresAt <= clock.now()) return { state: 'expired', expiredAt: head.expiresAt };
      return damaged(id, 'its text');
    },

    async commit(id, change) {
      for (let tries = 0; tries < maxTries; tries++) {
        const found = await find(id);
        if (found.state !== 'stored') return refuseNotLive(id);
        const seq = await write(id, found.value, change);
        if (seq === undefined) continue;
        const { owner, workspace } = found.value.head;
        await index.put({ id, owner, workspace, updatedAt: change.updatedAt, expiresAt: change.expiresAt });
        return seq;
      }
      throw storageError('unavailable', `Thread ${id} is changed by others without a pause.`, {
        retryable: true,
        next: 'Try again.',
      });
    },

    bury: redisBurial(parts, blobs, index),
  };
}

/** The end of a thread: what only it refers to goes with it. */
function redisBurial({ wire, keys, random }: RedisParts, blobs: RedisBlobs, index: RedisIndex): RedisThreads['bury'] {
  return async ({ head, origin, version }, why, now) => {
    const { all } = keys.thread(head.id);
    const state = why === 'unused' ? 'deleted' : why;
    const at = why === 'expired' ? head.expiresAt : now;
    const unchanged = why === 'unused' ? version : '';
    const args = [state, String(at), random.uuid(), String(tombstoneLifeMs), String(now), unchanged];
    const [buried, uses] = partsOf(await wire.run(buryThread, all, args));
    if (Number(buried) !== 1) return false;
    await index.bury(head, at);
    await blobs.drop(pairsOf(uses));
    if (origin.parent) {
      const forks = `${keys.thread(origin.parent.thread).head}:forks`;
      await wire.send(forks, ['SREM', forks, head.id]);
    }
    return true;
  };
}

import { uncontended } from '../../core/concurrency.ts';
import { isAppError } from '../../core/errors.ts';
import type { ExchangeId, Sha256, ThreadId } from '../../core/ids.ts';
import type { Clock, Random } from '../../core/ports.ts';
import type { StoredTurn, Thread, ThreadHead, WorkflowState } from '../../core/thread.ts';
import { blobsOfTurns, exchangeStatuses } from '../../core/thread.ts';
import { markedHolder, type ProcessMarks } from '../process-mark.ts';
import {
  changedHead,
  type HeadState,
  refuseExisting,
  refuseNotLive,
  refuseTakenOver,
  splitHead,
  tombstoneLifeMs,
} from '../records.ts';
import { foldWords } from '../search-words.ts';
import type { Lookup, ThreadChange } from '../store.ts';
import type { RedisClient } from './cluster-client.ts';
import type { RedisKeys } from './keys.ts';
import type { RedisBlobs, StoredHead } from './records.ts';
import { damaged, findHead, foundHead, packRecord, publicHead, unpackRecord } from './records.ts';
import { allTextsOf, pairsOf, partsOf, textsOf } from './script.ts';
import type { RedisIndex } from './thread-index.ts';
import { commitThread, createThread, endThread, keepThread, readThread, setTexts } from './thread-scripts.ts';

/** What belongs to a thread stays this long after its end: whoever reads it just then, or forked it, still finds it. */
const graceMs = 7 * 86_400_000;

/** Forks of forks are kept together this far back. */
const maxAncestors = 20;

/** How long the server keeps the head, and the rest, if nobody tidies up earlier: milliseconds. */
const lives = (lifeMs: number): [head: number, rest: number] => [
  Math.ceil(lifeMs + tombstoneLifeMs),
  Math.ceil(lifeMs + graceMs),
];

export const textLife = (lifeMs: number): number => Math.ceil(2 * lifeMs + graceMs);

/** Sees to it that the server forgets nothing that somebody still needs. */
export function redisKeeping(client: RedisClient, keys: RedisKeys, blobs: RedisBlobs) {
  /** Keeps the texts of a thread for twice its `lifeMs`, so that they are seldom touched. Answers until when they are kept. */
  async function texts(id: ThreadId, until: number, lifeMs: number, now: number): Promise<number> {
    if (now + lifeMs + graceMs <= until) return until;
    await blobs.keep(allTextsOf(await client.send('HKEYS', keys.thread(id).blobs)), textLife(lifeMs));
    return now + textLife(lifeMs);
  }

  return {
    texts,
    /** What a fork begins with lives as long as the fork. */
    async ancestors(child: Pick<ThreadHead, 'parent'>, lifeMs: number, now: number): Promise<void> {
      let next = child.parent;
      for (let depth = 0; next && depth < maxAncestors; depth++) {
        const { all, head } = keys.thread(next.thread);
        const [body, kept] = textsOf(await client.run(keepThread, all, lives(lifeMs)));
        if (body === undefined) return;
        const until = await texts(next.thread, Number(kept ?? 0), lifeMs, now);
        if (until !== Number(kept ?? 0)) await client.run(setTexts, [head], [until]);
        next = unpackRecord(body, 'origin')?.origin.parent;
      }
    },
  };
}

/** The words of a turn are kept this far into it. */
const searchedChars = 1_000_000;

/** Beside the status of an exchange, which scripts read. */
const attemptsOf = (exchange: ExchangeId): string => `${exchange} attempts`;

/** What `commitThread` takes: the name of each part, and two values. */
export function changeParts(
  id: ThreadId,
  seq: number,
  { turns = [], exchange, workflow, compaction }: ThreadChange,
  referred: readonly Sha256[],
  user: string,
): string[] {
  const parts: string[][] = turns.flatMap(turn => [
    ['turn', packRecord({ kind: 'turn', thread: id, turn }), ''],
    ['joined', turn.exchange, 'pending'],
    ['words', String(turn.seq), `${turn.exchange} ${distinctWords(turn.content)}`],
  ]);
  if (exchange) parts.push(['status', exchange.id, exchange.status]);
  if (exchange?.attempts)
    parts.push(['status', attemptsOf(exchange.id), packRecord({ kind: 'exchange', thread: id, ...exchange })]);
  if (compaction) parts.push(['summary', packRecord({ kind: 'compaction', thread: id, compaction }), '']);
  if (workflow?.state) {
    const { tool, state } = workflow;
    parts.push(['workflow', tool, packRecord({ kind: 'workflow', thread: id, tool, seq, state })]);
  } else if (workflow) parts.push(['no workflow', workflow.tool, '']);
  return [...parts, ...referred.map(sha => ['text', sha, user])].flat();
}

/** A search asks only whether words occur, so each is kept once. */
const distinctWords = (text: string): string =>
  [...new Set(foldWords(text.slice(0, searchedChars)).split(' '))].join(' ');

/** A thread of what `readThread` answers after the head; undefined when its turns are gone. */
export function threadOf(head: ThreadHead, startSeq: number, answer: readonly unknown[]): Thread | undefined {
  const { id } = head;
  const [turns, exchanges, summaries, workflows] = answer;
  const kept = allTextsOf(turns);
  if (kept.length === 0 && head.seq > startSeq) return undefined;
  const states: Record<string, WorkflowState> = Object.create(null);
  for (const [tool, text] of pairsOf(workflows)) {
    const record = unpackRecord(text, 'workflow');
    if (record?.thread !== id || record.tool !== tool) return damaged(id, `the workflow state of ${tool}`);
    states[tool] = record.state;
  }
  return {
    ...head,
    turns: turnsOf(head, startSeq, kept, new Map(pairsOf(exchanges))),
    compactions: allTextsOf(summaries).map(text => {
      const record = unpackRecord(text, 'compaction');
      return record?.thread === id ? record.compaction : damaged(id, 'one of its summaries');
    }),
    workflows: { ...states },
  };
}

function turnsOf(
  { id, seq: last }: ThreadHead,
  startSeq: number,
  texts: readonly string[],
  exchanges: ReadonlyMap<string, string>,
): StoredTurn[] {
  const turns = texts.map((text, index): StoredTurn => {
    const seq = startSeq + index + 1;
    const record = unpackRecord(text, 'turn');
    const status = exchangeStatuses.find(word => word === exchanges.get(record?.turn.exchange ?? ''));
    if (record?.thread !== id || record.turn.seq !== seq || !status) return damaged(id, `turn ${seq}`);
    const { attempts } = unpackRecord(exchanges.get(attemptsOf(record.turn.exchange)) ?? '', 'exchange') ?? {};
    return { ...record.turn, status, ...(attempts && { attempts }) };
  });
  return startSeq + turns.length === last ? turns : damaged(id, `turn ${startSeq + turns.length + 1}`);
}

export interface RedisParts {
  client: RedisClient;
  keys: RedisKeys;
  clock: Clock;
  random: Random;
  marks: ProcessMarks;
}

export type RedisThreads = ReturnType<typeof redisThreads>;

export function redisThreads(parts: RedisParts, blobs: RedisBlobs, index: RedisIndex) {
  const { client, keys, clock, random, marks } = parts;
  const keeping = redisKeeping(client, keys, blobs);

  const find = (id: ThreadId) => findHead(client, keys, id);

  async function write(id: ThreadId, stored: StoredHead, change: ThreadChange): Promise<HeadState | undefined> {
    const head = changedHead(stored.head, change);
    const nonce = random.uuid();
    const { now = change.updatedAt } = change;
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
    const facts = [nonce, stored.version, head.expiresAt, packRecord({ kind: 'head', head }), until];
    const rest = changeParts(id, head.seq, change, referred, nonce);
    try {
      const holder = change.holder === undefined ? '' : markedHolder(marks, change.holder);
      const args = [...facts, ...lives(lifeMs), holder, now, ...rest];
      const names = [...keys.thread(id).all, keys.lease(id)];
      const [written, ...known] = textsOf(await client.run(commitThread, names, args));
      await undo(written === '1' ? known.filter(sha => sha !== undefined) : referred);
      if (written === '2') return refuseTakenOver(id);
      return written === '1' ? head : undefined;
    } catch (error) {
      // Where it is not known whether the change was made, the texts stay until their time is over.
      if (isAppError(error) && error.details.class === 'storage_full') await undo(referred);
      throw error;
    }
  }

  return {
    find,

    async create(head: ThreadHead, over?: 'revive'): Promise<void> {
      const { parent, id } = head;
      const [origin, known] = splitHead(head);
      const lifeMs = Math.max(0, head.expiresAt - head.updatedAt);
      if (parent) {
        await client.send('SADD', keys.thread(parent.thread).forks, id);
        await keeping.ancestors(head, lifeMs, head.updatedAt);
      }
      const records = [packRecord({ kind: 'head', head: known }), packRecord({ kind: 'origin', origin })];
      const args = [random.uuid(), head.expiresAt, ...records, lives(lifeMs)[0], over ?? ''];
      const written = await client.run(createThread, keys.thread(id).all, args);
      if (Number(written) !== 1) refuseExisting(id);
      if (over) await index.revive(known);
      await index.put(known);
    },

    async read(id: ThreadId, now: number): Promise<Lookup<Thread>> {
      const [fields, ...rest] = partsOf(await client.run(readThread, keys.thread(id).all, [], 'bulk'));
      const found = foundHead(id, fields);
      if (found.state !== 'stored') return found;
      const { head } = found.value;
      if (head.expiresAt <= now) return { state: 'expired', expiredAt: head.expiresAt };
      const thread = threadOf(publicHead(found.value), head.startSeq, rest);
      if (thread) return { state: 'live', value: thread };
      // Of a thread that ended long ago only the head is left.
      if (head.expiresAt <= clock.storeTime()) return { state: 'expired', expiredAt: head.expiresAt };
      return damaged(id, 'its text');
    },

    async commit(id: ThreadId, change: ThreadChange): Promise<number> {
      const head = await uncontended(`Thread ${id}`, async () => {
        const found = await find(id);
        return found.state === 'stored' ? write(id, found.value, change) : refuseNotLive(id);
      });
      await index.put(head);
      return head.seq;
    },

    end: redisRemoval(parts, blobs, index),
  };
}

/** Leaves a tombstone, and drops what only the thread refers to. False: it is not alive, not `expired`, or no longer `unused`. */
function redisRemoval({ client, keys, random }: RedisParts, blobs: RedisBlobs, index: RedisIndex) {
  return async ({ head, origin, version }: StoredHead, why: 'expired' | 'deleted' | 'unused', now: number) => {
    const { all } = keys.thread(head.id);
    const state = why === 'unused' ? 'deleted' : why;
    const at = why === 'expired' ? head.expiresAt : now;
    const unchanged = why === 'unused' ? version : '';
    const args = [state, at, random.uuid(), tombstoneLifeMs, now, unchanged];
    const [ended, uses] = partsOf(await client.run(endThread, all, args));
    if (Number(ended) !== 1) return false;
    await index.end(head, at);
    await blobs.drop(pairsOf(uses));
    if (origin.parent) await client.send('SREM', keys.thread(origin.parent.thread).forks, head.id);
    return true;
  };
}

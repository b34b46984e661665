import { hash } from 'node:crypto';
import { bugError, storageError } from '../core/errors.ts';
import type { ExchangeId, JobId, Sha256, ThreadId } from '../core/ids.ts';
import type { Job } from '../core/job.ts';
import { isRecord, type Json, type JsonObject } from '../core/json.ts';
import type { Compaction, ExchangeEnd, ThreadHead, Turn, WorkflowState } from '../core/thread.ts';
import type { SpendEntry, SpendHold, SpendRow, SpendUsed } from '../core/usage.ts';
import { addTries, dayMs, dayOf, feesUsd, spendTotal } from '../core/usage.ts';
import type { JobEnd, ListQuery, Lookup, ThreadChange } from './store.ts';

export function refuseExistingJob(id: JobId): never {
  throw storageError('conflict', `Job ${id} exists already.`, { next: 'Give the new job a different id.' });
}

/** Answers what a job becomes; undefined when it ended before. Others may have given it up whose process was only stopped. */
export const endedJob = (job: Job, { thread = job.thread, ...end }: JobEnd): Job | undefined =>
  job.status === 'running' || (job.status === 'interrupted' && end.status === 'done')
    ? { ...job, ...end, thread }
    : undefined;

/** Sums of dollars are off by less than this. */
export const rounding = 1e-9;

/** The day that many days before a time. */
export const daysBefore = (now: number, days: number): string => dayOf(now - days * dayMs);

/** A row with a single call, or an attempt in vain at one. Where nobody knows what its tokens cost, its fees count all the same. */
export function rowOf({ id: _id, at, day = dayOf(at), costUsd, attempt, ...entry }: SpendEntry): SpendRow {
  const known = costUsd ?? feesUsd(entry.usage.fees);
  const calls = attempt?.isFailed ? 0 : 1;
  const one = attempt && { attempts: 1, failures: 1 - calls, ms: attempt.ms * calls };
  const tries = one && { [new Date(at).getUTCHours()]: one };
  const unpriced = costUsd === undefined ? calls : 0;
  return { ...entry, ...(tries && { tries }), day, calls, unpriced, costUsd: known };
}

/** What tells a row from all others. */
export const keyOf = ({ owner, day, thread, tool, provider, model }: SpendRow): string =>
  hash('sha256', JSON.stringify([owner, day, thread ?? '', tool, provider, model])).slice(0, 40);

export const sumOf = (row: SpendRow, other: SpendRow): SpendRow => ({
  ...row,
  ...spendTotal([row, other]),
  ...((row.tries ?? other.tries) && { tries: addTries(row.tries ?? {}, other.tries ?? {}) }),
});

/** Whether what is asked for still fits under the limits, beside what is used already. */
export const fits = ({ usd, dayLimit = Infinity, threadLimit = Infinity }: SpendHold, used: SpendUsed): boolean =>
  usd + used.day <= dayLimit + rounding && usd + used.thread <= threadLimit + rounding;

/** What stays of a row whose thread is gone, a week later: the hours are not asked for any more. */
export const withoutThread = ({ thread: _thread, tries: _tries, ...row }: SpendRow): SpendRow => row;

export type GoneLookup = Extract<Lookup<never>, { state: 'expired' | 'deleted' }>;

/** How long an id is remembered after its thread went. */
export const tombstoneLifeMs = 90 * dayMs;

const notLiveNext = 'Begin a new thread: this one takes no more turns.';

export function refuseExisting(id: ThreadId): never {
  throw storageError('conflict', `Thread ${id} exists already, or did and was removed.`, {
    next: 'Give the new thread a different id.',
  });
}

export const closedStore = (): Error =>
  storageError('unavailable', 'The store of the threads is closed.', {
    next: 'Start the program again: a closed store is not opened a second time.',
  });

/** Tells of each damaged thread once, for lists and searches that leave it out. */
export function skipWarning(place: string, onWarning: (message: string) => void): (thread: string) => void {
  const warned = new Set<string>();
  return thread => {
    if (warned.has(thread)) return;
    warned.add(thread);
    onWarning(`Thread ${thread} is damaged ${place}; lists and searches leave it out.`);
  };
}

/** Of a stored text that is not what was stored. */
export const damagedText = (sha: Sha256, place: string): Error =>
  storageError('corrupt', `A stored text (${sha.slice(0, 12)}…) is damaged ${place} and is not served.`, {
    next: 'Begin a new thread and name the files again; other threads are affected only where they sent the same text.',
    data: { blob: sha },
  });

export const damagedJob = (id: string, place: string): Error =>
  storageError('corrupt', `Job ${id} is damaged ${place} and is not served.`, {
    next: 'Read the thread, which may have its answer, or resend the call.',
  });

/** Whether a thread belongs to a list or a search, and on this page of it or a later one. */
export const isListed = (
  { owner, workspace, now, before = Number.POSITIVE_INFINITY, beforeId }: Omit<ListQuery, 'limit'>,
  thread: HeadState | ThreadHead,
): boolean =>
  thread.owner === owner &&
  (workspace === undefined || thread.workspace === workspace) &&
  thread.expiresAt > now &&
  (thread.updatedAt < before || (thread.updatedAt === before && beforeId !== undefined && thread.id < beforeId));

/** What is known of an id whose thread went. */
export const goneAs = (state: 'expired' | 'deleted', at: number): GoneLookup =>
  state === 'expired' ? { state, expiredAt: at } : { state, deletedAt: at };

/** A thread's head as its readers know it. */
export function wholeHead({ startSeq: _start, ...head }: HeadState, { initialContext }: Origin): ThreadHead {
  return { ...head, initialContext };
}

export function refuseNotLive(id: ThreadId): never {
  throw storageError('conflict', `Thread ${id} is not there any more, or never was.`, { next: notLiveNext });
}

/** Its lease lapsed while it was stopped or asleep, and somebody else works on the thread now. */
export function refuseTakenOver(id: ThreadId): never {
  throw storageError(
    'conflict',
    `Thread ${id} was taken over by another process, since this one did not renew its lock.`,
    { retryable: true, next: 'Resend the call: it continues from what the other process stored.' },
  );
}

/** Answers what the head becomes; throws when the change does not fit the thread as it is. */
export function changedHead<Head extends Omit<ThreadHead, 'initialContext'>>(head: Head, change: ThreadChange): Head {
  const { id, seq, expiresAt, totals } = head;
  if (expiresAt <= (change.now ?? change.updatedAt))
    throw storageError('conflict', `Thread ${id} expired at ${new Date(expiresAt).toISOString()}.`, {
      next: notLiveNext,
    });
  if (change.baseSeq !== seq)
    throw storageError('conflict', `Thread ${id} is at turn ${seq}, not ${change.baseSeq}: another call changed it.`, {
      retryable: true,
      next: 'Read the thread again and repeat the call.',
      data: { seq },
    });
  const turns = change.turns ?? [];
  const misplaced = turns.find((turn, index) => turn.seq !== seq + 1 + index);
  if (misplaced) throw bugError(`Turn ${misplaced.seq} does not follow turn ${seq} of thread ${id} without a gap.`);
  return {
    ...head,
    title: change.title ?? head.title,
    updatedAt: change.updatedAt,
    expiresAt: change.expiresAt,
    totals: { tokens: totals.tokens + (change.tokens ?? 0), costUsd: totals.costUsd + (change.costUsd ?? 0) },
    seq: seq + turns.length,
  };
}

/** What is known of a thread from its beginning; the arguments of the first call may be long, so they are written once. */
export interface Origin
  extends Pick<ThreadHead, 'id' | 'parent' | 'owner' | 'workspace' | 'toolName' | 'createdAt' | 'initialContext'> {
  /** The `seq` it began with: 0, or the fork point. */
  startSeq: number;
}

/** What every change of a thread renews. Says again whose thread it is: whichever of the two rows is lost, the other knows. */
export type HeadState = Omit<ThreadHead, 'initialContext'> & Pick<Origin, 'startSeq'>;

/** One row's content. It says where it belongs, so that a row can be put back when nothing else of the file is left. */
export type StoredRecord =
  | { kind: 'origin'; origin: Origin }
  | { kind: 'head'; head: HeadState }
  | { kind: 'turn'; thread: ThreadId; turn: Turn }
  | ({ kind: 'exchange'; thread: ThreadId; id: ExchangeId } & ExchangeEnd)
  | { kind: 'compaction'; thread: ThreadId; compaction: Compaction }
  | { kind: 'workflow'; thread: ThreadId; tool: string; seq: number; state: WorkflowState }
  | { kind: 'tombstone'; id: ThreadId; state: 'expired' | 'deleted'; at: number }
  | { kind: 'job'; job: Job }
  /** `ids`: of the newest entries in the sum. */
  | { kind: 'spend'; row: SpendRow; ids?: readonly string[] };

export type RecordOf<Kind extends StoredRecord['kind']> = Extract<StoredRecord, { kind: Kind }>;

/** The thread that a record belongs to; of other records their own id, or nothing. */
export function threadOf(record: StoredRecord): string {
  if (record.kind === 'origin') return record.origin.id;
  if (record.kind === 'head') return record.head.id;
  return 'thread' in record ? record.thread : '';
}

/** What is written once of a new thread, and what each change renews. */
export function splitHead({ initialContext, ...known }: ThreadHead): [Origin, HeadState] {
  const { id, parent, owner, workspace, toolName, createdAt, seq: startSeq } = known;
  return [
    { id, parent, owner, workspace, toolName, createdAt, initialContext, startSeq },
    { ...known, startSeq },
  ];
}

/** JSON as every store keeps it; half a surrogate pair becomes U+FFFD, because UTF-8 has no place for it. */
export const storedJson = (value: unknown): string =>
  JSON.stringify(value, (_key, part: unknown) => (typeof part === 'string' ? part.toWellFormed() : part));

export function sealRecord(record: StoredRecord): { body: string; seal: string } {
  const body = storedJson(record);
  return { body, seal: hash('sha256', body) };
}

/** The record, or undefined when a byte of it changed since it was sealed, or when it is of another kind than that. */
export function openRecord<Kind extends StoredRecord['kind']>(
  body: string,
  seal: string,
  kind?: Kind,
): RecordOf<Kind> | undefined {
  if (hash('sha256', body) !== seal) return undefined;
  // The checksum proves that this is what sealRecord wrote.
  const record: RecordOf<Kind> = JSON.parse(body);
  return kind === undefined || record.kind === kind ? record : undefined;
}

/** What cannot be read of a fact counts as empty: it is replaced by the next change, and nothing but time was lost. */
export function factValue(body: string): JsonObject {
  try {
    const value: Json = JSON.parse(body);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/** A blob's key is part of its seal: the key may be the hash of bytes of which the text is only a rendering. */
export const sealBlob = (key: string, text: string): string => hash('sha256', `${key}\n${text}`);

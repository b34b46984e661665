import { isAppError, storageError } from '../../core/errors.ts';
import type { ThreadId } from '../../core/ids.ts';
import type { ThreadHead } from '../../core/thread.ts';
import { type HeadState, type Origin, openRecord, type RecordOf, type StoredRecord, sealRecord } from '../records.ts';
import type { Lookup } from '../store.ts';
import { textsOf } from './script.ts';

const sealChars = 64;

/** A record as one text: its checksum, then its JSON. */
export function packRecord(record: StoredRecord): string {
  const { body, seal } = sealRecord(record);
  return seal + body;
}

/** The record, or undefined when it is damaged or of another kind. */
export function unpackRecord<Kind extends StoredRecord['kind']>(
  text: string | undefined,
  kind: Kind,
): RecordOf<Kind> | undefined {
  if (text === undefined) return undefined;
  const record = openRecord(text.slice(sealChars), text.slice(0, sealChars));
  return record && isKind(record, kind) ? record : undefined;
}

function isKind<Kind extends StoredRecord['kind']>(record: StoredRecord, kind: Kind): record is RecordOf<Kind> {
  return record.kind === kind;
}

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
export type FoundHead = { state: 'stored'; value: StoredHead } | Exclude<Lookup<never>, { state: 'live' }>;

export const headFields = ['s', 'at', 'exp', 'head', 'origin', 'v', 'texts'] as const;

/** Reads the fields of a head, in the order of `headFields`. */
export function foundHead(id: ThreadId, fields: unknown): FoundHead {
  const [state, at, , body, begin, version = '', texts] = textsOf(fields);
  if (state === undefined) return { state: 'unknown' };
  if (state === 'expired') return { state, expiredAt: Number(at) };
  if (state === 'deleted') return { state, deletedAt: Number(at) };
  const head = unpackRecord(body, 'head')?.head;
  const origin = unpackRecord(begin, 'origin')?.origin;
  if (head?.id !== id || origin?.id !== id) return damaged(id, 'its head');
  return { state: 'stored', value: { head, origin, version, textsUntil: Number(texts ?? 0) } };
}

export function publicHead({ head: { startSeq: _start, ...head }, origin }: StoredHead): ThreadHead {
  return { ...head, initialContext: origin.initialContext };
}

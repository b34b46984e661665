import { hash } from 'node:crypto';
import type { ExchangeId, ThreadId } from '../core/ids.ts';
import type { Job } from '../core/job.ts';
import type { Compaction, ExchangeStatus, ThreadHead, Turn, WorkflowState } from '../core/thread.ts';
import type { SpendRow } from '../core/usage.ts';

/** What is known of a thread from its beginning; the arguments of the first call may be long, so they are written once. */
export interface Origin
  extends Pick<ThreadHead, 'id' | 'parent' | 'owner' | 'workspace' | 'toolName' | 'createdAt' | 'initialContext'> {
  /** The `seq` it began with: 0, or the fork point. */
  startSeq: number;
}

/** What every change of a thread renews. Says again whose thread it is: whichever of the two rows is lost, the other knows. */
export type HeadState = Omit<ThreadHead, 'initialContext'> & Pick<Origin, 'startSeq'>;

/**
 * One row's content. It says by itself what it is and where it belongs, so that a row can be put back into its place when
 * nothing else of the file is left.
 */
export type StoredRecord =
  | { kind: 'origin'; origin: Origin }
  | { kind: 'head'; head: HeadState }
  | { kind: 'turn'; thread: ThreadId; turn: Turn }
  | { kind: 'exchange'; thread: ThreadId; id: ExchangeId; status: ExchangeStatus }
  | { kind: 'compaction'; thread: ThreadId; compaction: Compaction }
  | { kind: 'workflow'; thread: ThreadId; tool: string; seq: number; state: WorkflowState }
  | { kind: 'tombstone'; id: ThreadId; state: 'expired' | 'deleted'; at: number }
  | { kind: 'job'; job: Job }
  | { kind: 'spend'; row: SpendRow };

export type RecordOf<Kind extends StoredRecord['kind']> = Extract<StoredRecord, { kind: Kind }>;

/** A row as it is written: the JSON and its checksum. */
export interface Sealed {
  body: string;
  seal: string;
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
export function storedJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => (typeof part === 'string' ? part.toWellFormed() : part));
}

export function sealRecord(record: StoredRecord): Sealed {
  const body = storedJson(record);
  return { body, seal: hash('sha256', body) };
}

/** The record, or undefined when a byte of it changed since it was sealed. */
export function openRecord(body: string, seal: string): StoredRecord | undefined {
  if (hash('sha256', body) !== seal) return undefined;
  // The checksum proves that this is what sealRecord wrote.
  const record: StoredRecord = JSON.parse(body);
  return record;
}

/** A blob's key is part of its seal: the key may be the hash of bytes of which the text is only a rendering. */
export function sealBlob(key: string, text: string): string {
  return hash('sha256', `${key}\n${text}`);
}

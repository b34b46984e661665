import type { ThreadId } from '../../core/ids.ts';
import type { Clock, Mask, Random } from '../../core/ports.ts';
import type { ThreadHead } from '../../core/thread.ts';
import type { Store } from '../../storage/store.ts';
import type { Exclusively } from '../../threads/thread-lock.ts';
import type { RecordMask } from '../../threads/transfer/mask-records.ts';
import type { FileHead } from '../../threads/transfer/records.ts';
import type { Place } from '../lookup.ts';
import type { OpenBytes } from './file-lines.ts';

export interface ImportParts {
  store: Store;
  clock: Clock;
  random: Random;
  mask: Mask;
  exclusively: Exclusively;
  /** Milliseconds that a thread lives after its last use. */
  lifetimeMs: number;
}

export interface ImportOptions {
  /** The file; it is read twice, so that nothing is written of one that is broken anywhere. */
  open: OpenBytes;
  /** Whose the thread becomes. */
  place: Place;
  /** It gets an id of its own, beside a thread that has the file's. */
  asNew: boolean;
  signal: AbortSignal;
  /** Told of records as they are read, and again as they are written. */
  onProgress?: (stage: 'checking' | 'writing', records: number) => void;
}

export interface Imported {
  thread: ThreadHead;
  turns: number;
  blobs: number;
  /** Texts that turns refer to and that are in no line. */
  missing: number;
  /** Secrets that were still in the file: kind → how many. */
  masked: Readonly<Record<string, number>>;
}

/** A file that was read to its end and is whole. */
export interface Survey {
  id: ThreadId;
  head: FileHead;
  turns: number;
  blobs: number;
  missing: number;
  /** Of the whole file. */
  sum: string;
  /** Knows how texts were renamed. */
  masks: RecordMask;
}

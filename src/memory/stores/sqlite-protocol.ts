import type { JobId, ThreadId } from '../../core/ids.ts';
import type { Job } from '../../core/job.ts';
import type { SpendHold } from '../../core/spend-ledger.ts';
import type { ThreadHead } from '../../core/thread.ts';
import type { SpendEntry } from '../../core/usage.ts';
import type { FailureMessage } from '../../storage/sqlite/failure.ts';
import type { FactSwap, JobEnd, ThreadChange, Unused } from '../../storage/store.ts';

/** A change, as the store's thread asks the writer's thread for it. */
export type WriteRequest =
  | { op: 'create'; head: ThreadHead; over?: 'revive' }
  | { op: 'commit'; id: ThreadId; change: ThreadChange }
  | { op: 'remove'; id: ThreadId; now: number }
  | { op: 'prune'; now: number; unused?: Unused }
  | { op: 'createJob'; job: Job }
  | { op: 'endJob'; id: JobId; end: JobEnd }
  | { op: 'addSpend'; entry: SpendEntry | undefined; hold: string | undefined }
  | { op: 'holdSpend'; hold: SpendHold }
  | { op: 'lease'; id: string; holder: string; ttlMs: number; now: number }
  | { op: 'release'; id: string; holder: string }
  | { op: 'swapFact'; swap: FactSwap };

/** What is done between transactions. */
export type ControlRequest =
  /** Creates, migrates and checks the file, where that has not happened yet. */
  | { op: 'open' }
  /** Checks all of the file, because a read found damage in it. Answers 1 when it was replaced, else 0. */
  | { op: 'inspect' }
  /** Ends the thread, with all that was written moved into the file itself. */
  | { op: 'close' };

export interface WriterRequest {
  id: number;
  /** Epoch milliseconds; the writer has no clock. */
  now: number;
  request: WriteRequest | ControlRequest;
}

/** Yes and no are 1 and 0; where there is nothing to say it is 0. */
export type WriterAnswer =
  | { id: number; value: number }
  | { id: number; failure: FailureMessage }
  | { warning: string };

export interface WriterOptions {
  file: string;
  maxBytes?: number;
  /** URL of the thread's program, where it is another one: it calls `startWriter`. */
  program?: string;
}

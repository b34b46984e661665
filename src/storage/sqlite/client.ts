import { scheduler } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { isAppError, storageError } from '../../core/errors.ts';
import type { JobId, ThreadId } from '../../core/ids.ts';
import type { Job } from '../../core/job.ts';
import type { Clock } from '../../core/ports.ts';
import type { SpendHold } from '../../core/spend-ledger.ts';
import type { ThreadHead } from '../../core/thread.ts';
import type { SpendEntry } from '../../core/usage.ts';
import type { FactSwap, JobEnd, ThreadChange, Unused } from '../store.ts';
import { type FailureMessage, unpackFailure } from './failure.ts';

/** What may wait for others to share their transaction waits no longer than this many milliseconds. */
const lingerMs = 5;

/** Things to do that may wait a little, so that they go along with what can't. */
export interface Lingering {
  add(run: () => void): void;
  /** Does all of it now, in its order. */
  flush(): void;
}

/** By the machine's own time, as the disk's is: a clock that a test has stopped must not stop what was asked. */
export function createLingering(): Lingering {
  let waiting: (() => void)[] = [];
  let isTimed = false;

  function flush(): void {
    const all = waiting;
    waiting = [];
    for (const run of all) run();
  }

  return {
    add(run) {
      waiting.push(run);
      if (isTimed) return;
      isTimed = true;
      void scheduler.wait(lingerMs).then(() => {
        isTimed = false;
        flush();
      });
    },
    flush,
  };
}

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

/** The near side of the writer's thread, which it starts with the first request and again when it died. */
export interface SqliteClient {
  /** `unhurried`: goes along with the next request, in its transaction, or after a few milliseconds by itself. */
  send(request: WriteRequest | ControlRequest, unhurried?: boolean): Promise<number>;
  /** True once something succeeded: then the file is there and ready. */
  opened(): boolean;
  /** Waits for what was sent, and ends the thread. */
  end(): Promise<void>;
}

interface Waiting {
  resolve(value: number): void;
  reject(error: unknown): void;
}

const program = new URL(import.meta.url.endsWith('.ts') ? './writer.ts' : './sqlite-writer.js', import.meta.url);

export function sqliteClient(options: WriterOptions, clock: Clock, onWarning: (message: string) => void): SqliteClient {
  const waiting = new Map<number, Waiting>();
  let worker: Worker | undefined;
  let opened = false;
  let lastId = 0;
  const lingering = createLingering();

  function settle(answer: WriterAnswer): void {
    if ('warning' in answer) {
      onWarning(answer.warning);
      return;
    }
    const asked = waiting.get(answer.id);
    waiting.delete(answer.id);
    // An idle store keeps no process alive; one that still owes an answer does.
    if (waiting.size === 0) worker?.unref();
    if ('failure' in answer) {
      asked?.reject(unpackFailure(answer.failure));
      return;
    }
    opened = true;
    asked?.resolve(answer.value);
  }

  function start(): Worker {
    const started = new Worker(options.program === undefined ? program : new URL(options.program), {
      workerData: options,
      execArgv: [],
    });
    const died = (cause?: unknown) => {
      if (worker !== started) return;
      worker = undefined;
      opened = false;
      const error = storageError('unavailable', `The writer of ${options.file} ended unexpectedly.`, {
        cause,
        retryable: true,
        next: 'Try again: it is started anew. Read the thread first, because the change may have been made.',
      });
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
    };
    started.on('message', settle);
    started.on('error', died);
    started.on('exit', () => died());
    return started;
  }

  function post(request: WriteRequest | ControlRequest, asked: Waiting): void {
    try {
      worker ??= start();
      const message: WriterRequest = { id: ++lastId, now: clock.now(), request };
      // First, because it throws when the request holds what cannot be copied.
      worker.postMessage(message);
      waiting.set(message.id, asked);
      worker.ref();
    } catch (error) {
      asked.reject(error);
    }
  }

  return {
    opened: () => opened,

    send(request, unhurried = false) {
      return new Promise((resolve, reject) => {
        const postIt = () => post(request, { resolve, reject });
        if (unhurried) return lingering.add(postIt);
        // The writer takes what comes in one go into one transaction, in this order.
        lingering.flush();
        postIt();
      });
    },

    async end() {
      lingering.flush();
      const current = worker;
      if (!current) return;
      const gone = new Promise<void>(resolve => current.once('exit', () => resolve()));
      try {
        await this.send({ op: 'close' });
      } catch (error) {
        // Everything that was acknowledged is in the file; only moving it to its final place did not work.
        onWarning(isAppError(error) ? error.message : String(error));
      }
      current.ref();
      await gone;
    },
  };
}

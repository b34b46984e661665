import { scheduler } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { AppError, isAppError, storageError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { inodeOf } from './tables.ts';
import type { SqliteWrites } from './writes.ts';

/** Milliseconds that an unhurried request waits for another one at most: a tiny question is stored sooner, and its answer. */
const lingerMs = 50;

type WriteArgs = { [Op in keyof SqliteWrites]: Parameters<SqliteWrites[Op]> };

/** A change, as the store's thread asks the writer's thread for it. */
export type WriteRequest<Op extends keyof SqliteWrites = keyof SqliteWrites> = {
  [Each in Op]: { op: Each; args: WriteArgs[Each] };
}[Op];

/** The changes as they answer requests. */
type Performers = { [Op in keyof SqliteWrites]: (...args: WriteArgs[Op]) => unknown };

/** Makes a change. Yes and no are 1 and 0; where there is nothing to say it is 0. */
export const perform = <Op extends keyof SqliteWrites>(writes: Performers, { op, args }: WriteRequest<Op>): number =>
  Number(writes[op](...args) ?? 0);

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

export type WriterAnswer =
  /** Yes and no are 1 and 0; where there is nothing to say it is 0. */
  { id: number; value: number } | { id: number; failure: ConstructorParameters<typeof AppError> } | { warning: string };

export interface WriterOptions {
  /** Absolute path; the file and its directory are made on first use. */
  file: string;
  /** URL of another program for the writer's thread, which calls `startWriter`: for tests of disks that fail. */
  program?: string;
}

export type SqliteClient = ReturnType<typeof sqliteClient>;

interface Waiting {
  request: WriterRequest;
  resolve(value: number): void;
  reject(error: unknown): void;
}

const program = new URL(import.meta.url.endsWith('.ts') ? './writer.ts' : './sqlite-writer.cjs', import.meta.url);

const startThread = (options: WriterOptions): Worker =>
  new Worker(options.program === undefined ? program : new URL(options.program), {
    workerData: options,
    execArgv: [],
    // What it reads and writes is gone at once: a young generation as large as this process's would hold 10 MB for nothing.
    resourceLimits: { maxYoungGenerationSizeMb: 4 },
  });

/** The near side of the writer's thread, which it starts with the first request and again when it died. */
export function sqliteClient(options: WriterOptions, clock: Clock, onWarning: (message: string) => void) {
  const waiting = new Map<number, Waiting>();
  let worker: Worker | undefined;
  let opened: number | undefined;
  let lastId = 0;
  /** What goes to the writer in one message, and so into one transaction. */
  let outbox: Waiting[] = [];
  let isTimed = false;

  function settle(answers: readonly WriterAnswer[]): void {
    for (const answer of answers) {
      if ('warning' in answer) {
        onWarning(answer.warning);
        continue;
      }
      const asked = waiting.get(answer.id);
      waiting.delete(answer.id);
      if ('failure' in answer) asked?.reject(new AppError(...answer.failure));
      else asked?.resolve(answer.value);
      if ('value' in answer) opened ??= inodeOf(options.file);
    }
    // An idle store keeps no process alive; one that still owes an answer does.
    if (waiting.size === 0) worker?.unref();
  }

  function start(): Worker {
    const started = startThread(options);
    const died = (cause?: unknown) => {
      if (worker !== started) return;
      worker = undefined;
      const error = storageError('unavailable', `The writer of ${options.file} ended unexpectedly.`, {
        cause,
        retryable: true,
        next: 'Retry: it restarts. Read the thread first, because the change may have been made.',
      });
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
    };
    started.on('message', settle);
    started.on('error', died);
    started.on('exit', () => died());
    return started;
  }

  function post(batch: readonly Waiting[]): void {
    try {
      worker ??= start();
      // First, because it throws when a request holds what cannot be copied.
      worker.postMessage(batch.map(({ request }) => request));
      for (const asked of batch) waiting.set(asked.request.id, asked);
      worker.ref();
    } catch (error) {
      if (batch.length > 1) for (const asked of batch) post([asked]);
      else batch[0]?.reject(error);
    }
  }

  function flush(): void {
    const batch = outbox;
    outbox = [];
    if (batch.length > 0) post(batch);
  }

  /** By the machine's own time, as the disk's is: a clock that a test has stopped must not stop what was asked. */
  async function flushLater(): Promise<void> {
    isTimed = true;
    await scheduler.wait(lingerMs);
    isTimed = false;
    flush();
  }

  /** `unhurried`: goes along with the next request, in its transaction, or after `lingerMs` by itself. */
  const send = (request: WriteRequest | ControlRequest, unhurried = false): Promise<number> =>
    new Promise((resolve, reject) => {
      outbox.push({ request: { id: ++lastId, now: clock.now(), request }, resolve, reject });
      if (!unhurried) queueMicrotask(flush);
      else if (!isTimed) void flushLater();
    });

  return {
    send,
    /** Starts the thread, which does nothing before the first request. */
    warm(): void {
      worker ??= start();
      if (waiting.size === 0) worker.unref();
    },
    /** Whether the path leads to the file with which something succeeded first. Another one has to be opened by the writer. */
    isReady: () => opened !== undefined && opened === inodeOf(options.file),
    /** Waits for what was sent, and ends the thread. */
    async end(): Promise<void> {
      flush();
      const current = worker;
      if (!current) return;
      const gone = new Promise<void>(resolve => current.once('exit', () => resolve()));
      try {
        await send({ op: 'close' });
      } catch (error) {
        // Everything that was acknowledged is in the file; only moving it to its final place did not work.
        onWarning(isAppError(error) ? error.message : String(error));
      }
      current.ref();
      await gone;
    },
  };
}

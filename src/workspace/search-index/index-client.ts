import { Worker } from 'node:worker_threads';
import { onAbort } from '../../core/concurrency.ts';
import { abortError, bugError, cancelledError, storageError, throwIfAborted } from '../../core/errors.ts';
import type { LineRange, Skip } from '../../core/file.ts';
import type { Clock } from '../../core/ports.ts';
import type { SandboxOptions } from '../sandbox.ts';

/** A file whose chunks are put into the index. Its path is absolute. */
export interface FileToCut {
  path: string;
  /** As it may be stored: masked. */
  text: string;
}

/** A stretch of a file that answers a search. */
export interface Hit extends LineRange {
  /** Absolute. */
  path: string;
  name: string;
  text: string;
  score: number;
  /** How much of the question its file speaks of, which can be compared with the hits of other indexes. */
  fit: number;
}

/** What the thread of an index is asked. */
export type IndexJob =
  /** Makes the index equal to the files. `now`: epoch milliseconds. */
  | { op: 'look'; now: number; rebuild?: boolean }
  /** Texts of files that have no chunks yet, unmasked: those near a question, or any. */
  | { op: 'uncut'; question: string | undefined; limit: number }
  | { op: 'cut'; files: readonly FileToCut[] }
  | { op: 'counts'; model: string | undefined }
  /** Chunks that have no vector of this model. */
  | { op: 'bare'; model: string; limit: number }
  | { op: 'embed'; model: string; vectors: readonly { id: number; vector: Float32Array }[] }
  | { op: 'search'; question: string; near?: { model: string; vector: Float32Array }; limit: number };

/** A job of one kind. */
export type Job<Op extends IndexJob['op']> = Extract<IndexJob, { op: Op }>;

export interface IndexResults {
  /** Counts of files. */
  look: { files: number; indexed: number; removed: number; skipped: Skip[] };
  uncut: FileToCut[];
  cut: undefined;
  counts: { chunks: number; vectors: number };
  bare: { id: number; text: string }[];
  embed: undefined;
  search: Hit[];
}

/** `close`: ends all looks, then the thread. */
export type ToThread = { id: number; job: IndexJob } | { cancel: number } | { close: true };

export interface IndexThreadOptions {
  /** The database; undefined: in memory alone. */
  file?: string;
  /** The workspace. */
  root: string;
  sandbox: SandboxOptions;
}

/** How far a look is, in files. */
export interface LookProgress {
  done: number;
  total: number;
}

/** `damaged`: the database was no good and has been emptied; what was asked for can be asked again. */
export type IndexFailure = { failure: string; full: boolean; damaged: boolean };

const program = new URL(import.meta.url.endsWith('.ts') ? './index-worker.ts' : './index-thread.cjs', import.meta.url);
const threadMegabytes = 1_024;

/** A thread that was asked nothing for this long ends, unless its index is in memory alone. The next one lists and reads again. */
const idleMs = 120_000;

interface Asked {
  resolve(done: unknown): void;
  reject(error: Error): void;
  onProgress: ((progress: LookProgress) => void) | undefined;
}

/** The database of one index, in a thread of its own: neither reading, parsing nor waiting for a lock stops anything else. */
export class IndexClient {
  readonly #options: IndexThreadOptions;
  readonly #clock: Pick<Clock, 'after'>;
  readonly #asked = new Map<number, Asked>();
  #lastId = 0;
  #worker: Worker | undefined;
  #stayAwake: (() => void) | undefined;
  #closed = false;

  constructor(options: IndexThreadOptions, clock: Pick<Clock, 'after'>) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Jobs are begun in the order asked; a question is answered while a look goes on. An abort ends a look, and keeps what is done. */
  async ask<Op extends IndexJob['op']>(job: Job<Op>, signal?: AbortSignal, onProgress?: Asked['onProgress']) {
    if (this.#closed) throw ending();
    throwIfAborted(signal);
    this.#stayAwake?.();
    this.#worker ??= this.#started();
    const worker = this.#worker;
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<IndexResults[Op]>();
    this.#asked.set(id, { resolve, reject, onProgress });
    const forget = onAbort(signal, () => worker.postMessage({ cancel: id }));
    worker.ref();
    try {
      worker.postMessage({ id, job });
      return await promise;
    } catch (error) {
      if (this.#closed) throw ending();
      throw signal?.aborted ? abortError(signal) : error;
    } finally {
      forget();
      this.#asked.delete(id);
      if (this.#asked.size === 0) this.#rest(worker);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#end();
    for (const { reject } of this.#asked.values()) reject(ending());
  }

  #started(): Worker {
    const worker = new Worker(program, {
      workerData: this.#options,
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: threadMegabytes, maxYoungGenerationSizeMb: 64 },
    });
    const fail = (error: Error) => {
      // One that was told to end owes no answer; one that failed is started anew by the next job.
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      for (const { reject } of this.#asked.values()) reject(error);
    };
    return worker
      .on('message', (told: { id: number } & ({ progress: LookProgress } | { done: unknown } | IndexFailure)) => {
        const asked = this.#asked.get(told.id);
        if ('progress' in told) asked?.onProgress?.(told.progress);
        else if ('done' in told) asked?.resolve(told.done);
        else asked?.reject(failed(told));
      })
      .on('error', error => fail(bugError('The thread of the search index failed.', error)))
      .on('exit', code => fail(bugError(`The thread of the search index ended with code ${code}.`)));
  }

  #rest(worker: Worker): void {
    worker.unref();
    if (this.#worker !== worker || this.#options.file === undefined || this.#closed) return;
    this.#stayAwake = this.#clock.after(idleMs, () => void this.#end());
  }

  async #end(): Promise<void> {
    this.#stayAwake?.();
    const worker = this.#worker;
    if (!worker) return;
    this.#worker = undefined;
    const ended = new Promise(resolve => worker.once('exit', resolve));
    worker.ref();
    worker.postMessage({ close: true });
    await ended;
  }
}

const ending = (): Error => cancelledError('The process is ending.');

function failed({ failure, full, damaged }: IndexFailure): Error {
  if (damaged) {
    return storageError('corrupt', `The search index was damaged (${failure}) and has been thrown away.`, {
      next: 'Resend the call: the index is rebuilt from the files.',
      retryable: true,
    });
  }
  return storageError(full ? 'storage_full' : 'unavailable', `The search index cannot be used: ${failure}.`, {
    next: 'Check free space and permissions of the data directory, or omit use_search.',
  });
}

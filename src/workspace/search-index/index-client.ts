import { Worker } from 'node:worker_threads';
import { bugError, cancelledError, storageError } from '../../core/errors.ts';
import type { LineRange } from '../../core/file.ts';
import type { Clock } from '../../core/ports.ts';
import type { Language } from '../outline/outline.ts';
import type { KnownFile } from '../read-file.ts';

/** A file to be put into the index, as it may be stored: masked. Its path is relative to the workspace, with slashes. */
export interface FileToIndex extends KnownFile {
  text: string;
  language?: Language;
  /** What a hit in it counts for, at most 1. */
  weight: number;
}

/** A stretch of a file that answers a search. */
export interface Hit extends LineRange {
  /** Relative to the workspace, with slashes. */
  path: string;
  name: string;
  text: string;
  score: number;
}

/** What the thread of an index is asked, one at a time. */
export type IndexJob =
  | { op: 'files' }
  | { op: 'put'; files: readonly FileToIndex[] }
  /** The text is the same, the time of the last change is not. */
  | { op: 'touch'; files: readonly KnownFile[] }
  | { op: 'remove'; paths: readonly string[] }
  | { op: 'clear' }
  | { op: 'counts'; model?: string }
  /** Chunks that have no vector of this model. */
  | { op: 'bare'; model: string; limit: number }
  | { op: 'embed'; model: string; vectors: readonly { id: number; vector: Float32Array }[] }
  | { op: 'search'; words: readonly string[]; near?: { model: string; vector: Float32Array }; limit: number }
  | { op: 'close' };

export interface IndexResults {
  files: KnownFile[];
  put: undefined;
  touch: undefined;
  remove: undefined;
  clear: undefined;
  counts: { files: number; chunks: number; vectors: number };
  bare: { id: number; text: string }[];
  embed: undefined;
  search: Hit[];
  close: undefined;
}

export interface IndexThreadOptions {
  /** The database; undefined: in memory alone. */
  file?: string;
}

/** `damaged`: the database was no good and has been emptied; what was asked for can be asked again. */
export type IndexFailure = { failure: string; full: boolean; damaged: boolean };

const program = new URL(import.meta.url.endsWith('.ts') ? './index-worker.ts' : './index-thread.js', import.meta.url);

const threadMegabytes = 1_024;

/** A thread that was asked nothing for this long ends, unless what it knows is in memory alone. */
const idleMs = 10_000;

/** The database of one index, in a thread of its own: neither parsing nor waiting for a lock stops anything else. */
export class IndexClient {
  readonly #options: IndexThreadOptions;
  readonly #clock: Pick<Clock, 'after'>;
  #worker: Worker | undefined;
  #stayAwake: (() => void) | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(options: IndexThreadOptions, clock: Pick<Clock, 'after'>) {
    this.#options = options;
    this.#clock = clock;
  }

  /** One job after another, in the order asked. */
  ask<Op extends IndexJob['op']>(job: Extract<IndexJob, { op: Op }>): Promise<IndexResults[Op]> {
    const answer = this.#last.then(() => this.#ask<Op>(job));
    // The failure of one job is told to who asked for it; the next one is done all the same.
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#last;
    await this.#end();
  }

  async #ask<Op extends IndexJob['op']>(job: Extract<IndexJob, { op: Op }>): Promise<IndexResults[Op]> {
    if (this.#closed) throw cancelledError('The process is ending.');
    this.#stayAwake?.();
    const worker = this.#started();
    const { promise, resolve, reject } = Promise.withResolvers<IndexResults[Op]>();
    const onMessage = (answer: { done: IndexResults[Op] } | IndexFailure) => {
      if ('done' in answer) resolve(answer.done);
      else reject(failed(answer));
    };
    const onExit = (code: number) => reject(bugError(`The thread of the search index ended with code ${code}.`));
    const onError = (error: unknown) => reject(bugError('The thread of the search index failed.', error));
    worker.on('message', onMessage).on('error', onError).on('exit', onExit).ref();
    try {
      worker.postMessage(job);
      return await promise;
    } finally {
      worker.off('message', onMessage).off('error', onError).off('exit', onExit).unref();
      this.#rest();
    }
  }

  #started(): Worker {
    if (this.#worker) return this.#worker;
    const worker = new Worker(program, {
      workerData: this.#options,
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: threadMegabytes },
    });
    // A thread that failed between two jobs is started anew by the next one.
    worker
      .on('error', () => undefined)
      .on('exit', () => {
        if (this.#worker === worker) this.#worker = undefined;
      });
    this.#worker = worker;
    return worker;
  }

  #rest(): void {
    if (this.#options.file === undefined) return;
    this.#stayAwake = this.#clock.after(idleMs, () => {
      this.#last = this.#last.then(() => this.#end());
    });
  }

  async #end(): Promise<void> {
    this.#stayAwake?.();
    const worker = this.#worker;
    if (!worker) return;
    this.#worker = undefined;
    const closed = new Promise(resolve => worker.once('message', resolve).once('exit', resolve).once('error', resolve));
    worker.ref();
    worker.postMessage({ op: 'close' });
    await closed;
    await worker.terminate();
  }
}

function failed({ failure, full, damaged }: IndexFailure): Error {
  if (damaged) {
    return storageError('corrupt', `The search index was damaged (${failure}) and has been thrown away.`, {
      next: 'Send the call again: the index is made anew from the files.',
      retryable: true,
    });
  }
  return storageError(full ? 'storage_full' : 'unavailable', `The search index can't be used: ${failure}.`, {
    next: 'Check the free space and the rights of the data folder, or leave out use_search.',
  });
}

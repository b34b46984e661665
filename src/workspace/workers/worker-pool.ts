import { Worker } from 'node:worker_threads';
import { bugError, cancelledError, throwIfAborted } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { answerOf, reasonOf } from '../thread-answer.ts';
import type { FoundSymbol, Job, JobAnswer, JobResults } from './run-job.ts';

const program = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './work-thread.js', import.meta.url);

/** Characters that are parsed or compared in about 10 ms; for less a thread is not worth its message. */
const smallChars = 24_000;
/** A thread's memory; the largest file that is read takes a fraction of it. */
const threadMegabytes = 1_024;
/** A thread that had nothing to do for this long ends. */
const idleMs = 10_000;

/** Threads for work on the processor. */
export type WorkPool = Pick<Pool, keyof Pool>;

type Of<Kind extends Job['kind']> = Omit<Extract<Job, { kind: Kind }>, 'kind'>;

export interface PoolOptions {
  /** The most threads at once. */
  size: number;
  clock: Pick<Clock, 'after'>;
}

type Result = JobResults[Job['kind']];

interface Waiting {
  start(thread: Thread): void;
  refuse(error: Error): void;
}

interface Thread {
  worker: Worker;
  /** Stops the countdown to its end. */
  stayAwake?: () => void;
}

/** Starts threads when there is work and lets idle ones end; neither keeps the process alive. An abort ends the work at once. */
export function createPool(options: PoolOptions): WorkPool {
  return new Pool(options);
}

class Pool {
  readonly #options: PoolOptions;
  readonly #idle: Thread[] = [];
  readonly #all = new Set<Thread>();
  readonly #queue: Waiting[] = [];
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Threads that there are now, working or idle. */
  get threads(): number {
    return this.#all.size;
  }

  /** What a source file declares, in the order of the source. */
  async symbols(job: Of<'symbols'>, signal?: AbortSignal): Promise<FoundSymbol[]> {
    const small = job.text.length <= smallChars;
    const found = await this.#do({ kind: 'symbols', ...job }, small, signal);
    return Array.isArray(found) ? found : [];
  }

  /** What changed in a file; undefined when the texts are too far apart. */
  async diff(job: Of<'diff'>, signal?: AbortSignal): Promise<string | undefined> {
    const small = job.before.length + job.after.length <= smallChars;
    const found = await this.#do({ kind: 'diff', ...job }, small, signal);
    return typeof found === 'string' ? found : undefined;
  }

  /** Tokens of texts by o200k, or a few more: slow, for what an estimate can't decide. */
  async count(texts: readonly string[], signal?: AbortSignal): Promise<number> {
    // Always in a thread: the tokenizer alone takes longer to load than others should wait.
    const found = await this.#do({ kind: 'count', texts }, false, signal);
    return typeof found === 'number' ? found : Number.POSITIVE_INFINITY;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const waiting of this.#queue.splice(0)) waiting.refuse(cancelledError('The process is ending.'));
    await Promise.all([...this.#all].map(thread => this.#end(thread)));
  }

  async #do(job: Job, small: boolean, signal: AbortSignal | undefined): Promise<Result> {
    throwIfAborted(signal);
    if (small) return here(job);
    const thread = await this.#free(signal);
    let sound = false;
    try {
      const result = await ask(thread, job, signal);
      sound = !this.#closed;
      return result;
    } finally {
      // Whatever an aborted thread still does is nobody's any more.
      if (sound) this.#release(thread);
      else await this.#end(thread);
    }
  }

  #free(signal: AbortSignal | undefined): Promise<Thread> {
    if (this.#closed) return Promise.reject(cancelledError('The process is ending.'));
    const rested = this.#idle.pop();
    if (rested) {
      rested.stayAwake?.();
      return Promise.resolve(rested);
    }
    if (this.#all.size < this.#options.size) return Promise.resolve(this.#started());
    const { promise, resolve, reject } = Promise.withResolvers<Thread>();
    const abort = () => {
      this.#queue.splice(this.#queue.indexOf(waiting), 1);
      reject(reasonOf(signal));
    };
    const waiting: Waiting = {
      start(thread) {
        signal?.removeEventListener('abort', abort);
        resolve(thread);
      },
      refuse: reject,
    };
    signal?.addEventListener('abort', abort, { once: true });
    this.#queue.push(waiting);
    return promise;
  }

  #started(): Thread {
    const worker = new Worker(program, { execArgv: [], resourceLimits: { maxOldGenerationSizeMb: threadMegabytes } });
    const thread: Thread = { worker };
    // An error that comes after an abort is nobody's, and must not end the process.
    worker.on('error', () => undefined);
    this.#all.add(thread);
    return thread;
  }

  #release(thread: Thread): void {
    const next = this.#queue.shift();
    if (next) {
      next.start(thread);
      return;
    }
    thread.worker.unref();
    thread.stayAwake = this.#options.clock.after(idleMs, () => {
      this.#idle.splice(this.#idle.indexOf(thread), 1);
      void this.#end(thread);
    });
    this.#idle.push(thread);
  }

  async #end(thread: Thread): Promise<void> {
    this.#all.delete(thread);
    thread.stayAwake?.();
    // A job that waits gets a thread of its own in the place of this one.
    const next = this.#closed ? undefined : this.#queue.shift();
    next?.start(this.#started());
    await thread.worker.terminate();
  }
}

/** Has a thread do a job. It keeps the process alive meanwhile. */
async function ask({ worker }: Thread, job: Job, signal: AbortSignal | undefined): Promise<Result> {
  const answer: JobAnswer = await answerOf(worker, signal, workWords, () => worker.postMessage(job));
  if ('done' in answer) return answer.done;
  throw bugError(`Work in a thread failed: ${answer.failure}`);
}

const workWords = {
  ended: 'A thread',
  failed: 'A thread failed.',
  tooMuch: 'A file is too much to be worked on whole.',
  next: 'Name ranges of lines (file.ts:10-80) or fewer files.',
};

/** Small work is done where it is asked for; most processes never need what it takes, so it is loaded late. */
async function here(job: Job): Promise<Result> {
  const { doJob } = await import('./run-job.ts');
  return doJob(job);
}

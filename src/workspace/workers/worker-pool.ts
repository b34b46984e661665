import { Worker } from 'node:worker_threads';
import { every, onAbort, orAbort } from '../../core/concurrency.ts';
import { abortError, bugError, cancelledError, errorCode, limitError, throwIfAborted } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { JobAnswer, JobInputs, JobKind, JobMessage } from './run-job.ts';

const program = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './work-thread.cjs', import.meta.url);
/** Characters that are parsed or compared in about 10 ms; for less a thread is not worth its message. */
const smallChars = 24_000;
const manyChars = Number.POSITIVE_INFINITY;
/** A thread's memory; the largest file that is read takes a fraction of it. */
const threadMegabytes = 1_024;
/** A thread that had nothing to do for this long ends. */
const idleMs = 10_000;
/** A document that takes longer or more is made to, or is too long to be asked about. */
const documentMs = 60_000;
/** What a parser unpacks is outside the memory that a thread is limited to, so it is looked at while it works. */
const documentBytes = 768 * 1024 * 1024;
const lookMs = 200;

export type WorkPool = ReturnType<typeof createPool>;

export interface PoolOptions {
  /** The most threads at once; a trace gets one beyond them, because it may take a minute. */
  size: number;
  clock: Pick<Clock, 'after'>;
}

/** Threads for work on the processor. An abort ends the work at once. */
export function createPool(options: PoolOptions) {
  const threads = createThreads(options);
  // A document may hold its thread for a minute, for which nothing else should wait.
  const readers = createThreads(options);

  async function run<Kind extends JobKind>(kind: Kind, input: JobInputs[Kind], chars: number, signal?: AbortSignal) {
    const job: JobMessage<Kind> = { kind, input };
    throwIfAborted(signal);
    // Most processes never need what this takes, so it is loaded late.
    if (chars <= smallChars) return (await import('./run-job.ts')).doJob(job);
    const isDocument = kind === 'document';
    const from = isDocument ? readers : threads;
    const thread = await from.take(kind === 'trace', signal);
    const guard = isDocument ? guarded(thread, options.clock, signal) : undefined;
    let sound = false;
    try {
      const done = await ask(thread, job, guard?.signal ?? signal);
      sound = true;
      return done;
    } finally {
      guard?.stop();
      // Whatever an aborted thread still does is nobody's any more.
      if (sound) from.giveBack(thread);
      else await from.end(thread);
    }
  }

  return {
    /** Threads that there are now, working or idle. */
    get threads(): number {
      return threads.all.size + readers.all.size;
    },
    symbols: (input: JobInputs['symbols'], signal?: AbortSignal) => run('symbols', input, input.text.length, signal),
    diff: (input: JobInputs['diff'], signal?: AbortSignal) =>
      run('diff', input, input.before.length + input.after.length, signal),
    /**
     * Tokens of texts by o200k, or a few more: slow, for what an estimate can't decide. Always in a thread: the tokenizer alone
     * takes longer to load than others should wait.
     */
    count: (input: JobInputs['count'], signal?: AbortSignal) => run('count', input, manyChars, signal),
    trace(input: JobInputs['trace'], signal?: AbortSignal) {
      const chars = input.sources.reduce((sum, { text }) => sum + text.length, 0);
      return run('trace', input, chars, signal);
    },
    /** The text of a document. In a thread however small it is: it was made elsewhere, and may be made to take all there is. */
    document: (input: JobInputs['document'], signal?: AbortSignal) => run('document', input, manyChars, signal),
    async close() {
      await Promise.all([threads.close(), readers.close()]);
    },
  };
}

/** Starts threads when there is work and lets idle ones end; neither keeps the process alive. */
function createThreads({ size, clock }: PoolOptions) {
  const all = new Set<Worker>();
  /** Those without work, the last one that had some behind, and what stops the countdown to its end. */
  const idle = new Map<Worker, () => void>();
  const queue: PromiseWithResolvers<Worker>[] = [];
  let closed = false;

  function start(): Worker {
    const thread = new Worker(program, { execArgv: [], resourceLimits: { maxOldGenerationSizeMb: threadMegabytes } });
    // An error that comes after an abort is nobody's, and must not end the process.
    thread.on('error', () => undefined);
    all.add(thread);
    return thread;
  }

  function wake(thread: Worker): void {
    idle.get(thread)?.();
    idle.delete(thread);
  }

  async function take(atOnce: boolean, signal: AbortSignal | undefined): Promise<Worker> {
    if (closed) throw ending();
    const rested = [...idle.keys()].at(-1);
    if (rested) {
      wake(rested);
      return rested;
    }
    if (atOnce || all.size < size) return start();
    const waiting = Promise.withResolvers<Worker>();
    queue.push(waiting);
    const forget = onAbort(signal, () => {
      const place = queue.indexOf(waiting);
      if (place !== -1) queue.splice(place, 1);
      waiting.reject(abortError(signal));
    });
    return waiting.promise.finally(forget);
  }

  function giveBack(thread: Worker) {
    const next = queue.shift();
    if (next) return next.resolve(thread);
    thread.unref();
    const stayAwake = clock.after(idleMs, () => void end(thread));
    idle.set(thread, stayAwake);
  }

  async function end(thread: Worker): Promise<void> {
    all.delete(thread);
    wake(thread);
    // A job that waits gets a thread of its own in the place of this one.
    queue.shift()?.resolve(start());
    await thread.terminate();
  }

  async function close(): Promise<void> {
    closed = true;
    for (const waiting of queue.splice(0)) waiting.reject(ending());
    await Promise.all([...all].map(end));
  }

  return { all, take, giveBack, end, close };
}

const ending = (): Error => cancelledError('The process is ending.');

/** A signal that also ends work which takes too long, from now on, or too much memory. */
function guarded(worker: Worker, clock: PoolOptions['clock'], signal: AbortSignal | undefined) {
  const over = new AbortController();
  const end = () => over.abort(tooMuch(`more than ${documentMs / 1_000} s`));
  onAbort(over.signal, clock.after(documentMs, end));
  const look = async () => {
    const used = await worker.getHeapStatistics().catch(() => undefined);
    if (used && used.external_memory > documentBytes) over.abort(tooMuch(`more than ${documentBytes} bytes of memory`));
  };
  onAbort(over.signal, every(clock, lookMs, look));
  return { signal: signal ? AbortSignal.any([signal, over.signal]) : over.signal, stop: () => over.abort() };
}

function tooMuch(what: string, cause?: unknown): Error {
  const next = 'Split the document, or send the part that matters.';
  return limitError('size', `Reading the document took ${what}.`, { next, cause });
}

/** Has a thread do a job. It keeps the process alive meanwhile. */
async function ask<Kind extends JobKind>(worker: Worker, job: JobMessage<Kind>, signal: AbortSignal | undefined) {
  const { promise, resolve, reject } = Promise.withResolvers<JobAnswer<Kind>>();
  const onError = (error: unknown) => reject(threadError(error, job.kind));
  const onExit = (code: number) => reject(bugError(`A thread ended with code ${code} and no answer.`));
  worker.on('message', resolve).on('error', onError).on('exit', onExit);
  worker.ref();
  try {
    throwIfAborted(signal);
    worker.postMessage(job);
    const answer = await orAbort(promise, signal);
    if ('done' in answer) return answer.done;
    throw bugError(`Work in a thread failed: ${answer.failure}`);
  } finally {
    worker.off('message', resolve).off('error', onError).off('exit', onExit);
  }
}

function threadError(error: unknown, kind: JobKind): Error {
  if (errorCode(error) !== 'ERR_WORKER_OUT_OF_MEMORY') return bugError('A thread failed.', error);
  if (kind === 'document') return tooMuch('more memory than there is for it', error);
  const [message, next] =
    kind === 'trace'
      ? ['The files are too much to trace at once.', 'Name fewer files or directories in relevant_files.']
      : ['A file is too much to be worked on whole.', 'Name ranges of lines (file.ts:10-80) or fewer files.'];
  return limitError('size', message, { next, cause: error });
}

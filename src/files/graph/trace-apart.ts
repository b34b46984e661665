import { Worker } from 'node:worker_threads';
import { bugError, cancelledError, isAppError, limitError, throwIfAborted } from '../../core/errors.ts';
import type { TracedSources, TraceInput } from '../../workspace/call-graph/trace-sources.ts';
import type { TraceAnswer } from '../../workspace/call-graph/trace-worker.ts';

const program = new URL(
  import.meta.url.endsWith('.ts') ? '../../workspace/call-graph/trace-worker.ts' : './trace-worker.js',
  import.meta.url,
);

/** Characters that are parsed and traced in about 10 ms; a thread takes longer than that to start. */
const smallChars = 24_000;
/** A thread's memory; the largest allowed set of sources takes a fraction of it. */
const threadMegabytes = 1_024;

/** Traces without holding up the process: more than a little work is done in a thread of its own, which an abort ends. */
export async function traceApart(input: TraceInput, signal: AbortSignal): Promise<TracedSources> {
  const chars = input.sources.reduce((sum, { text }) => sum + text.length, 0);
  if (chars > smallChars) return inThread(input, signal);
  // Most processes never parse anything: the parser is loaded when it is needed.
  const { traceSources } = await import('../../workspace/call-graph/trace-sources.ts');
  return traceSources(input, signal);
}

async function inThread(input: TraceInput, signal: AbortSignal): Promise<TracedSources> {
  throwIfAborted(signal);
  const worker = new Worker(program, {
    workerData: input,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: threadMegabytes },
  });
  const { promise, resolve, reject } = Promise.withResolvers<TracedSources>();
  const abort = () => reject(isAppError(signal.reason) ? signal.reason : cancelledError());
  signal.addEventListener('abort', abort, { once: true });
  worker.on('message', (answer: TraceAnswer) => {
    if ('traced' in answer) resolve(answer.traced);
    else reject(bugError(`The trace failed: ${answer.failure}`));
  });
  worker.on('error', error => reject(threadError(error)));
  worker.on('exit', code => reject(bugError(`The thread of a trace ended with code ${code} and no answer.`)));
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', abort);
    await worker.terminate();
  }
}

function threadError(error: unknown): Error {
  const outOfMemory =
    typeof error === 'object' && error !== null && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
  if (!outOfMemory) return bugError('The thread of a trace failed.', error);
  return limitError('size', 'The files are too much to trace at once.', {
    next: 'Name fewer files or folders in relevant_files.',
    cause: error,
  });
}

import { isAppError } from '../../core/errors.ts';
import type { Job } from '../../core/job.ts';
import type { Clock, Emit } from '../../core/ports.ts';
import type { ToolHost, ToolReply, ToolRequest } from '../../core/tool-host.ts';
import { createQuestions } from '../../engine/jobs/questions.ts';
import { type ReplyFormat, rendered } from '../format-reply.ts';
import type { Jobs } from './jobs.ts';

export interface DetachOptions {
  jobs: Jobs;
  clock: Clock;
  emit: Emit;
  replyFormat: ReplyFormat;
  /** Milliseconds that a client waits for a call. */
  patience(client: string | undefined): number;
  /** Whether a call may take long, and its caller can come back for it. */
  takesLong(request: ToolRequest): boolean;
}

type Call = ToolHost['call'];

/** A call that may become a job, once its patience is over and while `isAwaited` says that somebody would hear of it. */
export type LongCall = (request: ToolRequest, signal: AbortSignal, isAwaited?: () => boolean) => Promise<ToolReply>;

/** A client that knows tasks need not wait; what is answered within this time is not worth one. */
const taskAfterMs = 250;

/** Calls that outlast their caller's patience become jobs and go on without him. */
export function detachLong(options: DetachOptions, call: Call): LongCall {
  return (request, signal, isAwaited = () => true) =>
    request.detach === undefined || !options.takesLong(request)
      ? call(request, signal)
      : callOrJob(options, call, request, { signal, isAwaited });
}

async function callOrJob(
  options: DetachOptions,
  call: Call,
  request: ToolRequest,
  { signal, isAwaited }: { signal: AbortSignal; isAwaited: () => boolean },
): Promise<ToolReply> {
  const { clock, emit, jobs } = options;
  const work = start(call, request, signal);
  const patience = options.patience(request.principal.client);
  const ms = request.detach === 'task' ? Math.min(taskAfterMs, patience) : patience;
  do await work.settledWithin(clock, ms);
  while (!work.settled() && !isAwaited());
  if (work.settled()) return work.reply;
  try {
    const job = await jobs.adopt({ request, ...work });
    // The job keeps the reply too, but nobody needs to come back for what is there.
    if (work.settled() || signal.aborted) return await work.reply;
    work.letGo();
    return announced(job, work.stage(), options);
  } catch (error) {
    // A job that is not durable must not be announced: the caller waits, as long as he can.
    emit({ type: 'warning', where: 'jobs', message: isAppError(error) ? error.message : String(error) });
    return work.reply;
  }
}

/** Starts a call whose caller may let go of it. */
function start(call: Call, request: ToolRequest, signal: AbortSignal) {
  const stop = new AbortController();
  const onAbort = () => stop.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  let heard = true;
  let stage: string | undefined;
  let over = false;
  const letGo = () => {
    heard = false;
    signal.removeEventListener('abort', onAbort);
  };
  const onProgress: ToolRequest['onProgress'] = update => {
    stage = update.message;
    if (heard) request.onProgress?.(update);
  };
  const questions = createQuestions();
  // Only who comes back for a task sees what it asks.
  const ask: ToolRequest['ask'] =
    request.detach === 'task' ? question => questions.ask(question, stop.signal) : undefined;
  const reply = call({ ...request, onProgress, ask }, stop.signal).finally(() => {
    over = true;
    letGo();
  });
  return {
    reply,
    questions,
    letGo,
    abort: (reason: Error) => stop.abort(reason),
    stage: () => stage,
    settled: () => over,
    async settledWithin(clock: Clock, ms: number): Promise<void> {
      const late = Promise.withResolvers<void>();
      const stopTimer = clock.after(ms, late.resolve);
      await Promise.race([reply, late.promise]);
      stopTimer();
    },
  };
}

function announced(job: Job, stage: string | undefined, { replyFormat }: DetachOptions): ToolReply {
  const document = {
    status: 'running',
    job_id: job.id,
    tool_name: job.tool,
    ...(stage !== undefined && { stage }),
    next: 'The work goes on. Call "job" with this job_id and wait_ms (such as 45000) to get the reply, again while it says running; action "cancel" ends it.',
  };
  return { ...rendered({ isError: false, document }, replyFormat), job };
}

import { cancelledError, isAppError } from '../../core/errors.ts';
import type { Job } from '../../core/job.ts';
import type { Clock, Emit } from '../../core/ports.ts';
import type { ToolHost, ToolReply, ToolRequest } from '../../core/tool-host.ts';
import { type ReplyFormat, renderReply } from '../format-reply.ts';
import { createQuestions, type Jobs } from './jobs.ts';

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
  while (!work.settled() && (!isAwaited() || request.session?.inputEnded?.()));
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
  return { ...renderReply({ isError: false, document }, replyFormat), job };
}

/** Clients by the beginning of the name they give, and how long they wait for one call: a little less than their own limit. */
const known: readonly (readonly [name: RegExp, seconds: number])[] = [
  [/^claude[ -]?code/i, 1_500],
  [/^gemini[ -]?cli/i, 550],
];

/** For Codex, which waits a minute, and for everybody we know nothing of. */
const otherwiseSeconds = 50;

/** Milliseconds that a client waits for a call before it should hear that the work goes on. */
export function detachAfterMs(client: string | undefined, overrideSeconds: number | undefined): number {
  const seconds = overrideSeconds ?? known.find(([name]) => name.test(client ?? ''))?.[1] ?? otherwiseSeconds;
  return seconds * 1_000;
}

export interface SharedExecutionOptions {
  clock: Clock;
  /** Milliseconds that the work goes on for nobody. */
  graceMs: number;
  /** Called when nobody hears of it any more: the last caller is gone without a word, or its reply has no way to him. */
  onLost(): void;
  /** Called when somebody waits for it again after that. */
  onFound(): void;
  /** Whether somebody whom this process can't see waits for it. */
  isWanted(): Promise<boolean>;
}

/** Why work ended that was ended from outside. */
export type Ending = 'cancelled' | 'interrupted';

/** Work that outlives its caller: who comes again for it may have it. */
export interface SharedExecution {
  /** Resolves with the reply; never rejects. */
  reply: Promise<ToolReply>;
  /** The reply for one caller: of the work, or that he cancelled while others still wait. */
  join(request: ToolRequest, signal: AbortSignal): Promise<ToolReply | 'cancelled'>;
  /** Whether somebody waits for it. */
  isAwaited(): boolean;
  /** Whether it is the work of a call that this one may be: nobody hears of it now, or the same client sent it. */
  isOpenTo(request: ToolRequest): boolean;
  endedBy(): Ending | undefined;
  /** Whether it has its reply, or is told to end. */
  isEnding(): boolean;
  interrupt(): void;
}

type Run = (request: ToolRequest, signal: AbortSignal, isAwaited: () => boolean) => Promise<ToolReply>;

export function shareExecution(options: SharedExecutionOptions, request: ToolRequest, run: Run): SharedExecution {
  const stop = new AbortController();
  const callers = new Set<ToolRequest>();
  const isHeard = () => [...callers].some(({ session }) => session?.cut?.aborted !== true);
  let ending: Ending | undefined;
  let over = false;
  let isLost = false;
  let stopGrace = () => {};

  function end(how: Ending, reason: unknown): void {
    ending ??= how;
    stopGrace();
    stop.abort(isAppError(reason) ? reason : cancelledError(undefined, { cause: reason }));
  }

  function giveGrace(): void {
    stopGrace = options.clock.after(options.graceMs, () => {
      options.isWanted().then(
        wanted => (wanted ? giveGrace() : interrupt()),
        // Nobody can say so while the store is down; what was paid for so far is worth another grace.
        giveGrace,
      );
    });
  }

  function interrupt(): void {
    end('interrupted', cancelledError('Its caller was gone, and nobody came for it.'));
  }

  function leave(caller: ToolRequest): boolean {
    return callers.delete(caller) && callers.size === 0 && ending === undefined;
  }

  const onProgress: ToolRequest['onProgress'] = update => {
    for (const caller of callers) caller.onProgress?.(update);
  };
  const reply = run({ ...request, onProgress }, stop.signal, () => callers.size > 0).finally(() => {
    over = true;
    stopGrace();
  });

  return {
    reply,
    isAwaited: () => callers.size > 0,
    isOpenTo: ({ session }) => !isHeard() || [...callers].some(caller => caller.session?.gone === session?.gone),
    endedBy: () => ending,
    isEnding: () => over || ending !== undefined,
    interrupt,
    async join(caller, signal) {
      const { gone, cut } = caller.session ?? {};
      const left = Promise.withResolvers<'cancelled'>();
      const onCancel = () => {
        if (leave(caller)) end('cancelled', signal.reason);
        else left.resolve('cancelled');
      };
      const onGone = () => {
        if (!leave(caller)) return;
        isLost = true;
        giveGrace();
        options.onLost();
      };
      // The client may still come back for what it asked, so this is no reason to end the work.
      const onCut = () => {
        if (isHeard() || ending !== undefined) return;
        isLost = true;
        options.onLost();
      };
      if (isLost) {
        isLost = false;
        stopGrace();
        options.onFound();
      }
      callers.add(caller);
      signal.addEventListener('abort', onCancel, { once: true });
      gone?.addEventListener('abort', onGone, { once: true });
      cut?.addEventListener('abort', onCut, { once: true });
      if (signal.aborted) onCancel();
      else if (gone?.aborted) onGone();
      else if (cut?.aborted) onCut();
      try {
        return await Promise.race([reply, left.promise]);
      } finally {
        signal.removeEventListener('abort', onCancel);
        gone?.removeEventListener('abort', onGone);
        cut?.removeEventListener('abort', onCut);
        callers.delete(caller);
      }
    },
  };
}

/** Runs a call that ends with its caller, whether he cancelled it or is merely gone. */
export async function abortOnDisconnect(
  request: ToolRequest,
  signal: AbortSignal,
  run: ToolHost['call'],
): Promise<ToolReply> {
  const gone = request.session?.gone;
  if (!gone) return run(request, signal);
  const stop = new AbortController();
  const onCancel = () => stop.abort(signal.reason);
  const onGone = () => stop.abort(cancelledError('The connection was closed.'));
  if (signal.aborted) onCancel();
  if (gone.aborted) onGone();
  signal.addEventListener('abort', onCancel, { once: true });
  gone.addEventListener('abort', onGone, { once: true });
  try {
    return await run(request, stop.signal);
  } finally {
    signal.removeEventListener('abort', onCancel);
    gone.removeEventListener('abort', onGone);
  }
}

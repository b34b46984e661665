import { onAbort, orAbort, withTimeout } from '../../core/concurrency.ts';
import { cancelledError, isAppError, throwIfAborted, warnFrom } from '../../core/errors.ts';
import type { ThreadId } from '../../core/ids.ts';
import type { Job } from '../../core/job.ts';
import type { Clock, Emit } from '../../core/ports.ts';
import type { ToolHost, ToolReply, ToolRequest, UserAnswer, UserQuestion } from '../../core/tool-host.ts';
import { type ReplyFormat, renderReply } from '../format-reply.ts';
import type { Jobs } from './jobs.ts';

/** The questions that a piece of work has for its caller, until they are answered. */
function createQuestions() {
  const open = new Map<string, { question: UserQuestion; resolve: (answer: UserAnswer) => void }>();
  return {
    /** Resolves with the caller's answer; rejects when the work is ended before. */
    async ask(question: UserQuestion, signal: AbortSignal): Promise<UserAnswer> {
      throwIfAborted(signal);
      const { promise, resolve } = Promise.withResolvers<UserAnswer>();
      open.set(question.key, { question, resolve });
      return orAbort(promise, signal).finally(() => open.delete(question.key));
    },
    pending: (): readonly UserQuestion[] => [...open.values()].map(({ question }) => question),
    answer(key: string, answer: UserAnswer): void {
      const asked = open.get(key);
      open.delete(key);
      asked?.resolve(answer);
    },
  };
}

export interface DetachOptions {
  jobs: Pick<Jobs, 'adopt'>;
  clock: Clock;
  emit: Emit;
  replyFormat: ReplyFormat;
  /** Milliseconds that a client waits for a call. */
  patience(client: string | undefined): number;
  /** Whether a call may take long, and its caller can come back for it. */
  takesLong(request: ToolRequest): boolean;
}

/** A client that knows tasks need not wait; what is answered within this time is not worth one. */
const taskAfterMs = 250;

/** Calls that outlast their caller's patience become jobs and go on without him. */
export function detachLong(detach: DetachOptions | undefined, call: ToolHost['call']): ToolHost['call'] {
  if (!detach) return call;
  const alone = { clock: detach.clock, graceMs: 0, onLost() {}, wantedMs: async () => 0, detach };
  return async (request, signal) => {
    if (!mayDetach(detach, request)) return call(request, signal);
    const execution = new Execution(alone, request, call);
    const reply = await execution.join(request, signal);
    return reply === 'cancelled' ? execution.reply : reply;
  };
}

const mayDetach = (detach: DetachOptions, request: ToolRequest): boolean =>
  request.detach !== undefined && detach.takesLong(request);

function announced(job: Job, stage: string | undefined, replyFormat: ReplyFormat): ToolReply {
  const document = {
    status: 'running',
    job_id: job.id,
    tool_name: job.tool,
    ...(stage !== undefined && { stage }),
    next: 'Still running. Call "job" with this job_id and wait_ms (such as 45000); repeat while status is "running". To stop it, send action "cancel".',
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
export const patienceOf =
  (overrideSeconds: number | undefined) =>
  (client = ''): number =>
    (overrideSeconds ?? known.find(([name]) => name.test(client))?.[1] ?? otherwiseSeconds) * 1_000;

export interface ExecutionOptions {
  clock: Clock;
  /** Milliseconds that the work goes on for nobody. */
  graceMs: number;
  /** Nobody hears of it any more: the last caller is gone without a word, or its reply has no way to him. False: somebody waits again. */
  onLost(lost: boolean): void;
  /** Milliseconds for which somebody whom this process can't see is believed to wait for it; 0 or less: nobody does. */
  wantedMs(): Promise<number>;
  /** Absent: it becomes no job. */
  detach?: DetachOptions | undefined;
}

/** Why work ended that was ended from outside. */
type Ending = 'cancelled' | 'interrupted';

/** A call whose callers may come and go. When its patience is over, and somebody would hear of it, it becomes a job. */
export class Execution {
  /** Resolves with what its callers are told: its reply, or that it goes on as a job. Never rejects. */
  readonly reply: Promise<ToolReply>;
  readonly #options: ExecutionOptions;
  readonly #request: ToolRequest;
  readonly #result: Promise<ToolReply>;
  readonly #stop = new AbortController();
  readonly #callers = new Set<ToolRequest>();
  readonly #questions = createQuestions();
  #stage: string | undefined;
  #thread: ThreadId | undefined;
  #ending: Ending | undefined;
  #isOver = false;
  #isJob = false;
  #isLost = false;
  #stopGrace = () => {};

  constructor(options: ExecutionOptions, request: ToolRequest, run: ToolHost['call']) {
    this.#options = options;
    this.#request = request;
    const detach = options.detach && mayDetach(options.detach, request) ? options.detach : undefined;
    const onProgress: ToolRequest['onProgress'] = update => {
      this.#stage = update.message;
      for (const caller of this.#callers) caller.onProgress?.(update);
    };
    // Only who comes back for a task sees what it asks.
    const ask: ToolRequest['ask'] =
      detach && request.detach === 'task' ? question => this.#questions.ask(question, this.#stop.signal) : undefined;
    const onThread: ToolRequest['onThread'] = thread => {
      this.#thread = thread.id;
      request.onThread?.(thread);
    };
    this.#result = run({ ...request, onProgress, onThread, ...(detach && { ask }) }, this.#stop.signal).finally(() => {
      this.#isOver = true;
      this.#stopGrace();
    });
    this.reply = detach ? Promise.race([this.#result, this.#announcement(detach)]) : this.#result;
  }

  isAwaited(): boolean {
    return this.#callers.size > 0;
  }

  /** Whether it is the work of a call that this one may be: nobody hears of it now, or the same client sent it. */
  isOpenTo({ session }: ToolRequest): boolean {
    return !this.#isHeard() || [...this.#callers].some(caller => caller.session?.gone === session?.gone);
  }

  endedBy(): Ending | undefined {
    return this.#ending;
  }

  /** Whether its callers are told, or it is told to end. */
  isEnding(): boolean {
    return this.#isOver || this.#isJob || this.#ending !== undefined;
  }

  interrupt(): void {
    this.#end('interrupted', cancelledError('Its caller was gone, and nobody came for it.'));
  }

  /** The reply for one caller: of the work, or that he cancelled while others still wait. */
  async join(caller: ToolRequest, signal: AbortSignal): Promise<ToolReply | 'cancelled'> {
    const { gone, cut } = caller.session ?? {};
    const left = Promise.withResolvers<'cancelled'>();
    const onCut = () => {
      if (this.#isHeard() || this.#ending !== undefined) return;
      this.#isLost = true;
      this.#options.onLost(true);
      // Who sends nothing more may still read: what is written to him tells when he is gone.
      if (![...this.#callers].some(({ session }) => session?.inputEnded?.aborted)) this.#giveGrace();
    };
    if (this.#isLost) {
      this.#isLost = false;
      this.#stopGrace();
      this.#options.onLost(false);
    }
    this.#callers.add(caller);
    const listening = [
      onAbort(signal, () => {
        if (this.#callers.delete(caller) && !this.isAwaited()) this.#end('cancelled', signal.reason);
        else left.resolve('cancelled');
      }),
      onAbort(gone, () => {
        if (this.#callers.delete(caller)) onCut();
      }),
      onAbort(cut, onCut),
    ];
    try {
      return await Promise.race([this.reply, left.promise]);
    } finally {
      for (const forget of listening) forget();
      this.#callers.delete(caller);
    }
  }

  /** Resolves with the word that it goes on as a job, or with the result where it does not. */
  async #announcement({ clock, jobs, emit, patience, replyFormat }: DetachOptions): Promise<ToolReply> {
    const { client } = this.#request.principal;
    const ms = this.#request.detach === 'task' ? Math.min(taskAfterMs, patience(client)) : patience(client);
    do await withTimeout(clock, ms, this.#result);
    while (!this.#isOver && (!this.isAwaited() || this.#request.session?.inputEnded?.aborted));
    if (this.#isOver) return this.#result;
    try {
      const job = await jobs.adopt({
        request: this.#request,
        reply: this.#result,
        questions: this.#questions,
        stage: () => this.#stage,
        thread: this.#thread,
        abort: reason => this.#stop.abort(reason),
      });
      // The job keeps the reply too, but nobody needs to come back for what is there.
      if (this.#isOver || this.#ending) return this.#result;
      this.#isJob = true;
      this.#stopGrace();
      return announced(job, this.#stage, replyFormat);
    } catch (error) {
      // A job that is not durable must not be announced: the caller waits, as long as he can.
      warnFrom(emit, 'jobs')(error);
      return this.#result;
    }
  }

  #isHeard(): boolean {
    return [...this.#callers].some(({ session }) => session?.cut?.aborted !== true);
  }

  #end(how: Ending, reason: unknown): void {
    if (this.#isJob) return;
    this.#ending ??= how;
    this.#stopGrace();
    this.#stop.abort(isAppError(reason) ? reason : cancelledError(undefined, { cause: reason }));
  }

  #giveGrace(ms = this.#options.graceMs): void {
    if (this.#isJob || this.#isOver) return;
    const { clock, graceMs, wantedMs } = this.#options;
    this.#stopGrace();
    this.#stopGrace = clock.after(ms, () => {
      const heardAt = [...this.#callers].map(({ session }) => session?.resumedAt?.() ?? Number.NEGATIVE_INFINITY);
      const left = Math.max(...heardAt) + graceMs - clock.monotonic();
      if (left > 0) return this.#giveGrace(left);
      wantedMs().then(
        wanted => (wanted > 0 ? this.#giveGrace(wanted) : this.#isLost && this.interrupt()),
        // Nobody can say so while the store is down; what was paid for so far is worth another grace.
        () => this.#giveGrace(),
      );
    });
  }
}

/** Runs a call that ends with its caller, whether he cancelled it, is merely gone or has no stream any more. */
export async function abortOnDisconnect(
  request: ToolRequest,
  signal: AbortSignal,
  run: ToolHost['call'],
): Promise<ToolReply> {
  if (!request.session) return run(request, signal);
  const { cut, inputEnded } = request.session;
  const gone = AbortSignal.any([request.session.gone, ...(cut && cut !== inputEnded ? [cut] : [])]);
  const closed = new AbortController();
  const forget = onAbort(gone, () => closed.abort(cancelledError('The connection was closed.')));
  return run(request, AbortSignal.any([signal, closed.signal])).finally(forget);
}

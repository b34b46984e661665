import { createQueue, onAbort } from '../../core/concurrency.ts';
import { abortError, warnFrom } from '../../core/errors.ts';
import type { Sha256 } from '../../core/ids.ts';
import type { JobReply } from '../../core/job.ts';
import type { ToolHost, ToolReply, ToolRequest } from '../../core/tool-host.ts';
import type { CallWorld } from '../call-record.ts';
import { type ReplyFormat, renderReply } from '../format-reply.ts';
import { errorReply } from '../reply.ts';
import type { EarlierCall } from './earlier-call.ts';
import { awaitElsewhere, findEarlierCall, recoveredReply, replyOfEarlierCall, wantedFreshMs } from './earlier-call.ts';
import { Jobs, type JobsOptions } from './jobs.ts';
import { abortOnDisconnect, type DetachOptions, detachLong, Execution } from './long-calls.ts';
import {
  type CallFingerprint,
  type CallOperation,
  createOperationLog,
  endedOperation,
  fingerprintCall,
  type IdempotencyTraits,
  isForgotten,
  type LoggedOperation,
  type OperationLog,
  refuseUsedKey,
  replayedReply,
} from './operation-log.ts';
import { createProcessLease } from './process-lease.ts';

type Call = ToolHost['call'];

export interface IdempotentCallsOptions extends JobsOptions {
  jobs: Jobs;
  replyFormat: ReplyFormat;
  /** Milliseconds that a call goes on after its caller is gone without a word. */
  graceMs: number;
}

/** How a call is made, and what its caller may see. */
export interface CallExecutor extends CallWorld {
  run: Call;
  /** How calls that take long go on as jobs; absent: they do not. */
  detach?: DetachOptions | undefined;
}

/** No call runs for longer. */
const runningMs = 24 * 3_600_000;

interface Asked {
  request: ToolRequest;
  signal: AbortSignal;
  traits: IdempotencyTraits;
  executor: CallExecutor;
  fingerprint: CallFingerprint;
}

/** A call that has begun, or waits for another one. */
interface Begun {
  reply: ToolReply | Promise<ToolReply>;
}

/** A call of this process. */
interface OwnCall {
  key: Sha256;
  /** As it is now: it is not in the log from its first moment. */
  current(): CallOperation;
  work: Execution;
  /** Resolves once it ended and its record says so. */
  over?: Promise<void>;
  /** Its reply is known to have arrived. */
  hasArrived?: boolean;
}

/** One bill for one call, however often it is sent until its reply arrives. */
export class IdempotentCalls {
  readonly #options: IdempotentCallsOptions;
  readonly #log: OperationLog;
  /** Calls of this process, by their ids. */
  readonly #own = new Map<string, OwnCall>();
  /** Of two calls with one key the second is judged once the first has begun. */
  readonly #order = createQueue();
  /** Changes of records that are on their way. */
  readonly #notes = new Set<Promise<void>>();
  /** Calls of which it is not known yet whether they are to begin: until it is. */
  readonly #judged = new Set<Promise<unknown>>();
  readonly #forget = () => void this.#noted(this.#log.settle(true));
  readonly #warn: (error: unknown) => void;

  constructor(options: IdempotentCallsOptions) {
    this.#options = options;
    this.#log = createOperationLog(options.store, options.clock);
    this.#warn = warnFrom(options.emit, 'calls');
  }

  /** Runs a call, or hands out what an earlier one came to whose reply did not arrive. Never throws. */
  async call(
    request: ToolRequest,
    signal: AbortSignal,
    traits: IdempotencyTraits,
    executor: CallExecutor,
  ): Promise<ToolReply> {
    const judged = this.#judge({ request, signal, traits, executor });
    this.#judged.add(judged);
    const { reply } = await judged.finally(() => this.#judged.delete(judged));
    return reply;
  }

  /** The reply of a call, once it has begun or waits for another one. */
  async #judge(sent: Omit<Asked, 'fingerprint'>): Promise<Begun> {
    const { request, signal, traits, executor } = sent;
    const plainly = () => ({ reply: abortOnDisconnect(request, signal, detachLong(executor.detach, executor.run)) });
    const fingerprint = await fingerprintCall(executor, request, traits);
    if (!fingerprint) return plainly();
    if (traits.looks) fingerprint.folders.push(request.principal.root);
    const asked = { ...sent, fingerprint };
    const decide = async (): Promise<Begun | undefined> => {
      const seen = await this.#settled(fingerprint);
      if (fingerprint.named && seen.calls.some(({ same }) => same !== fingerprint.same))
        return { reply: this.#rendered(this.#failed(request, refuseUsedKey())) };
      const earlier = await this.#earlier(seen, asked);
      if (earlier?.state === 'here') return { reply: this.#join(earlier.work, earlier.call.id, asked, true) };
      if (earlier?.state === 'elsewhere') return { reply: this.#wait(earlier.call, asked) };
      const again = earlier && (await this.#again(earlier, asked));
      if (again) return { reply: again };
      return this.#begin(asked, seen);
    };
    const begun = await this.#order.run(fingerprint.key, decide).catch(error => {
      // Nothing can be known of earlier calls now; whether this one can do without the store it finds out by itself.
      this.#warn(error);
      return plainly();
    });
    return begun ?? { reply: this.call(request, signal, traits, executor) };
  }

  /** Gives calls that somebody waits for this long, others what is left of their grace, or until `hurry` is aborted; then they are interrupted. */
  async close(graceMs: number, hurry?: AbortSignal): Promise<void> {
    // What came just before the end begins, and has its grace like the others: the store is still there for it.
    while (this.#judged.size > 0) await Promise.allSettled(this.#judged);
    const own = [...this.#own.values()];
    const all = own.map(({ work }) => work);
    // What nobody waits for has a grace of its own, from the moment when it was lost.
    const stopTimer = this.#options.clock.after(graceMs, () => {
      for (const work of all) if (work.isAwaited()) work.interrupt();
    });
    const forget = onAbort(hurry, () => {
      for (const work of all) work.interrupt();
    });
    await Promise.all(own.map(({ over }) => over));
    await Promise.all([...this.#notes, this.#noted(this.#log.settle())]);
    stopTimer();
    forget();
  }

  /** The calls of a key, none of which is just about to end. */
  async #settled({ key }: CallFingerprint): Promise<LoggedOperation> {
    for (;;) {
      const seen = await this.#log.read(key);
      const passing = seen.calls.flatMap(({ id }) => {
        const { work, over } = this.#own.get(id) ?? {};
        return (work?.isEnding() && over) || [];
      });
      if (passing.length === 0) return seen;
      await Promise.all(passing);
    }
  }

  async #earlier(
    { calls }: LoggedOperation,
    { fingerprint, request, executor }: Asked,
  ): Promise<EarlierCall | undefined> {
    const begun = [...this.#own.values()].filter(({ key, work }) => key === fingerprint.key && !work.isEnding());
    const own = begun.map(({ current }) => current()).filter(call => !calls.some(({ id }) => id === call.id));
    const workOf = (id: string) => this.#own.get(id)?.work;
    const look = async (id: string) => (await this.#log.read(fingerprint.key)).calls.find(call => call.id === id);
    const options = { ...executor, lease: this.#options.lease, workOf, look, request };
    const all = [...calls, ...own];
    return all.length === 0 ? undefined : findEarlierCall(options, all, fingerprint);
  }

  /** What a call that is over came to; undefined when it left nothing for this caller, so that this one is a new one. */
  async #again(earlier: EarlierCall, { request, fingerprint, executor }: Asked) {
    const { call, state } = earlier;
    const isDead = state === 'dead';
    const found = isDead
      ? recoveredReply(executor, earlier, request)
      : await replyOfEarlierCall(this.#options.jobs, call, request);
    const reply = found?.isError && isForgotten(call, fingerprint) ? undefined : found;
    const end = (logged: CallOperation) => reply && endedOperation(logged, this.#options.clock.storeTime(), reply);
    if (isDead || !reply) await this.#note(fingerprint, call.id, end);
    return reply && this.#shown(reply, call.id, fingerprint);
  }

  async #wait(call: CallOperation, { request, signal, traits, executor, fingerprint }: Asked): Promise<ToolReply> {
    const options = { ...this.#options, log: this.#log };
    const wait: Call = async (_request, stop) => {
      try {
        const ended = await awaitElsewhere(options, call, fingerprint, stop);
        const reply = ended && (await replyOfEarlierCall(this.#options.jobs, ended, request));
        if (reply && (fingerprint.named || !reply.isError)) return this.#rendered(reply);
        // Its process died, or it came to nothing for a caller that had left it: this question is still there.
        return await this.call(request, stop, traits, { ...executor, detach: undefined });
      } catch (error) {
        return this.#rendered(this.#failed(request, stop.aborted ? abortError(stop) : error));
      }
    };
    const reply = await abortOnDisconnect(request, signal, detachLong(executor.detach, wait));
    return { delivered: () => this.#delivered(fingerprint, call.id), ...reply };
  }

  /** Undefined when another call came before. */
  async #begin(asked: Asked, seen: LoggedOperation): Promise<Begun | undefined> {
    const { request, traits, executor, fingerprint } = asked;
    const { clock, random, graceMs, lease } = this.#options;
    const { key, same, client } = fingerprint;
    const id = random.uuid();
    const times = { startedAt: clock.now(), expiresAt: clock.storeTime() + runningMs };
    let call: CallOperation = { id, same, client, status: 'running', holder: lease.holder, ...times };
    let logged = fingerprint.named || !traits.threaded;
    if (logged && !(await this.#claim(call, fingerprint, seen))) return undefined;
    const onThread: ToolRequest['onThread'] = ({ id: thread, seq: baseSeq }) => {
      call = { ...call, thread, baseSeq };
      if (logged) return void this.#note(fingerprint, id, found => ({ ...found, thread, baseSeq }));
      logged = true;
      lease.begin(true).catch(this.#warn);
      this.#forget();
      // Not waited for: the store does what it is asked in order, and the question, which comes behind this, takes it along.
      this.#log.add(key, call, seen, true).catch(this.#warn);
    };
    const sharing = {
      clock,
      graceMs,
      detach: executor.detach,
      onLost: (lost: boolean) => {
        call = { ...call, lost };
        if (logged) void this.#note(fingerprint, id, found => ({ ...found, lost }));
      },
      wantedMs: async () => {
        const { calls } = await this.#log.read(key);
        const wantedAt = calls.find(each => each.id === id)?.wantedAt ?? 0;
        return wantedAt + wantedFreshMs - clock.storeTime();
      },
    };
    const work = new Execution(sharing, { ...request, onThread }, executor.run);
    const own: OwnCall = { key, current: () => call, work };
    this.#own.set(id, own);
    const finished = work.reply.then(reply => (logged ? this.#finish(own, reply, asked) : undefined));
    own.over = finished.catch(this.#warn).finally(() => this.#own.delete(id));
    return { reply: this.#join(work, id, asked) };
  }

  /** Makes the record durable before anything else; false when another call came before. */
  async #claim(call: CallOperation, fingerprint: CallFingerprint, seen: LoggedOperation): Promise<boolean> {
    this.#options.lease.begin().catch(this.#warn);
    try {
      if (!fingerprint.named) await this.#log.add(fingerprint.key, call, seen);
      else if (!(await this.#log.claim(fingerprint.key, call, seen))) {
        this.#options.lease.end();
        return false;
      }
    } catch (error) {
      // A tool without a thread needs no store to answer.
      this.#warn(error);
    }
    return true;
  }

  async #finish(own: OwnCall, reply: ToolReply, { fingerprint, traits }: Asked): Promise<void> {
    const { id } = own.current();
    const { isError, document, job, questions } = reply;
    const isInterrupted = own.work.endedBy() === 'interrupted';
    const now = this.#options.clock.storeTime();
    // A transport tells that a reply arrived in the turn after it wrote it.
    if (!fingerprint.named) await new Promise(resolve => setImmediate(() => setImmediate(resolve)));
    const { hasArrived } = own;
    // What failed or was cancelled left nothing that could be handed out.
    if (isInterrupted || isError || questions) {
      await this.#note(fingerprint, id, call => (isInterrupted ? endedOperation(call, now) : undefined));
    } else if (!hasArrived) {
      const answered = { isError, document };
      await this.#note(fingerprint, id, call => ({ ...endedOperation(call, now, answered), job: job?.id }));
    }
    // Its thread has the answer, and to others a call that runs is none of theirs: its end needs no write of its own.
    if (hasArrived && traits.threaded && !isInterrupted && !job) this.#options.lease.atBeat(this.#forget);
    else if (own.hasArrived) void this.#noted(this.#log.settle());
    this.#options.lease.end();
  }

  async #join(work: Execution, id: string, { request, signal, fingerprint }: Asked, again = false): Promise<ToolReply> {
    const reply = await work.join(request, signal);
    if (reply === 'cancelled') return this.#rendered(this.#failed(request, abortError(signal)));
    if (again && !reply.isError) return this.#shown({ ...replayedReply(reply), job: reply.job }, id, fingerprint);
    return { ...reply, delivered: () => this.#delivered(fingerprint, id) };
  }

  #shown(reply: JobReply & Pick<ToolReply, 'job'>, id: string, fingerprint: CallFingerprint): ToolReply {
    return { ...this.#rendered(reply), job: reply.job, delivered: () => this.#delivered(fingerprint, id) };
  }

  #rendered({ isError, document }: JobReply): ToolReply {
    return renderReply({ isError, document }, this.#options.replyFormat);
  }

  /** From now on the same call is a new one; what its caller gave a name to stays what it was. */
  #delivered(fingerprint: CallFingerprint, id: string): void {
    if (fingerprint.named) return void this.#note(fingerprint, id, call => (call.status === 'done' ? call : undefined));
    this.#log.forget(fingerprint.key, id);
    const own = this.#own.get(id);
    // Else its end sees to it.
    if (own) own.hasArrived = true;
    else void this.#noted(this.#log.settle());
  }

  #note({ key }: CallFingerprint, id: string, change: Parameters<OperationLog['change']>[2]): Promise<void> {
    return this.#noted(this.#log.change(key, id, change));
  }

  /** The log is there to save money: a call is worth more than its record. */
  #noted(change: Promise<unknown>): Promise<void> {
    const noted: Promise<void> = change.then(() => undefined, this.#warn).finally(() => this.#notes.delete(noted));
    this.#notes.add(noted);
    return noted;
  }

  #failed({ name }: ToolRequest, error: unknown): JobReply {
    return errorReply(error, { toolName: name, reqId: this.#options.random.uuid() });
  }
}

interface OperationsOptions extends Omit<IdempotentCallsOptions, 'lease' | 'jobs' | 'graceMs'> {
  /** How long work goes on after its caller is gone without a word, or after its process is told to end; absent: as below. */
  detachedGraceSeconds?: number | undefined;
}

/** Nobody reads what a call comes to, unless its client sends it again within this time. */
const callGraceSeconds = 4;

/** The client of a job was told that the work goes on. */
const jobGraceSeconds = 30;

/** The work of this process that outlasts its callers, under one lease. */
export function createOperations(options: OperationsOptions) {
  const lease = createProcessLease({ ...options, holder: options.random.uuid() });
  const jobs = new Jobs({ ...options, lease });
  const { detachedGraceSeconds: seconds } = options;
  const graceMs = (seconds ?? callGraceSeconds) * 1_000;
  const endMs = (seconds ?? jobGraceSeconds) * 1_000;
  const idempotentCalls = new IdempotentCalls({ ...options, lease, jobs, graceMs });
  return {
    jobs,
    idempotentCalls,
    /** Gives what runs its grace, or until `hurry` is aborted; then it is interrupted. */
    async close(hurry?: AbortSignal): Promise<void> {
      await Promise.all([jobs.close(endMs, hurry), idempotentCalls.close(endMs, hurry)]);
      await lease.close();
    },
  };
}

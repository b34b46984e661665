import { createQueue } from '../../core/concurrency.ts';
import { cancelledError, isAppError } from '../../core/errors.ts';
import type { Sha256 } from '../../core/ids.ts';
import type { JobReply } from '../../core/job.ts';
import type { Clock, Emit, Random } from '../../core/ports.ts';
import type { ToolHost, ToolReply, ToolRequest } from '../../core/tool-host.ts';
import type { Store } from '../../storage/store.ts';
import { type ReplyFormat, renderReply } from '../format-reply.ts';
import { errorReply } from '../reply.ts';
import type { InputCheckOptions } from './earlier-call.ts';
import {
  awaitElsewhere,
  type EarlierCall,
  findEarlierCall,
  outcomeOf,
  type RecoverOptions,
  recoveredReply,
  wantedFreshMs,
} from './earlier-call.ts';
import type { Jobs } from './jobs.ts';
import { createProcessLease, type ProcessLease } from './jobs.ts';
import type { LongCall } from './long-calls.ts';
import { abortOnDisconnect, type SharedExecution, shareExecution } from './long-calls.ts';
import type { IdempotencyTraits } from './operation-log.ts';
import {
  type CallFingerprint,
  type CallOperation,
  createOperationLog,
  endedOperation,
  fingerprintCall,
  type IdentifyOptions,
  isForgotten,
  keyInUse,
  type LoggedOperation,
  type OperationLog,
  replayedReply,
} from './operation-log.ts';

type Call = ToolHost['call'];

export interface IdempotentCallsOptions extends IdentifyOptions, InputCheckOptions, RecoverOptions {
  store: Store;
  jobs: Jobs;
  clock: Clock;
  random: Random;
  emit: Emit;
  replyFormat: ReplyFormat;
  /** Milliseconds that a call goes on after its caller is gone without a word. */
  graceMs: number;
}

/** How a call is made. */
export interface CallExecutor {
  /** The pipeline of a call. */
  run: Call;
  /** Lets calls that take long go on as jobs. */
  long(call: Call): LongCall;
}

/** One bill for one call, however often it is sent until its reply arrives. */
export interface IdempotentCalls {
  /** Runs a call, or hands out what an earlier one came to whose reply did not arrive. Never throws. */
  call(
    request: ToolRequest,
    signal: AbortSignal,
    traits: IdempotencyTraits,
    executor: CallExecutor,
  ): Promise<ToolReply>;
  /** Gives calls whose callers are gone their grace, or until `hurry` is aborted; then they are interrupted. */
  close(hurry?: AbortSignal): Promise<void>;
}

/** No call runs for longer. */
const runningMs = 24 * 3_600_000;

export function createIdempotentCalls(options: IdempotentCallsOptions): IdempotentCalls {
  return new IdempotentCallService(options);
}

/** A call with all that its handling needs. */
interface Asked {
  request: ToolRequest;
  signal: AbortSignal;
  traits: IdempotencyTraits;
  executor: CallExecutor;
  fingerprint: CallFingerprint;
}

class IdempotentCallService implements IdempotentCalls {
  readonly #options: IdempotentCallsOptions;
  readonly #holder: string;
  readonly #lease: ProcessLease;
  readonly #log: OperationLog;
  readonly #running = new Map<string, SharedExecution>();
  /** Calls of this process as they began, by their ids: they are not in the log from their first moment. */
  readonly #begun = new Map<string, { key: Sha256; call: CallOperation }>();
  /** Of two calls with one key the second is judged once the first has begun. */
  readonly #order = createQueue();
  /** When a call is over and its record says so. */
  readonly #over = new Map<string, Promise<void>>();
  /** Changes of records that are on their way. */
  readonly #notes = new Set<Promise<void>>();
  /** Calls whose records may be in the store already, but that are not in `#running` yet: until they are. */
  readonly #starting = new Map<string, Promise<void>>();
  /** Calls of which it is not known yet whether they are to begin: until it is. */
  readonly #judged = new Set<Promise<void>>();
  /** Calls whose replies arrived while their records still stand. */
  readonly #arrived = new Set<string>();

  constructor(options: IdempotentCallsOptions) {
    this.#options = options;
    this.#holder = options.random.uuid();
    this.#log = createOperationLog(options.store, options.clock);
    this.#lease = createProcessLease({ ...options, holder: this.#holder, onBeat() {} });
  }

  async call(
    request: ToolRequest,
    signal: AbortSignal,
    traits: IdempotencyTraits,
    executor: CallExecutor,
  ): Promise<ToolReply> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#judged.add(promise);
    const known = () => {
      this.#judged.delete(promise);
      resolve();
    };
    try {
      return await this.#judge(request, signal, { facts: traits, way: executor, known });
    } finally {
      known();
    }
  }

  /** `known` is called when the call has begun, or waits for another one. */
  async #judge(
    request: ToolRequest,
    signal: AbortSignal,
    { facts: traits, way: executor, known }: { facts: IdempotencyTraits; way: CallExecutor; known(): void },
  ): Promise<ToolReply> {
    const plainly = () => {
      const reply = abortOnDisconnect(request, signal, executor.long(executor.run));
      known();
      return reply;
    };
    const fingerprint = await fingerprintCall(this.#options, request, traits);
    if (!fingerprint) return plainly();
    if (traits.looks) fingerprint.folders.push(request.principal.root);
    const asked = { request, signal, traits, executor, fingerprint };
    let seen: LoggedOperation;
    let again: ToolReply | undefined;
    const leave = await this.#order.enter(fingerprint.key, new AbortController().signal);
    const begun = () => {
      known();
      leave();
    };
    try {
      seen = await this.#settled(fingerprint);
      if (fingerprint.named && seen.calls.some(({ same }) => same !== fingerprint.same)) {
        begun();
        return this.#rendered(this.#failed(request, keyInUse()));
      }
      const earlier = await this.#earlier(seen, asked);
      if (earlier) {
        const found = this.#again(earlier, asked);
        begun();
        again = await found;
      }
    } catch (error) {
      // Nothing can be known of earlier calls now; whether this one can do without the store it finds out by itself.
      this.#warn(error);
      begun();
      return plainly();
    }
    if (again) return again;
    const reply = this.#begin(asked, seen);
    begun();
    return reply;
  }

  async close(hurry?: AbortSignal): Promise<void> {
    // What came just before the end begins, and has its grace like the others: the store is still there for it.
    while (this.#judged.size + this.#starting.size > 0)
      await Promise.all([...this.#judged, ...this.#starting.values()]);
    const all = [...this.#running.values()];
    const interruptAll = () => {
      for (const work of all) work.interrupt();
    };
    // What nobody waits for has a grace of its own, from the moment when it was lost.
    const stopTimer = this.#options.clock.after(this.#options.graceMs, () => {
      for (const work of all) if (work.isAwaited()) work.interrupt();
    });
    if (hurry?.aborted) interruptAll();
    hurry?.addEventListener('abort', interruptAll, { once: true });
    await Promise.all(this.#over.values());
    await Promise.all(this.#notes);
    await this.#lease.close();
    stopTimer();
    hurry?.removeEventListener('abort', interruptAll);
  }

  /** The calls of a key, none of which is just about to begin or to end. */
  async #settled({ key }: CallFingerprint): Promise<LoggedOperation> {
    for (;;) {
      const seen = await this.#log.read(key);
      const passing = seen.calls.flatMap(({ id }) => this.#passing(id) ?? []);
      if (passing.length === 0) return seen;
      await Promise.all(passing);
    }
  }

  #passing(id: string): Promise<void> | undefined {
    if (this.#arrived.has(id)) return undefined;
    return this.#starting.get(id) ?? (this.#running.get(id)?.isEnding() ? this.#over.get(id) : undefined);
  }

  #earlier({ version, calls }: LoggedOperation, { fingerprint, request }: Asked): Promise<EarlierCall | undefined> {
    const begun = [...this.#begun.values()].flatMap(({ key, call }) => (key === fingerprint.key ? [call] : []));
    const own = begun.filter(({ id }) => !calls.some(call => call.id === id) && !this.#running.get(id)?.isEnding());
    const others = [...calls.filter(({ id }) => !this.#arrived.has(id)), ...own];
    const options = { ...this.#options, holding: this.#lease, holder: this.#holder, running: this.#running, request };
    const look = async (id: string) => (await this.#log.read(fingerprint.key)).calls.find(call => call.id === id);
    return findEarlierCall({ ...options, look }, { version, calls: others }, fingerprint);
  }

  /** What the earlier call came to; undefined when it left nothing for this caller, so that this one is a new one. */
  async #again(earlier: EarlierCall, asked: Asked): Promise<ToolReply | undefined> {
    const { request, fingerprint } = asked;
    const { call } = earlier;
    if (earlier.state === 'here') return this.#join(earlier.work, call.id, asked, true);
    if (earlier.state === 'elsewhere') return this.#wait(call, asked);
    const isDead = earlier.state === 'dead';
    const found = isDead
      ? recoveredReply(this.#options, call, earlier.trace, request)
      : await outcomeOf(this.#options.jobs, call, request);
    const reply = found?.isError && isForgotten(call, fingerprint) ? undefined : found;
    const end = (logged: CallOperation) => reply && endedOperation(logged, this.#options.clock.now(), reply);
    if (isDead || !reply) await this.#note(fingerprint, call.id, end);
    return reply && this.#shown(reply, call.id, fingerprint);
  }

  /** Waits for a call of another process. */
  async #wait(call: CallOperation, { request, signal, traits, executor, fingerprint }: Asked): Promise<ToolReply> {
    const options = { ...this.#options, log: this.#log, holding: this.#lease };
    const wait: Call = async (_request, stop) => {
      try {
        const ended = await awaitElsewhere(options, call, fingerprint, stop);
        const reply = ended && (await outcomeOf(this.#options.jobs, ended, request));
        if (reply && (fingerprint.named || !reply.isError)) return this.#rendered(reply);
        // Its process died, or it came to nothing for a caller that had left it: this question is still there.
        return await this.call(request, stop, traits, { ...executor, long: run => run });
      } catch (error) {
        return this.#rendered(
          this.#failed(request, stop.aborted ? cancelledError(undefined, { cause: error }) : error),
        );
      }
    };
    const reply = await abortOnDisconnect(request, signal, executor.long(wait));
    return { delivered: () => this.#delivered(fingerprint, call.id), ...reply };
  }

  async #begin(asked: Asked, seen: LoggedOperation): Promise<ToolReply> {
    const { request, signal, traits, executor, fingerprint } = asked;
    const { clock, random, graceMs } = this.#options;
    const id = random.uuid();
    const now = clock.now();
    const times = { startedAt: now, expiresAt: now + runningMs };
    const { same, client } = fingerprint;
    const call: CallOperation = { id, same, client, status: 'running', holder: this.#holder, ...times };
    let logged = false;
    const started = Promise.withResolvers<void>();
    if (fingerprint.named || !traits.threaded) {
      logged = true;
      this.#starting.set(id, started.promise);
      if (!(await this.#claim(call, fingerprint, seen))) {
        this.#starting.delete(id);
        started.resolve();
        return this.call(request, signal, traits, executor);
      }
    }
    const onThread: ToolRequest['onThread'] = ({ id: thread, seq: baseSeq }) => {
      if (logged) return void this.#note(fingerprint, id, found => ({ ...found, thread, baseSeq }));
      logged = true;
      this.#begun.set(id, { key: fingerprint.key, call: { ...call, thread, baseSeq } });
      this.#hold();
      // Not waited for: the store does what it is asked in order, and the question comes behind this.
      this.#log.add(fingerprint.key, { ...call, thread, baseSeq }, seen, true).catch(error => this.#warn(error));
    };
    const mark = (lost: boolean) => void (logged && this.#note(fingerprint, id, found => ({ ...found, lost })));
    const sharing = {
      clock,
      graceMs,
      onLost: () => mark(true),
      onFound: () => mark(false),
      isWanted: () => this.#isWanted(fingerprint, id),
    };
    const work = shareExecution(sharing, { ...request, onThread }, executor.long(executor.run));
    this.#running.set(id, work);
    if (!logged) this.#begun.set(id, { key: fingerprint.key, call });
    const finished = work.reply.then(reply => (logged ? this.#finish(work, reply, fingerprint, id) : undefined));
    const forget = () => {
      this.#running.delete(id);
      this.#begun.delete(id);
      this.#over.delete(id);
    };
    this.#over.set(id, finished.catch(error => this.#warn(error)).finally(forget));
    started.resolve();
    this.#starting.delete(id);
    return this.#join(work, id, asked, false);
  }

  /** Makes the record durable before anything else; false when another call came before. */
  async #claim(call: CallOperation, fingerprint: CallFingerprint, seen: LoggedOperation): Promise<boolean> {
    this.#hold();
    try {
      if (!fingerprint.named) await this.#log.add(fingerprint.key, call, seen);
      else if (!(await this.#log.claim(fingerprint.key, call, seen))) {
        this.#lease.end();
        return false;
      }
    } catch (error) {
      // A tool without a thread needs no store to answer.
      this.#warn(error);
    }
    return true;
  }

  async #finish(work: SharedExecution, reply: ToolReply, fingerprint: CallFingerprint, id: string): Promise<void> {
    const { isError, document, job, questions } = reply;
    const now = this.#options.clock.now();
    await this.#note(fingerprint, id, call => {
      if (work.endedBy() === 'interrupted') return endedOperation(call, now);
      // What failed or was cancelled left nothing that could be handed out.
      return isError || questions ? undefined : { ...endedOperation(call, now, { isError, document }), job: job?.id };
    });
    this.#lease.end();
  }

  async #join(
    work: SharedExecution,
    id: string,
    { request, signal, fingerprint }: Asked,
    again: boolean,
  ): Promise<ToolReply> {
    const reply = await work.join(request, signal);
    if (reply === 'cancelled') return this.#rendered(this.#failed(request, cancelledError()));
    const delivered = () => this.#delivered(fingerprint, id);
    return again && !reply.isError
      ? { ...this.#rendered(replayedReply(reply)), job: reply.job, delivered }
      : { ...reply, delivered };
  }

  async #isWanted({ key }: CallFingerprint, id: string): Promise<boolean> {
    const { calls } = await this.#log.read(key);
    const wantedAt = calls.find(call => call.id === id)?.wantedAt ?? 0;
    return wantedAt > this.#options.clock.now() - wantedFreshMs;
  }

  #shown(reply: JobReply & Pick<ToolReply, 'job'>, id: string, fingerprint: CallFingerprint): ToolReply {
    return { ...this.#rendered(reply), job: reply.job, delivered: () => this.#delivered(fingerprint, id) };
  }

  #rendered({ isError, document }: JobReply): ToolReply {
    return renderReply({ isError, document }, this.#options.replyFormat);
  }

  /** From now on the same call is a new one; what its caller gave a name to stays what it was. */
  #delivered(fingerprint: CallFingerprint, id: string): void {
    const isKept = ({ status }: CallOperation) => fingerprint.named && status === 'done';
    if (!fingerprint.named) this.#arrived.add(id);
    void this.#note(fingerprint, id, call => (isKept(call) ? call : undefined)).then(() => this.#arrived.delete(id));
  }

  /** The log is there to save money: a call is worth more than its record. */
  #note({ key }: CallFingerprint, id: string, change: Parameters<OperationLog['change']>[2]): Promise<void> {
    const noted: Promise<void> = this.#log
      .change(key, id, change)
      .catch(error => this.#warn(error))
      .finally(() => this.#notes.delete(noted));
    this.#notes.add(noted);
    return noted;
  }

  #failed({ name }: ToolRequest, error: unknown): JobReply {
    return errorReply(error, { toolName: name, reqId: this.#options.random.uuid() });
  }

  #hold(): void {
    this.#lease.begin().catch(error => this.#warn(error));
  }

  #warn(error: unknown): void {
    const message = isAppError(error) ? error.message : String(error);
    this.#options.emit({ type: 'warning', where: 'calls', message });
  }
}

import { onAbort } from '../../core/concurrency.ts';
import { AppError, limitError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { CallLimits } from '../ask-model.ts';

/** Reasoning models think before they write; machines at home are slow. The larger factor counts. */
const reasoningFactor = 4;

const localFactor = 10;

/** Characters that must arrive in every idle interval; fewer is a drip that would hold the call for its total. */
const minCharsPerIdle = 16;

/** What the end of the stream may take once the answer is finished. */
const settleMs = 1000;

/** The limits of one call to one kind of model; what the operator or the caller set is not widened. */
export function limitsFor(
  configured: CallLimits,
  model: { reasoning: boolean; local: boolean },
  own: Partial<CallLimits> = {},
): CallLimits {
  const factor = model.local ? localFactor : model.reasoning ? reasoningFactor : 1;
  return {
    firstByteMs: own.firstByteMs ?? configured.firstByteMs * factor,
    idleMs: own.idleMs ?? configured.idleMs * factor,
    totalMs: own.totalMs ?? configured.totalMs * (configured.exact ? 1 : factor),
    ...(own.totalMs === undefined && configured.exact && { exact: true }),
  };
}

/** The clocks of one attempt. They all end in one signal, which the attempt hands to the vendor's HTTP call. */
export type AttemptTimeouts = ReturnType<typeof startTimeouts>;

export interface TimeoutPlan {
  clock: Clock;
  limits: CallLimits;
  /** What is left of `limits.totalMs`. */
  remainingMs: number;
  /** The caller's signal. */
  parent: AbortSignal;
}

export function startTimeouts({ clock, limits, remainingMs, parent }: TimeoutPlan) {
  const controller = new AbortController();
  /** Aborted when a limit expires, when the caller gives up, and by `stop(true)`. */
  const signal: AbortSignal = controller.signal;
  let failure: AppError | undefined;
  let started = false;
  let received = 0;

  const expire = (error: AppError) => {
    if (signal.aborted) return;
    failure = error;
    controller.abort(error);
  };
  const cancelTotal = clock.after(Math.max(0, remainingMs), () => expire(totalError(limits)));
  let cancelWait = clock.after(limits.firstByteMs, () => {
    const message = `No part of an answer arrived within ${seconds(limits.firstByteMs)} (first-byte limit).`;
    expire(timeoutError('first_byte', limits.firstByteMs, message, true));
  });
  const waitIdle = (ms: number) => {
    cancelWait();
    cancelWait = clock.after(ms, () => expire(idleError(limits.idleMs, received)));
    received = 0;
  };
  const leaveParent = onAbort(parent, () => controller.abort(parent.reason));

  return {
    signal,
    /** Tells that this many characters of answer or reasoning arrived. Keep-alives are no progress and are not told. */
    progress(chars: number) {
      if (chars <= 0) return;
      received += chars;
      if (!started || received >= minCharsPerIdle) waitIdle(limits.idleMs);
      started = true;
    },
    /** The answer is complete; only the end of the stream is awaited, and not for long. */
    settle: () => waitIdle(settleMs),
    /** Why the signal was aborted, when a limit did it. */
    expired: () => failure,
    /** Ends the clocks; with `abort` the connection is closed too. */
    stop(abort: boolean) {
      cancelTotal();
      cancelWait();
      leaveParent();
      if (abort) controller.abort();
    },
  };
}

const timeoutError = (clock: string, limitMs: number, message: string, retryable: boolean, next?: string): AppError =>
  new AppError('model', message, { code: 'API_ERROR', class: 'timeout', retryable, next, data: { clock, limitMs } });

const seconds = (ms: number) => `${Math.round(ms / 100) / 10} s`;

function idleError(ms: number, chars: number): AppError {
  const what = chars === 0 ? 'nothing more' : `only ${chars} characters more`;
  return timeoutError('idle', ms, `The answer stalled: ${what} arrived within ${seconds(ms)} (idle limit).`, true);
}

function totalError({ totalMs, exact }: Pick<CallLimits, 'totalMs' | 'exact'>): AppError {
  const limit = exact ? 'CALL_TIMEOUT_SECONDS' : 'total limit';
  const next = exact ? 'Raise CALL_TIMEOUT_SECONDS, ask for less at once, or choose a faster model.' : undefined;
  const message = `The call took longer than ${seconds(totalMs)} in all (${limit}).`;
  return timeoutError('total', totalMs, message, false, next);
}

export interface LimiterRules {
  /** Attempts that run at the same time, at all providers together. */
  total: number;
  /** At one provider. */
  perProvider(provider: string): number;
  /** How many may wait. */
  queue: number;
}

export interface Entry {
  provider: string;
  /** Those who wait take turns by this. */
  owner: string;
  signal: AbortSignal;
  /** What is left of the call's total, and the total itself: waiting counts. */
  remainingMs: number;
  totalMs: number;
  exact?: boolean | undefined;
}

interface Waiting {
  provider: string;
  grant(): void;
}

/** The places to run in, and the queue for them. Those who wait are served in turns, one of each owner. */
export class Limiter {
  readonly #rules: LimiterRules;
  readonly #clock: Clock;
  readonly #running = new Map<string, number>();
  /** The owner whose turn it is stands first. */
  readonly #queues = new Map<string, Waiting[]>();
  #all = 0;
  /** Milliseconds that a place was held, a moving average. */
  #heldMs = 1_000;

  constructor(rules: LimiterRules, clock: Clock) {
    this.#rules = rules;
    this.#clock = clock;
  }

  /**
   * A place to run in; calling the result leaves it. At once when one is free, which costs no wait: nobody waits who could run, so
   * that a newcomer for whom there is room overtakes no one. Rejects with LIMIT (`over_capacity`) when too many are waiting, with
   * the total limit's error, or with the signal's reason.
   */
  enter({ provider, owner, signal, remainingMs, totalMs, exact }: Entry): (() => void) | Promise<() => void> {
    if (this.#isFree(provider)) return this.#take(provider);
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#waiting() >= this.#rules.queue) return Promise.reject(this.#overCapacity());
    return new Promise((resolve, reject) => {
      const queue = this.#queues.get(owner) ?? [];
      const settled = () => {
        forget();
        cancelTotal();
      };
      const entry: Waiting = {
        provider,
        grant: () => {
          settled();
          resolve(this.#take(provider));
        },
      };
      const giveUp = (reason: unknown) => {
        settled();
        queue.splice(queue.indexOf(entry), 1);
        if (queue.length === 0) this.#queues.delete(owner);
        reject(reason);
      };
      const forget = onAbort(signal, () => giveUp(signal.reason));
      const cancelTotal = this.#clock.after(Math.max(0, remainingMs), () => giveUp(totalError({ totalMs, exact })));
      this.#queues.set(owner, queue);
      queue.push(entry);
    });
  }

  /** How much is going on at one moment, by provider; those at which nothing runs are left out. */
  depth() {
    return { running: new Map([...this.#running].filter(([, count]) => count > 0)), waiting: this.#waiting() };
  }

  #waiting(): number {
    return [...this.#queues.values()].flat().length;
  }

  #isFree(provider: string): boolean {
    const { total, perProvider } = this.#rules;
    return this.#all < total && (this.#running.get(provider) ?? 0) < perProvider(provider);
  }

  #take(provider: string): () => void {
    this.#all++;
    this.#running.set(provider, (this.#running.get(provider) ?? 0) + 1);
    const began = this.#clock.monotonic();
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#all--;
      this.#running.set(provider, (this.#running.get(provider) ?? 1) - 1);
      this.#heldMs += 0.1 * (this.#clock.monotonic() - began - this.#heldMs);
      this.#admitNext();
    };
  }

  /** One place became free: the first of the first owner for whom there is room gets it, and that owner goes to the end. */
  #admitNext(): void {
    for (const [owner, queue] of this.#queues) {
      const index = queue.findIndex(({ provider }) => this.#isFree(provider));
      const next = queue[index];
      if (!next) continue;
      queue.splice(index, 1);
      this.#queues.delete(owner);
      if (queue.length > 0) this.#queues.set(owner, queue);
      next.grant();
    }
  }

  #overCapacity(): AppError {
    const [running, waiting] = [this.#all, this.#waiting()];
    const seconds = Math.max(1, Math.ceil(((waiting / this.#rules.total) * this.#heldMs) / 1_000));
    const message = `${running} questions to models are running and ${waiting} are waiting; no more are taken.`;
    return limitError('over_capacity', message, {
      next: `Retry in ${seconds} s, or ask the operator to raise MAX_CONCURRENT_CALLS.`,
      retryable: true,
      retryAfterSeconds: seconds,
      data: { running, waiting },
    });
  }
}

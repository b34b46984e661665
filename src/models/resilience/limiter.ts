import { type AppError, limitError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { totalError } from './clocks.ts';

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
}

/** How much is going on at one moment. */
export interface Load {
  /** By provider; those at which nothing runs are left out. */
  running: ReadonlyMap<string, number>;
  waiting: number;
}

export interface Limiter {
  /**
   * A place to run in; calling the result leaves it. At once when one is free, which costs no wait. Rejects with LIMIT
   * (`over_capacity`) when too many are waiting, with the total limit's error, or with the signal's reason.
   */
  enter(entry: Entry): (() => void) | Promise<() => void>;
  depth(): Load;
}

interface Waiting {
  provider: string;
  grant(): void;
}

/** The places and the queue. Those who wait are served in turns, one of each owner. */
class Places {
  readonly #rules: LimiterRules;
  readonly #clock: Clock;
  readonly #running = new Map<string, number>();
  /** The owner whose turn it is stands first. */
  readonly #queues = new Map<string, Waiting[]>();
  #all = 0;
  #waiting = 0;
  /** Milliseconds that a place was held, a moving average. */
  #heldMs = 1_000;

  constructor(rules: LimiterRules, clock: Clock) {
    this.#rules = rules;
    this.#clock = clock;
  }

  load(): Load {
    return { running: new Map([...this.#running].filter(([, count]) => count > 0)), waiting: this.#waiting };
  }

  isFree(provider: string): boolean {
    const { total, perProvider } = this.#rules;
    return this.#all < total && (this.#running.get(provider) ?? 0) < perProvider(provider);
  }

  take(provider: string): () => void {
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
      if (this.#waiting > 0) this.#admitNext();
    };
  }

  wait({ provider, owner, signal, remainingMs, totalMs }: Entry): Promise<() => void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#waiting >= this.#rules.queue) return Promise.reject(this.#overCapacity());
    return new Promise((resolve, reject) => {
      const settled = () => {
        signal.removeEventListener('abort', onAbort);
        cancelTotal();
      };
      const entry: Waiting = {
        provider,
        grant: () => {
          settled();
          resolve(this.take(provider));
        },
      };
      const giveUp = (reason: unknown) => {
        settled();
        this.#forget(owner, entry);
        reject(reason);
      };
      const onAbort = () => giveUp(signal.reason);
      const cancelTotal = this.#clock.after(Math.max(0, remainingMs), () => giveUp(totalError(totalMs)));
      signal.addEventListener('abort', onAbort, { once: true });
      const queue = this.#queues.get(owner) ?? [];
      this.#queues.set(owner, queue);
      queue.push(entry);
      this.#waiting++;
    });
  }

  /** One place became free: the first of the first owner for whom there is room gets it, and that owner goes to the end. */
  #admitNext(): void {
    for (const [owner, queue] of this.#queues) {
      const index = queue.findIndex(({ provider }) => this.isFree(provider));
      const next = queue[index];
      if (!next) continue;
      queue.splice(index, 1);
      this.#queues.delete(owner);
      if (queue.length > 0) this.#queues.set(owner, queue);
      this.#waiting--;
      next.grant();
      return;
    }
  }

  #forget(owner: string, entry: Waiting): void {
    const queue = this.#queues.get(owner);
    const index = queue?.indexOf(entry) ?? -1;
    if (!queue || index === -1) return;
    queue.splice(index, 1);
    if (queue.length === 0) this.#queues.delete(owner);
    this.#waiting--;
  }

  #overCapacity(): AppError {
    const [running, waiting] = [this.#all, this.#waiting];
    const seconds = Math.max(1, Math.ceil(((waiting / this.#rules.total) * this.#heldMs) / 1_000));
    const message = `${running} questions to models are running and ${waiting} are waiting; no more are taken.`;
    return limitError('over_capacity', message, {
      next: `Call again in ${seconds} s, or ask the operator to raise MAX_CONCURRENT_CALLS.`,
      retryable: true,
      retryAfterSeconds: seconds,
      data: { running, waiting },
    });
  }
}

export function createLimiter(rules: LimiterRules, clock: Clock): Limiter {
  const places = new Places(rules, clock);
  return {
    // Nobody waits who could run, so that a newcomer for whom there is room overtakes no one.
    enter: entry => (places.isFree(entry.provider) ? places.take(entry.provider) : places.wait(entry)),
    depth: () => places.load(),
  };
}

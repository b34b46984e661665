import type { FaultScope } from '../../core/errors.ts';
import { RollingCounts } from './breaker/rolling-counts.ts';
import type { BreakerState } from './health.ts';

export const breakerRules = {
  /** So many failures in a row open it. */
  consecutive: 5,
  /** So does this share of at least `leastCalls` within the window. */
  failedShare: 0.5,
  leastCalls: 20,
  windowMs: 30_000,
  /** The pause after the first opening; one more of it for each that follows without a success. */
  pauseMs: 30_000,
  longestPauseMs: 300_000,
} as const;

/** How much of the moving average the newest answer makes up. */
const newestShare = 0.2;

/** One breaker, with what it is for. */
export interface Place {
  /** Its key in the shared state. */
  name: string;
  provider: string;
  scope: FaultScope;
  model?: string;
  breaker: Breaker;
}

/** One breaker: counts, and the state that follows from them. Times are monotonic milliseconds, but for `since`. */
export class Breaker {
  state: BreakerState = 'closed';
  consecutive = 0;
  opens = 0;
  /** From then on one call may try. */
  readyAt = 0;
  latencyMs: number | undefined;
  /** The class of the last failure. */
  cause: string | undefined;
  /** Epoch milliseconds. */
  since: number;
  /** A call of this process is trying. */
  probing = false;
  readonly #counts = new RollingCounts(breakerRules.windowMs);

  constructor(since: number) {
    this.since = since;
  }

  counts(now: number): { calls: number; failures: number } {
    const { all, marked } = this.#counts.sum(now);
    return { calls: all, failures: marked };
  }

  /** Milliseconds until it may be asked; 0: now, perhaps as the one that tries. */
  waitMs(now: number): number {
    if (this.state === 'closed') return 0;
    if (this.state === 'quarantined') return Number.POSITIVE_INFINITY;
    // While one tries, nobody knows for how long; its answer is what the others wait for.
    return this.probing ? Math.max(1_000, this.readyAt - now) : Math.max(0, this.readyAt - now);
  }

  succeeded(now: number, latencyMs?: number): void {
    this.#counts.add(now, 1, 0);
    this.consecutive = 0;
    if (latencyMs === undefined) return;
    this.latencyMs =
      this.latencyMs === undefined ? latencyMs : this.latencyMs + newestShare * (latencyMs - this.latencyMs);
  }

  /** Counts a failure; true when it was the one too many. Late answers to a breaker that is open change nothing. */
  failed(now: number, cause: string): boolean {
    this.#counts.add(now, 1, 1);
    this.consecutive++;
    this.cause = cause;
    if (this.state !== 'closed') return false;
    const { calls, failures } = this.counts(now);
    const { consecutive, failedShare, leastCalls } = breakerRules;
    return this.consecutive >= consecutive || (calls >= leastCalls && failures >= failedShare * calls);
  }

  /** Milliseconds that it pauses when it opens for the `opens`th time, or as long as the vendor asked for. */
  pauseMs(opens: number, askedMs = 0): number {
    return Math.min(breakerRules.longestPauseMs, Math.max(breakerRules.pauseMs * opens, askedMs));
  }

  turn(state: BreakerState, since: number): void {
    this.state = state;
    this.since = since;
    this.probing = false;
    if (state !== 'closed') return;
    this.opens = 0;
    this.consecutive = 0;
    // What failed before it worked again must not open it at the next failure.
    this.#counts.clear();
  }
}

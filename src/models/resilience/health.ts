import type { FaultScope } from '../../core/errors.ts';

/**
 * `closed`: asked as usual. `open`: not asked until its pause is over. `half_open`: the pause is over, and one call tries
 * whether it works again. `quarantined`: the key was refused; not asked until the configuration changes, a listing with the
 * key succeeds, or a day went by.
 */
export type BreakerState = 'closed' | 'open' | 'half_open' | 'quarantined';

/** How one thing at a provider does. Numbers are of this process; the state is that of all processes on one store. */
export interface Health {
  provider: string;
  /** Absent: all that this provider serves under its key. */
  model?: string;
  /** What the record is about: a key at an address, an account, a model, or a model under a key. */
  scope: FaultScope;
  state: BreakerState;
  /** Attempts that ended within the last 30 s, and how many of them failed in a way that counts here. */
  calls: number;
  failures: number;
  /** Failures since the last success. */
  consecutive: number;
  /** How often it opened since it last worked. */
  opens: number;
  /** Milliseconds of a whole answer, a moving average; absent before the first. */
  latencyMs?: number;
  /** What kind of failure the last one was: `bad_upstream`, `rate_limit`… */
  class?: string;
  /** Epoch milliseconds of the last change of `state`; of the first attempt where it never changed. */
  since: number;
  /** Seconds until it may be asked again; absent when it may, and for a quarantine. */
  retryAfterSeconds?: number;
}

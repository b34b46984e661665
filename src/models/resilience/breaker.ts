import type { FaultScope } from '../../core/errors.ts';
import { hashOf } from '../../core/ids.ts';
import type { BreakerState } from '../../core/model.ts';
import type { ProviderDefinition, ProviderSettings } from '../provider.ts';

const steps = 10;

/** How often something was called lately, and how often that failed. What is older than the window falls out in tenths of it. */
export class RollingCounts {
  readonly #stepMs: number;
  readonly #steps: { at: number; calls: number; failures: number }[] = [];

  constructor(windowMs: number) {
    this.#stepMs = windowMs / steps;
  }

  /** `now` in monotonic milliseconds. */
  add(now: number, hasFailed: boolean): void {
    const at = Math.floor(now / this.#stepMs);
    let last = this.#steps.at(-1);
    if (last?.at !== at) {
      last = { at, calls: 0, failures: 0 };
      this.#steps.push(last);
      this.#forget(at);
    }
    last.calls++;
    if (hasFailed) last.failures++;
  }

  sum(now: number): { calls: number; failures: number } {
    this.#forget(Math.floor(now / this.#stepMs));
    const sum = { calls: 0, failures: 0 };
    for (const { calls, failures } of this.#steps) {
      sum.calls += calls;
      sum.failures += failures;
    }
    return sum;
  }

  clear(): void {
    this.#steps.length = 0;
  }

  #forget(at: number): void {
    while (this.#steps[0] && this.#steps[0].at <= at - steps) this.#steps.shift();
  }
}

/** Where a provider's calls go, and under which key: what breakers and budgets are kept for. Holds no secret. */
export interface Upstream {
  provider: string;
  /** The provider's id, with a short hash of its address where one is set. */
  endpoint: string;
  /** A short hash of the key; `none` without one. Another key is another upstream, without a past. */
  key: string;
}

export function upstreamOf({ id, options }: ProviderDefinition, settings: ProviderSettings): Upstream {
  const valuesOf = (wanted: (name: string) => boolean) =>
    Object.keys(options)
      .filter(name => wanted(name) && settings[name] !== undefined)
      .map(name => `${name}=${settings[name]}`);
  const keys = valuesOf(name => options[name]?.secret === true);
  // All other settings: an address, a deployment, a version may be what a vendor answers to.
  const places = valuesOf(name => options[name]?.secret !== true);
  return {
    provider: id,
    endpoint: places.length === 0 ? id : `${id}.${fingerprint(places)}`,
    key: keys.length === 0 ? 'none' : fingerprint(keys),
  };
}

/** Long enough to tell keys apart, too short to find one by it. */
const fingerprint = (texts: readonly string[]): string =>
  hashOf(`polylogue upstream\0${texts.join('\0')}`).slice(0, 10);

export const statePrefix = 'breaker/';

/** What the breakers of one model are for, in the order in which they are looked at: the widest first. */
export function scopesOf({ provider, endpoint, key }: Upstream, model: string): Omit<BreakerScope, 'breaker'>[] {
  const place = `${statePrefix}${endpoint}`;
  const named = encodeURIComponent(model.toWellFormed());
  return [
    { name: `${place}/key/${key}`, provider, scope: 'key' },
    { name: `${place}/account/${key}`, provider, scope: 'account' },
    { name: `${place}/key_model/${key}/${named}`, provider, scope: 'key_model', model },
    { name: `${place}/model/${named}`, provider, scope: 'model', model },
  ];
}

export function notAskedBecause(state: BreakerState, cause: string, failures: number): string {
  if (state === 'quarantined') return 'it refused the key';
  if (state === 'half_open') return 'another call is trying whether it works again';
  const often = failures === 0 ? '' : failures === 1 ? ' once' : ` ${failures} times in a row`;
  return `it failed${often} (${cause})`;
}

export const breakerRules = {
  /** So many failures in a row open it. */
  consecutive: 5,
  /** So does this share of at least `leastCalls` within the window. */
  failedShare: 0.5,
  leastCalls: 20,
  windowMs: 30_000,
  /** The pause after the first opening; one more of it for each that follows without a success. */
  pauseMs: 30_000,
  maxPauseMs: 300_000,
} as const;

/** How much of the moving average the newest answer makes up. */
const newestShare = 0.2;

/** One breaker, with what it is for. */
export interface BreakerScope {
  /** Its key in the shared state. */
  name: string;
  provider: string;
  scope: FaultScope;
  /** Of breakers that one model alone has. */
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
  /** Its calls within the window, and how many of them failed. */
  readonly counts = new RollingCounts(breakerRules.windowMs);

  constructor(since: number) {
    this.since = since;
  }

  /** Milliseconds until it may be asked; 0: now, perhaps as the one that tries. */
  waitMs(now: number): number {
    if (this.state === 'closed') return 0;
    if (this.state === 'quarantined') return Number.POSITIVE_INFINITY;
    // While one tries, nobody knows for how long; its answer is what the others wait for.
    return this.probing ? Math.max(1_000, this.readyAt - now) : Math.max(0, this.readyAt - now);
  }

  succeeded(now: number, latencyMs?: number): void {
    this.counts.add(now, false);
    this.consecutive = 0;
    if (latencyMs === undefined) return;
    this.latencyMs =
      this.latencyMs === undefined ? latencyMs : this.latencyMs + newestShare * (latencyMs - this.latencyMs);
  }

  /** Counts a failure; true when it was the one too many. Late answers to a breaker that is open change nothing. */
  failed(now: number, cause: string): boolean {
    this.counts.add(now, true);
    this.consecutive++;
    this.cause = cause;
    if (this.state !== 'closed') return false;
    const { calls, failures } = this.counts.sum(now);
    const { consecutive, failedShare, leastCalls } = breakerRules;
    return this.consecutive >= consecutive || (calls >= leastCalls && failures >= failedShare * calls);
  }

  /** Milliseconds that it pauses when it opens for the `opens`th time, or as long as the vendor asked for. */
  pauseMs(opens: number, askedMs = 0): number {
    return Math.min(breakerRules.maxPauseMs, Math.max(breakerRules.pauseMs * opens, askedMs));
  }

  turn(state: BreakerState, since: number): void {
    this.state = state;
    this.since = since;
    this.probing = false;
    if (state !== 'closed') return;
    this.opens = 0;
    this.consecutive = 0;
    // What failed before it worked again must not open it at the next failure.
    this.counts.clear();
  }
}

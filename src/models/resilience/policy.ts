import { AppError } from '../../core/errors.ts';
import type { Candidate, ModelInfo } from '../../core/model.ts';
import type { Random } from '../../core/ports.ts';
import { notAskedBecause, type Upstream } from './breaker.ts';
import { type BreakerBlock, BreakerRegistry } from './breaker-registry.ts';
import { Limiter, type LimiterRules } from './limiter.ts';
import type { BreakerParts } from './shared-breakers.ts';

/**
 * Who may still be asked. Refused content is not carried from vendor to vendor; a prompt that is too long goes only to wider
 * windows, and one that is too long for the account only to other providers; a request that one vendor calls malformed
 * is our mistake, but for a model or an interface that it does not have (404, 405, 501).
 */
export function othersAfter(error: AppError, failed: Candidate, left: Candidate[]): Candidate[] {
  const elsewhere = () => left.filter(candidate => candidate.model.provider !== failed.model.provider);
  switch (error.details.class) {
    case 'content_filter':
    case 'over_capacity':
      return [];
    case 'context_length':
      if (error.details.data?.elsewhere === true) return elsewhere();
      return left.filter(candidate => candidate.model.window > failed.model.window);
    case 'timeout':
      // Not retryable is the total limit: no time is left for anyone.
      return error.details.retryable ? left : [];
    case 'bad_request':
      return error.details.data?.noModel || [404, 405, 501].includes(error.details.status ?? 0) ? left : [];
    case 'auth':
    case 'balance':
    case 'quota':
      // The key is refused or spent, not the model: its provider's other models have the same one.
      // Unless it is this model alone that the key may not use.
      if (error.details.fault?.scope === 'key_model') return left;
      return elsewhere();
    default:
      return left;
  }
}

/** Calls for each retry. */
const callsPerRetry = 10;

/** So many are allowed however few calls there are: a share holds from `callsPerRetry` times as many calls on. */
const least = 3;

/** Whoever calls so seldom that a retry is this old is no load for a vendor. */
const forgottenMs = 3_600_000;

/**
 * Keeps retries a small part of what a vendor gets: in trouble, everybody's second and third tries are what breaks it for good. Of
 * any 30 or more calls in a row at an upstream within an hour, at most a tenth is retried, wherever the row begins and ends.
 */
export function createRetryBudget() {
  /** Of each upstream its calls, and of the latest retries how many calls came before and when. */
  const byUpstream = new Map<string, { calls: number; retries: { after: number; at: number }[] }>();
  const of = (upstream: string) => {
    const counts = byUpstream.get(upstream) ?? { calls: 0, retries: [] };
    byUpstream.set(upstream, counts);
    return counts;
  };
  return {
    /** A call begins at this upstream. */
    called(upstream: string) {
      of(upstream).calls++;
    },
    /** True when one more retry fits; it is counted then. `now` in monotonic milliseconds. */
    take(upstream: string, now: number) {
      const counts = of(upstream);
      const { calls } = counts;
      // A longer row is made of rows that are short enough to have no more retries than these.
      const recent = counts.retries.filter(({ at }) => now - at < forgottenMs).slice(1 - 2 * least);
      const needed = (index: number) => callsPerRetry * (recent.length - index + 1);
      const fits = recent.every(({ after }, index) => needed(index) <= Math.max(least * callsPerRetry, calls - after));
      counts.retries = fits ? [...recent, { after: calls, at: now }] : recent;
      return fits;
    },
  };
}

/** What stands between a call and its vendors: who is asked at all, how often again, and how many at once. */
export type Resilience = ReturnType<typeof createResilience>;

export interface ResilienceParts extends BreakerParts {
  random: Random;
  /** Of all providers that are set up. */
  upstreams: readonly Upstream[];
  limits: LimiterRules;
  /** Environment variable of a provider's key, for the advice in errors. */
  keyName?(provider: string): string | undefined;
}

export function createResilience(parts: ResilienceParts) {
  const { clock, upstreams, keyName } = parts;
  const board = new BreakerRegistry(parts);
  const budget = createRetryBudget();
  const byProvider = new Map(upstreams.map(upstream => [upstream.provider, upstream]));
  const upstreamOf = (provider: string) => byProvider.get(provider) ?? { provider, endpoint: provider, key: 'none' };
  const refusal = (model: ModelInfo, block: BreakerBlock) => refusalOf(model, block, keyName?.(model.provider));
  return {
    limiter: new Limiter(parts.limits, clock),
    /** Before a call: learns what other processes found. */
    refresh: () => board.refresh(),
    /** An error when this model is not to be asked now. */
    blocked(model: ModelInfo) {
      const block = board.blocked(upstreamOf(model.provider), model.id);
      return block && refusal(model, block);
    },
    /** The permission for one attempt of a call, or the error. `probeMs`: how long it may take. */
    async admit(model: ModelInfo, probeMs: number, reqId: string) {
      const answer = await board.admit(upstreamOf(model.provider), model.id, probeMs, reqId);
      return 'waitMs' in answer ? refusal(model, answer) : answer;
    },
    /** A call begins at this model's provider: it earns its part of a retry. */
    called: (model: ModelInfo) => budget.called(upstreamOf(model.provider).endpoint),
    mayRetry: (model: ModelInfo) => budget.take(upstreamOf(model.provider).endpoint, clock.monotonic()),
    /** A listing with the provider's key succeeded. */
    keyWorks: (provider: string) => board.release(upstreamOf(provider)),
    /** Resolves once what was found is where other processes find it. */
    settled: () => board.settled(),
    health: () => board.health(upstreams),
  };
}

/** The class is that of the failure behind it: what the caller or the operator can do is the same. */
function refusalOf({ provider, id }: ModelInfo, block: BreakerBlock, keyName: string | undefined): AppError {
  const fault = { scope: block.scope, lasting: block.state === 'quarantined' };
  const data = { breaker: block.state };
  const details = { code: 'API_ERROR', class: block.cause, provider, model: id, fault, data } as const;
  const what = block.scope === 'model' || block.scope === 'key_model' ? `${provider}:${id}` : provider;
  const why = notAskedBecause(block.state, block.cause, block.failures);
  if (block.state === 'quarantined') {
    const next =
      keyName === undefined
        ? `Change the settings of ${provider}, or run "polylogue doctor" once they are right; or choose a model from another provider.`
        : `Set ${keyName} to a valid key; if it is valid by now, run "polylogue doctor". Or choose a model from another provider.`;
    return new AppError('model', `${what} is not asked: ${why}.`, { ...details, next, retryable: false });
  }
  const seconds = Math.max(1, Math.ceil(block.waitMs / 1_000));
  return new AppError('model', `${what} is paused for ${seconds} s: ${why}.`, {
    ...details,
    next: `Retry in ${seconds} s, or choose a model from another provider.`,
    retryable: true,
    retryAfterSeconds: seconds,
  });
}

/** Attempts at one candidate, the first one included. */
export const maxAttempts = 3;

/** The first interval between two attempts, and the longest. */
const baseMs = 500;
const capMs = 8_000;

export interface RetrySituation {
  /** The attempt that failed, counted from 1. */
  attempt: number;
  random: Random;
  /** What the vendor asked for. */
  retryAfterSeconds?: number;
  /** Milliseconds that may be waited at most; a wait that needs more is not begun. */
  patienceMs: number;
}

/**
 * Milliseconds until the next attempt: a random part of a doubling interval (full jitter), but never less than the vendor
 * asked for. Undefined when that is more than the call can wait: then it fails at once instead of failing later.
 */
export function retryDelay({ attempt, random, retryAfterSeconds = 0, patienceMs }: RetrySituation): number | undefined {
  const jitter = random.fraction() * Math.min(capMs, baseMs * 2 ** (attempt - 1));
  const delay = Math.ceil(Math.max(jitter, retryAfterSeconds * 1000));
  return delay < patienceMs ? delay : undefined;
}

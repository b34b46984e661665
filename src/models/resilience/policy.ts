import { AppError } from '../../core/errors.ts';
import type { ModelInfo } from '../../core/model.ts';
import type { Clock, Emit, Random, SharedState } from '../../core/ports.ts';
import type { Upstream } from './breaker/upstream.ts';
import { type Block, createBreakerBoard, type Pass } from './breaker-board.ts';
import type { Health } from './health.ts';
import { createLimiter, type Limiter, type LimiterRules } from './limiter.ts';
import { createRetryBudget } from './retry-budget.ts';

/** What stands between a call and its vendors: who is asked at all, how often again, and how many at once. */
export interface Resilience extends Limiter {
  /** Before a call: learns what other processes found. */
  refresh(): Promise<void>;
  /** An error when this model is not to be asked now. */
  blocked(model: ModelInfo): AppError | undefined;
  /** The permission for one attempt of a call, or the error. `probeMs`: how long it may take. */
  admit(model: ModelInfo, probeMs: number, reqId: string): Promise<Pass | AppError>;
  /** A call begins at this model's provider: it earns its part of a retry. */
  called(model: ModelInfo): void;
  mayRetry(model: ModelInfo): boolean;
  /** A listing with the provider's key succeeded. */
  keyWorks(provider: string): Promise<void>;
  /** Resolves once what was found is where other processes find it. */
  settled(): Promise<void>;
  health(): Health[];
}

export interface ResilienceParts {
  clock: Clock;
  random: Random;
  emit: Emit;
  state?: SharedState;
  /** Of all providers that are set up. */
  upstreams: readonly Upstream[];
  limits: LimiterRules;
  /** Environment variable of a provider's key, for the advice in errors. */
  keyName?(provider: string): string | undefined;
}

export function createResilience(parts: ResilienceParts): Resilience {
  const { clock, upstreams, keyName } = parts;
  const board = createBreakerBoard(parts);
  const budget = createRetryBudget();
  const byProvider = new Map(upstreams.map(upstream => [upstream.provider, upstream]));
  const upstreamOf = (provider: string) => byProvider.get(provider) ?? { provider, endpoint: provider, key: 'none' };
  const refusal = (model: ModelInfo, block: Block) => refusalOf(model, block, keyName?.(model.provider));
  return {
    ...createLimiter(parts.limits, clock),
    refresh: () => board.refresh(),
    blocked(model) {
      const block = board.blocked(upstreamOf(model.provider), model.id);
      return block && refusal(model, block);
    },
    async admit(model, probeMs, reqId) {
      const answer = await board.admit(upstreamOf(model.provider), model.id, probeMs, reqId);
      return 'waitMs' in answer ? refusal(model, answer) : answer;
    },
    called: model => budget.called(upstreamOf(model.provider).endpoint, clock.monotonic()),
    mayRetry: model => budget.take(upstreamOf(model.provider).endpoint, clock.monotonic()),
    keyWorks: provider => board.release(upstreamOf(provider)),
    settled: () => board.settled(),
    health: () => board.health(upstreams),
  };
}

/** The class is that of the failure behind it: what the caller or the operator can do is the same. */
function refusalOf({ provider, id }: ModelInfo, block: Block, keyName: string | undefined): AppError {
  const fault = { scope: block.scope, lasting: block.state === 'quarantined' };
  const data = { breaker: block.state };
  const details = { code: 'API_ERROR', class: block.cause, provider, model: id, fault, data } as const;
  const what = block.scope === 'model' || block.scope === 'key_model' ? `${provider}:${id}` : provider;
  if (block.state === 'quarantined') {
    const next =
      keyName === undefined
        ? `Change the settings of ${provider}, or run "polylogue doctor" once they are right; or name a model of another provider.`
        : `Set ${keyName} to a valid key; if it is valid by now, run "polylogue doctor". Or name a model of another provider.`;
    return new AppError('model', `${what} is not asked: it refused the key.`, { ...details, next, retryable: false });
  }
  const seconds = Math.max(1, Math.ceil(block.waitMs / 1_000));
  const why =
    block.state === 'half_open'
      ? 'another call is trying whether it works again'
      : `it failed ${block.failures === 1 ? 'once' : `${block.failures} times in a row`} (${block.cause})`;
  return new AppError('model', `${what} is not asked for the next ${seconds} s: ${why}.`, {
    ...details,
    next: `Call again in ${seconds} s, or name a model of another provider.`,
    retryable: true,
    retryAfterSeconds: seconds,
  });
}

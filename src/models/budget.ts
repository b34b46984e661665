import { type AppError, isAppError, limitError } from '../core/errors.ts';
import type { ModelInfo } from '../core/model.ts';
import { dollars, roundedUsd } from '../domain/money.ts';
import { unpricedAdvice } from '../engine/spend/quote.ts';
import type { Waste } from './ask-model.ts';

/** US dollars; absent: no limit. */
export interface SpendCaps {
  /** One call of a tool, all models that it asks. */
  perRequest?: number;
  perThread?: number;
  /** All calls of an owner on one day in UTC. */
  perDay?: number;
}

/** The most that one call may cost, and what set it. */
export interface CallLimit {
  usd: number;
  name: 'max_cost_usd' | 'MAX_COST_PER_REQUEST';
}

/** What a limit leaves. */
export interface Room {
  name: CallLimit['name'] | 'MAX_COST_PER_THREAD' | 'MAX_COST_PER_DAY';
  usd: number;
  free: number;
}

/** The lower one of the operator's limit and the caller's. */
export function callLimit(perRequest: number | undefined, asked: unknown): CallLimit | undefined {
  const wanted = typeof asked === 'number' && Number.isFinite(asked) ? Math.max(0, asked) : undefined;
  if (wanted !== undefined && wanted <= (perRequest ?? wanted)) return { usd: wanted, name: 'max_cost_usd' };
  return perRequest === undefined ? undefined : { usd: perRequest, name: 'MAX_COST_PER_REQUEST' };
}

const dayMs = 24 * 3_600_000;

/** What to do where a limit leaves too little. */
export const limitAdvice: Readonly<Record<Room['name'], string>> = {
  max_cost_usd: 'Raise max_cost_usd, name a cheaper model, or send less.',
  MAX_COST_PER_REQUEST: 'Name a cheaper model or send less; the operator can raise MAX_COST_PER_REQUEST.',
  MAX_COST_PER_THREAD:
    'Begin a new thread, or name a cheaper or a local model; the operator can raise MAX_COST_PER_THREAD.',
  MAX_COST_PER_DAY:
    'Wait for the next day (UTC), or name a cheaper or a local model; the operator can raise MAX_COST_PER_DAY.',
};

/** `needed` is the least that asking costs. */
export function refuseCost(needed: number, { name, usd, free }: Room, now: number): AppError {
  const left = Math.max(0, free);
  const known = { limit: name, limit_usd: usd, left_usd: roundedUsd(left), needed_usd: roundedUsd(needed) };
  return limitError(
    'cost',
    `This could cost ${dollars(needed)}, and ${dollars(left)} of ${name} ${dollars(usd)} is left; nobody was asked.`,
    {
      next: limitAdvice[name],
      retryable: name === 'MAX_COST_PER_DAY',
      ...(name === 'MAX_COST_PER_DAY' && { retryAfterSeconds: Math.ceil((dayMs - (now % dayMs)) / 1_000) }),
      data: known,
    },
  );
}

export function refuseUnpriced({ provider, id }: ModelInfo): AppError {
  return limitError('cost', `No price is known for ${provider}:${id}, so no limit on costs can be kept.`, {
    next: unpricedAdvice,
    provider,
    model: id,
  });
}

/** For what is no answer of a model: an engine that searches, a model that makes vectors. */
export function refuseUnpricedService(provider: string, used: string): AppError {
  return limitError('cost', `No price is known for ${used} of ${provider}, so no limit on costs can be kept.`, {
    next: 'Use one whose price is known, or set ALLOW_UNPRICED_MODELS=true to let it pass as free.',
    provider,
    model: used,
  });
}

export function refuseRetry({ model, costUsd = 0 }: Waste): AppError {
  return limitError(
    'cost',
    `${model.provider}:${model.id} brought no answer and cost ${dollars(costUsd)}; asking again could pass a limit on costs.`,
    {
      next: 'Name another model, ask with less effort, or raise the limit.',
      provider: model.provider,
      model: model.id,
    },
  );
}

/** Whether a vendor may go on charging for an answer that nobody waits for any more. */
export function isBrokenOff(error: unknown): boolean {
  return !isAppError(error) || error.kind === 'cancelled' || error.details.class === 'timeout';
}

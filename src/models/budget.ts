import { type AppError, isAppError, limitError } from '../core/errors.ts';
import { type Message, textOf } from '../core/message.ts';
import { answerTokens, type Candidate, type ModelInfo } from '../core/model.ts';
import { mostThatFit } from '../core/text.ts';
import type { AttemptRecord } from '../core/thread.ts';
import { estimateTokens, imageTokens, tokenFactor, tokensPerMessage } from '../core/tokens.ts';
import { addUsage, dayMs, dollars, noUsage, ratesFor, roundedUsd, type SpendUsed, type Usage } from '../core/usage.ts';
import type { ModelQuestion, Waste, WebSearch } from './ask-model.ts';
import { feeRate, searchBound } from './fees.ts';
import { budgetFor } from './provider.ts';

/** What is known of prices beside the catalogue. */
export interface Pricing {
  /** Nobody is paid for models on this machine or network. */
  isLocal(providerId: string): boolean;
  /** Whether a prompt may be paid twice there in one call: to be kept in a cache, maybe for an hour, and to be read from it. */
  cachesApart?(providerId: string): boolean;
  /** Whether a model would search where it may; absent: whoever has a price for it would. */
  searches?(model: ModelInfo): boolean;
  /** Models whose price nobody knows may be asked under a limit, and count as free. */
  allowUnpriced: boolean;
}

/** The most that an answer may cost. */
export interface CostEstimate {
  /** US dollars for what goes in, for a budget of thinking, and for searches and caches at the vendor. */
  fixed: number;
  /** US dollars for a token of the answer. */
  perToken: number;
  /** The model where nobody knows its price, which is not allowed: nothing can be promised. */
  unpriced?: ModelInfo;
}

export function estimateCost(
  candidate: Candidate,
  inputTokens: number,
  pricing: Pricing,
  webSearch?: WebSearch,
): CostEstimate {
  const { model } = candidate;
  // What is too long for a window is made shorter before it is sent there.
  const tokens = Math.min(inputTokens, model.window);
  const fees = feesBound(model, tokens, pricing, webSearch);
  if (!model.price) return { fixed: fees, perToken: 0, ...(!isFree(model, pricing) && { unpriced: model }) };
  const rates = ratesFor(model.price, tokens);
  const apart = pricing.cachesApart?.(model.provider);
  // Of what goes in, all may have to be written to the vendor's cache.
  const dearest = Math.max(rates.in, rates.cacheWrite ?? 0, (apart && rates.cacheWriteHour) || 0);
  const read = apart ? (rates.cacheRead ?? rates.in) : 0;
  const paid = tokens * (dearest + read) + thinkingTokens(candidate) * rates.out;
  return { fixed: paid / 1_000_000 + fees, perToken: rates.out / 1_000_000 };
}

/** What a vendor may take beside tokens: for searching, and for an hour in which it keeps all of the prompt. */
function feesBound(model: ModelInfo, inputTokens: number, pricing: Pricing, webSearch?: WebSearch): number {
  const { provider, id } = model;
  const searching = webSearch && (pricing.searches?.(model) ?? true) ? searchBound(model, webSearch) : 0;
  const storage = pricing.cachesApart?.(provider) ? (feeRate(provider, 'cache_storage', id) ?? 0) : 0;
  return searching + inputTokens * storage;
}

/** Whether a model without a price costs nothing, or is to count so. */
export const isFree = ({ price, provider }: ModelInfo, { isLocal, allowUnpriced }: Pricing): boolean =>
  !price && (isLocal(provider) || allowUnpriced);

/** What is thought on top of the answer's own room, where a model takes a budget. */
function thinkingTokens({ model, effort, thinkingBudget }: Candidate): number {
  if (thinkingBudget !== undefined) return thinkingBudget;
  if (!model.thinkingBudget || effort === undefined || effort === 'none') return 0;
  return Math.min(budgetFor(effort, model.thinkingBudget), model.maxOutput);
}

/** Tokens of an answer below which asking is of no use, and that a short one never needs more than. */
const answers = { plain: { least: 1_000, max: 4_000 }, thinking: { least: 3_000, max: 12_000 } };

export const usefulAnswer = (candidates: readonly Candidate[]): { least: number; max: number } =>
  candidates.some(thinksInAnswer) ? answers.thinking : answers.plain;

/** A budget for thinking is counted by itself; without one, thinking comes out of the answer's room. */
export const thinksInAnswer = ({ model, effort, thinkingBudget }: Candidate): boolean =>
  model.reasoning && effort !== 'none' && thinkingBudget === undefined;

/** What a call may cost at one candidate. */
export interface Quote {
  /** US dollars for as much of the prompt as its window holds and a usual answer, for comparing; undefined: nobody knows. */
  usd: number | undefined;
  /** The most tokens of a prompt, in its own count, beside which a useful answer stays within the limit; absent: all that its window holds. */
  maxPrompt?: number;
  /** The part of the prompt, from 0 to 1, that its window and the limit let in. */
  holds: number;
}

/** What is always sent: a preamble, a question. */
const leastPrompt = 2_000;

/** Tokens of an answer, the same for all models. */
const usualAnswer = 8_000;

/** Estimates of prompts are off by so much. */
const estimateMargin = 0.95;

/** Prices a call before its prompt is made. `tokens` by o200k; `limit` in US dollars; absent: there is none. */
export function quote(
  candidate: Candidate,
  tokens: number,
  pricing: Pricing,
  { limit = Number.POSITIVE_INFINITY, webSearch }: { limit?: number; webSearch?: WebSearch } = {},
): Quote {
  const { model } = candidate;
  const { least, max } = usefulAnswer([candidate]);
  const room = Math.max(1, Math.floor(model.window - Math.min(model.maxOutput, max, model.window / 2)));
  const wanted = Math.max(leastPrompt, Math.ceil(tokens * tokenFactor(model.id)));
  const usdFor = (prompt: number, answer: number) => {
    const { fixed, perToken } = estimateCost(candidate, prompt, pricing, webSearch);
    return fixed + Math.min(answer, model.maxOutput) * perToken;
  };
  const sent = Math.min(wanted, room);
  // What the prompt is given there, beside the answer that is planned for.
  const given = Math.min(wanted, model.window - answerTokens(model));
  // An answer may be shorter before files have to be.
  const answer = usdFor(leastPrompt, max) <= limit / 2 && usdFor(sent, least) > limit ? max : least;
  const usd = model.price || isFree(model, pricing) ? usdFor(sent, usualAnswer) : undefined;
  if (usdFor(room, answer) <= limit) return { usd, holds: given / wanted };
  const maxPrompt = Math.floor(mostThatFit(room, prompt => usdFor(prompt, answer) <= limit) * estimateMargin);
  const held = usdFor(sent, least) <= limit ? sent : Math.min(sent, maxPrompt);
  return { usd, maxPrompt, holds: maxPrompt < leastPrompt * estimateMargin ? 0 : Math.min(held, given) / wanted };
}

/** What a prompt comes to at the candidate that makes most tokens of it. */
export function promptTokens(messages: readonly Message[], candidates: readonly Candidate[]): number {
  const factor = Math.max(1, ...candidates.map(({ model }) => tokenFactor(model.id)));
  const tokens = messages.reduce((sum, message) => {
    const images = message.parts.filter(({ type }) => type === 'image').length;
    return sum + estimateTokens(textOf(message)) + images * imageTokens + tokensPerMessage;
  }, 0);
  return Math.ceil(tokens * factor);
}

const unpricedAdvice =
  'Choose a model with a known price (see "polylogue models"), or set ALLOW_UNPRICED_MODELS=true to treat unknown prices as free.';

/** US dollars; absent: no limit. */
export interface SpendCaps {
  /** One call of a tool, all models that it asks. */
  perRequest?: number;
  perThread?: number;
  /** All calls of an owner on one day in UTC. */
  perDay?: number;
  /** One call of a tool, for all models in it that nobody named. */
  perAutoCall?: number;
}

/** The most that one call may cost, and what set it. */
export interface CallLimit {
  usd: number;
  name: 'max_cost_usd' | 'MAX_COST_PER_REQUEST' | 'AUTO_COST_LIMIT';
}

/** What a limit leaves. */
export interface BudgetHeadroom {
  name: CallLimit['name'] | 'MAX_COST_PER_THREAD' | 'MAX_COST_PER_DAY';
  usd: number;
  free: number;
  /** What calls under way reserve of the rest, as of `heldAt`; absent: nothing, or that is not known. */
  held?: SpendUsed['held'];
  heldAt?: number;
}

/** The money of one call of a tool. */
export interface CallSpend {
  limit?: CallLimit;
  /** Spent, or reserved for questions under way. */
  used: number;
  /** The part of `used` for models that nobody named. */
  autoUsed: number;
  /** What vendors billed so far; absent: nothing. */
  billed?: Bill;
  /** At models, in their order. */
  attempts: AttemptRecord[];
  /** Gets what the call may have cost by the end of a question, before that is asked. */
  tell?: ((usd: number) => void) | undefined;
}

/** Who pays for something, and out of which call's money. */
export interface Payment {
  /** Absent: nobody, and the limits of a thread and a day do not hold. */
  payer: ModelQuestion['payer'];
  account: CallSpend;
  /** AUTO_COST_LIMIT holds: nobody named the model, and its price is known. */
  auto: boolean;
}

/** What something may cost at the worst. */
export interface CostRequest extends Pick<CostEstimate, 'fixed' | 'perToken'> {
  /** How many questions of the same call, this one included, still want a part; absent: this one alone. */
  sharers?: number | undefined;
  /** Tokens of an answer that are wanted, and without which it is of no use. */
  max: number;
  least: number;
}

/** What was reserved. */
export interface Reservation {
  usd: number;
  /** The most that the answer may come to; `limited`: what makes that less than was asked for. */
  maxOutputTokens: number;
  limited?: BudgetHeadroom['name'];
  /** US dollars that the limits leave beside it, for attempts that fail. */
  spare: number;
  /** Its number in the ledger; absent: it stands in the account of the call alone. */
  id?: string;
}

/** The lower one of the operator's limit and the caller's. */
export function callLimit(perRequest: number | undefined, asked: unknown): CallLimit | undefined {
  const wanted = typeof asked === 'number' && Number.isFinite(asked) ? Math.max(0, asked) : undefined;
  if (wanted !== undefined && wanted <= (perRequest ?? wanted)) return { usd: wanted, name: 'max_cost_usd' };
  return perRequest === undefined ? undefined : { usd: perRequest, name: 'MAX_COST_PER_REQUEST' };
}

/** What to do where a limit leaves too little. */
const limitAdvice: Readonly<Record<BudgetHeadroom['name'], string>> = {
  max_cost_usd: 'Raise max_cost_usd, choose a cheaper model, or send less.',
  AUTO_COST_LIMIT:
    'Name the model that you want for it, or send less; the operator can raise AUTO_COST_LIMIT for models that are chosen.',
  MAX_COST_PER_REQUEST: 'Name a cheaper model or send less; the operator can raise MAX_COST_PER_REQUEST.',
  MAX_COST_PER_THREAD:
    'Start a new thread, or choose a cheaper or local model. The operator can raise MAX_COST_PER_THREAD.',
  MAX_COST_PER_DAY:
    'Wait for the next day (UTC), or name a cheaper or a local model; the operator can raise MAX_COST_PER_DAY.',
};

/** Seconds after which a call under way may have given back what it reserved. */
const heldRetrySeconds = 15;

/** `needed` is the least that asking costs. */
export function refuseCost(needed: number, { name, usd, free, held = [], heldAt = 0 }: BudgetHeadroom, now: number) {
  const left = Math.max(0, free);
  const known = { limit: name, limit_usd: usd, left_usd: roundedUsd(left), needed_usd: roundedUsd(needed) };
  const short = `This call could cost ${dollars(needed)}, but only ${dollars(left)} of ${name} ${dollars(usd)}`;
  const sumOf = (holds: typeof held) => holds.reduce((sum, hold) => sum + hold.usd, 0);
  const sum = sumOf(held);
  if (needed <= free + sum) {
    // When enough of it has ended, unless it is renewed.
    const enough = held.find((_, at) => needed <= free + sumOf(held.slice(0, at + 1)) + 1e-9);
    const seconds = Math.max(heldRetrySeconds, Math.ceil(((enough?.at ?? heldAt) - heldAt) / 1_000));
    return limitError(
      'over_capacity',
      `${short} is free: calls under way reserve ${dollars(sum)}. No model was asked.`,
      {
        next: `Retry in ${seconds} s, or name a cheaper or a local model. What a cancelled call reserved is free again after an hour.`,
        retryable: true,
        retryAfterSeconds: seconds,
        data: { ...known, reserved_usd: roundedUsd(sum) },
      },
    );
  }
  return limitError('cost', `${short} is left. No model was asked.`, {
    next: limitAdvice[name],
    retryable: name === 'MAX_COST_PER_DAY',
    ...(name === 'MAX_COST_PER_DAY' && { retryAfterSeconds: Math.ceil((dayMs - (now % dayMs)) / 1_000) }),
    data: known,
  });
}

export const refuseUnpriced = ({ provider, id }: ModelInfo, limit: BudgetHeadroom['name']): AppError =>
  limitError('cost', `No price is known for ${provider}:${id}, so ${limit} cannot be guaranteed.`, {
    next: unpricedAdvice,
    provider,
    model: id,
  });

/** For what is no answer of a model: an engine that searches, a model that makes vectors. */
export const refuseUnpricedService = (provider: string, used: string): AppError =>
  limitError('cost', `No price is known for ${used} of ${provider}, so no limit on costs can be kept.`, {
    next: 'Use one whose price is known, or set ALLOW_UNPRICED_MODELS=true to let it pass as free.',
    provider,
    model: used,
  });

export const refuseRetry = ({ model, costUsd = 0 }: Waste): AppError =>
  limitError(
    'cost',
    `${model.provider}:${model.id} brought no answer and cost ${dollars(costUsd)}; asking again could pass a limit on costs.`,
    {
      next: 'Name another model, ask with less effort, or raise the limit.',
      provider: model.provider,
      model: model.id,
    },
  );

/** Whether a vendor may charge for what failed: nobody waited for the answer, or what came after its headers was no answer. */
export function mayBeBilled(error: unknown): boolean {
  const { class: cause, status } = isAppError(error) ? error.details : {};
  return isInterrupted(error) || (status === undefined && cause === 'bad_upstream');
}

/** Whether a vendor may go on charging for an answer that nobody waits for any more. */
export const isInterrupted = (error: unknown): boolean =>
  !isAppError(error) || error.kind === 'cancelled' || error.details.class === 'timeout';

/** What a question costs at a candidate at the worst: `tokens` are o200k's, which each model counts in its own way. */
export const costAt = (
  candidate: Candidate,
  { webSearch }: ModelQuestion,
  tokens: number,
  pricing: Pricing,
): CostEstimate => estimateCost(candidate, Math.ceil(tokens * tokenFactor(candidate.model.id)), pricing, webSearch);

/** The most tokens of an answer that is asked for and given. */
export const mostOutput = ({ maxOutputTokens }: ModelQuestion, candidates: readonly Candidate[]): number =>
  Math.min(maxOutputTokens, Math.max(...candidates.map(({ model }) => model.maxOutput)));

/** Tokens of an answer below which the question is not worth asking. */
export const leastOutput = (question: ModelQuestion, candidates: readonly Candidate[]): number =>
  Math.min(mostOutput(question, candidates), usefulAnswer(candidates).least);

/** What a call was billed for. */
export interface Bill {
  usage: Usage;
  /** US dollars as far as prices are known; absent: none is. */
  costUsd?: number;
}

/** Adds what a vendor billed to what is billed so far. */
export function bill(account: { billed?: Bill }, usage: Usage, costUsd: number | undefined): void {
  const { billed } = account;
  const usd = costUsd === undefined ? billed?.costUsd : (billed?.costUsd ?? 0) + costUsd;
  account.billed = { usage: addUsage(billed?.usage ?? noUsage, usage), ...(usd !== undefined && { costUsd: usd }) };
}

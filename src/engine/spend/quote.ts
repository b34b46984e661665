import { type Message, textOf } from '../../core/message.ts';
import type { Candidate, ModelInfo } from '../../core/model.ts';
import { estimateTokens, tokenFactor, tokensPerMessage } from '../../core/tokens.ts';
import { ratesFor } from '../../core/usage.ts';
import type { WebSearch } from '../../models/ask-model.ts';
import { budgetFor } from '../../models/effort.ts';
import { feeRate, searchBound } from '../../models/fees.ts';
import { imageTokens } from '../../threads/transcript.ts';

/** What is known of prices beside the catalogue. */
export interface Pricing {
  /** Nobody is paid for models on this machine or network. */
  isLocal(providerId: string): boolean;
  /** Whether a prompt may be paid twice there in one call: to be kept in a cache, and to be read from it. */
  cachesApart?(providerId: string): boolean;
  /** Whether a model would search where it may; absent: whoever has a price for it would. */
  searches?(model: ModelInfo): boolean;
  /** Models whose price nobody knows may be asked under a limit, and count as free. */
  allowUnpriced: boolean;
}

/** The most that an answer may cost, whichever of the candidates gives it. */
export interface Quote {
  /** US dollars for what goes in, for a budget of thinking, and for searches and caches at the vendor. */
  fixed: number;
  /** US dollars for a token of the answer. */
  perToken: number;
  /** A candidate whose price nobody knows, which is not allowed: nothing can be promised. */
  unpriced?: ModelInfo;
}

export function quote(
  candidates: readonly Candidate[],
  inputTokens: number,
  pricing: Pricing,
  webSearch?: WebSearch,
): Quote {
  const unpriced = candidates.find(({ model }) => !model.price && !isFree(model, pricing))?.model;
  let fixed = 0;
  let perToken = 0;
  for (const candidate of candidates) {
    const { price, provider } = candidate.model;
    const fees = feesBound(candidate.model, inputTokens, pricing, webSearch);
    fixed = Math.max(fixed, fees);
    if (!price) continue;
    const rates = ratesFor(price, inputTokens);
    // Of what goes in, all may have to be written to the vendor's cache.
    const dearest = Math.max(rates.in, rates.cacheWrite ?? 0);
    const read = pricing.cachesApart?.(provider) ? (rates.cacheRead ?? rates.in) : 0;
    const tokens = inputTokens * (dearest + read) + thinkingTokens(candidate) * rates.out;
    fixed = Math.max(fixed, tokens / 1_000_000 + fees);
    perToken = Math.max(perToken, rates.out / 1_000_000);
  }
  return { fixed, perToken, ...(unpriced && { unpriced }) };
}

/** What a vendor may take beside tokens: for searching, and for an hour in which it keeps all of the prompt. */
function feesBound(model: ModelInfo, inputTokens: number, pricing: Pricing, webSearch?: WebSearch): number {
  const { provider, id } = model;
  const searching = webSearch && (pricing.searches?.(model) ?? true) ? searchBound(model, webSearch) : 0;
  const storage = pricing.cachesApart?.(provider) ? (feeRate(provider, 'cache_storage', id) ?? 0) : 0;
  return searching + inputTokens * storage;
}

/**
 * The candidates of whom one can say what they cost: one further down the list whose price nobody knows would make a limit
 * refuse the whole question. The first is who was asked for.
 */
export function withKnownPrices([first, ...others]: readonly Candidate[], pricing: Pricing): readonly Candidate[] {
  const known = others.filter(({ model }) => model.price || isFree(model, pricing));
  return first ? [first, ...known] : known;
}

/** Whether a model without a price costs nothing, or is to count so. */
export function isFree({ price, provider }: ModelInfo, { isLocal, allowUnpriced }: Pricing): boolean {
  return !price && (isLocal(provider) || allowUnpriced);
}

/** What is thought on top of the answer's own room, where a model takes a budget. */
function thinkingTokens({ model, effort, thinkingBudget }: Candidate): number {
  if (thinkingBudget !== undefined) return thinkingBudget;
  if (!model.thinkingBudget || effort === undefined || effort === 'none') return 0;
  return Math.min(budgetFor(effort, model.thinkingBudget), model.maxOutput);
}

/** Tokens of an answer below which asking is of no use, and that a short one never needs more than. */
const answers = { plain: { least: 1_000, most: 4_000 }, thinking: { least: 3_000, most: 12_000 } };

export function usefulAnswer(candidates: readonly Candidate[]): { least: number; most: number } {
  return candidates.some(thinksInAnswer) ? answers.thinking : answers.plain;
}

/** A budget for thinking is counted by itself; without one, thinking comes out of the answer's room. */
export function thinksInAnswer({ model, effort, thinkingBudget }: Candidate): boolean {
  return model.reasoning && effort !== 'none' && thinkingBudget === undefined;
}

/** What a prompt comes to at the candidate that makes most tokens of it. */
export function promptTokens(messages: readonly Message[], candidates: readonly Candidate[]): number {
  const factor = Math.max(...candidates.map(({ model }) => tokenFactor(model.id)));
  const tokens = messages.reduce((sum, message) => {
    const images = message.parts.filter(({ type }) => type === 'image').length;
    return sum + estimateTokens(textOf(message)) + images * imageTokens + tokensPerMessage;
  }, 0);
  return Math.ceil(tokens * factor);
}

export const unpricedAdvice =
  'Name a model with a known price ("polylogue models" shows them), or set ALLOW_UNPRICED_MODELS=true to let such models pass as free.';

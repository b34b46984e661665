import type { Candidate } from '../../core/model.ts';
import { dollars } from '../../domain/money.ts';
import type { WebSearch } from '../../models/ask-model.ts';
import { type CallLimit, limitAdvice } from '../../models/budget.ts';
import { type Pricing, quote, unpricedAdvice, usefulAnswer, withKnownPrices } from '../spend/quote.ts';

export interface Purchase {
  candidates: readonly Candidate[];
  inputTokens: number;
  /** They may search the web. */
  webSearch?: WebSearch;
  /** How many calls, this one included, still want a part of what is left. */
  sharers: number;
}

export interface Grant {
  /** The most that the answer may cost in tokens; absent: no limit was set. */
  maxOutputTokens?: number;
  /** Says what was really paid. Undefined: nobody knows; then what was put aside counts. */
  settle(paidUsd: number | undefined): void;
}

/** The money of one call: shared out before a model is asked, so that each of several gets a part. */
export interface Purse {
  take(purchase: Purchase): Grant | { refused: string; next: string };
}

export function createPurse(limit: CallLimit | undefined, pricing: Pricing): Purse {
  let spent = 0;
  return {
    take({ candidates, inputTokens, webSearch, sharers }) {
      if (limit === undefined) return { settle: () => {} };
      const { fixed, perToken, unpriced } = quote(
        withKnownPrices(candidates, pricing),
        inputTokens,
        pricing,
        webSearch,
      );
      if (unpriced) {
        return {
          refused: `No price is known for ${unpriced.id}, so ${limit.name} can't be kept.`,
          next: unpricedAdvice,
        };
      }
      const free = limit.usd - spent;
      const { least, most: enough } = usefulAnswer(candidates);
      const affordable = perToken === 0 ? enough : Math.floor((free / sharers - fixed) / perToken);
      const maxOutputTokens = Math.min(enough, Math.max(least, affordable));
      const cost = fixed + maxOutputTokens * perToken;
      if (cost > free) {
        const left = dollars(Math.max(0, free));
        return {
          refused: `It would cost about ${dollars(cost)}; ${left} of ${limit.name} ${dollars(limit.usd)} is left.`,
          next: limitAdvice[limit.name],
        };
      }
      spent += cost;
      return {
        maxOutputTokens,
        settle(paidUsd) {
          if (paidUsd !== undefined) spent += paidUsd - cost;
        },
      };
    },
  };
}

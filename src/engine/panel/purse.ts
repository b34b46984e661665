import type { Candidate } from '../../domain/model.ts';

export interface Purchase {
  candidates: readonly Candidate[];
  inputTokens: number;
  /** How many calls, this one included, still want a part of what is left. */
  sharers: number;
}

export interface Grant {
  /** The most that the answer may cost in tokens; absent: no limit was set. */
  maxOutputTokens?: number;
  /** Says what was really paid. Undefined: nobody knows; then what was put aside counts. */
  settle(paidUsd: number | undefined): void;
}

/** The money of one call: put aside before a model is asked, so that answers under way can't exceed it together. */
export interface Purse {
  take(purchase: Purchase): Grant | { refused: string };
}

/** Tokens of an answer below which asking is of no use, and that it never needs more than; thinking counts. */
const answers = { plain: { least: 1_000, most: 4_000 }, reasoning: { least: 3_000, most: 12_000 } };

const dollars = (amount: number) => `$${amount.toFixed(amount < 0.1 ? 4 : 2)}`;

export function createPurse(limitUsd: number | undefined, isLocal: (providerId: string) => boolean): Purse {
  let spent = 0;
  return {
    take({ candidates, inputTokens, sharers }) {
      if (limitUsd === undefined) return { settle: () => {} };
      const priced = candidates.filter(({ model }) => model.price || !isLocal(model.provider));
      const unknown = priced.find(({ model }) => !model.price);
      if (unknown) return { refused: `No price is known for ${unknown.model.id}, so max_cost_usd can't be kept.` };
      const free = limitUsd - spent;
      const most = (price: (candidate: Candidate) => number) => Math.max(0, ...priced.map(price)) / 1_000_000;
      const fixed = most(({ model, thinkingBudget = 0 }) => {
        // Of what goes in, all may have to be written to the vendor's cache.
        const dearest = Math.max(model.price?.in ?? 0, model.price?.cacheWrite ?? 0);
        return inputTokens * dearest + thinkingBudget * (model.price?.out ?? 0);
      });
      const perToken = most(({ model }) => model.price?.out ?? 0);
      const { least, most: enough } = candidates.some(thinks) ? answers.reasoning : answers.plain;
      const affordable = perToken === 0 ? enough : Math.floor((free / sharers - fixed) / perToken);
      const maxOutputTokens = Math.min(enough, Math.max(least, affordable));
      const cost = fixed + maxOutputTokens * perToken;
      if (cost > free) {
        const left = dollars(Math.max(0, free));
        return {
          refused: `It would cost about ${dollars(cost)}; ${left} of max_cost_usd ${dollars(limitUsd)} is left.`,
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

/** A budget for thinking is counted by itself; without one, thinking comes out of the answer's room. */
function thinks({ model, effort, thinkingBudget }: Candidate): boolean {
  return model.reasoning && effort !== 'none' && thinkingBudget === undefined;
}

import type { Price } from './model.ts';

/** Tokens of one call. `input` counts everything that was sent, cached or not. */
export interface Usage {
  input: number;
  /** Everything that was generated, reasoning included. */
  output: number;
  reasoning: number;
  cacheRead: number;
  cacheWrite: number;
}

export const noUsage: Usage = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
  };
}

/** US dollars, or undefined when the model has no known price. */
export function costOf(usage: Usage, price: Price | undefined): number | undefined {
  if (!price) return undefined;
  const fresh = Math.max(0, usage.input - usage.cacheRead - usage.cacheWrite);
  const total =
    fresh * price.in +
    usage.cacheRead * (price.cacheRead ?? price.in) +
    usage.cacheWrite * (price.cacheWrite || price.in) +
    usage.output * price.out;
  return total / 1_000_000;
}

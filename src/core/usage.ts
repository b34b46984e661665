import { addFees, type Fees, feesUsd } from '../domain/fees.ts';
import type { ThreadId } from './ids.ts';
import type { Price, Rates } from './model.ts';

/** Tokens of one call. `input` counts everything that was sent, cached or not. */
export interface Usage {
  input: number;
  /** Everything that was generated, reasoning included. */
  output: number;
  reasoning: number;
  cacheRead: number;
  cacheWrite: number;
  /** The part of `cacheWrite` that the vendor keeps for an hour; absent: nothing. */
  cacheWriteHour?: number;
  /** What the vendor charges for beside tokens; absent: nothing. */
  fees?: Fees;
}

export const noUsage: Usage = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };

export function addUsage(a: Usage, b: Usage): Usage {
  const hour = (a.cacheWriteHour ?? 0) + (b.cacheWriteHour ?? 0);
  const fees = addFees(a.fees, b.fees);
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    ...(hour > 0 && { cacheWriteHour: hour }),
    ...(fees && { fees }),
  };
}

/** The rates that hold for an input of this many tokens. */
export function ratesFor(price: Price, inputTokens: number): Rates {
  return price.tiers?.findLast(({ above }) => inputTokens > above) ?? price;
}

/** US dollars for tokens and fees, or undefined when the model has no known price. */
export function costOf(usage: Usage, price: Price | undefined): number | undefined {
  if (!price) return undefined;
  const rates = ratesFor(price, usage.input);
  const { input, cacheRead, cacheWrite, cacheWriteHour = 0, output } = usage;
  const write = rates.cacheWrite || rates.in;
  const total =
    Math.max(0, input - cacheRead - cacheWrite) * rates.in +
    cacheRead * (rates.cacheRead ?? rates.in) +
    Math.max(0, cacheWrite - cacheWriteHour) * write +
    cacheWriteHour * (rates.cacheWriteHour ?? write) +
    output * rates.out;
  return total / 1_000_000 + feesUsd(usage.fees);
}

/** What one question to a model came to, as the ledger takes it. */
export interface SpendEntry {
  /** Epoch milliseconds. */
  at: number;
  owner: string;
  tool: string;
  provider: string;
  model: string;
  /** Absent for calls without one. */
  thread?: ThreadId;
  usage: Usage;
  /** US dollars; absent: nobody knows. */
  costUsd?: number;
}

/** The sum of all questions of one day with the same owner, tool, model and thread. */
export interface SpendRow extends Omit<SpendEntry, 'at' | 'costUsd'> {
  /** `2026-01-31`, in UTC. */
  day: string;
  calls: number;
  /** Calls among them whose cost nobody knows; `costUsd` is the sum of the others. */
  unpriced: number;
  costUsd: number;
}

/** The day of the ledger that a time belongs to. */
export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

export const spendKeys = ['day', 'provider', 'model', 'tool', 'thread'] as const;
export type SpendKey = (typeof spendKeys)[number];

/** Rows of the ledger that have something in common, added up. */
export interface SpendSum extends Pick<SpendRow, 'calls' | 'unpriced' | 'usage' | 'costUsd'> {
  /** What they have in common; a model stands as `provider:model`, calls without a thread as `none`. */
  key: string;
}

/** Sums by one of the ledger's columns: days in their order, anything else the dearest first. */
export function spendBy(rows: readonly SpendRow[], by: SpendKey): SpendSum[] {
  const sums = [...Map.groupBy(rows, row => keyOf(row, by))].map(([key, group]) => ({ key, ...spendTotal(group) }));
  return sums.sort((a, b) => (by === 'day' ? 0 : b.costUsd - a.costUsd) || (a.key < b.key ? -1 : 1));
}

export function spendTotal(rows: readonly SpendRow[]): Omit<SpendSum, 'key'> {
  return rows.reduce<Omit<SpendSum, 'key'>>(
    (sum, { calls, unpriced, usage, costUsd }) => ({
      calls: sum.calls + calls,
      unpriced: sum.unpriced + unpriced,
      usage: addUsage(sum.usage, usage),
      costUsd: sum.costUsd + costUsd,
    }),
    { calls: 0, unpriced: 0, usage: noUsage, costUsd: 0 },
  );
}

function keyOf(row: SpendRow, by: SpendKey): string {
  return by === 'model' ? `${row.provider}:${row.model}` : (row[by] ?? 'none');
}

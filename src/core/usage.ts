import type { ThreadId } from './ids.ts';
import type { JsonObject } from './json.ts';
import type { Price, Rates } from './model.ts';

/** What vendors charge for beside the tokens of an answer, and how it is counted. */
export const feeUnits = { web_search: 'searches', cache_storage: 'token-hours', embedding: 'tokens' } as const;

/** What is charged for in addition to tokens. */
export type FeeKind = keyof typeof feeUnits;

export const feeKinds: readonly FeeKind[] = ['web_search', 'cache_storage', 'embedding'];

/** Uses of one kind together. */
export type Fee = {
  /** In the unit of its kind. */
  amount: number;
  /** US dollars for those whose price is known. */
  usd: number;
  /** The part of `amount` whose price nobody knows; absent: none. */
  unpriced?: number;
};

/** By kind; a kind that was not used is left out. */
export type Fees = Partial<Record<FeeKind, Fee>>;

export function addFees(a: Fees | undefined, b: Fees | undefined): Fees | undefined {
  if (!a || !b) return a ?? b;
  const sums = feeKinds.flatMap((kind): [FeeKind, Fee][] => {
    const [one, other] = [a[kind], b[kind]];
    const sum = one && other ? sumOf(one, other) : (one ?? other);
    return sum ? [[kind, sum]] : [];
  });
  return Object.fromEntries(sums);
}

function sumOf(a: Fee, b: Fee): Fee {
  const unpriced = (a.unpriced ?? 0) + (b.unpriced ?? 0);
  return { amount: a.amount + b.amount, usd: a.usd + b.usd, ...(unpriced > 0 && { unpriced }) };
}

/** US dollars for all fees whose price is known. */
export const feesUsd = (fees: Fees | undefined): number =>
  feeKinds.reduce((sum, kind) => sum + (fees?.[kind]?.usd ?? 0), 0);

/** What was spent on one kind of thing. */
export interface KindSum extends Fee {
  /** `answers`: tokens that models read and wrote. */
  kind: 'answers' | FeeKind;
  /** What `amount` counts. */
  unit: string;
}

/** What is needed of a row of the ledger. */
type Spent = Pick<SpendRow, 'calls' | 'unpriced' | 'costUsd'> & { usage: Pick<Usage, 'input' | 'output' | 'fees'> };

/** The sums of the ledger by what was paid for, answers first; kinds that were not used are left out. */
export function spendByKind(rows: readonly Spent[]): KindSum[] {
  const fees = rows.reduce<Fees | undefined>((sum, { usage }) => addFees(sum, usage.fees), undefined);
  // Whether a model was asked; what else vendors do uses no tokens of a model.
  const answered = rows.filter(({ calls, usage }) => calls > 0 && (usage.input + usage.output > 0 || !usage.fees));
  const total = (of: (row: Spent) => number) => answered.reduce((sum, row) => sum + of(row), 0);
  const paid = total(({ costUsd, usage }) => costUsd - feesUsd(usage.fees));
  const unpriced = total(row => row.unpriced);
  const answers: KindSum = {
    kind: 'answers',
    unit: 'calls',
    amount: total(({ calls }) => calls),
    usd: Math.max(0, paid),
    ...(unpriced > 0 && { unpriced }),
  };
  return [
    ...(answered.length > 0 ? [answers] : []),
    ...feeKinds.flatMap((kind): KindSum[] => {
      const fee = fees?.[kind];
      return fee ? [{ kind, unit: feeUnits[kind], ...fee }] : [];
    }),
  ];
}

/** What it cost as far as that is known: nothing is not what has no known price. */
export const knownUsd = ({ amount, usd, unpriced = 0 }: Fee): number | undefined =>
  unpriced < amount ? usd : undefined;

/** A fee as replies tell it: what nobody knows the price of is said to be so, never to cost nothing. */
export function feeDocument({ unit, ...fee }: Fee & Pick<KindSum, 'unit'>): JsonObject {
  const { amount, unpriced = 0 } = fee;
  const usd = knownUsd(fee);
  return {
    [unit]: Number(amount.toFixed(3)),
    cost_usd: usd === undefined ? undefined : roundedUsd(usd),
    not_priced: unpriced > 0 ? Number(unpriced.toFixed(3)) : undefined,
  };
}

/** One line for people: `3 searches`, `1,234 token-hours, not priced`. */
export function kindWords({ amount, unit, unpriced = 0 }: KindSum): string {
  const count = Math.round(amount).toLocaleString('en-US');
  const some = unpriced < amount ? `${Math.round(unpriced).toLocaleString('en-US')} of them not priced` : 'not priced';
  return unpriced > 0 ? `${count} ${unit}, ${some}` : `${count} ${unit}`;
}

/** Tokens of one call. `input` counts everything that was sent, cached or not. */
export interface Usage {
  /** Everything that was sent, cached or not. */
  input: number;
  /** Everything that was generated, reasoning included. */
  output: number;
  /** The part of `output` that was thinking; 0 where the vendor does not report it. */
  reasoning: number;
  /** The part of `input` that came out of the vendor's cache. */
  cacheRead: number;
  /** The part of `input` that was put into the vendor's cache. */
  cacheWrite: number;
  /** The part of `cacheWrite` that the vendor keeps for an hour; absent: nothing. */
  cacheWriteHour?: number;
  /** What the vendor charges for in addition to tokens; absent: nothing. */
  fees?: Fees;
  /** Of the questions counted here, those whose vendor did not tell all counts, so that some are estimated; absent: none. */
  estimated?: number;
}

/** Shared by all that count from nothing, so that nobody may write to it. */
export const noUsage: Readonly<Usage> = Object.freeze({
  input: 0,
  output: 0,
  reasoning: 0,
  cacheRead: 0,
  cacheWrite: 0,
});

export function addUsage(a: Usage, b: Usage): Usage {
  const hour = (a.cacheWriteHour ?? 0) + (b.cacheWriteHour ?? 0);
  const fees = addFees(a.fees, b.fees);
  const estimated = (a.estimated ?? 0) + (b.estimated ?? 0);
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    ...(hour > 0 && { cacheWriteHour: hour }),
    ...(fees && { fees }),
    ...(estimated > 0 && { estimated }),
  };
}

/** The rates that hold for an input of this many tokens. */
export const ratesFor = (price: Price, inputTokens: number): Rates =>
  price.tiers?.findLast(({ above }) => inputTokens > above) ?? price;

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

/** US dollars that caches saved, less what it cost to write and keep them. Sums of many calls are taken at the price of small ones. */
export function savedByCaches({ fees, ...usage }: Usage, { tiers: _, ...price }: Price): number {
  const without = costOf({ ...usage, cacheRead: 0, cacheWrite: 0, cacheWriteHour: 0 }, price) ?? 0;
  return without - (costOf(usage, price) ?? 0) - (fees?.cache_storage?.usd ?? 0);
}

/** What one question to a model came to, as the ledger takes it. */
export interface SpendEntry {
  /** Names it, so that one that is added again, because it is not known whether it was added, counts once. Absent: it is added once. */
  id?: string;
  /** Epoch milliseconds. */
  at: number;
  /** The day that it counts under; absent: that of `at`. */
  day?: string;
  owner: string;
  tool: string;
  provider: string;
  model: string;
  /** Absent for calls without one. */
  thread?: ThreadId;
  usage: Usage;
  /** US dollars; absent: nobody knows. */
  costUsd?: number;
  /** The attempt that it stands for; one in vain is no call. Absent: it is told by other entries. */
  attempt?: { isFailed: boolean; ms: number };
}

/** Attempts at one model within an hour; `ms`: how long those took in all that did not fail. */
export type Tries = Record<'attempts' | 'failures' | 'ms', number>;

/** By hour of a day, in UTC. */
type TriesByHour = Record<string, Tries>;

export const addTries = (a: TriesByHour, b: TriesByHour): TriesByHour => ({
  ...a,
  ...Object.fromEntries(Object.entries(b).map(([hour, tries]) => [hour, sumTries([tries, a[hour] ?? noTries])])),
});

const noTries: Tries = { attempts: 0, failures: 0, ms: 0 };

export const sumTries = (all: readonly Tries[]): Tries =>
  all.reduce(
    (a, b) => ({ attempts: a.attempts + b.attempts, failures: a.failures + b.failures, ms: a.ms + b.ms }),
    noTries,
  );

/** The sum of all questions of one day with the same owner, tool, model and thread. */
export interface SpendRow extends Omit<SpendEntry, 'id' | 'at' | 'costUsd' | 'attempt'> {
  /** `2026-01-31`, in UTC. */
  day: string;
  calls: number;
  /** Calls among them whose cost nobody knows; `costUsd` is the sum of the others. */
  unpriced: number;
  costUsd: number;
  tries?: TriesByHour;
}

/** Milliseconds of a day. */
export const dayMs = 86_400_000;

/** The day of the ledger that a time belongs to. */
export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** Rows are kept for this many days; those of threads that are gone count without the thread after a week. */
export const spendDays = 370;
export const spendThreadDays = 7;

export interface SpendQuery {
  owner: string;
  /** The first day, as `SpendRow` has it. */
  from: string;
  /** Absent: all threads, and calls without one. */
  thread?: ThreadId;
}

/** Whose money is asked for. */
export interface SpendScope {
  owner: string;
  day: string;
  thread?: ThreadId;
  /** Epoch milliseconds: what was reserved until earlier does not count. */
  now: number;
}

/** US dollars that are spent, or reserved for calls under way. */
export interface SpendUsed {
  day: number;
  /** 0 without a thread. */
  thread: number;
  /** What of both is only reserved, and until when (epoch milliseconds), the next to end first; absent: the store does not tell. */
  held?: { usd: number; at: number; thread?: string }[];
}

/** Money reserved before a call, by whichever process makes it. */
export interface SpendHold extends SpendScope {
  id: string;
  usd: number;
  /** Epoch milliseconds: a process that died holds nothing for longer; one that lives reserves it again until later. */
  expiresAt: number;
  /** The most that may be spent and reserved then; absent: any amount. */
  dayLimit?: number;
  threadLimit?: number;
}

/** What calls cost: sums by day, tool, model and thread, and what is reserved for calls under way. Part of every store. */
export interface SpendLedger {
  /**
   * Adds a call to the sums (absent: it cost nothing) and frees what was reserved under `hold`, as one step. An entry whose `id`
   * is one of the newest 16 of its sum changes nothing: it is sent again. `unhurried`: nothing waits for it, as in `FactSwap`.
   */
  add(entry: SpendEntry | undefined, hold?: string, unhurried?: boolean): Promise<void>;
  /**
   * Puts money aside unless a limit would be passed, as one step that no other process can come between. What is put aside under
   * the same `id` is replaced, without a look at the limits.
   */
  hold(hold: SpendHold): Promise<boolean>;
  used(scope: SpendScope): Promise<SpendUsed>;
  /** The sums, oldest day first. */
  rows(query: SpendQuery): Promise<SpendRow[]>;
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
  const paid = rows.filter(({ calls }) => calls > 0);
  const sums = [...Map.groupBy(paid, row => keyOf(row, by))].map(([key, group]) => ({ key, ...spendTotal(group) }));
  return sums.sort((a, b) => (by === 'day' ? 0 : b.costUsd - a.costUsd) || (a.key < b.key ? -1 : 1));
}

export const spendTotal = (rows: readonly SpendRow[]): Omit<SpendSum, 'key'> =>
  rows.reduce<Omit<SpendSum, 'key'>>(
    (sum, { calls, unpriced, usage, costUsd }) => ({
      calls: sum.calls + calls,
      unpriced: sum.unpriced + unpriced,
      usage: addUsage(sum.usage, usage),
      costUsd: sum.costUsd + costUsd,
    }),
    { calls: 0, unpriced: 0, usage: noUsage, costUsd: 0 },
  );

const keyOf = (row: SpendRow, by: SpendKey): string =>
  by === 'model' ? `${row.provider}:${row.model}` : (row[by] ?? 'none');

/** US dollars as people read them, without the sign: two decimals or more, and as many as it takes to see that it is not nothing. */
export function usdText(usd: number): string {
  const size = Math.abs(usd);
  if (!(size > 0)) return '0';
  const digits = size >= 1 ? 2 : size >= 0.001 ? 4 : significant(size, 2);
  return usd.toFixed(digits).replace(/(\.\d\d\d*?)0+$/, '$1');
}

/** `$0.0042`. */
export const dollars = (usd: number): string => `$${usdText(usd)}`;

/** US dollars for programs: without the noise of floating point, and never 0 where something was paid. */
export function roundedUsd(usd: number): number {
  const size = Math.abs(usd);
  return Number(usd.toFixed(size >= 0.001 || size === 0 ? 6 : significant(size, 3)));
}

/** Decimals with so many digits that say something; `toFixed` takes no more than 100. */
const significant = (size: number, count: number): number => Math.min(100, count - 1 - Math.floor(Math.log10(size)));

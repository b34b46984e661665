/** What vendors charge for beside the tokens of an answer, and how it is counted. */
export const feeUnits = {
  web_search: 'searches',
  cache_storage: 'token-hours',
  embedding: 'tokens',
} as const;
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
export function feesUsd(fees: Fees | undefined): number {
  return feeKinds.reduce((sum, kind) => sum + (fees?.[kind]?.usd ?? 0), 0);
}

/** What was spent on one kind of thing. */
export interface KindSum extends Fee {
  /** `answers`: tokens that models read and wrote. */
  kind: 'answers' | FeeKind;
  /** What `amount` counts. */
  unit: string;
}

/** What is needed of a row of the ledger. */
interface Spent {
  calls: number;
  unpriced: number;
  costUsd: number;
  usage: { input: number; output: number; fees?: Fees };
}

/** The sums of the ledger by what was paid for, answers first; kinds that were not used are left out. */
export function spendByKind(rows: readonly Spent[]): KindSum[] {
  const fees = rows.reduce<Fees | undefined>((sum, { usage }) => addFees(sum, usage.fees), undefined);
  const answered = rows.filter(({ usage }) => answersOf(usage));
  const total = (of: (row: Spent) => number) => answered.reduce((sum, row) => sum + of(row), 0);
  const usd = Math.max(
    0,
    total(({ costUsd, usage }) => costUsd - feesUsd(usage.fees)),
  );
  const unpriced = total(row => row.unpriced);
  const answers: KindSum = {
    kind: 'answers',
    unit: 'calls',
    amount: total(({ calls }) => calls),
    usd,
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
export function knownUsd({ amount, usd, unpriced = 0 }: Fee): number | undefined {
  return unpriced < amount ? usd : undefined;
}

/** One line for people: `3 searches`, `1,234 token-hours, not priced`. */
export function kindWords({ amount, unit, unpriced = 0 }: KindSum): string {
  const count = Math.round(amount).toLocaleString('en-US');
  const some = unpriced < amount ? `${Math.round(unpriced).toLocaleString('en-US')} of them not priced` : 'not priced';
  return unpriced > 0 ? `${count} ${unit}, ${some}` : `${count} ${unit}`;
}

/** Whether a model was asked; what else vendors do uses no tokens of a model. */
function answersOf({ input, output, fees }: Spent['usage']): boolean {
  return input + output > 0 || fees === undefined;
}

import { hash } from 'node:crypto';
import { addUsage, dayOf, type SpendEntry, type SpendRow } from '../../core/usage.ts';
import { feesUsd } from '../../domain/fees.ts';

/** Sums of dollars are off by less than this. */
export const rounding = 1e-9;

const dayMs = 24 * 3_600_000;

/** The day that many days before a time. */
export function daysBefore(now: number, days: number): string {
  return dayOf(now - days * dayMs);
}

/** A row with a single call. Where nobody knows what its tokens cost, its fees count all the same. */
export function rowOf({ at, costUsd, ...entry }: SpendEntry): SpendRow {
  const known = costUsd ?? feesUsd(entry.usage.fees);
  return { ...entry, day: dayOf(at), calls: 1, unpriced: costUsd === undefined ? 1 : 0, costUsd: known };
}

/** What tells a row from all others. */
export function keyOf({ owner, day, thread, tool, provider, model }: SpendRow): string {
  return hash('sha256', JSON.stringify([owner, day, thread ?? '', tool, provider, model])).slice(0, 40);
}

export function sumOf(row: SpendRow, other: SpendRow): SpendRow {
  return {
    ...row,
    calls: row.calls + other.calls,
    unpriced: row.unpriced + other.unpriced,
    usage: addUsage(row.usage, other.usage),
    costUsd: row.costUsd + other.costUsd,
  };
}

export function withoutThread({ thread: _, ...row }: SpendRow): SpendRow {
  return row;
}

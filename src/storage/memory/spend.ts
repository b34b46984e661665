import type { ThreadId } from '../../core/ids.ts';
import {
  type SpendHold,
  type SpendLedger,
  type SpendScope,
  type SpendUsed,
  spendDays,
  spendThreadDays,
} from '../../core/spend-ledger.ts';
import type { SpendRow } from '../../core/usage.ts';
import { daysBefore, fits, keyOf, rowOf, sumOf, withoutThread } from '../records.ts';

type Opened = <Result>(run: () => Result) => Promise<Result>;

export interface MemorySpend extends SpendLedger {
  /** Drops old rows, and the threads of those whose thread is not live. */
  prune(now: number, isLive: (thread: ThreadId) => boolean): void;
}

/** The ledger of a store in memory. */
export function memorySpend(opened: Opened): MemorySpend {
  const rows = new Map<string, SpendRow>();
  const holds = new Map<string, SpendHold>();

  function put(row: SpendRow): void {
    const key = keyOf(row);
    const before = rows.get(key);
    rows.set(key, before ? sumOf(before, row) : row);
  }

  function used({ owner, day, thread, now }: SpendScope): SpendUsed {
    const sums: SpendUsed = { day: 0, thread: 0 };
    const count = (each: { owner: string; day: string; thread?: string }, usd: number) => {
      if (each.owner !== owner) return;
      if (each.day === day) sums.day += usd;
      if (thread !== undefined && each.thread === thread) sums.thread += usd;
    };
    for (const row of rows.values()) count(row, row.costUsd);
    for (const hold of holds.values()) if (hold.expiresAt > now) count({ ...hold, day }, hold.usd);
    return sums;
  }

  return {
    add: (entry, hold) =>
      opened(() => {
        if (entry) put(structuredClone(rowOf(entry)));
        if (hold !== undefined) holds.delete(hold);
      }),
    hold: hold =>
      opened(() => {
        if (!fits(hold, used(hold))) return false;
        holds.set(hold.id, { ...hold });
        return true;
      }),
    used: scope => opened(() => used(scope)),
    rows: ({ owner, from, thread }) =>
      opened(() =>
        [...rows.values()]
          .filter(row => row.owner === owner && row.day >= from && (thread === undefined || row.thread === thread))
          .sort((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0))
          .map(row => structuredClone(row)),
      ),
    prune(now, isLive) {
      for (const [id, { expiresAt }] of holds) if (expiresAt <= now) holds.delete(id);
      for (const [key, row] of [...rows]) {
        const nameless = row.thread !== undefined && row.day < daysBefore(now, spendThreadDays) && !isLive(row.thread);
        if (row.day < daysBefore(now, spendDays) || nameless) rows.delete(key);
        if (nameless && row.day >= daysBefore(now, spendDays)) put(withoutThread(row));
      }
    },
  };
}

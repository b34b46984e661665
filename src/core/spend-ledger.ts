import type { ThreadId } from './ids.ts';
import type { SpendEntry, SpendRow } from './usage.ts';

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
  /** The part of both that is only reserved; absent: the store does not tell. */
  held?: Pick<SpendUsed, 'day' | 'thread'>;
}

/** Money reserved before a call, by whichever process makes it. */
export interface SpendHold extends SpendScope {
  id: string;
  usd: number;
  /** Epoch milliseconds: a process that died holds nothing for longer. */
  expiresAt: number;
  /** The most that may be spent and reserved then; absent: any amount. */
  dayLimit?: number;
  threadLimit?: number;
}

/** What calls cost: sums by day, tool, model and thread, and what is reserved for calls under way. Part of every store. */
export interface SpendLedger {
  /**
   * Adds a call to the sums (absent: it cost nothing) and frees what was reserved under `hold`, as one step. `unhurried`:
   * nothing waits for it, as in `FactSwap`.
   */
  add(entry: SpendEntry | undefined, hold?: string, unhurried?: boolean): Promise<void>;
  /** Puts money aside unless a limit would be passed, as one step that no other process can come between. */
  hold(hold: SpendHold): Promise<boolean>;
  used(scope: SpendScope): Promise<SpendUsed>;
  /** The sums, oldest day first. */
  rows(query: SpendQuery): Promise<SpendRow[]>;
}

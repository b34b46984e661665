import type { DatabaseSync } from 'node:sqlite';
import type { SpendEntry, SpendHold, SpendQuery, SpendRow, SpendScope, SpendUsed } from '../../core/usage.ts';
import { spendDays, spendThreadDays } from '../../core/usage.ts';
import { daysBefore, fits, keyOf, rowOf, sealRecord, sumOf, withoutThread } from '../records.ts';
import { type Row, recordOf } from './tables.ts';

/** How many rows one transaction of a prune looks at, so that nobody waits long behind it. */
const step = 500;

/** So many of the newest entries of a sum are known by their IDs. */
const maxIds = 16;

/** One after the other, as the index has them: the rows before a day are found without a look at those since. */
const owners = `
  WITH RECURSIVE owners (owner) AS (
    SELECT min(owner) FROM spend
    UNION ALL SELECT (SELECT min(owner) FROM spend WHERE owner > o.owner) FROM owners o WHERE o.owner IS NOT NULL
  )`;
const before = 'FROM owners o CROSS JOIN spend s ON s.owner = o.owner AND s.day <';

/** Changes of the ledger. Each one expects to run inside a transaction of its caller. */
export function sqliteSpend(db: DatabaseSync) {
  const find = db.prepare('SELECT n, body, seal FROM spend WHERE owner = ? AND day = ? AND thread = ? AND key = ?');
  // A row without a number is a new one.
  const write = db.prepare(
    'INSERT OR REPLACE INTO spend (n, owner, day, thread, key, usd, body, seal) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  );
  const hold = db.prepare(
    'INSERT OR REPLACE INTO spend_holds (id, owner, thread, usd, expires_at) VALUES (?, ?, ?, ?, ?)',
  );
  const free = db.prepare('DELETE FROM spend_holds WHERE id = ?');
  const known = db.prepare('SELECT 1 FROM spend_holds WHERE id = ?');
  const lapsed = db.prepare('DELETE FROM spend_holds WHERE expires_at <= ?');
  const old = db.prepare(`${owners} DELETE FROM spend WHERE n IN (SELECT s.n ${before} ?)`);
  const orphans = db.prepare(
    `${owners} SELECT s.n, body, seal ${before} ? AND thread <> ''
     AND NOT EXISTS (SELECT 1 FROM threads t WHERE t.id = s.thread) LIMIT ${step}`,
  );
  const drop = db.prepare('DELETE FROM spend WHERE n = ?');
  const used = usedOf(db);

  function put(row: SpendRow, id?: string): void {
    const place = [row.owner, row.day, row.thread ?? '', keyOf(row)];
    const found = find.get(...place);
    // A sum that is damaged can't be gone on with: what is known counts from here.
    const before = recordOf(found, 'spend');
    const ids = before?.ids ?? [];
    // An entry is sent again where the answer of its first commit was lost.
    if (id !== undefined && ids.includes(id)) return;
    const sum = before ? sumOf(before.row, row) : row;
    const newest = [...ids, ...(id === undefined ? [] : [id])].slice(-maxIds);
    const { body, seal } = sealRecord({ kind: 'spend', row: sum, ids: newest });
    write.run(found ? Number(found.n) : null, ...place, sum.costUsd, body, seal);
  }

  return {
    addSpend(entry: SpendEntry | undefined, id: string | undefined): void {
      if (entry) put(rowOf(entry), entry.id);
      if (id !== undefined) free.run(id);
    },
    holdSpend(wanted: SpendHold): boolean {
      if (!known.get(wanted.id) && !fits(wanted, used(wanted))) return false;
      const { id, owner, thread, usd, expiresAt } = wanted;
      hold.run(id, owner, thread ?? null, usd, expiresAt);
      return true;
    },
    /** Adds a row as a whole: one that was saved from a damaged file. */
    putSpend: (row: SpendRow): void => put(row),
    pruneSpend(now: number): void {
      lapsed.run(now);
      old.run(daysBefore(now, spendDays));
      for (const found of orphans.all(daysBefore(now, spendThreadDays))) {
        const row = recordOf(found, 'spend')?.row;
        drop.run(Number(found.n));
        if (row) put(withoutThread(row));
      }
    },
  };
}

export function sqliteSpendReads(db: DatabaseSync) {
  const select = db.prepare(
    'SELECT body, seal FROM spend WHERE owner = ?1 AND day >= ?2 AND (?3 IS NULL OR thread = ?3) ORDER BY day, n',
  );
  return {
    spendUsed: usedOf(db),
    spendRows({ owner, from, thread }: SpendQuery): SpendRow[] {
      // A damaged row is missing from the sums; it does not hide the others.
      return select.all(owner, from, thread ?? null).flatMap(row => recordOf(row, 'spend')?.row ?? []);
    },
  };
}

function usedOf(db: DatabaseSync): (scope: SpendScope) => SpendUsed {
  const sum = (from: string) => db.prepare(`SELECT coalesce(sum(usd), 0) AS usd FROM ${from}`);
  const day = sum('spend WHERE owner = ? AND day = ?');
  // Day by day, as the index has them: a thread was worked on in a few of them.
  const thread = db.prepare(
    `WITH RECURSIVE days (day) AS (
       SELECT min(day) FROM spend WHERE owner = ?1
       UNION ALL SELECT (SELECT min(day) FROM spend WHERE owner = ?1 AND day > d.day) FROM days d WHERE d.day IS NOT NULL
     )
     SELECT coalesce(sum(s.usd), 0) AS usd FROM days d JOIN spend s ON s.owner = ?1 AND s.day = d.day AND s.thread = ?2`,
  );
  const holds = db.prepare(
    'SELECT usd, expires_at AS at, thread FROM spend_holds WHERE owner = ? AND expires_at > ? ORDER BY at',
  );
  const usd = (row: Row | undefined) => Number(row?.usd ?? 0);
  return ({ owner, day: ofDay, thread: id, now }) => {
    const held = holds.all(owner, now).map(row => {
      const of = row.thread === null ? {} : { thread: String(row.thread) };
      return { usd: usd(row), at: Number(row.at), ...of };
    });
    const sum = (rows: typeof held) => rows.reduce((total, row) => total + row.usd, 0);
    const ofThread = id === undefined ? 0 : usd(thread.get(owner, id)) + sum(held.filter(row => row.thread === id));
    return { day: usd(day.get(owner, ofDay)) + sum(held), thread: ofThread, held };
  };
}

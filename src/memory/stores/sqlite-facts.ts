import type { DatabaseSync } from 'node:sqlite';
import { isRecord, type Json, type JsonObject } from '../../core/json.ts';
import type { Row } from '../../storage/sqlite/tables.ts';
import type { Fact, FactSwap } from '../../storage/store.ts';

/** Changes of facts. Each one expects to run inside a transaction of its caller. */
export interface SqliteFacts {
  swapFact(swap: FactSwap): boolean;
  dropExpiredFacts(now: number): void;
}

export function sqliteFacts(db: DatabaseSync): SqliteFacts {
  const find = db.prepare('SELECT n FROM facts WHERE key = ? AND expires_at > ?');
  // A replaced row gets a new number, which is the version: AUTOINCREMENT never gives one twice.
  const put = db.prepare('REPLACE INTO facts (key, body, expires_at) VALUES (?, ?, ?)');
  const remove = db.prepare('DELETE FROM facts WHERE key = ?');
  const expired = db.prepare('DELETE FROM facts WHERE expires_at <= ?');
  return {
    swapFact({ key, version, value, expiresAt, now }) {
      if (Number(find.get(key, now)?.n ?? 0) !== version) return false;
      if (value === undefined) remove.run(key);
      else put.run(key, JSON.stringify(value), expiresAt);
      return true;
    },
    dropExpiredFacts: now => void expired.run(now),
  };
}

export interface SqliteFactReads {
  fact(key: string, now: number): Fact | undefined;
  facts(prefix: string, now: number): Map<string, Fact>;
}

export function sqliteFactReads(db: DatabaseSync): SqliteFactReads {
  const find = db.prepare('SELECT n, body FROM facts WHERE key = ? AND expires_at > ?');
  const list = db.prepare(
    'SELECT n, key, body FROM facts WHERE key >= ?1 AND substr(key, 1, length(?1)) = ?1 AND expires_at > ?2 ORDER BY key',
  );
  return {
    fact(key, now) {
      const row = find.get(key, now);
      return row && { value: bodyOf(row), version: Number(row.n) };
    },
    facts(prefix, now) {
      const rows = list.all(prefix, now);
      return new Map(rows.map(row => [String(row.key), { value: bodyOf(row), version: Number(row.n) }]));
    },
  };
}

/** What cannot be read counts as empty: it is replaced by the next change, and nothing but time was lost. */
function bodyOf({ body }: Row): JsonObject {
  try {
    const value: Json = JSON.parse(String(body));
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

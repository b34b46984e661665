import type { DatabaseSync } from 'node:sqlite';
import type { ExchangeId } from '../../core/ids.ts';
import type { ExchangeStatus, StoredTurn, Thread, ThreadHead, Turn, WorkflowState } from '../../core/thread.ts';
import type { Prunable, Unused } from '../store.ts';
import { damaged, type Row, recordOf } from './tables.ts';

/**
 * What was read of rows that never change, so that it need not be read and checked again: keeps as much as fits, and gives up
 * what was not asked for the longest.
 */
export function seenRows<Value>(capacity: number) {
  const kept = new Map<string, { value: Value; size: number }>();
  let total = 0;
  const drop = (key: string) => {
    total -= kept.get(key)?.size ?? 0;
    kept.delete(key);
  };
  return {
    get(key: string): Value | undefined {
      const found = kept.get(key);
      if (!found) return undefined;
      kept.delete(key);
      kept.set(key, found);
      return found.value;
    },
    /** `size` is what it takes in memory, about, in characters. One that is larger than the whole is not kept. */
    keep(key: string, value: Value, size: number): void {
      drop(key);
      if (size > capacity) return;
      kept.set(key, { value, size });
      total += size;
      for (const oldest of kept.keys()) {
        if (total <= capacity) break;
        drop(oldest);
      }
    },
    drop,
  };
}

/** A thread whose time is over, as a condition on `threads`; `endedParameters` fills it in. */
export const ended = '(expires_at <= :now OR (owner = :owner AND updated_at < :since))';

/** The earliest time there is leaves nobody out. */
export function endedParameters(now: number, unused: Unused | undefined): Record<string, string | number> {
  return { ':now': now, ':owner': unused?.owner ?? '', ':since': unused?.since ?? Number.MIN_SAFE_INTEGER };
}

/** Those that go: whose time is over, but for originals of forks that stay. */
const going = `
  WITH RECURSIVE
    kept (n, parent) AS (
      SELECT n, parent FROM threads WHERE NOT ${ended}
      UNION SELECT t.n, t.parent FROM threads t JOIN kept k ON t.id = k.parent
    ),
    going (n) AS (SELECT n FROM threads EXCEPT SELECT n FROM kept)`;

const tables = ['threads', 'origins', 'turns', 'exchanges', 'compactions', 'workflows'];

const rowBytes = tables.map(table => {
  const column = table === 'threads' ? 'n' : 'thread';
  return `(SELECT coalesce(sum(octet_length(body)), 0) FROM ${table} WHERE ${column} IN (SELECT n FROM going))`;
});

/** Counts what a prune would take. */
export function sqlitePrunable(db: DatabaseSync): (now: number, unused?: Unused) => Prunable {
  const threads = db.prepare(
    `${going} SELECT (SELECT count(*) FROM going) AS threads, ${rowBytes.join(' + ')} AS bytes`,
  );
  const blobs = db.prepare(
    `${going}, lost (sha) AS (
       SELECT sha FROM blob_refs WHERE thread IN (SELECT n FROM going)
       EXCEPT SELECT sha FROM blob_refs WHERE thread NOT IN (SELECT n FROM going)
     )
     SELECT count(*) AS blobs, coalesce(sum(octet_length(body)), 0) AS bytes FROM blobs WHERE sha IN (SELECT sha FROM lost)`,
  );
  return (now, unused) => {
    const which = endedParameters(now, unused);
    const rows = threads.get(which);
    const texts = blobs.get(which);
    return {
      threads: Number(rows?.threads),
      blobs: Number(texts?.blobs),
      bytes: Number(rows?.bytes) + Number(texts?.bytes),
    };
  };
}

/** Characters of turns that are remembered, over all threads. */
const rememberedChars = 16_000_000;

/** A thread's turns as they were read and found whole; they are frozen, since calls share them. */
interface SeenThread {
  /** Of the row that says where the thread begins: another thread under the same number has another. */
  seal: string;
  startSeq: number;
  turns: readonly StoredTurn[];
  chars: number;
  exchanges: SeenExchanges;
}

interface SeenExchanges {
  /** The seals of all its exchanges, in the order of their rows: a seal is another when the exchange ended otherwise. */
  seals: string;
  statuses: ReadonlyMap<ExchangeId, ExchangeStatus>;
}

/**
 * Reads what a thread holds beyond its head. Turns never change, so that each is read and its checksum verified once for as
 * long as the file is open here; a later read takes what came since, whoever wrote it.
 */
export function sqliteThreadReader(db: DatabaseSync): (head: ThreadHead, n: number) => Thread {
  const origin = db.prepare('SELECT body, seal FROM origins WHERE thread = ?');
  const newTurns = db.prepare('SELECT body, seal FROM turns WHERE thread = ? AND seq > ? ORDER BY seq');
  const allSeals = db.prepare(
    "SELECT group_concat(seal, ' ') AS seals FROM (SELECT seal FROM exchanges WHERE thread = ? ORDER BY n)",
  );
  const exchangesFrom = db.prepare('SELECT body, seal FROM exchanges WHERE thread = ? ORDER BY n LIMIT -1 OFFSET ?');
  const compactions = db.prepare('SELECT body, seal FROM compactions WHERE thread = ? ORDER BY n');
  const workflows = db.prepare('SELECT tool, body, seal FROM workflows WHERE thread = ? ORDER BY n');
  const seen = seenRows<SeenThread>(rememberedChars);

  function begin({ id }: ThreadHead, n: number): SeenThread {
    const row = origin.get(n);
    const before = seen.get(id);
    if (before && before.seal === row?.seal) return before;
    const startSeq = recordOf(row, 'origin')?.origin.startSeq ?? damaged(id, 'its origin');
    const exchanges = { seals: '', statuses: new Map() };
    return { seal: String(row?.seal), startSeq, turns: [], chars: 0, exchanges };
  }

  /** Only the newest exchanges change, so that what comes before the first other seal is known. */
  function exchangesOf({ id }: ThreadHead, n: number, before: SeenExchanges): SeenExchanges {
    const seals = String(allSeals.get(n)?.seals ?? '');
    if (seals === before.seals) return before;
    const statuses = new Map(before.statuses);
    for (const row of exchangesFrom.all(n, sealsInCommon(before.seals, seals))) {
      const record = recordOf(row, 'exchange');
      if (record?.thread !== id) return damaged(id, 'the record of one of its exchanges');
      statuses.set(record.id, record.status);
    }
    return { seals, statuses };
  }

  function turnsOf(head: ThreadHead, n: number): StoredTurn[] {
    const { id } = head;
    const before = begin(head, n);
    const exchanges = exchangesOf(head, n, before.exchanges);
    const withStatus = (turn: Turn): StoredTurn => {
      const status = exchanges.statuses.get(turn.exchange) ?? damaged(id, `turn ${turn.seq}`);
      return Object.freeze({ ...turn, status });
    };
    const turns =
      exchanges === before.exchanges
        ? [...before.turns]
        : before.turns.map(turn => (exchanges.statuses.get(turn.exchange) === turn.status ? turn : withStatus(turn)));
    let { chars } = before;
    for (const row of newTurns.all(n, before.startSeq + turns.length)) {
      const seq = before.startSeq + turns.length + 1;
      const record = recordOf(row, 'turn');
      if (record?.thread !== id || record.turn.seq !== seq) return damaged(id, `turn ${seq}`);
      turns.push(withStatus(frozen(record.turn)));
      chars += sizeOf(row);
    }
    const seq = before.startSeq + turns.length;
    if (seq !== head.seq) {
      seen.drop(id);
      return damaged(id, `turn ${seq + 1}`);
    }
    seen.keep(id, { ...before, turns: [...turns], chars, exchanges }, chars);
    return turns;
  }

  return (head, n) => {
    const { id } = head;
    const states: Record<string, WorkflowState> = Object.create(null);
    for (const row of workflows.all(n)) {
      const record = recordOf(row, 'workflow');
      if (record?.thread !== id) return damaged(id, `the workflow state of ${String(row.tool)}`);
      states[record.tool] = record.state;
    }
    return {
      ...head,
      turns: turnsOf(head, n),
      compactions: compactions.all(n).map(row => {
        const record = recordOf(row, 'compaction');
        return record?.thread === id ? record.compaction : damaged(id, 'one of its summaries');
      }),
      workflows: { ...states },
    };
  };
}

function sealsInCommon(before: string, now: string): number {
  const [old, current] = [before.split(' '), now.split(' ')];
  const at = current.findIndex((seal, index) => seal !== old[index]);
  return at === -1 ? current.length : at;
}

function sizeOf({ body }: Row): number {
  return typeof body === 'string' ? body.length : 0;
}

function frozen(turn: Turn): Turn {
  const left: unknown[] = [turn];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value !== 'object' || value === null) continue;
    Object.freeze(value);
    left.push(...Object.values(value));
  }
  return turn;
}

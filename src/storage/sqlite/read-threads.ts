import type { DatabaseSync } from 'node:sqlite';
import type { ExchangeId } from '../../core/ids.ts';
import type {
  Compaction,
  ExchangeEnd,
  ExchangeStatus,
  StoredTurn,
  Thread,
  ThreadHead,
  Turn,
  WorkflowState,
} from '../../core/thread.ts';
import type { Prunable, Unused } from '../store.ts';
import { damaged, recordOf } from './tables.ts';

/** What was read of rows that never change, so that none is checked again; gives up what was not asked for the longest. */
export function seenRows<Value extends { bytes: number }>(capacity: number) {
  const kept = new Map<string, Value>();
  let total = 0;

  function take(key: string): Value | undefined {
    const found = kept.get(key);
    kept.delete(key);
    total -= found?.bytes ?? 0;
    return found;
  }

  /** One that is larger than the whole capacity is not kept. */
  function keep(key: string, value: Value): void {
    take(key);
    if (value.bytes > capacity) return;
    kept.set(key, value);
    total += value.bytes;
    for (const oldest of kept.keys()) {
      if (total <= capacity) break;
      take(oldest);
    }
  }

  return {
    keep,
    get(key: string): Value | undefined {
      const found = take(key);
      if (found) keep(key, found);
      return found;
    },
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

const rowBytes = ['records', 'workflows'].map(
  table => `(SELECT coalesce(sum(octet_length(body)), 0) FROM ${table} WHERE thread IN (SELECT n FROM going))`,
);

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

/** Bytes of records that are remembered, over all threads; those of deleted ones stay until others take their place. */
const rememberedBytes = 4_000_000;

/** A thread's records as they were read and found whole; the turns are frozen, since calls share them. */
interface SeenThread {
  /** The first record, which says where the thread begins: a thread that was removed and came again has another. */
  seal: string;
  startSeq: number;
  /** The newest record that was read. */
  last: number;
  turns: readonly StoredTurn[];
  ends: ReadonlyMap<ExchangeId, ExchangeEnd>;
  compactions: readonly Compaction[];
  bytes: number;
}

/** Reads what a thread holds beyond its head: each record once, for records are only added, whoever writes them. */
export function sqliteThreadReader(db: DatabaseSync): (head: ThreadHead, thread: number) => Thread {
  const origin = db.prepare('SELECT n, body, seal FROM records WHERE thread = ? ORDER BY n LIMIT 1');
  const newRecords = db.prepare(
    "SELECT n, kind, body, seal FROM records WHERE thread = ? AND n > ? AND kind <> 'head' ORDER BY n",
  );
  const workflows = db.prepare('SELECT tool, body, seal FROM workflows WHERE thread = ? ORDER BY n');
  const seen = seenRows<SeenThread>(rememberedBytes);

  function begin({ id }: ThreadHead, thread: number): SeenThread {
    const row = origin.get(thread);
    const before = seen.get(id);
    if (before && before.seal === row?.seal) return before;
    const startSeq = recordOf(row, 'origin')?.origin.startSeq ?? damaged(id, 'its origin');
    const nothing = { turns: [], ends: new Map(), compactions: [], bytes: 0 };
    return { seal: String(row?.seal), startSeq, last: Number(row?.n), ...nothing };
  }

  function refresh(head: ThreadHead, thread: number): SeenThread {
    const { id } = head;
    const before = begin(head, thread);
    let { last, bytes } = before;
    const found: Turn[] = [];
    const ends = new Map(before.ends);
    const compactions = [...before.compactions];
    for (const row of newRecords.all(thread, before.last)) {
      const record = recordOf(row);
      // A damaged turn leaves a gap.
      if (record?.kind === 'turn' && record.thread === id) found.push(frozen(record.turn));
      else if (record?.kind === 'exchange' && record.thread === id) ends.set(record.id, record);
      else if (record?.kind === 'compaction' && record.thread === id) compactions.push(record.compaction);
      else if (row.kind !== 'turn') return damaged(id, 'one of its records');
      last = Number(row.n);
      bytes += Buffer.byteLength(String(row.body));
    }
    // Those that were saved from a damaged file stand there in another order.
    const added = found.toSorted((a, b) => a.seq - b.seq);
    const nextSeq = before.startSeq + before.turns.length + 1;
    const gap = added.findIndex(({ seq }, at) => seq !== nextSeq + at);
    const end = nextSeq + (gap === -1 ? added.length : gap);
    if (gap !== -1 || end !== head.seq + 1) return damaged(id, `turn ${end}`);
    if (last === before.last) return before;
    const withStatus = (turn: Turn, known?: ExchangeStatus): StoredTurn | undefined => {
      const { status, attempts } = ends.get(turn.exchange) ?? { status: 'pending' };
      return status === known ? undefined : Object.freeze({ ...turn, status, ...(attempts && { attempts }) });
    };
    const turns = before.turns.map(turn => withStatus(turn, turn.status) ?? turn);
    turns.push(...added.flatMap(turn => withStatus(turn) ?? []));
    const now = { ...before, last, turns, ends, compactions, bytes };
    seen.keep(id, now);
    return now;
  }

  return (head, thread) => {
    const { id } = head;
    const states: Record<string, WorkflowState> = Object.create(null);
    for (const row of workflows.all(thread)) {
      const record = recordOf(row, 'workflow');
      if (record?.thread !== id) return damaged(id, `the workflow state of ${String(row.tool)}`);
      states[record.tool] = record.state;
    }
    const { turns, compactions } = refresh(head, thread);
    return { ...head, turns: [...turns], compactions: [...compactions], workflows: { ...states } };
  };
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

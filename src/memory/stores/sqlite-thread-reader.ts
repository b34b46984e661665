import type { DatabaseSync } from 'node:sqlite';
import type { ExchangeId } from '../../domain/ids.ts';
import type { ExchangeStatus, StoredTurn, Thread, ThreadHead, Turn, WorkflowState } from '../../domain/thread.ts';
import { seenRows } from './seen-rows.ts';
import { damaged, type Row, recordOf } from './sqlite-rows.ts';

/** Characters of turns that are remembered, over all threads. */
const rememberedChars = 16_000_000;

/** The turns of a thread as they were read and found whole; they are frozen, since calls share them. */
interface SeenThread {
  /** Of the row that says where the thread begins: another thread under the same number has another. */
  seal: string;
  startSeq: number;
  turns: readonly Turn[];
  chars: number;
  /** By the number of the row; its seal tells whether the exchange ended otherwise since. */
  exchanges: ReadonlyMap<number, { seal: string; id: ExchangeId; status: ExchangeStatus }>;
}

/**
 * Reads what a thread holds beyond its head. Turns never change, so that each is read and its checksum verified once for as
 * long as the file is open here; a later read takes what came since, whoever wrote it.
 */
export function sqliteThreadReader(db: DatabaseSync): (head: ThreadHead, n: number) => Thread {
  const origin = db.prepare('SELECT body, seal FROM origins WHERE thread = ?');
  const newTurns = db.prepare('SELECT body, seal FROM turns WHERE thread = ? AND seq > ? ORDER BY seq');
  const exchangeSeals = db.prepare('SELECT n, seal FROM exchanges WHERE thread = ? ORDER BY n');
  const exchange = db.prepare('SELECT body, seal FROM exchanges WHERE n = ?');
  const compactions = db.prepare('SELECT body, seal FROM compactions WHERE thread = ? ORDER BY n');
  const workflows = db.prepare('SELECT tool, body, seal FROM workflows WHERE thread = ? ORDER BY n');
  const seen = seenRows<SeenThread>(rememberedChars);

  function begin({ id }: ThreadHead, n: number): SeenThread {
    const row = origin.get(n);
    const before = seen.get(id);
    if (before && before.seal === row?.seal) return before;
    const startSeq = recordOf(row, 'origin')?.origin.startSeq ?? damaged(id, 'its origin');
    return { seal: String(row?.seal), startSeq, turns: [], chars: 0, exchanges: new Map() };
  }

  function exchangesOf({ id }: ThreadHead, n: number, before: SeenThread['exchanges']): SeenThread['exchanges'] {
    const found = new Map<number, { seal: string; id: ExchangeId; status: ExchangeStatus }>();
    for (const row of exchangeSeals.all(n)) {
      const number = Number(row.n);
      const known = before.get(number);
      if (known && known.seal === row.seal) {
        found.set(number, known);
        continue;
      }
      const record = recordOf(exchange.get(number), 'exchange');
      if (record?.thread !== id) return damaged(id, 'the record of one of its exchanges');
      found.set(number, { seal: String(row.seal), id: record.id, status: record.status });
    }
    return found;
  }

  function turnsOf(head: ThreadHead, n: number): StoredTurn[] {
    const { id } = head;
    const before = begin(head, n);
    const exchanges = exchangesOf(head, n, before.exchanges);
    const turns = [...before.turns];
    let { chars } = before;
    for (const row of newTurns.all(n, before.startSeq + turns.length)) {
      const seq = before.startSeq + turns.length + 1;
      const record = recordOf(row, 'turn');
      if (record?.thread !== id || record.turn.seq !== seq) return damaged(id, `turn ${seq}`);
      turns.push(frozen(record.turn));
      chars += sizeOf(row);
    }
    const seq = before.startSeq + turns.length;
    if (seq !== head.seq) {
      seen.drop(id);
      return damaged(id, `turn ${seq + 1}`);
    }
    const statuses = new Map([...exchanges.values()].map(found => [found.id, found.status]));
    const found = turns.map(turn => {
      const status = statuses.get(turn.exchange);
      return status ? { ...turn, status } : damaged(id, `turn ${turn.seq}`);
    });
    seen.keep(id, { ...before, turns, chars, exchanges }, chars);
    return found;
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

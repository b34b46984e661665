import type { DatabaseSync } from 'node:sqlite';
import type { ExchangeId } from '../../core/ids.ts';
import type { ExchangeStatus, StoredTurn, Thread, ThreadHead, Turn, WorkflowState } from '../../core/thread.ts';
import { seenRows } from '../../memory/stores/seen-rows.ts';
import { damaged, type Row, recordOf } from './tables.ts';

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

import type { DatabaseSync } from 'node:sqlite';
import type { ExchangeId, ThreadId } from '../../core/ids.ts';
import type { ExchangeStatus, ThreadHead } from '../../core/thread.ts';
import {
  blobsOfTurns,
  changedHead,
  type HeadState,
  refuseExisting,
  refuseNotLive,
  splitHead,
  tombstoneLifeMs,
} from '../records.ts';
import type { AtOnce, ThreadChange } from '../store.ts';
import { ended, endedParameters } from './read-threads.ts';
import { sqliteSpend } from './spend.ts';
import { damaged, recordOf, type SqliteRows, sqliteFacts, sqliteJobs, sqliteLeases, sqliteRows } from './tables.ts';

/** How many threads one transaction of a prune removes, so that nobody waits long behind it. */
export const pruneStep = 50;

export type SqliteWrites = ReturnType<typeof sqliteWrites>;

type Prune = AtOnce<'prune'>['prune'];

/** The changes of the contract. Each one expects to run inside a transaction of its caller. */
export function sqliteWrites(db: DatabaseSync) {
  const rows = sqliteRows(db);
  const { createJob, endJob, ...jobs } = sqliteJobs(db);
  const { swapFact, dropExpiredFacts } = sqliteFacts(db);
  const { addSpend, holdSpend, pruneSpend } = sqliteSpend(db);
  const find = db.prepare('SELECT n, body, seal FROM threads WHERE id = ?');
  const findLive = db.prepare('SELECT n FROM threads WHERE id = ? AND expires_at > ?');
  const findTombstone = db.prepare('SELECT 1 FROM tombstones WHERE id = ?');
  const dropTombstone = db.prepare('DELETE FROM tombstones WHERE id = ?');
  const findExchange = db.prepare('SELECT body, seal FROM exchanges WHERE thread = ? AND id = ?');

  const statusOf = (thread: number, id: ExchangeId) => recordOf(findExchange.get(thread, id), 'exchange')?.status;

  /** The exchanges that a change touches, with the status each of them has before and after it. */
  function statuses(thread: number, { turns = [], exchange }: ThreadChange) {
    const found = new Map<ExchangeId, { before: ExchangeStatus | undefined; status: ExchangeStatus }>();
    for (const { exchange: id } of [...turns, ...(exchange ? [{ exchange: exchange.id }] : [])]) {
      if (found.has(id)) continue;
      const before = statusOf(thread, id);
      found.set(id, { before, status: exchange?.id === id ? exchange.status : (before ?? 'pending') });
    }
    return found;
  }

  function append(thread: number, head: HeadState, change: ThreadChange): void {
    const { turns = [], blobs = [], workflow, compaction } = change;
    const { id, seq } = head;
    for (const { sha256, text } of blobs) rows.blob(sha256, text);
    for (const turn of turns) rows.turn(thread, id, turn);
    for (const [exchange, { before, status }] of statuses(thread, change)) {
      // Where nothing else became of an exchange, only its new turns are looked at: it may have any number of them.
      rows.exchange(thread, head, exchange, status, before === status ? seq - turns.length : undefined);
    }
    for (const sha of new Set([...blobs.map(blob => blob.sha256), ...blobsOfTurns(turns)])) rows.reference(thread, sha);
    if (workflow) rows.workflow(thread, id, workflow.tool, seq, workflow.state);
    if (compaction) rows.compaction(thread, { kind: 'compaction', thread: id, compaction });
  }

  return {
    create(head: ThreadHead, over?: 'revive'): void {
      if (find.get(head.id) || (!over && findTombstone.get(head.id))) refuseExisting(head.id);
      if (over) dropTombstone.run(head.id);
      rows.thread(...splitHead(head));
    },

    commit(id: ThreadId, change: ThreadChange): number {
      const row = find.get(id);
      if (!row) return refuseNotLive(id);
      const thread = Number(row.n);
      const old = recordOf(row, 'head')?.head ?? damaged(id, 'its head');
      const head = changedHead(old, change);
      append(thread, head, change);
      rows.head(thread, head);
      return head.seq;
    },

    remove(id: ThreadId, now: number): boolean {
      const row = findLive.get(id, now);
      if (!row) return false;
      rows.erase(Number(row.n));
      jobs.dropOfThread(id);
      rows.tombstone({ kind: 'tombstone', id, state: 'deleted', at: now });
      return true;
    },

    prune: pruner(db, rows, now => {
      jobs.dropExpired(now);
      dropExpiredFacts(now);
      pruneSpend(now);
    }),
    createJob,
    endJob,
    swapFact,
    addSpend,
    holdSpend,
    ...sqliteLeases(db),
  };
}

/** Removes at most about `pruneStep` threads and answers how many; fewer than that: nothing is left to remove. */
function pruner(db: DatabaseSync, rows: SqliteRows, dropExpired: (now: number) => void): Prune {
  const expired = db.prepare(
    `SELECT n, body, seal FROM threads t WHERE ${ended}
     AND NOT EXISTS (SELECT 1 FROM threads c WHERE c.parent = t.id) LIMIT ${pruneStep}`,
  );
  const oldTombstones = db.prepare('DELETE FROM tombstones WHERE at <= ?');
  const lapsed = db.prepare('DELETE FROM leases WHERE expires_at <= ?');
  return (now, unused) => {
    const which = endedParameters(now, unused);
    oldTombstones.run(now - tombstoneLifeMs);
    lapsed.run(now);
    dropExpired(now);
    let gone = 0;
    // Again, because a thread that others were forked off may go once they went.
    for (let found = expired.all(which); found.length > 0 && gone < pruneStep; found = expired.all(which)) {
      for (const row of found) {
        const head = recordOf(row, 'head')?.head;
        rows.erase(Number(row.n));
        if (!head) continue;
        const isExpired = head.expiresAt <= now;
        const state = isExpired ? 'expired' : 'deleted';
        rows.tombstone({ kind: 'tombstone', id: head.id, state, at: isExpired ? head.expiresAt : now });
      }
      gone += found.length;
    }
    return gone;
  };
}

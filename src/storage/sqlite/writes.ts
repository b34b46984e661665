import type { DatabaseSync } from 'node:sqlite';
import type { ThreadId } from '../../core/ids.ts';
import { blobsOfTurns, type ThreadHead } from '../../core/thread.ts';
import { changedHead, refuseExisting, refuseNotLive, refuseTakenOver, splitHead, tombstoneLifeMs } from '../records.ts';
import type { AtOnce, ThreadChange } from '../store.ts';
import { ended, endedParameters } from './read-threads.ts';
import { sqliteSpend } from './spend.ts';
import {
  damaged,
  newestRecord,
  recordOf,
  type SqliteRows,
  sqliteFacts,
  sqliteJobs,
  sqliteLeases,
  sqliteRows,
  threadNumber,
} from './tables.ts';
import { headJoin, threadEraser, threadIndex } from './thread-index.ts';

/** How many threads one transaction of a prune removes, so that nobody waits long behind it. */
export const pruneStep = 50;

export type SqliteWrites = ReturnType<typeof sqliteWrites>;

/** The changes of the contract. Each one expects to run inside a transaction of its caller. */
export function sqliteWrites(db: DatabaseSync) {
  const rows = sqliteRows(db);
  const index = threadIndex(db);
  const erase = threadEraser(db);
  const { createJob, endJob, ...jobs } = sqliteJobs(db);
  const { swapFact, dropExpiredFacts } = sqliteFacts(db);
  const { addSpend, holdSpend, pruneSpend } = sqliteSpend(db);
  const { isTaken, ...leases } = sqliteLeases(db);
  const newest = newestRecord(db);
  const findTombstone = db.prepare('SELECT 1 FROM tombstones WHERE id = ?');
  const dropTombstone = db.prepare('DELETE FROM tombstones WHERE id = ?');

  function append(thread: number, id: ThreadId, seq: number, change: ThreadChange): void {
    const { turns = [], blobs = [], exchange, workflow, compaction } = change;
    for (const { sha256, text } of blobs) rows.blob(sha256, text);
    for (const turn of turns) rows.append(thread, { kind: 'turn', thread: id, turn });
    // Without a record it is pending; before the first turn there is none of it.
    const isKnown = exchange?.status === 'pending' && change.baseSeq === 0;
    if (exchange && !isKnown) rows.append(thread, { kind: 'exchange', thread: id, ...exchange });
    for (const sha of new Set([...blobs.map(blob => blob.sha256), ...blobsOfTurns(turns)])) rows.reference(thread, sha);
    if (workflow) rows.workflow(thread, id, workflow.tool, seq, workflow.state);
    if (compaction) rows.append(thread, { kind: 'compaction', thread: id, compaction });
  }

  return {
    create(head: ThreadHead, over?: 'revive'): void {
      const thread = threadNumber(head.id);
      if (newest(thread) || (!over && findTombstone.get(head.id))) refuseExisting(head.id);
      if (over) dropTombstone.run(head.id);
      const [origin, state] = splitHead(head);
      rows.append(thread, { kind: 'origin', origin });
      rows.head(thread, state);
    },

    commit(id: ThreadId, change: ThreadChange): number {
      const thread = threadNumber(id);
      const row = newest(thread);
      if (!row) return refuseNotLive(id);
      const old = recordOf(row, 'head')?.head;
      if (old?.id !== id) return damaged(id, 'its head');
      const { holder, now = change.updatedAt } = change;
      if (holder !== undefined && isTaken(id, holder, now)) return refuseTakenOver(id);
      const head = changedHead(old, change);
      append(thread, id, head.seq, change);
      rows.head(thread, head, Number(row.n));
      return head.seq;
    },

    remove(id: ThreadId, now: number): boolean {
      const thread = threadNumber(id);
      const row = newest(thread);
      const expiresAt = recordOf(row, 'head')?.head.expiresAt ?? Number.POSITIVE_INFINITY;
      if (!row || expiresAt <= now) return false;
      erase(thread);
      jobs.dropOfThread(id);
      rows.tombstone({ kind: 'tombstone', id, state: 'deleted', at: now });
      return true;
    },

    index,
    prune: pruner(db, rows, now => {
      while (index('threads'));
      jobs.dropExpired(now);
      dropExpiredFacts(now);
      pruneSpend(now);
    }),
    createJob,
    endJob,
    swapFact,
    addSpend,
    holdSpend,
    ...leases,
  };
}

/** Removes at most about `pruneStep` threads and answers how many; fewer than that: nothing is left to remove. */
function pruner(db: DatabaseSync, rows: SqliteRows, prepare: (now: number) => void): AtOnce<'prune'>['prune'] {
  const erase = threadEraser(db);
  const expired = db.prepare(
    `SELECT t.n, h.body, h.seal FROM threads t LEFT JOIN ${headJoin} WHERE ${ended}
     AND NOT EXISTS (SELECT 1 FROM threads c WHERE c.parent = t.id) LIMIT ${pruneStep}`,
  );
  const oldTombstones = db.prepare('DELETE FROM tombstones WHERE at <= ?');
  const lapsed = db.prepare('DELETE FROM leases WHERE expires_at <= ?');
  return (now, unused) => {
    const which = endedParameters(now, unused);
    oldTombstones.run(now - tombstoneLifeMs);
    lapsed.run(now);
    prepare(now);
    let gone = 0;
    // Again, because a thread that others were forked off may go once they went.
    for (let found = expired.all(which); found.length > 0 && gone < pruneStep; found = expired.all(which)) {
      for (const row of found) {
        const head = recordOf(row, 'head')?.head;
        erase(Number(row.n));
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

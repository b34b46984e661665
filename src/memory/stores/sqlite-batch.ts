import type { DatabaseSync } from 'node:sqlite';
import type { SqliteWrites } from '../../storage/sqlite/writes.ts';
import type { WriteRequest } from './sqlite-protocol.ts';

export type Outcome = { value: number } | { error: unknown };

export interface Transaction {
  db: DatabaseSync;
  writes: SqliteWrites;
}

/**
 * Runs the requests of one moment in one transaction, so that all of them share one wait for the disk; each in a savepoint
 * of its own, so that one that is refused takes no other with it. Nothing counts before the COMMIT: when that fails, each
 * request is tried alone, because one of them may be too big for what the others would fit into.
 */
export function sqliteBatch(begin: () => Transaction, requests: readonly WriteRequest[]): Outcome[] {
  let open: Transaction;
  try {
    open = begin();
  } catch (error) {
    return requests.map(() => ({ error }));
  }
  try {
    const outcomes = requests.map(request => inSavepoint(open, request));
    open.db.exec('COMMIT');
    return outcomes;
  } catch (error) {
    if (open.db.isTransaction) open.db.exec('ROLLBACK');
    if (requests.length > 1) return requests.flatMap(request => sqliteBatch(begin, [request]));
    return [{ error }];
  }
}

function inSavepoint({ db, writes }: Transaction, request: WriteRequest): Outcome {
  db.exec('SAVEPOINT request');
  try {
    const value = perform(writes, request);
    db.exec('RELEASE request');
    return { value };
  } catch (error) {
    // SQLite ends the whole transaction on some failures of the disk; then the batch is at an end too.
    if (!db.isTransaction) throw error;
    db.exec('ROLLBACK TO request; RELEASE request');
    return { error };
  }
}

function perform(writes: SqliteWrites, request: WriteRequest): number {
  switch (request.op) {
    case 'create':
      writes.create(request.head, request.over);
      return 0;
    case 'commit':
      return writes.commit(request.id, request.change);
    case 'remove':
      return writes.remove(request.id, request.now) ? 1 : 0;
    case 'prune':
      return writes.prune(request.now, request.unused);
    case 'createJob':
      writes.createJob(request.job);
      return 0;
    case 'endJob':
      return writes.endJob(request.id, request.end) ? 1 : 0;
    case 'lease':
      return writes.lease(request.id, request.holder, request.ttlMs, request.now) ? 1 : 0;
    case 'addSpend':
      writes.addSpend(request.entry, request.hold);
      return 0;
    case 'holdSpend':
      return writes.holdSpend(request.hold) ? 1 : 0;
    case 'release':
      writes.release(request.id, request.holder);
      return 0;
    case 'swapFact':
      return writes.swapFact(request.swap) ? 1 : 0;
  }
}

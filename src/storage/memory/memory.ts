import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { wholeChange } from '../../core/concurrency.ts';
import { inputError } from '../../core/errors.ts';
import type { ThreadId } from '../../core/ids.ts';
import type { ThreadHead } from '../../core/thread.ts';
import { closedStore } from '../records.ts';
import { perform } from '../sqlite/client.ts';
import { sqliteReads } from '../sqlite/reader.ts';
import { sqliteSchema } from '../sqlite/schema.ts';
import { type SqliteAccess, sqliteMethods } from '../sqlite/sqlite.ts';
import { newestRecord, openDatabase, recordOf, sqliteRows, threadNumber } from '../sqlite/tables.ts';
import { threadEraser } from '../sqlite/thread-index.ts';
import { sqliteWrites } from '../sqlite/writes.ts';
import type { Store } from '../store.ts';

export interface MemoryStoreOptions {
  /** The thread that was unused for longest goes when there would be more; it reads as expired then. */
  maxThreads?: number;
}

function openMemory() {
  const db = openDatabase(':memory:');
  // Nothing goes to the disk, not even what SQLite sorts by.
  db.exec('PRAGMA temp_store = MEMORY');
  sqliteSchema(db, 'The store in memory');
  return { db, reads: sqliteReads(db, () => undefined), writes: sqliteWrites(db), evict: evictor(db) };
}

/** Makes a thread expire, at the latest at a time, and forgets all but the newest ids of threads that went. */
function evictor(db: DatabaseSync): (id: ThreadId, latest: number, remembered: number) => void {
  const newest = newestRecord(db);
  const erase = threadEraser(db);
  const rows = sqliteRows(db);
  const forget = db.prepare('DELETE FROM tombstones WHERE n <= (SELECT max(n) FROM tombstones) - ?');
  return (id, latest, remembered) => {
    const thread = threadNumber(id);
    const head = recordOf(newest(thread), 'head')?.head;
    if (!head) return;
    erase(thread);
    rows.tombstone({ kind: 'tombstone', id, state: 'expired', at: Math.min(head.expiresAt, latest) });
    forget.run(remembered);
  };
}

/**
 * Threads in this process alone, gone with it: for tests and for calls that must leave nothing on the disk. The thread that was
 * unused for longest goes when there would be more than `maxThreads` (default 1,000).
 */
export function createMemoryStore({ maxThreads = 1000 }: MemoryStoreOptions = {}): Store {
  if (!(maxThreads >= 1))
    throw inputError(`Invalid maxThreads ${maxThreads}: expected 1 or more.`, {
      next: 'Leave it out for 1,000 threads.',
    });
  let opened: ReturnType<typeof openMemory> | undefined;
  let closed = false;
  let changes = 0;
  /** The thread that was unused for longest comes first. */
  const used = new Set<ThreadId>();

  function held() {
    if (closed) throw closedStore();
    opened ??= openMemory();
    return opened;
  }

  const change = <Result>(run: () => Result): Result => wholeChange(held().db, run);

  function use(id: ThreadId): void {
    if (used.delete(id)) used.add(id);
  }

  function makeRoom({ id, createdAt }: ThreadHead): void {
    used.add(id);
    for (const oldest of used) {
      if (used.size <= maxThreads) break;
      used.delete(oldest);
      held().evict(oldest, createdAt, maxThreads * 10);
    }
  }

  const access: SqliteAccess = {
    read: async run => run(held().reads),
    async indexed(names, run) {
      // Step by step, so that other calls have their turn.
      for (const name of names) while (change(() => held().writes.index(name))) await turn();
      return run(held().reads);
    },
    async write(request) {
      changes++;
      return change(() => {
        const value = perform(held().writes, request);
        if (request.op === 'create') makeRoom(request.args[0]);
        else if (request.op === 'commit') use(request.args[0]);
        else if (request.op === 'remove') used.delete(request.args[0]);
        return value;
      });
    },
  };
  const methods = sqliteMethods(access);

  return {
    ...methods,
    kind: 'memory',
    defaultTimeoutHours: 3,
    read(id, now) {
      use(id);
      return methods.read(id, now);
    },
    head(id, now) {
      use(id);
      return methods.head(id, now);
    },
    async prune(now, unused) {
      const gone = await methods.prune(now, unused);
      for (const id of used) if (held().reads.head(id, now).state !== 'live') used.delete(id);
      return gone;
    },
    async mark() {
      held();
      return String(changes);
    },
    async close() {
      closed = true;
      opened?.reads.close();
      opened = undefined;
    },
  };
}

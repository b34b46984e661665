import { hash } from 'node:crypto';
import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { DatabaseSync, DatabaseSyncOptions } from 'node:sqlite';
import { storageError } from '../../core/errors.ts';
import type { JobId, ThreadId } from '../../core/ids.ts';
import type { Job } from '../../core/job.ts';
import type { WorkflowState } from '../../core/thread.ts';
import { markedHolder, processMarks, stateOfHolder } from '../process-mark.ts';
import type { HeadState, RecordOf, StoredRecord } from '../records.ts';
import { damagedJob, endedJob, factValue, openRecord, refuseExistingJob, sealBlob, sealRecord } from '../records.ts';
import type { AtOnce, Fact, JobEnd } from '../store.ts';

/** Loads SQLite with the first database: where Node has none, `createPolylogue` is to be reached, which says so. */
export function openDatabase(path: string, options: DatabaseSyncOptions = {}): DatabaseSync {
  const { DatabaseSync: Database }: typeof import('node:sqlite') = createRequire(import.meta.url)('node:sqlite');
  return new Database(path, options);
}

/** What the path leads to; undefined: nothing that can be reached. Looks at the path only: opening the file would drop SQLite's locks. */
export function statOf(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** The file's inode, or undefined when there is none. */
export const inodeOf = (file: string): number | undefined => statOf(file)?.ino;

export type Row = Record<string, unknown>;

/** What a statement answers that asks for one value. */
export const onlyValue = (db: DatabaseSync, sql: string): unknown => Object.values(db.prepare(sql).get() ?? {})[0];

/** The number by which the tables know a thread, 52 bits: found without a look into the file. */
export const threadNumber = (id: string): number => Number.parseInt(hash('sha256', id).slice(0, 13), 16);

export function damaged(id: ThreadId, what: string): never {
  throw storageError('corrupt', `Thread ${id} is not served: ${what} is damaged on the disk.`, {
    next: 'Begin a new thread, and delete this one; the other threads are not affected.',
    data: { thread: id },
  });
}

/** The record of a row, when it is whole and of the kind that belongs there. */
export function recordOf<Kind extends StoredRecord['kind']>(
  row: Row | undefined,
  kind?: Kind,
): RecordOf<Kind> | undefined {
  if (typeof row?.body !== 'string' || typeof row.seal !== 'string') return undefined;
  return openRecord(row.body, row.seal, kind);
}

export type SqliteRows = ReturnType<typeof sqliteRows>;

/** Writes single rows; whoever calls it sees to the transaction and to what may be written. */
export function sqliteRows(db: DatabaseSync) {
  const add = db.prepare('INSERT INTO records (thread, kind, exchange, body, seal) VALUES (?, ?, ?, ?, ?)');
  const drop = db.prepare('DELETE FROM records WHERE n = ?');
  const setWorkflow = db.prepare(
    `INSERT INTO workflows (thread, tool, body, seal) VALUES (?, ?, ?, ?)
     ON CONFLICT (thread, tool) DO UPDATE SET body = excluded.body, seal = excluded.seal`,
  );
  const dropWorkflow = db.prepare('DELETE FROM workflows WHERE thread = ? AND tool = ?');
  const hasBlob = db.prepare('SELECT 1 FROM blobs WHERE sha = ?');
  const addBlob = db.prepare('INSERT INTO blobs (sha, body, seal) VALUES (?, ?, ?)');
  const addReference = db.prepare(
    'INSERT OR IGNORE INTO blob_refs (thread, sha) SELECT ?, sha FROM blobs WHERE sha = ?',
  );
  const addTombstone = db.prepare('INSERT OR REPLACE INTO tombstones (id, at, body, seal) VALUES (?, ?, ?, ?)');

  function append(thread: number, record: StoredRecord): void {
    const { body, seal } = sealRecord(record);
    const exchange = record.kind === 'turn' ? record.turn.exchange : record.kind === 'exchange' ? record.id : null;
    add.run(thread, record.kind, exchange, body, seal);
  }

  return {
    append,
    /** Comes behind all other records of a change; `before` is the row of the last one. */
    head(thread: number, head: HeadState, before?: number): void {
      append(thread, { kind: 'head', head });
      // Afterwards, so that no record gets a number that another one had before.
      if (before !== undefined) drop.run(before);
    },
    workflow(thread: number, id: ThreadId, tool: string, seq: number, state: WorkflowState | null): void {
      if (state === null) {
        dropWorkflow.run(thread, tool);
        return;
      }
      const { body, seal } = sealRecord({ kind: 'workflow', thread: id, tool, seq, state });
      setWorkflow.run(thread, tool, body, seal);
    },
    blob(sha: string, text: string): void {
      if (hasBlob.get(sha)) return;
      const body = text.toWellFormed();
      addBlob.run(sha, body, sealBlob(sha, body));
    },
    /** Keeps a blob as long as the thread; does nothing when there is no such blob. */
    reference: (thread: number, sha: string) => void addReference.run(thread, sha),
    tombstone(record: RecordOf<'tombstone'>): void {
      const { body, seal } = sealRecord(record);
      addTombstone.run(record.id, record.at, body, seal);
    },
  };
}

/** A thread's newest record, which is its head. */
export function newestRecord(db: DatabaseSync): (thread: number) => Row | undefined {
  const newest = db.prepare('SELECT n, body, seal FROM records WHERE thread = ? ORDER BY n DESC LIMIT 1');
  return thread => newest.get(thread);
}

/** Changes of facts. Each one expects to run inside a transaction of its caller. */
export function sqliteFacts(db: DatabaseSync): AtOnce<'swapFact'> & { dropExpiredFacts(now: number): void } {
  const find = db.prepare('SELECT n FROM facts WHERE key = ? AND expires_at > ?');
  // The version: later than every one of this process, and than those of others by its time; no two are the same.
  const put = db.prepare(
    `REPLACE INTO facts (key, n, expires_at, body)
     VALUES (?1, max(?2 + 1, ?3 * 1024 + abs(random() % 1024)), ?4, ?5) RETURNING n`,
  );
  const remove = db.prepare('DELETE FROM facts WHERE key = ?');
  const expired = db.prepare('DELETE FROM facts WHERE expires_at <= ?');
  let last = 0;
  return {
    swapFact({ key, version, value, expiresAt, now }) {
      if (Number(find.get(key, now)?.n ?? 0) !== version) return false;
      if (value === undefined) remove.run(key);
      else last = Number(put.get(key, last, now, expiresAt, JSON.stringify(value))?.n);
      return true;
    },
    dropExpiredFacts: now => void expired.run(now),
  };
}

export function sqliteFactReads(db: DatabaseSync): AtOnce<'fact' | 'facts'> {
  const find = db.prepare('SELECT n, body FROM facts WHERE key = ? AND expires_at > ?');
  const list = db.prepare(
    'SELECT n, key, body FROM facts WHERE key >= ?1 AND substr(key, 1, length(?1)) = ?1 AND expires_at > ?2 ORDER BY key',
  );
  return {
    fact(key, now) {
      const row = find.get(key, now);
      return row && factOf(row);
    },
    facts: (prefix, now) => new Map(list.all(prefix, now).map(row => [String(row.key), factOf(row)])),
  };
}

const factOf = (row: Row): Fact => ({ value: factValue(String(row.body)), version: Number(row.n) });

/** Changes of jobs. Each one expects to run inside a transaction of its caller. */
export function sqliteJobs(db: DatabaseSync) {
  const find = db.prepare('SELECT id, body, seal FROM jobs WHERE id = ?');
  const add = db.prepare(
    'INSERT INTO jobs (id, owner, thread, created_at, expires_at, body, seal) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const change = db.prepare('UPDATE jobs SET thread = ?, expires_at = ?, body = ?, seal = ? WHERE id = ?');
  const expired = db.prepare('DELETE FROM jobs WHERE expires_at <= ?');
  const ofThread = db.prepare('DELETE FROM jobs WHERE thread = ?');
  return {
    createJob(job: Job): void {
      if (find.get(job.id)) refuseExistingJob(job.id);
      const { body, seal } = sealRecord({ kind: 'job', job });
      add.run(job.id, job.owner, job.thread ?? null, job.createdAt, job.expiresAt, body, seal);
    },
    endJob(id: JobId, end: JobEnd): boolean {
      const row = find.get(id);
      const job = row && endedJob(jobOf(row), end);
      if (!job) return false;
      const { body, seal } = sealRecord({ kind: 'job', job });
      change.run(job.thread ?? null, job.expiresAt, body, seal, id);
      return true;
    },
    dropExpired: (now: number) => void expired.run(now),
    dropOfThread: (thread: ThreadId) => void ofThread.run(thread),
  };
}

export function sqliteJobReads(db: DatabaseSync): AtOnce<'job' | 'jobs'> {
  const find = db.prepare('SELECT id, body, seal FROM jobs WHERE id = ? AND expires_at > ?');
  const ofOwner = db.prepare(
    'SELECT id, body, seal FROM jobs WHERE owner = ? AND expires_at > ? ORDER BY created_at DESC, n DESC LIMIT ?',
  );
  return {
    job(id, now) {
      const row = find.get(id, now);
      return row && jobOf(row);
    },
    jobs: ({ owner, limit, now }) =>
      ofOwner.all(owner, now, Math.max(0, limit)).flatMap(row => {
        // One that is damaged is refused to whoever asks for it; it does not hide the others.
        const job = recordOf(row, 'job')?.job;
        return job && job.id === row.id && job.owner === owner ? [job] : [];
      }),
  };
}

function jobOf(row: Row): Job {
  const job = recordOf(row, 'job')?.job;
  if (job && job.id === row.id) return job;
  throw damagedJob(String(row.id), 'on the disk');
}

/** Leases carry the marks of their processes, so that one of a killed process falls at once where the system can tell. */
export function sqliteLeases(db: DatabaseSync) {
  const marks = processMarks();
  const take = db.prepare(
    `INSERT INTO leases (thread, holder, expires_at) VALUES (?, ?, ?)
     ON CONFLICT (thread) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
     WHERE holder = excluded.holder OR expires_at <= ?`,
  );
  const find = db.prepare('SELECT holder, expires_at FROM leases WHERE thread = ?');
  const giveBack = db.prepare('DELETE FROM leases WHERE thread = ? AND holder = ?');

  return {
    /** Whether somebody else holds it at that time. */
    isTaken(id: string, holder: string, now: number): boolean {
      const row = find.get(id);
      return row !== undefined && row.holder !== markedHolder(marks, holder) && Number(row.expires_at) > now;
    },
    lease(id: string, holder: string, ttlMs: number, now: number): boolean {
      const taken = () => take.run(id, markedHolder(marks, holder), now + ttlMs, now).changes === 1;
      if (taken()) return true;
      const current = String(find.get(id)?.holder);
      if (stateOfHolder(marks, current) !== 'gone') return false;
      giveBack.run(id, current);
      return taken();
    },
    release: (id: string, holder: string) => void giveBack.run(id, markedHolder(marks, holder)),
  };
}

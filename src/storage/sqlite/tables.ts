import { hash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { storageError } from '../../core/errors.ts';
import type { ExchangeId, ThreadId } from '../../core/ids.ts';
import type { Job } from '../../core/job.ts';
import type { ExchangeStatus, Turn, WorkflowState } from '../../core/thread.ts';
import { markedHolder, processMarks, stateOfHolder } from '../process-mark.ts';
import {
  damagedJob,
  endedJob,
  factValue,
  type HeadState,
  type Origin,
  openRecord,
  type RecordOf,
  refuseExistingJob,
  type StoredRecord,
  sealBlob,
  sealRecord,
} from '../records.ts';
import { foldWords } from '../search-words.ts';
import type { AtOnce } from '../store.ts';

export type Row = Record<string, unknown>;

/** The words that a search narrows to: one for all of an owner's turns, one for those of a workspace. */
export function scopeWord(owner: string, workspace?: string): string {
  return workspace === undefined
    ? `o${hash('sha256', owner).slice(0, 32)}`
    : `w${hash('sha256', `${owner}\n${workspace}`).slice(0, 32)}`;
}

export function damaged(id: ThreadId, what: string): never {
  throw storageError('corrupt', `Thread ${id} is not served: ${what} is damaged on the disk.`, {
    next: 'Begin a new thread, and delete this one; the other threads are not affected.',
    data: { thread: id },
  });
}

/** The record of a row, when it is whole and of the kind that belongs there. */
export function recordOf<Kind extends StoredRecord['kind']>(
  row: Row | undefined,
  kind: Kind,
): RecordOf<Kind> | undefined {
  if (typeof row?.body !== 'string' || typeof row.seal !== 'string') return undefined;
  return openRecord(row.body, row.seal, kind);
}

export type SqliteRows = ReturnType<typeof sqliteRows>;

/** Writes single rows; whoever calls it sees to the transaction and to what may be written. */
export function sqliteRows(db: DatabaseSync) {
  const addThread = db.prepare(
    `INSERT INTO threads (id, parent, owner, workspace, updated_at, expires_at, body, seal)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const addOrigin = db.prepare('INSERT INTO origins (thread, body, seal) VALUES (?, ?, ?)');
  const setHead = db.prepare('UPDATE threads SET updated_at = ?, expires_at = ?, body = ?, seal = ? WHERE n = ?');
  const addTurn = db.prepare('INSERT INTO turns (thread, seq, exchange, body, seal) VALUES (?, ?, ?, ?, ?)');
  const setExchange = db.prepare(
    `INSERT INTO exchanges (thread, id, body, seal) VALUES (?, ?, ?, ?)
     ON CONFLICT (thread, id) DO UPDATE SET body = excluded.body, seal = excluded.seal`,
  );
  const addCompaction = db.prepare('INSERT INTO compactions (thread, body, seal) VALUES (?, ?, ?)');
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
  const index = wordIndex(db);

  return {
    /** Answers the number by which the other tables know the thread. */
    thread(origin: Origin, head: HeadState): number {
      const { body, seal } = sealRecord({ kind: 'head', head });
      const { id, parent, owner, workspace } = origin;
      const place = [id, parent?.thread ?? null, owner, workspace];
      const thread = Number(addThread.run(...place, head.updatedAt, head.expiresAt, body, seal).lastInsertRowid);
      const start = sealRecord({ kind: 'origin', origin });
      addOrigin.run(thread, start.body, start.seal);
      return thread;
    },
    head(thread: number, head: HeadState): void {
      const { body, seal } = sealRecord({ kind: 'head', head });
      setHead.run(head.updatedAt, head.expiresAt, body, seal, thread);
    },
    turn(thread: number, id: ThreadId, turn: Turn): void {
      const { body, seal } = sealRecord({ kind: 'turn', thread: id, turn });
      addTurn.run(thread, turn.seq, turn.exchange, body, seal);
    },
    /**
     * Sets the status, and puts the exchange's turns into the search index when it is `done`, else takes them out. `after`: the
     * turns up to this `seq` are in step already.
     */
    exchange(thread: number, head: HeadState, id: ExchangeId, status: ExchangeStatus, after = -1): void {
      const { body, seal } = sealRecord({ kind: 'exchange', thread: head.id, id, status });
      setExchange.run(thread, id, body, seal);
      index(thread, head, { id, done: status === 'done', after });
    },
    compaction(thread: number, record: RecordOf<'compaction'>): void {
      const { body, seal } = sealRecord(record);
      addCompaction.run(thread, body, seal);
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
    erase: eraser(db),
  };
}

/** Keeps the search index of one exchange in step with whether it is done. */
function wordIndex(db: DatabaseSync) {
  const turnsOf = db.prepare('SELECT n FROM turns WHERE thread = ? AND exchange = ?');
  const turnsAfter = db.prepare('SELECT n FROM turns WHERE thread = ? AND seq > ? AND exchange = ?');
  const turn = db.prepare('SELECT body, seal FROM turns WHERE n = ?');
  const indexed = db.prepare('SELECT 1 FROM turn_words WHERE rowid = ?');
  const add = db.prepare('INSERT INTO turn_words (rowid, scope, words) VALUES (?, ?, ?)');
  const drop = db.prepare('DELETE FROM turn_words WHERE rowid = ?');
  return (
    thread: number,
    { owner, workspace }: HeadState,
    { id, done, after }: { id: ExchangeId; done: boolean; after: number },
  ): void => {
    for (const row of after < 0 ? turnsOf.all(thread, id) : turnsAfter.all(thread, after, id)) {
      const n = Number(row.n);
      if (done === (indexed.get(n) !== undefined)) continue;
      if (!done) {
        drop.run(n);
        continue;
      }
      // A damaged turn is found by whoever reads the thread; it is no reason to refuse what is new.
      const words = foldWords(recordOf(turn.get(n), 'turn')?.turn.content ?? '');
      add.run(n, `${scopeWord(owner)} ${scopeWord(owner, workspace)}`, words);
    }
  };
}

/** Removes a thread with all that only it refers to. */
function eraser(db: DatabaseSync): (thread: number) => void {
  const indexed = db.prepare('SELECT t.n FROM turns t JOIN turn_words w ON w.rowid = t.n WHERE t.thread = ?');
  const references = db.prepare('SELECT sha FROM blob_refs WHERE thread = ?');
  const dropThread = db.prepare('DELETE FROM threads WHERE n = ?');
  const dropWords = db.prepare('DELETE FROM turn_words WHERE rowid = ?');
  const dropBlob = db.prepare(
    'DELETE FROM blobs WHERE sha = ?1 AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE sha = ?1)',
  );
  return thread => {
    const turns = indexed.all(thread);
    const blobs = references.all(thread);
    // First, because taking words out of the index needs a little room and a full file has none before this.
    dropThread.run(thread);
    for (const { sha } of blobs) dropBlob.run(String(sha));
    for (const { n } of turns) dropWords.run(Number(n));
  };
}

/** Changes of facts. Each one expects to run inside a transaction of its caller. */
export function sqliteFacts(db: DatabaseSync): AtOnce<'swapFact'> & { dropExpiredFacts(now: number): void } {
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

export function sqliteFactReads(db: DatabaseSync): AtOnce<'fact' | 'facts'> {
  const find = db.prepare('SELECT n, body FROM facts WHERE key = ? AND expires_at > ?');
  const list = db.prepare(
    'SELECT n, key, body FROM facts WHERE key >= ?1 AND substr(key, 1, length(?1)) = ?1 AND expires_at > ?2 ORDER BY key',
  );
  return {
    fact(key, now) {
      const row = find.get(key, now);
      return row && { value: factValue(String(row.body)), version: Number(row.n) };
    },
    facts(prefix, now) {
      const rows = list.all(prefix, now);
      return new Map(
        rows.map(row => [String(row.key), { value: factValue(String(row.body)), version: Number(row.n) }]),
      );
    },
  };
}

interface SqliteJobs extends AtOnce<'createJob' | 'endJob'> {
  dropExpired(now: number): void;
  dropOfThread(thread: ThreadId): void;
}

/** Changes of jobs. Each one expects to run inside a transaction of its caller. */
export function sqliteJobs(db: DatabaseSync): SqliteJobs {
  const find = db.prepare('SELECT id, body, seal FROM jobs WHERE id = ?');
  const add = db.prepare(
    'INSERT INTO jobs (id, owner, thread, created_at, expires_at, body, seal) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const change = db.prepare('UPDATE jobs SET thread = ?, expires_at = ?, body = ?, seal = ? WHERE id = ?');
  const expired = db.prepare('DELETE FROM jobs WHERE expires_at <= ?');
  const ofThread = db.prepare('DELETE FROM jobs WHERE thread = ?');
  return {
    createJob(job) {
      if (find.get(job.id)) refuseExistingJob(job.id);
      const { body, seal } = sealRecord({ kind: 'job', job });
      add.run(job.id, job.owner, job.thread ?? null, job.createdAt, job.expiresAt, body, seal);
    },
    endJob(id, end) {
      const row = find.get(id);
      const job = row && endedJob(jobOf(row), end);
      if (!job) return false;
      const { body, seal } = sealRecord({ kind: 'job', job });
      change.run(job.thread ?? null, job.expiresAt, body, seal, id);
      return true;
    },
    dropExpired: now => void expired.run(now),
    dropOfThread: thread => void ofThread.run(thread),
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

/** A lease that lasts longer than anybody takes one for was taken before the clock was put back. */
const clockSlackMs = 60_000;

/**
 * Leases in the store. Each carries the mark of its process, so that the lease of one that was killed falls at once, where
 * the system can tell, and not only when its time is over.
 */
export function sqliteLeases(db: DatabaseSync): AtOnce<'lease' | 'release'> {
  const marks = processMarks();
  const take = db.prepare(
    `INSERT INTO leases (thread, holder, expires_at) VALUES (?, ?, ?)
     ON CONFLICT (thread) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
     WHERE holder = excluded.holder OR expires_at <= ?`,
  );
  const find = db.prepare('SELECT holder, expires_at FROM leases WHERE thread = ?');
  const giveBack = db.prepare('DELETE FROM leases WHERE thread = ? AND holder = ?');

  /** Whether the one who holds a thread will never give it back. */
  function isAbandoned(holder: string, expiresAt: number, latest: number): boolean {
    const state = stateOfHolder(marks, holder);
    return state === 'gone' || (state === 'unknown' && expiresAt > latest);
  }

  return {
    lease(id, holder, ttlMs, now) {
      const taken = () => take.run(id, markedHolder(marks, holder), now + ttlMs, now).changes === 1;
      if (taken()) return true;
      const row = find.get(id);
      const current = String(row?.holder);
      if (!isAbandoned(current, Number(row?.expires_at), now + ttlMs + clockSlackMs)) return false;
      giveBack.run(id, current);
      return taken();
    },
    release: (id, holder) => void giveBack.run(id, markedHolder(marks, holder)),
  };
}

import type { DatabaseSync } from 'node:sqlite';
import { isAppError } from '../../core/errors.ts';
import type { Sha256, ThreadId } from '../../core/ids.ts';
import type { Clock } from '../../core/ports.ts';
import type { ThreadHead } from '../../core/thread.ts';
import { closedStore, damagedText, goneAs, isListed, sealBlob, skipWarning, wholeHead } from '../records.ts';
import { bestMatch, queryWords } from '../search-words.ts';
import type { ListQuery, Lookup, SearchHit, SearchQuery } from '../store.ts';
import type { SqliteClient } from './client.ts';
import { isDamage, isFailedRead, passesSoon, sqliteFailure } from './failure.ts';
import { lockWaitMs } from './open.ts';
import { sqlitePrunable, sqliteThreadReader } from './read-threads.ts';
import { sqliteSpendReads } from './spend.ts';
import {
  damaged,
  inodeOf,
  newestRecord,
  openDatabase,
  type Row,
  recordOf,
  sqliteFactReads,
  sqliteJobReads,
  threadNumber,
} from './tables.ts';
import { headJoin, type IndexName, scopeWord } from './thread-index.ts';

/** The newest turns that a search looks at, and how many of them in each thread it weighs against each other. */
const searchedTurns = 2_000;

const weighedTurns = 4;

/** How often a process looks through the whole table for a thread of which the index knows nothing: large files take long. */
const maxScans = 20;

export type SqliteReads = ReturnType<typeof sqliteReads>;

const headColumns = 't.n, t.id, h.body, h.seal, o.body AS origin_body, o.seal AS origin_seal';

/** A thread with its newest record and its first one. */
const headTables = `threads t LEFT JOIN ${headJoin}
  LEFT JOIN records o ON o.n = (SELECT min(n) FROM records WHERE thread = t.n)`;

/** All that only reads, and never a row whose checksum is wrong; `onSkip` is told of damaged threads that a list or search leaves out. */
export function sqliteReads(db: DatabaseSync, onSkip: (thread: string) => void) {
  const newest = newestRecord(db);
  const origin = db.prepare('SELECT body, seal FROM records WHERE thread = ? ORDER BY n LIMIT 1');
  const tombstone = db.prepare('SELECT body, seal FROM tombstones WHERE id = ?');
  const blob = db.prepare('SELECT body, seal FROM blobs WHERE sha = ?');
  // Without the index, of which no check at the start tells whether it leads to every record.
  const unindexed = db.prepare('SELECT 1 FROM records NOT INDEXED WHERE thread = ? LIMIT 1');
  let scans = 0;
  const lag = db.prepare('SELECT (SELECT max(n) FROM records) > upto AS lag FROM indexed WHERE name = ?');
  const version = db.prepare('PRAGMA data_version');
  const rest = sqliteThreadReader(db);
  const heads = headLister(db, onSkip);

  /** One state of the database for all the statements of a read, whatever is written meanwhile. */
  function snapshot<Result>(run: () => Result): Result {
    db.exec('BEGIN');
    try {
      return run();
    } finally {
      if (db.isTransaction) db.exec('ROLLBACK');
    }
  }

  function find<Found>(id: ThreadId, now: number, found: (head: ThreadHead, n: number) => Found): Lookup<Found> {
    const thread = threadNumber(id);
    const row = newest(thread);
    if (!row) {
      const gone = tombstone.get(id);
      if (!gone) {
        if (scans++ < maxScans && unindexed.get(thread)) damaged(id, 'the index of its records');
        return { state: 'unknown' };
      }
      const { state, at } = recordOf(gone, 'tombstone') ?? damaged(id, 'the note of its end');
      return goneAs(state, at);
    }
    const start = origin.get(thread);
    const head = headOf({ ...row, id, origin_body: start?.body, origin_seal: start?.seal }) ?? damaged(id, 'its head');
    if (head.expiresAt <= now) return { state: 'expired', expiredAt: head.expiresAt };
    return { state: 'live', value: found(head, thread) };
  }

  return {
    read: (id: ThreadId, now: number) => snapshot(() => find(id, now, rest)),
    head: (id: ThreadId, now: number) => snapshot(() => find(id, now, head => head)),
    blobs: (hashes: readonly Sha256[]) =>
      snapshot(() => {
        const found = new Map<Sha256, string>();
        for (const sha of new Set(hashes)) {
          const { body, seal } = blob.get(sha) ?? {};
          if (body === undefined) continue;
          if (typeof body !== 'string' || sealBlob(sha, body) !== seal) throw damagedText(sha, 'on the disk');
          found.set(sha, body);
        }
        return found;
      }),
    list: (query: ListQuery) => snapshot(() => heads(query)),
    search: sqliteSearch(db, snapshot, onSkip),
    prunable: sqlitePrunable(db),
    /** Whether records came in since an index was brought up to date. */
    lags: (name: IndexName) => lag.get(name)?.lag === 1,
    ...sqliteJobReads(db),
    ...sqliteFactReads(db),
    /** Another number after each commit of another connection; to compare with earlier ones of this connection alone. */
    version: () => Number(version.get()?.data_version),
    ...sqliteSpendReads(db),
    close: () => db.close(),
  };
}

function headOf(row: Row): ThreadHead | undefined {
  const state = recordOf(row, 'head')?.head;
  const origin = recordOf({ body: row.origin_body, seal: row.origin_seal }, 'origin')?.origin;
  if (!state || !origin || state.id !== row.id || origin.id !== row.id) return undefined;
  return wholeHead(state, origin);
}

function headLister(db: DatabaseSync, onSkip: (thread: string) => void): (query: ListQuery) => ThreadHead[] {
  const prepare = (where: string) =>
    db.prepare(
      `SELECT ${headColumns} FROM ${headTables}
       WHERE ${where} AND t.updated_at <= ? AND (t.updated_at < ? OR t.id < ?) AND t.expires_at > ?
       ORDER BY t.updated_at DESC, t.id DESC`,
    );
  const ofOwner = prepare('t.owner = ?');
  const ofWorkspace = prepare('t.owner = ? AND t.workspace = ?');
  // What came in since: nothing, but where the index can't be written. A head without a thread in the index is joined all the same.
  const sinceIndexed = db.prepare(
    `SELECT h.n, h.body, h.seal, o.body AS origin_body, o.seal AS origin_seal
     FROM (SELECT max(n) AS n, thread FROM records
       WHERE n > (SELECT upto FROM indexed WHERE name = 'threads') AND kind = 'head' GROUP BY thread) t
     JOIN records h ON h.n = t.n LEFT JOIN records o ON o.n = (SELECT min(n) FROM records WHERE thread = t.thread)`,
  );
  return query => {
    const { owner, workspace, limit, before = Number.MAX_SAFE_INTEGER, beforeId = '', now } = query;
    const place = workspace === undefined ? [owner] : [owner, workspace];
    const statement = workspace === undefined ? ofOwner : ofWorkspace;
    if (limit < 1) return [];
    const newer = new Map<string, ThreadHead>();
    for (const row of sinceIndexed.all()) {
      const state = recordOf(row, 'head')?.head;
      const head = state && headOf({ ...row, id: state.id });
      if (head) newer.set(head.id, head);
    }
    const found: ThreadHead[] = [];
    for (const row of statement.iterate(...place, before, before, beforeId, now)) {
      if (newer.has(String(row.id))) continue;
      const head = headOf(row);
      if (head?.owner === owner) found.push(head);
      else onSkip(String(row.id));
      if (found.length >= limit) break;
    }
    if (newer.size === 0) return found;
    const added = [...newer.values()].filter(head => isListed(query, head));
    const newestFirst = (a: ThreadHead, b: ThreadHead) => b.updatedAt - a.updatedAt || (a.id < b.id ? 1 : -1);
    return [...found, ...added].sort(newestFirst).slice(0, limit);
  };
}

/** The newest matching turns, by the index; of each thread the newest few are read, and the one with the most occurrences is shown. */
function sqliteSearch(
  db: DatabaseSync,
  snapshot: <Result>(run: () => Result) => Result,
  onSkip: (thread: string) => void,
): (query: SearchQuery) => SearchHit[] {
  const candidates = db.prepare(
    `SELECT t.n AS thread, u.n AS turn FROM
       (SELECT rowid FROM turn_words WHERE turn_words MATCH ? ORDER BY rowid DESC LIMIT ${searchedTurns}) w
     JOIN records u ON u.n = w.rowid JOIN threads t ON t.n = u.thread
     WHERE t.updated_at <= ? AND (t.updated_at < ? OR t.id < ?) AND t.expires_at > ?
     ORDER BY t.updated_at DESC, t.id DESC, u.n DESC`,
  );
  const byNumber = db.prepare(`SELECT ${headColumns} FROM ${headTables} WHERE t.n = ?`);
  const turn = db.prepare('SELECT body, seal FROM records WHERE n = ?');

  return ({ text, owner, workspace, limit, before = Number.MAX_SAFE_INTEGER, beforeId = '', now }) => {
    const words = queryWords(text);
    if (words.length === 0 || limit < 1) return [];
    const match = `scope : "${scopeWord(owner, workspace)}" AND words : (${words.map(word => `"${word}"*`).join(' AND ')})`;
    return snapshot(() => {
      const rows = candidates.all(match, before, before, beforeId, now);
      const hits: SearchHit[] = [];
      for (const [thread, turns] of Map.groupBy(rows, row => Number(row.thread))) {
        if (hits.length >= limit) break;
        const row = byNumber.get(thread);
        const head = row && headOf(row);
        const weighed = turns.slice(0, weighedTurns).map(each => recordOf(turn.get(Number(each.turn)), 'turn')?.turn);
        const found = head?.owner === owner && bestMatch(weighed, words);
        if (head && found) hits.push({ thread: head, ...found });
        else if (!head) onSkip(String(row?.id));
      }
      return hits;
    });
  };
}

const retryMs = 10;

/** How often a read that the disk failed is tried again. */
const readTries = 5;

export interface SqliteReaderOptions {
  file: string;
  clock: Clock;
  onWarning: (message: string) => void;
  writer: SqliteClient;
}

interface Held {
  alone: boolean;
  reads: SqliteReads;
  inode: number;
}

/** The connection on which a process reads: it cannot write, and waits without stopping anything. */
export function sqliteReader({ file, clock, onWarning, writer }: SqliteReaderOptions) {
  let held: Held | undefined;
  let opening: Promise<Held> | undefined;
  let connections = 0;
  let closed = false;
  const warnOnce = skipWarning('on the disk', onWarning);
  let skipped: string[] = [];
  let isFull = false;

  /** `alone`: without the file in shared memory that other connections need, and for which a full disk has no room. */
  function connect(alone = false): Held {
    if (closed) throw closedStore();
    const inode = inodeOf(file) ?? -1;
    const db = openDatabase(file, { readOnly: !alone, timeout: 0 });
    connections++;
    try {
      if (alone) db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA query_only = ON');
      held = { alone, inode, reads: sqliteReads(db, thread => void skipped.push(thread)) };
      return held;
    } catch (error) {
      db.close();
      throw error;
    }
  }

  async function open(): Promise<Held> {
    // A later file is for the writer to make ready, under whatever number: that of the first one may be free again.
    if (connections === 0 && writer.isReady()) {
      try {
        // Need not wait for what the writer is busy with: it made the file ready before.
        return connect();
      } catch {
        // It is gone by now: the writer makes a new one.
      }
    }
    try {
      await writer.send({ op: 'open' });
    } catch (error) {
      if (!isAppError(error) || error.details.class !== 'storage_full' || inodeOf(file) === undefined) throw error;
      if (!isFull) onWarning(`${error.message} Threads can be read, but nothing can be stored until there is room.`);
      isFull = true;
      try {
        // Where another process has it open, what that needs room for is there.
        return connect();
      } catch {
        return connect(true);
      }
    }
    return connect();
  }

  /** The path may lead to another file since the last read: a damaged one is replaced, by whichever process sees it. */
  async function current(): Promise<Held> {
    if (held && held.inode === inodeOf(file)) return held;
    drop();
    opening ??= open().finally(() => {
      opening = undefined;
    });
    return opening;
  }

  function drop(): void {
    held?.reads.close();
    held = undefined;
  }

  /** Runs a read once the file is ready; where it is damaged, once more after it was replaced. */
  async function read<Result>(run: (reads: SqliteReads) => Result): Promise<Result> {
    const deadline = clock.monotonic() + lockWaitMs;
    for (let healed = false, tries = 0; ; ) {
      if (closed) throw closedStore();
      try {
        const { reads } = await current();
        // Another read may have found the file damaged just now, and closed this connection.
        if (held?.reads !== reads) continue;
        skipped = [];
        const result = run(reads);
        if (skipped.length === 0 || healed) {
          skipped.forEach(warnOnce);
          return result;
        }
        healed = true;
        await inspect();
      } catch (error) {
        if (closed) throw closedStore();
        if ((passesSoon(error) && clock.monotonic() < deadline) || (isFailedRead(error) && tries++ < readTries)) {
          await clock.sleep(retryMs);
        } else if (isDamage(error) && !healed) {
          healed = true;
          await inspect();
        } else {
          throw sqliteFailure(error, file);
        }
      } finally {
        // Others cannot use the file meanwhile.
        if (held?.alone) drop();
      }
    }
  }

  /** The file is checked in full and replaced where it is damaged. Where that fails, what can be read is read all the same. */
  async function inspect(): Promise<void> {
    drop();
    await writer.send({ op: 'inspect' }).catch((error: unknown) => onWarning(sqliteFailure(error, file).message));
  }

  return {
    read,
    /** Another text after each change of the file, or when it became another file. */
    mark: () => read(reads => `${connections} ${reads.version()}`),

    async close(): Promise<void> {
      closed = true;
      drop();
    },
  };
}

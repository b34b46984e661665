import { hash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { foldWords } from '../search-words.ts';
import { newestRecord, recordOf } from './tables.ts';

/** What follows the records only when it is asked for: the threads by owner and time, and the words of their turns. */
export type IndexName = 'threads' | 'words';

/** The newest record of a listed thread, which is its head, whatever came in since it was listed. */
export const headJoin = 'records h ON h.n = (SELECT max(n) FROM records WHERE thread = t.n)';

/** Records that one transaction takes into an index, so that nobody waits long behind it. */
const step = 1_000;

/** The words that a search narrows to: one for all of an owner's turns, one for those of a workspace. */
export const scopeWord = (owner: string, workspace?: string): string =>
  workspace === undefined
    ? `o${hash('sha256', owner).slice(0, 32)}`
    : `w${hash('sha256', `${owner}\n${workspace}`).slice(0, 32)}`;

/** Takes some of what came in since into an index; false when that was all. Expects to run inside a transaction. */
export function threadIndex(db: DatabaseSync): (name: IndexName) => boolean {
  const span = db.prepare('SELECT upto, coalesce((SELECT max(n) FROM records), 0) AS last FROM indexed WHERE name = ?');
  const setMark = db.prepare('UPDATE indexed SET upto = ? WHERE name = ?');
  const heads = db.prepare("SELECT thread, body, seal FROM records WHERE n > ? AND n <= ? AND kind = 'head'");
  const put = db.prepare(
    `INSERT INTO threads (n, id, parent, owner, workspace, updated_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (n) DO UPDATE SET updated_at = excluded.updated_at, expires_at = excluded.expires_at`,
  );
  const touched = db.prepare(
    'SELECT DISTINCT thread, exchange FROM records WHERE n > ? AND n <= ? AND exchange IS NOT NULL',
  );
  const syncWords = wordIndex(db);

  function syncThreads(from: number, to: number): void {
    for (const row of heads.all(from, to)) {
      // One that is damaged keeps the place that it had, where readers find that it is.
      const head = recordOf(row, 'head')?.head;
      if (!head) continue;
      const { id, parent, owner, workspace, updatedAt, expiresAt } = head;
      put.run(Number(row.thread), id, parent?.thread ?? null, owner, workspace, updatedAt, expiresAt);
    }
  }

  return name => {
    const row = span.get(name);
    const [from, last] = [Number(row?.upto), Number(row?.last)];
    const to = Math.min(last, from + step);
    if (to <= from) return false;
    if (name === 'threads') syncThreads(from, to);
    else for (const each of touched.all(from, to)) syncWords(Number(each.thread), String(each.exchange), from, to);
    setMark.run(to, name);
    return to < last;
  };
}

/** Brings the words of one exchange, which are in step with it as of the record `from`, into step with it as of `to`. */
function wordIndex(db: DatabaseSync): (thread: number, exchange: string, from: number, to: number) => void {
  const newest = newestRecord(db);
  const status = db.prepare(
    `SELECT body, seal FROM records WHERE thread = ? AND exchange = ? AND kind = 'exchange' AND n <= ?
     ORDER BY n DESC LIMIT 1`,
  );
  const turns = db.prepare(
    "SELECT n, body, seal FROM records WHERE thread = ? AND n > ? AND n <= ? AND exchange = ? AND kind = 'turn'",
  );
  const indexed = db.prepare('SELECT 1 FROM turn_words WHERE rowid = ?');
  const add = db.prepare('INSERT INTO turn_words (rowid, scope, words) VALUES (?, ?, ?)');
  const drop = db.prepare('DELETE FROM turn_words WHERE rowid = ?');

  const isDone = (thread: number, exchange: string, at: number) =>
    recordOf(status.get(thread, exchange, at), 'exchange')?.status === 'done';

  return (thread, exchange, from, to) => {
    const head = recordOf(newest(thread), 'head')?.head;
    const done = isDone(thread, exchange, to);
    const before = isDone(thread, exchange, from);
    for (const row of turns.all(thread, done === before ? from : 0, to, exchange)) {
      const n = Number(row.n);
      if (!head || done === (indexed.get(n) !== undefined)) continue;
      if (!done) {
        drop.run(n);
        continue;
      }
      // A damaged turn is found by whoever reads the thread; it is no reason not to find the others.
      const words = foldWords(recordOf(row, 'turn')?.turn.content ?? '');
      add.run(n, `${scopeWord(head.owner)} ${scopeWord(head.owner, head.workspace)}`, words);
    }
  };
}

/** Removes a thread with all that only it refers to. Expects to run inside a transaction of its caller. */
export function threadEraser(db: DatabaseSync): (thread: number) => void {
  const indexed = db.prepare('SELECT r.n FROM records r JOIN turn_words w ON w.rowid = r.n WHERE r.thread = ?');
  const references = db.prepare('SELECT sha FROM blob_refs WHERE thread = ?');
  const drops = [
    db.prepare('DELETE FROM records WHERE thread = ?'),
    db.prepare('DELETE FROM workflows WHERE thread = ?'),
    db.prepare('DELETE FROM blob_refs WHERE thread = ?'),
    db.prepare('DELETE FROM threads WHERE n = ?'),
  ];
  const dropWords = db.prepare('DELETE FROM turn_words WHERE rowid = ?');
  const dropBlob = db.prepare(
    'DELETE FROM blobs WHERE sha = ?1 AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE sha = ?1)',
  );
  // The numbers of the newest records are given again.
  const lower = db.prepare('UPDATE indexed SET upto = min(upto, coalesce((SELECT max(n) FROM records), 0))');
  return thread => {
    const turns = indexed.all(thread);
    const blobs = references.all(thread);
    // First, because taking words out of the index needs a little room and a full file has none before this.
    for (const drop of drops) drop.run(thread);
    for (const { sha } of blobs) dropBlob.run(String(sha));
    for (const { n } of turns) dropWords.run(Number(n));
    lower.run();
  };
}

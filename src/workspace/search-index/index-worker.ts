import { closeSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { doJob } from '../workers/run-job.ts';
import type { FileToIndex, IndexFailure, IndexJob, IndexThreadOptions } from './index-client.ts';
import { IndexStore } from './index-store.ts';

/** Raised when the tables or what is put into them change: an index of another version is made anew. */
const version = 1;

const lockWaitMs = 10_000;

const tables = `
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, mtime REAL NOT NULL, sha256 TEXT NOT NULL,
  weight REAL NOT NULL
) STRICT;
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER NOT NULL, from_line INTEGER NOT NULL, to_line INTEGER NOT NULL, name TEXT NOT NULL,
  text TEXT NOT NULL, model TEXT, vector BLOB
) STRICT;
CREATE INDEX chunks_of_file ON chunks (file);
CREATE VIRTUAL TABLE words USING fts5 (
  path, name, body, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
PRAGMA user_version = ${version};
`;

/** Opens the index of a workspace. It can always be made again, so one that is damaged or of another version is thrown away. */
export function openIndexDatabase(file: string | undefined): DatabaseSync {
  if (file === undefined) return prepared(new DatabaseSync(':memory:'));
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    return openFile(file);
  } catch (error) {
    if (!isDamage(error)) throw error;
    dropIndexFile(file);
    return openFile(file);
  }
}

export function dropIndexFile(file: string): void {
  for (const ending of ['', '-wal', '-shm']) rmSync(`${file}${ending}`, { force: true });
}

/** SQLite says that this is no database, or a broken one. */
export function isDamage(error: unknown): boolean {
  const code = codeOf(error);
  return code === 11 || code === 26 || code === otherVersion;
}

export function isFull(error: unknown): boolean {
  return codeOf(error) === 13;
}

const otherVersion = -1;

function codeOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('errcode' in error)) return undefined;
  return typeof error.errcode === 'number' && error.errcode >= 0 ? error.errcode & 0xff : otherVersion;
}

function openFile(file: string): DatabaseSync {
  // Made before SQLite does, for its mode: what belongs to a database takes over the mode of the database.
  closeSync(openSync(file, 'a', 0o600));
  const db = new DatabaseSync(file, { timeout: lockWaitMs });
  try {
    // Changing the mode does not wait for others, so it is changed once, by whoever makes the file.
    if (db.prepare('PRAGMA journal_mode').get()?.journal_mode !== 'wal') db.exec('PRAGMA journal_mode = WAL');
    db.exec('PRAGMA synchronous = NORMAL');
    return prepared(db);
  } catch (error) {
    db.close();
    throw error;
  }
}

function prepared(db: DatabaseSync): DatabaseSync {
  db.exec('BEGIN IMMEDIATE');
  try {
    const found = Number(db.prepare('PRAGMA user_version').get()?.user_version);
    if (found !== 0 && found !== version)
      throw Object.assign(new Error('The index is of another version.'), { errcode: otherVersion });
    if (found === 0) db.exec(tables);
    db.exec('COMMIT');
    return db;
  } catch (error) {
    db.exec('ROLLBACK');
    throw error;
  }
}

const port = parentPort;

const { file }: IndexThreadOptions = workerData ?? {};

let store: IndexStore | undefined;

/** Beyond this a parse takes long; such sources are generated or data. */
const maxParsed = 512 * 1024;

async function symbolsIn({ path, language, text }: FileToIndex) {
  if (!language || text.length > maxParsed) return undefined;
  const found = await doJob({ kind: 'symbols', path, language, text });
  return Array.isArray(found) ? found : undefined;
}

async function answerTo(job: IndexJob): Promise<unknown> {
  if (job.op === 'close') return close();
  store ??= new IndexStore(openIndexDatabase(file), symbolsIn);
  switch (job.op) {
    case 'files':
      return store.files();
    case 'counts':
      return store.counts(job.model);
    case 'bare':
      return store.bare(job.model, job.limit);
    case 'search':
      return store.search(job);
    case 'put':
      return store.put(job.files);
    case 'touch':
      return store.touch(job.files);
    case 'remove':
      return store.remove(job.paths);
    case 'clear':
      return store.clear();
    case 'embed':
      return store.embed(job.model, job.vectors);
  }
}

function close(): void {
  store?.close();
  store = undefined;
}

function failureOf(error: unknown): IndexFailure {
  const damaged = isDamage(error);
  if (damaged) {
    close();
    if (file !== undefined) dropIndexFile(file);
  }
  return { failure: error instanceof Error ? error.message : String(error), full: isFull(error), damaged };
}

port?.on('message', (job: IndexJob) => {
  answerTo(job).then(
    done => port.postMessage({ done }),
    error => port.postMessage(failureOf(error)),
  );
});

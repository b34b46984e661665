import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { closeSync, lstatSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { throwIfAborted } from '../../core/errors.ts';
import { sha256 } from '../../core/ids.ts';
import { languageOf } from '../outline/outline.ts';
import { isSkip, notText, skip } from '../paths.ts';
import { decodeText } from '../read-file.ts';
import { createSandbox, type ReadBytes } from '../sandbox.ts';
import { classifyFile, type FileClass, type WalkMemory, walkDirectory } from '../walk.ts';
import { doJob } from '../workers/run-job.ts';
import { TermCounter } from './file-terms.ts';
import type { FileToCut, IndexFailure, IndexJob, IndexResults, IndexThreadOptions, ToThread } from './index-client.ts';
import { type FileToPut, type IndexedFile, IndexStore } from './index-store.ts';

/** Raised when the tables or what is put into them change: an index of another version is made anew. */
const version = 2;

const lockWaitMs = 10_000;

const tables = `
CREATE TABLE files (
  id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, mtime REAL NOT NULL, sha256 TEXT NOT NULL,
  weight REAL NOT NULL, cut INTEGER NOT NULL DEFAULT 0, terms BLOB NOT NULL
) STRICT;
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER NOT NULL, from_line INTEGER NOT NULL, to_line INTEGER NOT NULL, name TEXT NOT NULL,
  text TEXT NOT NULL, model TEXT, vector BLOB
) STRICT;
CREATE INDEX chunks_of_file ON chunks (file);
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
    db.exec('PRAGMA page_size = 16384');
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

const { file, root, sandbox: sandboxOptions }: IndexThreadOptions = workerData;

const sandbox = createSandbox(sandboxOptions);
const counter = new TermCounter();
const remembered: Omit<WalkMemory, 'now'> = { folders: new Map(), rules: new Map() };
const running = new Map<number, AbortController>();
const begun = new Set<Promise<void>>();
let store: IndexStore | undefined;
let looks = 0;

const walkLimits = { maxDepth: 100, maxEntries: 300_000 };
const maxFiles = 100_000;
/** Of all files together. */
const maxTotalBytes = 256 * 1024 * 1024;
/** Larger files are data. */
const maxBytes = 1024 * 1024;
/** Files after which a question that waits gets its turn, and after which what was read is stored. */
const turnFiles = 128;
const storeFiles = 256;
/** Characters of the texts of one answer. */
const answerChars = 250_000;
/** Beyond this a parse takes long; such sources are generated or data. */
const maxParsed = 512 * 1024;
/** Hits in source come before equal ones elsewhere. */
const weights: Readonly<Record<FileClass, number>> = {
  source: 1,
  doc: 0.85,
  test: 0.75,
  config: 0.7,
  log: 0.4,
  generated: 0.3,
};
/** What a word in the path of a file counts. */
const pathWeight = 1;

/** Makes the index equal to the files. Only what differs in size or time is read, and only what differs in its bytes is put. */
async function look(
  into: IndexStore,
  { now, rebuild }: Extract<IndexJob, { op: 'look' }>,
  signal: AbortSignal,
  tell: (done: number, total: number) => void,
): Promise<IndexResults['look']> {
  if (rebuild) into.clear();
  const known = into.files();
  const walk = await walkDirectory(sandbox, root, walkLimits, signal, { ...remembered, now });
  const report = { files: 0, indexed: 0, removed: 0, skipped: walk.skipped };
  const { files: paths } = walk;
  const [beyond] = paths.splice(maxFiles);
  if (beyond !== undefined) {
    report.skipped.push(
      skip(beyond, 'too_many_files', `This and others are not in the index: it takes ${maxFiles} files.`),
    );
  }
  const newest = into.newestId();
  const lookId = ++looks;
  let bytes = 0;
  let waiting: FileToPut[] = [];
  const store = () => {
    into.put(waiting);
    waiting = [];
  };
  const take = (path: string, file: ReadBytes) => {
    bytes += file.bytes.length;
    if (bytes > maxTotalBytes) {
      report.skipped.push(skip(path, 'over_budget', `The index takes ${maxTotalBytes} bytes of files together.`));
      return;
    }
    const digest = sha256(hash('sha256', file.bytes));
    const { mtimeMs } = file;
    const size = file.bytes.length;
    const before = known.get(path);
    if (before && into.isSame(path, digest)) {
      into.touch(path, size, mtimeMs);
      before.seenBy = lookId;
      return;
    }
    const text = decodeText(file.bytes);
    if (text === undefined) return void report.skipped.push(notText(path));
    const name = path.slice(root.length + 1);
    const kind = classifyFile(name, text);
    const terms = counter.termsOf([
      { text: Buffer.from(name), weight: pathWeight, isPath: true },
      { text: isUtf8(file.bytes) ? file.bytes : Buffer.from(text), weight: 1, headings: kind === 'doc' },
    ]);
    waiting.push({ path, size, mtimeMs, sha256: digest, weight: weights[kind], terms });
    report.indexed++;
  };
  try {
    for (let at = 0; at < paths.length; ) {
      const folder = dirname(paths[at] ?? '');
      const group = takeGroup(paths, at, folder);
      at += group.length;
      const changed: string[] = [];
      for (const path of group) {
        const file = known.get(path);
        if (!file || bytes + file.size > maxTotalBytes || !isSame(path, file)) changed.push(basename(path));
        else {
          bytes += file.size;
          file.seenBy = lookId;
        }
      }
      if (changed.length === 0) continue;
      const read = await sandbox.readIn(folder, changed, maxBytes);
      if (isSkip(read)) report.skipped.push(read);
      else {
        for (const [name, file] of read) {
          if (isSkip(file)) report.skipped.push(file);
          else take(join(folder, name), file);
        }
      }
      if (waiting.length >= storeFiles) {
        store();
        tell(at, paths.length);
      }
      await setImmediate();
      throwIfAborted(signal);
    }
  } finally {
    if (waiting.length > 0) store();
  }
  // Looking at files that are as they were is over before anybody wonders.
  if (report.indexed > 0) tell(paths.length, paths.length);
  // What was not seen is gone, or no longer allowed; where not all was looked at, it may still be there.
  const complete = !report.skipped.some(({ code }) => code === 'too_many_files');
  const gone: string[] = [];
  for (const [path, { id, seenBy }] of complete ? known : []) if (id <= newest && seenBy !== lookId) gone.push(path);
  if (gone.length > 0) into.remove(gone);
  return { ...report, files: into.files().size, removed: gone.length };
}

/** Paths of files of one folder that follow each other. */
function takeGroup(paths: readonly string[], from: number, folder: string): string[] {
  const start = folder.endsWith(sep) ? folder : `${folder}${sep}`;
  const group: string[] = [];
  for (const path of paths.slice(from, from + turnFiles)) {
    if (!path.startsWith(start) || path.indexOf(sep, start.length) !== -1) break;
    group.push(path);
  }
  return group;
}

function isSame(path: string, { size, mtimeMs }: IndexedFile): boolean {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    return stats?.isFile() === true && stats.size === size && stats.mtimeMs === mtimeMs;
  } catch {
    // Reading it tells what is wrong.
    return false;
  }
}

/** The texts of files that are to be cut, as they stand on the disk. */
async function uncut(from: IndexStore, job: Extract<IndexJob, { op: 'uncut' }>): Promise<FileToCut[]> {
  const texts: FileToCut[] = [];
  let chars = 0;
  for (const path of from.uncut(job)) {
    if (chars > answerChars) break;
    const read = await sandbox.readIn(dirname(path), [basename(path)], maxBytes);
    const found = isSkip(read) ? undefined : read.get(basename(path));
    const bytes = found && !isSkip(found) ? found.bytes : undefined;
    // What is cut now is another text than the index knows, or none: the next look puts the file anew.
    if (!bytes || !from.isSame(path, sha256(hash('sha256', bytes)))) from.doubt(path);
    const text = (bytes && decodeText(bytes)) ?? '';
    chars += text.length;
    texts.push({ path, text });
  }
  return texts;
}

async function symbolsIn({ path, text }: FileToCut) {
  const language = languageOf(path);
  if (!language || text.length > maxParsed) return undefined;
  const found = await doJob({ kind: 'symbols', path, language, text });
  return Array.isArray(found) ? found : undefined;
}

async function answerTo(id: number, job: IndexJob): Promise<unknown> {
  if (job.op === 'close') {
    for (const stop of running.values()) stop.abort();
    await Promise.allSettled(begun);
    return close();
  }
  store ??= new IndexStore(openIndexDatabase(file), root);
  switch (job.op) {
    case 'look': {
      const stop = new AbortController();
      running.set(id, stop);
      const tell = (done: number, total: number) => port?.postMessage({ id, progress: { done, total } });
      return look(store, job, stop.signal, tell).finally(() => running.delete(id));
    }
    case 'uncut':
      return uncut(store, job);
    case 'cut':
      return store.cut(job.files, symbolsIn);
    case 'counts':
      return store.counts(job.model);
    case 'bare':
      return store.bare(job.model, job.limit);
    case 'search':
      return store.search(job);
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

port?.on('message', (message: ToThread) => {
  if ('cancel' in message) return running.get(message.cancel)?.abort();
  const { id, job } = message;
  const answer = answerTo(id, job).then(
    done => port.postMessage({ id, done }),
    error => port.postMessage({ id, ...failureOf(error) }),
  );
  if (job.op === 'close') return;
  begun.add(answer);
  void answer.finally(() => begun.delete(answer));
});

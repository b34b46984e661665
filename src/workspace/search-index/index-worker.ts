import { isUtf8 } from 'node:buffer';
import { closeSync, lstatSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { wholeChange } from '../../core/concurrency.ts';
import { asError, throwIfAborted } from '../../core/errors.ts';
import type { Skip } from '../../core/file.ts';
import { hashOf } from '../../core/ids.ts';
import { isRecord } from '../../core/json.ts';
import { decodeText } from '../../core/text.ts';
import { languageOf } from '../outline/outline.ts';
import { isSkip, notText, skip } from '../paths.ts';
import { readFile } from '../read-file.ts';
import { createSandbox, type ReadBytes } from '../sandbox.ts';
import { classifyFile, type FileClass, type WalkMemory, walkDirectory } from '../walk.ts';
import { doJob } from '../workers/run-job.ts';
import { TermCounter } from './file-terms.ts';
import type { FileToCut, IndexFailure, IndexJob, IndexThreadOptions, Job, ToThread } from './index-client.ts';
import { type FileToPut, type IndexedFile, IndexStore } from './index-store.ts';

/** Raised when the tables or what is put into them change: an index of another version is made anew. */
const version = 4;
const lockWaitMs = 10_000;

const tables = `
DROP TABLE IF EXISTS chunks;
DROP TABLE IF EXISTS files;
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

/** Opens the index of a workspace. It can always be made again, so one that is damaged is thrown away. */
function openDatabase(): DatabaseSync {
  if (file === undefined) return withTables(new DatabaseSync(':memory:'));
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    return openFile(file);
  } catch (error) {
    if (!isDamage(error)) throw error;
    dropFile(file);
    return openFile(file);
  }
}

function dropFile(path: string): void {
  for (const ending of ['', '-wal', '-shm']) rmSync(`${path}${ending}`, { force: true });
}

/** SQLite says that this is no database, or a broken one. */
const isDamage = (error: unknown): boolean => [11, 26].includes(codeOf(error) ?? 0);

/** The number that SQLite gives to what went wrong; undefined for what SQLite did not say. */
const codeOf = (error: unknown): number | undefined =>
  isRecord(error) && typeof error.errcode === 'number' ? error.errcode & 0xff : undefined;

function openFile(path: string): DatabaseSync {
  // Made before SQLite does, for its mode: what belongs to a database takes over the mode of the database.
  closeSync(openSync(path, 'a', 0o600));
  const db = new DatabaseSync(path, { timeout: lockWaitMs });
  try {
    // Changing the mode does not wait for others, so it is changed once, by whoever makes the file.
    db.exec('PRAGMA page_size = 16384');
    if (db.prepare('PRAGMA journal_mode').get()?.journal_mode !== 'wal') db.exec('PRAGMA journal_mode = WAL');
    db.exec('PRAGMA synchronous = NORMAL');
    return withTables(db);
  } catch (error) {
    db.close();
    throw error;
  }
}

function withTables(db: DatabaseSync): DatabaseSync {
  wholeChange(db, () => {
    if (db.prepare('PRAGMA user_version').get()?.user_version !== version) db.exec(tables);
  });
  return db;
}

const port = parentPort;

const { file, root, sandbox: sandboxOptions }: IndexThreadOptions = workerData;

const sandbox = createSandbox(sandboxOptions);
const counter = new TermCounter();
const remembered: Omit<WalkMemory, 'now'> = { folders: new Map(), rules: new Map() };
/** Jobs that go on, by their IDs. */
const begun = new Map<number, { isLook: boolean; stop: AbortController; ended: Promise<void> }>();
let store: IndexStore | undefined;

const maxEntries = 300_000;
/** Entries of folders that are listed before the first file is read. */
const earlyEntries = 1_000;
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

type Tell = (done: number, total: number) => void;

/** Makes the index equal to the files. */
async function look(into: IndexStore, { now, rebuild }: Job<'look'>, signal: AbortSignal, tell: Tell) {
  if (rebuild) into.clear();
  const before = [...into.files().keys()];
  const memory = { ...remembered, now };
  const walk = (maxEntries: number) => walkDirectory(sandbox, root, { maxEntries, signal, memory });
  // The first question is answered from a few folders, before all of them are listed.
  const early = before.length === 0 ? await bringIn(into, (await walk(earlyEntries)).files, signal) : undefined;
  const { files: paths, skipped } = await walk(maxEntries);
  const [beyond] = paths.splice(maxFiles);
  if (beyond !== undefined)
    skipped.push(skip(beyond, 'too_many_files', `This and others are not in the index: it takes ${maxFiles} files.`));
  const brought = await bringIn(into, paths, signal, tell);
  skipped.push(...brought.skipped);
  // What was not seen is gone, or no longer allowed; where not all was looked at, it may still be there.
  const complete = !skipped.some(({ code }) => code === 'too_many_files');
  const gone = complete ? before.filter(path => !brought.seen.has(path)) : [];
  into.remove(gone);
  const indexed = (early?.indexed ?? 0) + brought.indexed;
  // Looking at files that are as they were is over before anybody wonders.
  if (indexed > 0) tell(paths.length, paths.length);
  return { files: into.files().size, indexed, removed: gone.length, skipped };
}

/** Reads those of the files that differ in size or time, and puts those that differ in their bytes. An abort keeps what is done. */
async function bringIn(into: IndexStore, paths: readonly string[], signal: AbortSignal, tell?: Tell, isLook = true) {
  const known = into.files();
  const seen = new Set<string>();
  const skipped: Skip[] = [];
  let indexed = 0;
  let bytes = 0;
  let waiting: FileToPut[] = [];
  const put = () => {
    into.put(waiting);
    indexed += waiting.length;
    waiting = [];
  };
  /** What is to be put of a file, or why it is left out; undefined: its text is as it was. */
  const take = (path: string, file: ReadBytes | Skip): FileToPut | Skip | undefined => {
    if (isSkip(file)) return file;
    bytes += file.bytes.length;
    if (bytes > maxTotalBytes)
      return skip(path, 'over_budget', `The index takes ${maxTotalBytes} bytes of files together.`);
    const digest = hashOf(file.bytes);
    const { mtimeMs } = file;
    const size = file.bytes.length;
    if (known.has(path) && into.isSame(path, digest)) {
      into.touch(path, size, mtimeMs);
      seen.add(path);
      return undefined;
    }
    const text = decodeText(file.bytes);
    if (text === undefined) return notText(path);
    const name = path.slice(root.length + 1);
    const kind = classifyFile(name, text);
    const terms = counter.termsOf([
      { text: Buffer.from(name), weight: pathWeight, isPath: true },
      { text: isUtf8(file.bytes) ? file.bytes : Buffer.from(text), weight: 1, headings: kind === 'doc' },
    ]);
    seen.add(path);
    return { path, size, mtimeMs, sha256: digest, weight: weights[kind], terms };
  };
  const changed: string[] = [];
  for (const path of paths) {
    const file = known.get(path);
    if (!file || bytes + file.size > maxTotalBytes || !isSame(path, file)) changed.push(path);
    else {
      bytes += file.size;
      seen.add(path);
    }
  }
  let done = paths.length - changed.length;
  try {
    for (const [folder, inFolder] of Map.groupBy(changed, path => dirname(path))) {
      for (let at = 0; at < inFolder.length; at += turnFiles) {
        const names = inFolder.slice(at, at + turnFiles).map(path => basename(path));
        done += names.length;
        const read = await sandbox.readIn(folder, names, maxBytes);
        for (const [name, file] of isSkip(read) ? [[folder, read] as const] : read) {
          const taken = take(join(folder, name), file);
          if (taken && isSkip(taken)) skipped.push(taken);
          else if (taken) waiting.push(taken);
        }
        if (waiting.length >= storeFiles) {
          put();
          tell?.(done, paths.length);
        }
        await setImmediate();
        // Who asks something meanwhile goes first.
        if (isLook) await Promise.all([...begun.values()].map(each => (each.isLook ? undefined : each.ended)));
        throwIfAborted(signal);
      }
    }
  } finally {
    if (waiting.length > 0) put();
  }
  return { seen, skipped, indexed };
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
async function uncut(from: IndexStore, job: Job<'uncut'>, signal: AbortSignal) {
  // A look that goes on may not have come to them yet, and their lines are told.
  const near = job.question === undefined ? [] : from.near(job.question);
  const { seen } = await bringIn(from, near, signal, undefined, false);
  from.remove(near.filter(path => !seen.has(path)));
  const texts: FileToCut[] = [];
  let chars = 0;
  for (const path of from.uncut(job)) {
    if (chars > answerChars) break;
    const file = await readFile(sandbox, path, { maxBytes });
    // It is another text than the index knows, or none: the next look puts the file anew.
    if (isSkip(file) || !from.isSame(path, file.sha256)) from.remove([path]);
    else {
      chars += file.text.length;
      texts.push({ path, text: file.text });
    }
  }
  return texts;
}

async function symbolsIn({ path, text }: FileToCut) {
  const language = languageOf(path);
  if (!language || text.length > maxParsed) return undefined;
  return doJob({ kind: 'symbols', input: { path, language, text } });
}

async function answerTo(id: number, job: IndexJob, signal: AbortSignal): Promise<unknown> {
  store ??= new IndexStore(openDatabase(), root);
  switch (job.op) {
    case 'look':
      return look(store, job, signal, (done, total) => port?.postMessage({ id, progress: { done, total } }));
    case 'uncut':
      return uncut(store, job, signal);
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

function closeStore(): void {
  store?.close();
  store = undefined;
}

async function end(): Promise<void> {
  for (const { stop } of begun.values()) stop.abort();
  await Promise.all([...begun.values()].map(({ ended }) => ended));
  closeStore();
  port?.close();
}

function failureOf(error: unknown): IndexFailure {
  const damaged = isDamage(error);
  if (damaged) {
    closeStore();
    if (file !== undefined) dropFile(file);
  }
  return { failure: asError(error).message, full: codeOf(error) === 13, damaged };
}

port?.on('message', (message: ToThread) => {
  if ('close' in message) return void end();
  if ('cancel' in message) return begun.get(message.cancel)?.stop.abort();
  const { id, job } = message;
  const stop = new AbortController();
  const ended = answerTo(id, job, stop.signal).then(
    done => port.postMessage({ id, done }),
    error => port.postMessage({ id, ...failureOf(error) }),
  );
  begun.set(id, { isLook: job.op === 'look', stop, ended });
  void ended.finally(() => begun.delete(id));
});

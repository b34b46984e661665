import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { asError, errorCode, storageError } from '../../core/errors.ts';
import { openRecord, threadOf } from '../records.ts';
import { isDamage, isFailedRead, sqliteCode, sqliteFailure } from './failure.ts';
import { logReader } from './pages.ts';
import { isOurs, sqliteSalvage } from './salvage.ts';
import { durableTables, sqliteSchema } from './schema.ts';
import { inodeOf, onlyValue, openDatabase, statOf, threadNumber } from './tables.ts';

/** The finished replacement of a damaged file, between the moment it is whole and the moment it takes its place. */
export const salvagedName = (file: string): string => `${file}.salvaged`;

export interface RepairOptions {
  /** Epoch milliseconds; names what is set aside. */
  now: number;
  onWarning: (message: string) => void;
}

/**
 * Sets a damaged file aside, never deletes it, and puts a new one in its place with all that is intact. The caller holds
 * the lock of openers; `db` is its connection to the damaged file, which this closes. Without one, SQLite would lose what
 * is left by opening it.
 */
function repair(file: string, db: DatabaseSync | undefined, damage: string, { now, onWarning }: RepairOptions): void {
  if (db) keepOthersOut(db);
  const quarantined = freeName(`${file}.corrupt-${timeName(now)}`);
  const draft = `${file}.salvaging`;
  for (const leftover of [draft, `${draft}-journal`]) rmSync(leftover, { force: true });
  const fresh = openDatabase(draft);
  let saved: string;
  try {
    sqliteSchema(fresh, draft);
    saved = sqliteSalvage(file, fresh, basename(quarantined));
  } finally {
    fresh.close();
  }
  renameSync(draft, salvagedName(file));
  // An open file cannot be renamed there; elsewhere the connection keeps writers waiting until the new file stands.
  if (process.platform === 'win32') db?.close();
  renameSync(file, quarantined);
  for (const suffix of ['-wal', '-shm', '-journal']) {
    if (existsSync(file + suffix)) renameSync(file + suffix, quarantined + suffix);
  }
  renameSync(salvagedName(file), file);
  if (db?.isOpen) db.close();
  onWarning(`The file of the threads was damaged (${damage}) and was set aside as ${quarantined}. ${saved}`);
}

/** Writers of other processes wait, then find that the path leads to another file, and open that one. */
function keepOthersOut(db: DatabaseSync): void {
  try {
    db.exec('BEGIN IMMEDIATE');
  } catch (error) {
    // Too damaged to be locked: nobody else can write to it either.
    if (!isDamage(error) && sqliteCode(error) !== 1) throw error;
  }
}

function freeName(wish: string): string {
  let name = wish;
  for (let next = 2; existsSync(name); next++) name = `${wish}-${next}`;
  return name;
}

/** How long a writer waits for a lock that another process holds. */
export const lockWaitMs = 10_000;

/** Above this size a file is checked only when something about it looked wrong: reading it all takes too long. */
const checkedBytes = 256 * 1024 * 1024;

/** Below this size the search index and the list of free pages are checked at every start, too. */
const fullyCheckedBytes = 4 * 1024 * 1024;

/** Opens SQLite on a file. */
export type Connect = (file: string, options: { timeout: number }) => DatabaseSync;

export interface OpenOptions extends RepairOptions {
  file: string;
  connect: Connect;
  /** Checks everything, the search index included, whatever the size. */
  thorough: boolean;
}

/**
 * Opens the file for writing: creates, migrates, checks and, where it is damaged, replaces it. All of it under a lock, so
 * that several programs that start at once see each step whole. `inode` tells whether the path still leads to the file that is open;
 * `repaired`: the file was damaged and has been replaced by what was intact of it.
 */
export function sqliteOpen(options: OpenOptions) {
  const { file } = options;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const lock = takeLock(`${file}.lock`);
  try {
    if (!existsSync(file) && existsSync(salvagedName(file))) renameSync(salvagedName(file), file);
    setFormerLogAside(options);
    const opened = readAgain(() => open(options, options.thorough));
    if (opened) return opened;
    const fresh = open(options, false);
    if (!fresh) throw new Error(`${file} cannot be opened although it was just written`);
    return { ...fresh, repaired: true };
  } finally {
    lock.close();
  }
}

/** Keeps the inode of the file that was opened last, and which log is its, for all processes. */
const logOwner = (file: string): string => `${file}-log`;

/** Tells a log from every other, also from its copy on another disk, whose inodes may be the same by chance. */
function logOf(file: string): string | undefined {
  const found = statOf(`${file}-wal`);
  return found && `${found.ino}:${found.birthtimeMs}`;
}

function noteLogOwner(file: string): void {
  const note = `${inodeOf(file)} ${logOf(file)}`;
  if (readLogOwner(file) === note) return;
  try {
    writeFileSync(logOwner(file), note, { mode: 0o600 });
  } catch {
    // A wrong note would be worse than none.
    rmSync(logOwner(file), { force: true });
  }
}

function readLogOwner(file: string): string {
  try {
    return readFileSync(logOwner(file), 'utf8');
  } catch {
    return '';
  }
}

/**
 * SQLite would take the log of a file that another was moved over, such as a backup, for the new one's. Neither does a new file in the
 * place of a deleted one get its log: by the log, those that have the deleted one open would take the two for one.
 */
function setFormerLogAside({ file, now, onWarning }: OpenOptions): void {
  const [owner, ownLog] = readLogOwner(file).split(' ');
  const [found, log] = [statOf(file), logOf(file)];
  if (log === undefined || log !== ownLog || String(found?.ino) === owner) return;
  const isNew = !found?.isFile() || found.size === 0;
  const isEmpty = logReader(file).frames === 0;
  // What is left of a deleted file is saved from its log.
  if (isNew && !isEmpty) return;
  const aside = freeName(`${file}-wal.former-${timeName(now)}`);
  renameSync(`${file}-wal`, aside);
  rmSync(`${file}-shm`, { force: true });
  if (isEmpty) rmSync(aside);
  else onWarning(`Another file was moved over ${file}. What was in the log of the one before is kept as ${aside}.`);
}

const timeName = (now: number): string => new Date(now).toISOString().replace(/[:.]/g, '-');

/** Milliseconds before a read that the disk failed is tried again. */
const readPausesMs = [20, 100, 500];

/** A read that fails once is no damage, and often succeeds a moment later. This thread has nothing else to do. */
function readAgain<Result>(run: () => Result): Result {
  for (const pause of readPausesMs) {
    try {
      return run();
    } catch (error) {
      if (!isFailedRead(error)) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pause);
    }
  }
  return run();
}

/** Released by the system when the process dies, unlike a file that only exists. What fails names the file of the lock. */
function takeLock(path: string): DatabaseSync {
  let lock: DatabaseSync | undefined;
  try {
    createPrivate(path);
    lock = openDatabase(path, { timeout: lockWaitMs });
    try {
      lock.exec('BEGIN EXCLUSIVE');
    } catch (error) {
      if (!isDamage(error) || !lstatSync(path).isFile()) throw error;
      // It is to hold nothing. Emptied in its place it remains the same lock to all who have it open; one that is empty by now is
      // left alone, because another thread of this process may have it.
      if (statSync(path).size > 0) writeFileSync(path, '');
      lock.exec('BEGIN EXCLUSIVE');
    }
    return lock;
  } catch (error) {
    lock?.close();
    throw sqliteFailure(error, path);
  }
}

function createPrivate(path: string): void {
  try {
    writeFileSync(path, '', { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    const found = statOf(path);
    if (!found?.isFile()) {
      const next = 'Move away what is in its place, or set POLYLOGUE_HOME to another directory.';
      throw storageError('unavailable', `${path} is not a file.`, { cause: error, next });
    }
    // It is there already, perhaps from a time when others could read it.
    if ((found.mode & 0o077) !== 0 && process.platform !== 'win32') chmodSync(path, 0o600);
  }
}

/** Undefined when the file was damaged; it has then been replaced. */
function open(options: OpenOptions, thorough: boolean) {
  const { file, connect } = options;
  createPrivate(file);
  if (statSync(file).size === 0 && logReader(file).frames > 0) {
    // SQLite deletes the log of an empty file.
    repair(file, undefined, 'it is empty next to its log', options);
    return undefined;
  }
  const first = connect(file, { timeout: lockWaitMs });
  let db = first;
  try {
    let damage = firstDamage(db, file, thorough);
    if (damage !== undefined) {
      // Only what is found twice is damage: SQLite also reports a read that the disk failed in other words.
      db = connect(file, { timeout: lockWaitMs });
      damage = firstDamage(db, file, thorough);
    }
    if (damage !== undefined) {
      repair(file, db, damage, options);
      return undefined;
    }
    // A page that many changes touch is moved into the file less often than after 1,000 of them. What is deleted within a page
    // is wiped, so that nothing brings it back when the page is damaged.
    db.exec('PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 3000; PRAGMA secure_delete = FAST');
    noteLogOwner(file);
    return { db, inode: inodeOf(file) ?? -1, repaired: false };
  } catch (error) {
    if (db.isOpen) db.close();
    throw error;
  } finally {
    // Not before the other one: the last connection that is closed moves the log into the file, however damaged.
    if (first !== db) first.close();
  }
}

/** Prepares the file and says what is broken about it; anything but damage is thrown. */
function firstDamage(db: DatabaseSync, file: string, thorough: boolean): string | undefined {
  try {
    // SQLite reads the log up to the first frame that is damaged, and says nothing of transactions that follow.
    const { frames, leavesOut } = logReader(file);
    const read = frames > 0 ? Number(db.prepare('PRAGMA wal_checkpoint(NOOP)').get()?.log) : 0;
    if (leavesOut(read) && isOurs(file)) return `its log can be read up to frame ${read} of ${frames}`;
    sqliteSchema(db, file);
    db.exec('PRAGMA journal_mode = WAL');
    return check(db, thorough ? undefined : statSync(file).size);
  } catch (error) {
    if (isDamage(error)) return asError(error).message;
    // Definitions that SQLite cannot make sense of.
    if (sqliteCode(error) === 1 && isOurs(file)) return asError(error).message;
    throw error;
  }
}

/** All of the file, or where its size is given as much as may be checked at every start. */
function check(db: DatabaseSync, bytes: number | undefined): string | undefined {
  try {
    if (bytes === undefined) return problemIn(db, 'PRAGMA integrity_check(1)') ?? brokenSeal(db);
    if (bytes > checkedBytes) return undefined;
    if (bytes < fullyCheckedBytes) return problemIn(db, 'PRAGMA quick_check(1)');
    for (const table of durableTables) {
      const problem = problemIn(db, `PRAGMA quick_check('${table}')`);
      if (problem !== undefined) return problem;
    }
    return undefined;
  } catch (error) {
    // A table that is not there, in a file that says it has them all.
    if (sqliteCode(error) === 1) return asError(error).message;
    throw error;
  }
}

function problemIn(db: DatabaseSync, check: string): string | undefined {
  const finding = String(onlyValue(db, check));
  // The check tells of a read that the disk failed as if it were damage.
  const errcode = Number(/error code[ =](\d+)/.exec(finding)?.[1] ?? 0);
  if ((errcode & 0xff) === 10) throw Object.assign(new Error(finding), { errcode });
  return finding === 'ok' ? undefined : finding.replaceAll('\n', '; ');
}

/** No file has so many rows. */
const maxNumber = 2 ** 50;

/** The first row whose checksum is wrong, or that stands with another thread than its own. */
function brokenSeal(db: DatabaseSync): string | undefined {
  for (const table of ['records', 'workflows', 'tombstones', 'jobs', 'spend']) {
    // As text: a damaged number may be larger than JavaScript's.
    const columns = `CAST(n AS TEXT) AS n, ${table === 'records' ? 'CAST(thread AS TEXT)' : 'NULL'} AS thread, body, seal`;
    for (const { n, thread, body, seal } of db.prepare(`SELECT ${columns} FROM ${table}`).iterate()) {
      const record = openRecord(String(body), String(seal));
      if (!record) return `row ${n} of ${table} has another checksum`;
      const isPlaced = thread === null || thread === String(threadNumber(threadOf(record)));
      if (!isPlaced || Number(n) > maxNumber) return `row ${n} of ${table} is misplaced`;
    }
  }
  return undefined;
}

import { closeSync, fsyncSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  type AppError,
  asError,
  bugError,
  type ErrorDetails,
  errorCode,
  isAppError,
  storageError,
} from '../../core/errors.ts';
import { isRecord } from '../../core/json.ts';

/** Primary result codes of SQLite that mean something of their own to us. */
const code = {
  busy: 5,
  locked: 6,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cantOpen: 14,
  protocol: 15,
  notADb: 26,
};

/** A write, or the growth of the shared-memory file, that failed: for want of room, or because the disk is broken. */
const failedWrites = new Set([778, 4874]);
/** A read, whole or in part, that the disk failed. */
const failedReads = new Set([266, 522, 8458]);
/** A read-only connection that found the file in need of its writer first. */
const needsWriter = new Set([264, 520, 1288]);
const fullDisk: readonly (string | undefined)[] = ['ENOSPC', 'EDQUOT', 'EFBIG'];
const outOfHandles: readonly (string | undefined)[] = ['EMFILE', 'ENFILE'];

/** SQLite does not tell why it cannot open a file; opening its directory does. */
function lacksHandles(error: unknown, extended: number | undefined, file: string): boolean {
  if (extended === undefined || (extended & 0xff) !== code.cantOpen) return outOfHandles.includes(errorCode(error));
  try {
    closeSync(openSync(dirname(file), 'r'));
    return false;
  } catch (probed) {
    return outOfHandles.includes(errorCode(probed));
  }
}

/** SQLite's extended result code, when the error is one of SQLite's. */
export const sqliteCode = (error: unknown): number | undefined =>
  isRecord(error) && typeof error.errcode === 'number' ? error.errcode : undefined;

/** The file itself is damaged, or was never a database; so is a row that is, or whose numbers are larger than any of ours. */
export function isDamage(error: unknown): boolean {
  if (isAppError(error)) return error.kind === 'storage' && error.details.class === 'corrupt';
  if (errorCode(error) === 'ERR_OUT_OF_RANGE') return true;
  const primary = (sqliteCode(error) ?? 0) & 0xff;
  return primary === code.corrupt || primary === code.notADb;
}

/** The disk failed a read, which says nothing about what is on it. */
export const isFailedRead = (error: unknown): boolean =>
  failedReads.has(sqliteCode(error) ?? 0) || (isRecord(error) && error.code === 'EIO' && error.syscall === 'read');

/** The disk has no room, as SQLite or the file system says. */
function isFull(error: unknown, extended: number | undefined, file: string): boolean {
  if (extended === undefined) return fullDisk.includes(errorCode(error));
  return (extended & 0xff) === code.full || (failedWrites.has(extended) && hasNoRoom(file));
}

/** SQLite does not tell a limit of the system or a quota from a broken disk; another file of that size does. */
function hasNoRoom(file: string): boolean {
  const probe = `${file}.probe-${process.pid}`;
  const sizes = ['', '-wal'].map(suffix => statSync(file + suffix, { throwIfNoEntry: false })?.size ?? 0);
  try {
    const handle = openSync(probe, 'w', 0o600);
    try {
      writeSync(handle, Buffer.alloc(65_536, 1), 0, 65_536, Math.max(...sizes));
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    return false;
  } catch (error) {
    return fullDisk.includes(errorCode(error));
  } finally {
    rmSync(probe, { force: true });
  }
}

/** Somebody else is in the way for a moment; the same read succeeds a little later. */
export function passesSoon(error: unknown): boolean {
  const extended = sqliteCode(error) ?? 0;
  return [code.busy, code.locked, code.protocol].includes(extended & 0xff) || needsWriter.has(extended);
}

/** Says in our words what SQLite or the file system refused. Errors that are ours already stay as they are. */
export function sqliteFailure(error: unknown, file: string): AppError {
  if (isAppError(error)) return error;
  const extended = sqliteCode(error);
  const raw = asError(error).message;
  const details = { cause: error, ...(extended === undefined ? {} : { data: { errcode: extended } }) };
  if (isFull(error, extended, file))
    return storageError('storage_full', `No disk space left for ${file}.`, {
      ...details,
      next: 'Free space on that disk, or delete threads; the next call works again without a restart.',
    });
  if (lacksHandles(error, extended, file))
    return storageError('unavailable', `Cannot open ${file}: too many files are open.`, {
      ...details,
      retryable: true,
      next: 'Raise the limit of open files (ulimit -n, or LimitNOFILE of a service), or close programs; then try again.',
    });
  if (isFailedRead(error)) return failedIo('reading', file, raw, details);
  if (extended === undefined && /^(ERR_|$)/.test(errorCode(error) ?? ''))
    return bugError(`The store failed in a way it should not: ${raw}`, error);
  switch ((extended ?? 0) & 0xff) {
    case code.corrupt:
    case code.notADb:
      return storageError('corrupt', `The thread database ${file} is damaged: ${raw}.`, {
        ...details,
        next: 'Try once more: a damaged file is set aside and what is intact of it is kept in a new one.',
      });
    case code.busy:
    case code.locked:
    case code.protocol:
      return storageError('unavailable', `Timed out waiting for ${file}: another program has it locked.`, {
        ...details,
        retryable: true,
        next: 'Retry in a moment. If it persists, stop the program that holds the lock.',
      });
    case code.readOnly:
    case code.cantOpen:
      return storageError('unavailable', `Cannot open ${file} for writing: ${raw}.`, {
        ...details,
        next: 'Grant this user write access to the file and its directory, or set POLYLOGUE_HOME to another directory.',
      });
    case code.ioError:
      return failedIo('writing', file, raw, details);
    default:
      return storageError('unavailable', `${file} cannot be used: ${raw}.`, {
        ...details,
        next: 'Check what is at that path, the disk and its permissions, then try again.',
      });
  }
}

/** Not `retryable`: what a broken disk was asked is not asked again by itself. */
const failedIo = (doing: string, file: string, raw: string, details: Partial<ErrorDetails>): AppError =>
  storageError('unavailable', `The disk failed while ${doing} ${file}: ${raw}. Nothing in the file was changed.`, {
    ...details,
    next: 'Try again; if it fails again, check the disk and the system log, and copy the data directory to another disk.',
  });

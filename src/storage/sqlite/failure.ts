import { AppError, type ErrorDetails, isAppError, storageError } from '../../core/errors.ts';
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

/** A write, or the growth of the shared-memory file, for which the disk had no room. */
const noRoom = new Set([778, 4874]);
/** A read-only connection that found the file in need of its writer first. */
const needsWriter = new Set([264, 520, 1288]);
const fullDisk = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** SQLite's extended result code, when the error is one of SQLite's. */
export function sqliteCode(error: unknown): number | undefined {
  return isRecord(error) && typeof error.errcode === 'number' ? error.errcode : undefined;
}

/** The file itself is damaged, or was never a database. */
export function isDamage(error: unknown): boolean {
  const primary = (sqliteCode(error) ?? 0) & 0xff;
  return primary === code.corrupt || primary === code.notADb;
}

/** Somebody else is in the way for a moment; the same read succeeds a little later. */
export function passesSoon(error: unknown): boolean {
  const extended = sqliteCode(error);
  if (extended === undefined) return false;
  return [code.busy, code.locked, code.protocol].includes(extended & 0xff) || needsWriter.has(extended);
}

/** Says in our words what SQLite or the file system refused. Errors that are ours already stay as they are. */
export function sqliteFailure(error: unknown, file: string): AppError {
  if (isAppError(error)) return error;
  const extended = sqliteCode(error);
  const raw = error instanceof Error ? error.message : String(error);
  const details = { cause: error, ...(extended === undefined ? {} : { data: { errcode: extended } }) };
  if (extended === undefined) return fileSystemFailure(error, raw, file, details);
  const primary = extended & 0xff;
  if (primary === code.full || noRoom.has(extended)) return full(file, details);
  switch (primary) {
    case code.corrupt:
    case code.notADb:
      return storageError('corrupt', `The file of the threads, ${file}, is damaged: ${raw}.`, {
        ...details,
        next: 'Try once more: a damaged file is set aside and what is intact of it is kept in a new one.',
      });
    case code.busy:
    case code.locked:
    case code.protocol:
      return storageError('unavailable', `Another program kept ${file} locked for too long.`, {
        ...details,
        retryable: true,
        next: 'Try again in a moment; if it stays so, end the program that holds the file open.',
      });
    case code.readOnly:
    case code.cantOpen:
      return storageError('unavailable', `The file of the threads, ${file}, cannot be opened for writing: ${raw}.`, {
        ...details,
        next: 'Give this user the right to write to it and its directory, or set POLYLOGUE_HOME to another one.',
      });
    default:
      return unavailable(file, raw, details);
  }
}

type Extra = Partial<ErrorDetails>;

function full(file: string, details: Extra): AppError {
  return storageError('storage_full', `There is no room left for ${file}.`, {
    ...details,
    next: 'Free space on that disk, or delete threads; the next call works again without a restart.',
  });
}

function unavailable(file: string, raw: string, details: Extra): AppError {
  return storageError('unavailable', `The threads in ${file} cannot be reached: ${raw}.`, {
    ...details,
    next: 'Check the disk and its permissions, then try again.',
  });
}

function fileSystemFailure(error: unknown, raw: string, file: string, details: Extra): AppError {
  const system = isRecord(error) && typeof error.code === 'string' ? error.code : '';
  if (fullDisk.has(system)) return full(file, details);
  if (system === '' || system.startsWith('ERR_')) {
    return new AppError('bug', `The store failed in a way it should not: ${raw}`, {
      ...details,
      code: 'INTERNAL_SERVER_ERROR',
      class: 'bug',
    });
  }
  return unavailable(file, raw, details);
}

/** An `AppError` as it crosses from one thread to another. */
export interface FailureMessage {
  kind: AppError['kind'];
  message: string;
  details: Pick<ErrorDetails, 'code' | 'class' | 'next' | 'data' | 'retryable'>;
}

export function packFailure({ kind, message, details }: AppError): FailureMessage {
  const { code: errorCode, class: errorClass, next, data, retryable } = details;
  return { kind, message, details: { code: errorCode, class: errorClass, next, data, retryable } };
}

export function unpackFailure({ kind, message, details }: FailureMessage): AppError {
  return new AppError(kind, message, details);
}

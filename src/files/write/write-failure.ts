import { inputError, isAppError, storageError } from '../../core/errors.ts';
import { printablePath } from '../../core/text.ts';
import { errorCode } from '../skip.ts';

const reasons: Readonly<Record<string, string>> = {
  EROFS: 'the file system is read-only',
  EACCES: 'the server may not write there',
  EPERM: 'the server may not write there',
  ENOENT: 'the directory is gone',
  ENOTDIR: 'the directory is gone',
};
const full: readonly (string | undefined)[] = ['ENOSPC', 'EDQUOT'];

/** A failed system call as an error of ours; anything else comes back as it is. */
export function writeFailure(path: string, error: unknown): unknown {
  const code = errorCode(error);
  if (isAppError(error) || !(error instanceof Error) || code === undefined || !('errno' in error)) return error;
  const shown = printablePath(path);
  if (code === 'ENAMETOOLONG') {
    return inputError(`${shown} is longer than this system allows.`, { next: 'Choose a shorter name.', cause: error });
  }
  const reason = full.includes(code) ? 'the disk is full' : (reasons[code] ?? `the system refused (${code})`);
  return storageError(full.includes(code) ? 'storage_full' : 'unavailable', `${shown} can't be written: ${reason}.`, {
    next: 'Name a directory of the project that can be written, or make room there, and send the call again.',
    cause: error,
  });
}

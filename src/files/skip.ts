import type { Skip, SkipCode } from '../core/file.ts';
import { printablePath } from '../core/text.ts';

export function skip(path: string, code: SkipCode, reason: string): Skip {
  return { path: printablePath(path), code, reason };
}

/** Tells a refusal from what a function of this room answers otherwise. */
export function isSkip<Other extends object>(outcome: Other | Skip): outcome is Skip {
  return 'code' in outcome && 'reason' in outcome;
}

export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Puts a failed system call into words; anything that is no failed system call is thrown on. */
export function skipFor(path: string, error: unknown): Skip {
  const code = errorCode(error);
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return skip(path, 'not_found', 'There is no such file; check the spelling and where relative paths start.');
    case 'EACCES':
    case 'EPERM':
      return skip(path, 'unreadable', 'The server may not read it; change its permissions or name another file.');
    case 'ELOOP':
      return skip(
        path,
        'unreadable',
        'Its symbolic links lead in a circle or changed meanwhile; name the file itself.',
      );
    case 'ENAMETOOLONG':
      return skip(path, 'bad_path', 'The path is longer than this system allows.');
    case 'ENXIO':
    case 'ENODEV':
    case 'EISDIR':
      return skip(path, 'not_regular', 'It is no regular file; only regular files are read.');
    default:
      if (error instanceof Error && 'errno' in error) {
        return skip(path, 'unreadable', `The system could not read it (${code ?? 'unknown error'}); try again later.`);
      }
      throw error;
  }
}

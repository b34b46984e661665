import { existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { errorCode, inputError, isAppError, storageError } from '../../core/errors.ts';
import { type CommandContext, isOn } from './command.ts';

/** Makes a file whole or not at all: `write` fills a draft next to it. Only `--overwrite` replaces one. Answers the absolute path. */
export async function writtenFile(
  { environment: { cwd, random }, flags }: CommandContext,
  file: string,
  write: (draft: string) => Promise<void>,
): Promise<string> {
  const path = resolve(cwd, file);
  const draft = join(dirname(path), `.polylogue-${random.uuid()}.part`);
  try {
    // What can't be looked at is told of when it is written.
    const next = 'Choose another file, or add --overwrite.';
    if (!isOn(flags, 'overwrite') && existsSync(path))
      throw inputError(`${path} already exists.`, { class: 'exists', next });
    await write(draft);
    await rename(draft, path);
    return path;
  } catch (error) {
    await rm(draft, { force: true });
    throw isAppError(error) ? error : unwritable(path, error);
  }
}

function unwritable(path: string, error: unknown): unknown {
  const code = errorCode(error);
  if (code === undefined) return error;
  return storageError(code === 'ENOSPC' ? 'storage_full' : 'unavailable', `${path} cannot be written (${code}).`, {
    next: 'Name a file in a directory that is there and can be written.',
  });
}

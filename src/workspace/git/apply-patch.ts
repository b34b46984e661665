import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { inputError } from '../../core/errors.ts';
import { writeFailure } from '../write-file.ts';
import { filterlessGit, type GitOptions } from './changes.ts';
import { checkPatch, type PatchRequest } from './check-patch.ts';

export interface Applied {
  /** Absolute. */
  files: string[];
  /** The folder with the files as they were, and the patch: `git apply -R` takes it back. */
  backup: string;
}

/**
 * Applies a patch that still applies, all of it or nothing, after what it changes was copied. Throws an `AppError`; nothing
 * was changed then.
 */
export async function applyPatch(options: GitOptions, request: PatchRequest & { backup: string }): Promise<Applied> {
  const { backup, signal } = request;
  const sound = await checkPatch(options, request);
  if (!sound.ok) throw stale(sound.reason);
  const { place, patch, files } = sound;
  try {
    for (const { path } of files.filter(({ isNew }) => !isNew)) {
      const copy = join(backup, 'before', path);
      await mkdir(dirname(copy), { recursive: true, mode: 0o700 });
      await copyFile(join(place.top, path), copy);
    }
    await mkdir(backup, { recursive: true, mode: 0o700 });
    await writeFile(join(backup, 'applied.patch'), patch, { mode: 0o600 });
  } catch (error) {
    throw writeFailure(backup, error);
  }
  const git = await filterlessGit(options, place, signal);
  const { exitCode, stderr } = await git(['apply', '--whitespace=nowarn', '-'], patch);
  if (exitCode !== 0) throw stale(stderr.trim().split('\n', 1)[0] ?? '');
  return { files: files.map(({ path }) => join(place.top, path)), backup };
}

function stale(reason: string): Error {
  return inputError(`The patch was not applied: ${reason}.`, {
    class: 'conflict',
    next: 'The files changed since, or the patch never fitted: ask for a new one.',
  });
}

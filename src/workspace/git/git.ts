import { inputError } from '../../core/errors.ts';
import { isSkip } from '../../files/skip.ts';
import { parsePathReference } from '../paths.ts';
import type { Applied } from './apply-patch.ts';
import { type ChangesRequest, type GitOptions, type RepositoryChanges, readChanges } from './changes.ts';
import type { PatchRequest, SoundPatch, WithheldPatch } from './check-patch.ts';
import { checkRef, findRepositories } from './repositories.ts';

export interface Git {
  /** Reads what is about to be committed. */
  changes(request: ChangesRequest): Promise<{ repositories: RepositoryChanges[]; notes: string[] }>;
  /** Whether a patch applies to the files as they are, and its sound form. Changes nothing. */
  checkPatch(request: PatchRequest): Promise<SoundPatch | WithheldPatch>;
  /** Copies what a patch changes to `backup`, and applies it: all or nothing. */
  applyPatch(request: PatchRequest & { backup: string }): Promise<Applied>;
}

export function createGit(options: GitOptions): Git {
  async function changes(request: ChangesRequest) {
    if (request.compareTo !== undefined) checkRef(request.compareTo);
    const reference = parsePathReference(request.path, request.root, options.homeDir);
    if (isSkip(reference)) throw noFolder(request.path, reference.reason);
    const { places, notes } = await findRepositories(
      options.sandbox,
      reference.literal ?? reference.path,
      request.signal,
    );
    if (places.length === 0) throw noFolder(request.path, 'no git repository is there, nor up to 5 folders below.');
    const repositories: RepositoryChanges[] = [];
    // One after the other: each keeps a disk busy by itself.
    for (const place of places) repositories.push(await readChanges(options, place, request));
    if (request.compareTo !== undefined && repositories.every(({ comparedWith }) => comparedWith === undefined)) {
      throw unknownRef(request.compareTo);
    }
    return { repositories, notes };
  }
  return {
    changes,
    checkPatch: async request => (await import('./check-patch.ts')).checkPatch(options, request),
    applyPatch: async request => (await import('./apply-patch.ts')).applyPatch(options, request),
  };
}

function noFolder(path: string, why: string): Error {
  return inputError(`There is nothing to validate at "${path}": ${why}`, {
    next: 'Name the folder of a git repository, or one above several, in "path"; "git init" makes one.',
    validationErrors: [{ field: 'path', error: 'no git repository' }],
  });
}

function unknownRef(ref: string): Error {
  return inputError(`"${ref}" names no commit here.`, {
    next: 'Name a branch, tag or commit that the repository has in compare_to ("git branch -a" lists them), or leave it out.',
    validationErrors: [{ field: 'compare_to', error: 'no such commit' }],
  });
}

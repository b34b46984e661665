import { inputError } from '../../domain/error.ts';
import { parsePathReference } from '../path-reference.ts';
import { isSkip } from '../skip.ts';
import { type ChangesRequest, type GitOptions, type RepositoryChanges, readChanges } from './changes.ts';
import { checkRef, findRepositories } from './find-repositories.ts';

/** Reads what is about to be committed; changes nothing. */
export interface Git {
  changes(request: ChangesRequest): Promise<{ repositories: RepositoryChanges[]; notes: string[] }>;
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
  return { changes };
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

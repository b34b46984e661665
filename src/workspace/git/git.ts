import { join } from 'node:path';
import { inputError, isAppError } from '../../core/errors.ts';
import { printablePath } from '../../core/text.ts';
import { isSecretFile, isSkip, parsePathReference } from '../paths.ts';
import { allLines, type ChangesRequest, diffOptions, type RepositoryChanges, readChanges } from './changes.ts';
import type { PatchRequest } from './check-patch.ts';
import { maskPatch, movedFrom, splitPatches } from './diff.ts';
import { findRepositories } from './inside-roots.ts';
import { type GitOptions, runGit } from './run-git.ts';

interface HistoryRequest extends Pick<ChangesRequest, 'scope' | 'signal'> {
  /** Absolute path of a folder in the repository. */
  folder: string;
}

export type GitHistory = ReturnType<typeof createGitHistory>;

const header = ['--no-color', '--no-show-signature', '--format=commit %H%nAuthor: %an%nDate: %aI%n%n%w(0,4,4)%B'];
const maxBytes = 4 * 1024 * 1024;

/** Commits as text, secrets masked. Runs nothing of the repository's own. */
export function createGitHistory(options: GitOptions) {
  async function run({ folder, signal }: HistoryRequest, args: readonly string[]) {
    const { places } = await findRepositories(options, folder, signal);
    const [place] = places;
    if (!place) throw inputError('There is no git repository here.', { next: 'Go on without its history.' });
    const output = await runGit(options, { place, args, maxBytes, signal });
    if (output.exitCode === 0 || !output.complete) return { place, ...output };
    throw inputError(`git said: ${output.stderr.trim().slice(0, 500)}`, {
      next: 'Name a branch, tag or commit that the repository has.',
    });
  }

  return {
    async log({ ref, path, max, ...request }: HistoryRequest & { ref?: string; path?: string; max: number }) {
      const args = ['log', ...header, `--max-count=${max}`, ...(ref === undefined ? [] : [checkRef(ref)])];
      const { stdout } = await run(request, [...args, '--', ...(path === undefined ? [] : [path])]);
      return (await options.mask(stdout, request.scope)).text;
    },
    /** A commit's message and patches, without those of secret files. */
    async show({ ref, ...request }: HistoryRequest & { ref: string }): Promise<string> {
      const args = ['show', ...header, ...diffOptions, '-m', '--first-parent', '--patch'];
      // A blob or a tree would be shown as it is, whatever file it is of.
      const commit = `${checkRef(ref)}^{commit}`;
      const { place, stdout, complete } = await run(request, [...args, commit, '--']);
      const around = await run(request, [...args, allLines, commit, '--']);
      const wholes = splitPatches(around.stdout, around.complete);
      const at = stdout.search(/^diff --git /m);
      const message = at === -1 ? stdout : stdout.slice(0, at);
      const shown = [(await options.mask(message, request.scope)).text];
      for (const [path, patch] of at === -1 ? [] : splitPatches(stdout.slice(at), complete)) {
        const names = [path, movedFrom(patch) ?? path];
        if (names.some(name => isSecretFile(join(place.top, name))))
          shown.push(`diff of ${path}: left out, it is a secret file`);
        else shown.push((await maskPatch(patch, options.mask, request.scope, wholes.get(path))).patch);
      }
      return shown.join('\n');
    },
  };
}

const refProblems = [
  [/^-/, 'it begins with "-"'],
  [/^.{251}/s, 'it is longer than 250 characters'],
  [/[\p{Cc}\s?*[\\:]|\.\./u, 'it has a character that names of commits do not have'],
] as const;

/** Refuses what git could take for an option or for more than one commit. */
function checkRef(ref: string): string {
  const problem = refProblems.find(([pattern]) => pattern.test(ref))?.[1];
  if (problem === undefined) return ref;
  throw inputError(`"${printablePath(ref)}" cannot be compared to: ${problem}.`, {
    next: 'Name one branch, tag or commit in compare_to, such as "main" or "HEAD~3".',
    validationErrors: [{ field: 'compare_to', error: problem, allowed: ['a branch, a tag, a commit'] }],
  });
}

export type Git = ReturnType<typeof createGit>;

export const createGit = (options: GitOptions) => ({
  /** Reads what is about to be committed. */
  async changes(request: ChangesRequest) {
    if (request.compareTo !== undefined) checkRef(request.compareTo);
    const reference = parsePathReference(request.path, request.root, options.homeDir);
    if (isSkip(reference)) throw noFolder(request.path, reference.reason);
    const { places, notes } = await findRepositories(options, reference.literal ?? reference.path, request.signal);
    if (places.length === 0) throw noFolder(request.path, 'no git repository is there, nor up to 5 directories below.');
    const repositories: RepositoryChanges[] = [];
    const failures: Error[] = [];
    // One after the other: each keeps a disk busy by itself.
    for (const place of places) {
      try {
        repositories.push(await readChanges(options, place, request));
      } catch (error) {
        // One that is damaged is no reason to leave the others unread.
        if (!isAppError(error) || request.signal?.aborted) throw error;
        failures.push(error);
      }
    }
    if (repositories.length === 0) throw failures[0];
    notes.push(...failures.map(({ message }) => message));
    if (request.compareTo !== undefined && repositories.every(({ comparedWith }) => comparedWith === undefined)) {
      throw inputError(`"${request.compareTo}" names no commit here.`, {
        next: 'Name a branch, tag or commit that the repository has in compare_to ("git branch -a" lists them), or leave it out.',
        validationErrors: [{ field: 'compare_to', error: 'no such commit' }],
      });
    }
    return { repositories, notes };
  },
  /** Whether a patch applies to the files as they are, and its sound form. Changes nothing. */
  checkPatch: async (request: PatchRequest) => (await import('./check-patch.ts')).checkPatch(options, request),
  /** Copies what a patch changes to `backup`, and applies it: all or nothing. */
  applyPatch: async (request: PatchRequest & { backup: string }) =>
    (await import('./check-patch.ts')).applyPatch(options, request),
});

const noFolder = (path: string, why: string): Error =>
  inputError(`Nothing to validate at "${path}": ${why}`, {
    next: 'Name the directory of a git repository, or one above several, in "path"; "git init" makes one.',
    validationErrors: [{ field: 'path', error: 'no git repository' }],
  });

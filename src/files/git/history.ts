import { join } from 'node:path';
import { inputError } from '../../core/errors.ts';
import type { GitOptions } from '../../workspace/git/changes.ts';
import { splitPatches } from '../../workspace/git/diff.ts';
import { checkRef, findRepositories, type RepositoryPlace } from '../../workspace/git/repositories.ts';
import { type GitOutput, runGit } from '../../workspace/git/run-git.ts';
import { isSecretFile } from '../secret-files.ts';
import { maskPatch } from './mask-patch.ts';

export interface HistoryRequest {
  /** Absolute path of a folder in the repository. */
  folder: string;
  /** Keys the mask. */
  scope: string;
  signal?: AbortSignal;
}

/** Commits as text, secrets masked. Runs nothing of the repository's own. */
export interface GitHistory {
  log(request: HistoryRequest & { ref?: string; path?: string; most: number }): Promise<string>;
  /** A commit's message and patches, without those of secret files. */
  show(request: HistoryRequest & { ref: string }): Promise<string>;
}

const plain = ['--no-color', '--no-ext-diff', '--no-textconv', '--no-show-signature'];
const header = '--format=commit %H%nAuthor: %an%nDate: %aI%n%n%w(0,4,4)%B';
const mostBytes = 4 * 1024 * 1024;

export function createGitHistory(options: GitOptions): GitHistory {
  async function run(
    { folder, signal }: HistoryRequest,
    args: readonly string[],
  ): Promise<[RepositoryPlace, GitOutput]> {
    const { places } = await findRepositories(options.sandbox, folder, signal);
    const [place] = places;
    if (!place) {
      throw inputError('There is no git repository here.', { next: 'Go on without its history.' });
    }
    const output = await runGit(options, { place, args, maxBytes: mostBytes, signal });
    if (output.exitCode === 0 || !output.complete) return [place, output];
    throw inputError(`git said: ${output.stderr.trim().slice(0, 500)}`, {
      next: 'Name a branch, tag or commit that the repository has.',
    });
  }

  return {
    async log({ ref, path, most, ...request }) {
      const args = ['log', ...plain, header, `--max-count=${most}`, ...(ref === undefined ? [] : [checkRef(ref)])];
      const [, output] = await run(request, [...args, '--', ...(path === undefined ? [] : [path])]);
      return (await options.mask(output.stdout, request.scope)).text;
    },
    async show({ ref, ...request }) {
      const args = ['show', ...plain, header, '--find-renames', '-m', '--first-parent', '--patch', checkRef(ref), '--'];
      const [place, { stdout, complete }] = await run(request, args);
      const at = stdout.search(/^diff --git /m);
      const message = at === -1 ? stdout : stdout.slice(0, at);
      const shown = [(await options.mask(message, request.scope)).text];
      for (const [path, patch] of at === -1 ? [] : splitPatches(stdout.slice(at), complete)) {
        if (isSecretFile(join(place.top, path))) shown.push(`diff of ${path}: left out, it is a secret file`);
        else shown.push((await maskPatch(patch, options.mask, request.scope)).patch);
      }
      return shown.join('\n');
    },
  };
}

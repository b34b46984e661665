import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { inputError, isAppError } from '../../core/errors.ts';
import { printablePath } from '../../core/text.ts';
import { isIn, isSkip, slashedFrom } from '../paths.ts';
import { reasonToProtect } from '../protected-files.ts';
import { readWhole } from '../read-file.ts';
import type { MaskContext } from '../restore-secrets.ts';
import { checkTarget, deepestThere, writeFailure } from '../write-file.ts';
import { filterlessGit, type RunGit } from './changes.ts';
import { enclosingRepository } from './inside-roots.ts';
import { fittedHunks, type PatchedFile, parsePatch, patchedFile, UnfitPatch } from './patch.ts';
import type { GitOptions, RepositoryPlace } from './run-git.ts';

export interface PatchRequest {
  /** A unified diff, as people and models write one. */
  patch: string;
  /** Where relative paths start; absolute. */
  root: string;
  /** How the files were masked for whoever wrote it: secrets are put back where they stood. Absent: they were not masked. */
  secrets?: MaskContext;
  signal?: AbortSignal;
}

/** A patch that `git apply --check` takes in its repository, as it is now. */
export type SoundPatch = Awaited<ReturnType<typeof soundPatch>>;

const maxChars = 512 * 1024;
const maxBytes = 8 * 1024 * 1024;

/**
 * Brings a patch into the form that git takes, for files inside the roots, and asks git whether it applies. Changes nothing.
 * A patch for secret files, for what git runs or believes, or for two repositories at once is withheld: the reason is a clause that
 * goes on from "it was withheld:".
 */
export async function checkPatch(options: GitOptions, request: PatchRequest) {
  try {
    return await soundPatch(options, request);
  } catch (error) {
    const isRefusal = isAppError(error) && (error.kind === 'security' || error.kind === 'input');
    if (isRefusal || error instanceof UnfitPatch) return { ok: false as const, reason: error.message };
    throw error;
  }
}

async function soundPatch(options: GitOptions, request: PatchRequest) {
  if (request.patch.length > maxChars) throw new UnfitPatch('it is too large');
  const changed = parsePatch(request.patch);
  const place = await enclosingRepository(options, await options.sandbox.assertWithin(request.root));
  if (!place) throw new UnfitPatch('there is no git repository that could say whether it applies');
  const pieces: string[] = [];
  const files = [];
  for (const file of changed) {
    const { path, text } = await targetOf(options, request, place, file);
    // Of secrets those that the patch writes back.
    const { after, secrets } = await patchedFile(request.secrets, path, file, text);
    const { lines, added, removed } = fittedHunks(file, text ?? '', after);
    // Why its change needs an approval of its own; undefined: it needs none.
    const protection = await reasonToProtect(options.sandbox, join(place.top, path), { before: text, after });
    const isNew = text === undefined;
    const head = isNew ? ['new file mode 100644', '--- /dev/null'] : [`--- a/${path}`];
    pieces.push(`diff --git a/${path} b/${path}`, ...head, `+++ b/${path}`, ...lines);
    files.push({ path, added, removed, isNew, protection, secrets });
  }
  /** Paths are relative to the top of the repository; to be applied there by plain `git apply`. */
  const patch = `${pieces.join('\n')}\n`;
  const refusal = await applyBy(await filterlessGit(options, place, request.signal), patch, '--check');
  if (refusal !== undefined) throw new UnfitPatch(`git: ${refusal}`);
  return { ok: true as const, patch, place, files };
}

/** Has git apply a patch; answers what it says against it, or undefined. */
async function applyBy(git: RunGit, patch: string, ...more: string[]): Promise<string | undefined> {
  const { exitCode, stderr } = await git(['apply', ...more, '--whitespace=nowarn', '-'], patch);
  return exitCode === 0 ? undefined : (stderr.trim().split('\n', 1)[0] ?? '');
}

/** The file that a patch means: its path in the repository, and what it holds now; no text for one that is to be made. */
async function targetOf({ sandbox }: GitOptions, request: PatchRequest, { top }: RepositoryPlace, file: PatchedFile) {
  const { root, signal } = request;
  const { oldPath, newPath } = file;
  if (/[\p{Cc}"\\]/u.test(newPath))
    throw new UnfitPatch('the name of a file in it has characters that no path should have');
  const name = printablePath(newPath);
  const candidates = isAbsolute(newPath) ? [newPath] : [...new Set([resolve(root, newPath), resolve(top, newPath)])];
  let missing: string | undefined;
  for (const path of candidates) {
    if (path === top || !isIn(path, top)) continue;
    checkTarget(sandbox, path);
    const found = await readWhole(sandbox, path, { maxBytes, signal });
    const slashed = slashedFrom(top, path);
    if (!isSkip(found)) {
      if (found.path !== path) throw new UnfitPatch(`${name} is a link, or lies behind one`);
      if (oldPath === undefined) throw new UnfitPatch(`${name} is there already`);
      // As the bytes are, line ends and all: git compares them so.
      return { path: slashed, text: found.bytes.toString('utf8') };
    }
    if (found.code !== 'not_found') throw new UnfitPatch(`${name}: ${found.reason}`);
    missing ??= slashed;
  }
  if (missing === undefined) throw new UnfitPatch(`${name} is outside the repository`);
  if (oldPath !== undefined) throw new UnfitPatch(`unknown file ${name}`);
  // A file that is to be made lies in the deepest folder of its path that is there.
  const { at, found: folder } = await deepestThere(sandbox, dirname(join(top, missing)));
  if (folder?.kind !== 'directory' || folder.path !== at) throw new UnfitPatch(`${name} is outside the roots`);
  return { path: missing };
}

/**
 * Applies a patch that still applies, all of it or nothing, after what it changes was copied to `backup`, with the patch: `git
 * apply -R` takes it back. Answers the absolute paths. Throws an `AppError`; nothing was changed then.
 */
export async function applyPatch(options: GitOptions, request: PatchRequest & { backup: string }): Promise<string[]> {
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
  const refusal = await applyBy(await filterlessGit(options, place, signal), patch);
  if (refusal !== undefined) throw stale(refusal);
  return files.map(({ path }) => join(place.top, path));
}

const stale = (reason: string): Error =>
  inputError(`The patch was not applied: ${reason}.`, {
    class: 'conflict',
    next: 'The files changed since, or the patch never fitted: ask for a new one.',
  });

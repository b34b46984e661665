import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { isAppError } from '../../core/errors.ts';
import type { Skip } from '../../core/file.ts';
import { printablePath } from '../../core/text.ts';
import { isSkip } from '../paths.ts';
import { reasonToProtect } from '../protected-files.ts';
import { readBytes } from '../read-file.ts';
import type { MaskContext, WrittenSecret } from '../restore-secrets.ts';
import { checkTarget } from '../write-file.ts';
import { filterlessGit, type GitOptions } from './changes.ts';
import { fittedHunks, newFileHunk, type PatchedFile, parsePatch, patchedFile } from './patch.ts';
import { enclosingRepository } from './repositories.ts';
import type { RepositoryPlace } from './run-git.ts';

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
export interface SoundPatch {
  ok: true;
  /** Paths are relative to the top of the repository; to be applied there by plain `git apply`. */
  patch: string;
  place: RepositoryPlace;
  files: PatchedPlace[];
}

interface PatchedPlace {
  path: string;
  added: number;
  removed: number;
  isNew: boolean;
  /** Why its change needs an approval of its own; absent: it needs none. */
  protection?: string;
  /** Those that the patch writes back. */
  secrets: WrittenSecret[];
}

/** Why a patch is not shown: a clause that goes on from "it was withheld:". */
export interface WithheldPatch {
  ok: false;
  reason: string;
}

const maxChars = 512 * 1024;
const maxBytes = 8 * 1024 * 1024;

/**
 * Brings a patch into the form that git takes, for files inside the roots, and asks git whether it applies. Changes nothing.
 * A patch for secret files, for what git runs or believes, or for two repositories at once is withheld.
 */
export async function checkPatch(options: GitOptions, request: PatchRequest): Promise<SoundPatch | WithheldPatch> {
  if (request.patch.length > maxChars) return withheld('it is too large');
  const parsed = parsePatch(request.patch);
  if (!parsed.ok) return withheld(parsed.reason);
  try {
    return await checkFiles(options, request, parsed.files);
  } catch (error) {
    if (isAppError(error) && (error.kind === 'security' || error.kind === 'input')) return withheld(error.message);
    throw error;
  }
}

function withheld(reason: string): WithheldPatch {
  return { ok: false, reason };
}

async function checkFiles(
  options: GitOptions,
  request: PatchRequest,
  files: readonly PatchedFile[],
): Promise<SoundPatch | WithheldPatch> {
  const place = await enclosingRepository(options, await options.sandbox.assertWithin(request.root));
  if (!place) return withheld('there is no git repository that could say whether it applies');
  const pieces: string[] = [];
  const facts: SoundPatch['files'] = [];
  for (const file of files) {
    const target = await targetOf(options, request, place, file);
    if (typeof target === 'string') return withheld(target);
    const isNew = target.text === undefined;
    const absolute = join(place.top, target.path);
    const made = await patchedFile(request.secrets, target.path, file.hunks, target.text);
    if (!made.ok) return withheld(`${printablePath(target.path)}: ${made.reason}`);
    const { after, secrets } = made;
    const fitted = isNew ? newFileHunk(file.hunks) : fittedHunks(target.text ?? '', after);
    if (!fitted.ok) return withheld(`${printablePath(target.path)}: ${fitted.reason}`);
    const { lines, added, removed } = fitted;
    const protection = await reasonToProtect(options.sandbox, absolute, { before: target.text, after });
    pieces.push(pieceOf(target.path, isNew, lines));
    facts.push({ path: target.path, added, removed, isNew, ...(protection !== undefined && { protection }), secrets });
  }
  const patch = pieces.join('');
  const refusal = await refusalOf(options, place, patch, request.signal);
  return refusal === undefined ? { ok: true, patch, place, files: facts } : withheld(refusal);
}

/** What git says against a patch; undefined: nothing. */
async function refusalOf(
  options: GitOptions,
  place: RepositoryPlace,
  patch: string,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const git = await filterlessGit(options, place, signal);
  const { exitCode, stderr } = await git(['apply', '--check', '--whitespace=nowarn', '-'], patch);
  return exitCode === 0 ? undefined : `git: ${stderr.trim().split('\n', 1)[0] ?? ''}`;
}

/** The file that a patch means: its path in the repository, and what it holds now; a reason where it may not be changed. */
async function targetOf(
  { sandbox }: GitOptions,
  { root, signal }: PatchRequest,
  { top }: RepositoryPlace,
  { oldPath, newPath }: PatchedFile,
): Promise<{ path: string; text?: string } | string> {
  if (/[\p{Cc}"\\]/u.test(newPath)) return 'the name of a file in it has characters that no path should have';
  const candidates = isAbsolute(newPath) ? [newPath] : [...new Set([resolve(root, newPath), resolve(top, newPath)])];
  let missing: string | undefined;
  for (const path of candidates) {
    const inside = relative(top, path);
    if (inside === '' || inside.startsWith('..') || isAbsolute(inside)) continue;
    checkTarget(sandbox, path);
    const found = await textOf(sandbox, path, signal);
    const slashed = inside.split(sep).join('/');
    if (!isSkip(found)) {
      if (found.path !== path) return `${printablePath(newPath)} is a link, or lies behind one`;
      return oldPath === undefined ? `${printablePath(newPath)} is there already` : { path: slashed, text: found.text };
    }
    if (found.code !== 'not_found') return `${printablePath(newPath)}: ${found.reason}`;
    missing ??= slashed;
  }
  if (missing === undefined) return `${printablePath(newPath)} is outside the repository`;
  if (oldPath !== undefined) return `there is no file ${printablePath(newPath)}`;
  return (await isInside(sandbox, join(top, missing)))
    ? { path: missing }
    : `${printablePath(newPath)} is outside the roots`;
}

/** A file that is to be made lies in the deepest folder of its path that is there. */
async function isInside(sandbox: GitOptions['sandbox'], path: string): Promise<boolean> {
  for (let at = resolve(path, '..'); ; at = resolve(at, '..')) {
    const located = await sandbox.locate(at);
    if (!isSkip(located)) return located.kind === 'directory' && located.path === at;
    if (located.code !== 'not_found' || at === resolve(at, '..')) return false;
  }
}

async function textOf(
  sandbox: GitOptions['sandbox'],
  path: string,
  signal: AbortSignal | undefined,
): Promise<{ path: string; text: string } | Skip> {
  const opened = await sandbox.open(path);
  if (isSkip(opened)) return opened;
  const bytes = await readBytes(opened, path, { maxBytes: maxBytes, signal });
  // As the bytes are, line ends and all: git compares them so.
  return Buffer.isBuffer(bytes) ? { path: opened.path, text: bytes.toString('utf8') } : bytes;
}

function pieceOf(path: string, isNew: boolean, lines: readonly string[]): string {
  const head = isNew
    ? [`diff --git a/${path} b/${path}`, 'new file mode 100644', '--- /dev/null', `+++ b/${path}`]
    : [`diff --git a/${path} b/${path}`, `--- a/${path}`, `+++ b/${path}`];
  return `${[...head, ...lines].join('\n')}\n`;
}

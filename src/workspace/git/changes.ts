import { join } from 'node:path';
import { AppError, limitError } from '../../core/errors.ts';
import type { Mask } from '../../core/ports.ts';
import { countLines, printablePath } from '../../core/text.ts';
import { isSecretFile, isSkip } from '../paths.ts';
import { readFile } from '../read-file.ts';
import { type AddedSecret, type DiffEntry, maskPatch, parseEntries, splitPatches } from './diff.ts';
import type { PlaceOptions } from './inside-roots.ts';
import { placeOf } from './repositories.ts';
import { type GitOutput, type RepositoryPlace, runGit } from './run-git.ts';

/** What `git status --porcelain=v2 --branch -z` says. */
export interface GitStatus {
  /** Absent when no branch is checked out. */
  branch?: string;
  /** Hash of the last commit; absent while there is none. */
  head?: string;
  upstream?: string;
  /** Commits that only this side, or only the upstream, has. */
  ahead?: number;
  behind?: number;
  untracked: string[];
  /** Files in the middle of a merge. */
  conflicted: string[];
}

export function parseStatus(output: string): GitStatus {
  const status: GitStatus = { untracked: [], conflicted: [] };
  const records = output.split('\0')[Symbol.iterator]();
  for (const record of records) {
    const [kind] = record;
    if (kind === '#') readHeader(status, record);
    else if (kind === '?') status.untracked.push(record.slice(2));
    else if (kind === 'u') status.conflicted.push(record.split(' ').slice(10).join(' '));
    // A renamed entry is followed by the name it had.
    else if (kind === '2') records.next();
  }
  return status;
}

function readHeader(status: GitStatus, record: string): void {
  const [, name = '', ...rest] = record.split(' ');
  const value = rest.join(' ');
  if (name === 'branch.oid' && value !== '(initial)') status.head = value;
  if (name === 'branch.head' && value !== '(detached)') status.branch = value;
  if (name === 'branch.upstream') status.upstream = value;
  if (name !== 'branch.ab') return;
  const [, ahead, behind] = /^\+(\d+) -(\d+)$/.exec(value) ?? [];
  status.ahead = Number(ahead ?? 0);
  status.behind = Number(behind ?? 0);
}

export interface GitOptions extends PlaceOptions {
  /** Every patch goes through it. */
  mask: Mask;
}

export interface ChangesRequest {
  /** A folder in a repository, or above several; relative to `root`. */
  path: string;
  root: string;
  /** What is compared with this commit's last common ancestor; staged and unstaged are not told apart then. */
  compareTo?: string;
  staged: boolean;
  /** Files that git does not know yet included. */
  unstaged: boolean;
  /** Keys the mask. */
  scope: string;
  signal?: AbortSignal;
}

export interface RepositoryChanges extends Omit<GitStatus, 'untracked'> {
  /** Absolute. */
  path: string;
  /** The commit that was compared with. */
  comparedWith?: string;
  files: ChangedFile[];
  /** What was not read, one sentence each. */
  notes: string[];
}

/** One file of a change. A file that is staged and changed again comes twice. */
export interface ChangedFile extends DiffEntry {
  /** `compared`: between the commit that was named and the files as they are. */
  area: 'staged' | 'unstaged' | 'untracked' | 'compared';
  /** By its name it holds credentials: its content is never shown. */
  secretFile: boolean;
  /** Masked. */
  patch?: string;
  /** Why there is none. */
  withheld?: string;
  /** Secrets that the change brings in. */
  secrets: AddedSecret[];
}

const maxUntracked = 300;

const untrackedBytes = 1024 * 1024;

const patchChars = 8 * 1024 * 1024;

const statusArgs = 'status --porcelain=v2 --branch -z --untracked-files=all --ignore-submodules=dirty'.split(' ');

const diffOptions: readonly string[] = [
  ...['--no-ext-diff', '--no-textconv', '--no-color', '--find-renames', '--submodule=short', '--unified=5'],
  ...['--ignore-submodules=dirty', '--src-prefix=a/', '--dst-prefix=b/', '--no-relative'],
];

/** More lines than any file has: a patch with it shows each file in full. */
export const allLines = '--unified=100000000';

/** Runs git on one repository; `input` is what it reads from its standard input. */
type Run = (args: readonly string[], input?: string) => Promise<GitOutput>;

export async function readChanges(
  options: GitOptions,
  place: RepositoryPlace,
  request: ChangesRequest,
): Promise<RepositoryChanges> {
  const run = await filterlessGit(options, place, request.signal);
  const output = await well(run, place, statusArgs);
  const { untracked, conflicted, ...status } = parseStatus(output.stdout);
  const notes = output.complete ? [] : ['There are more untracked files than could be listed.'];
  const base = request.compareTo === undefined ? undefined : await commonCommit(run, request.compareTo);
  if (request.compareTo !== undefined && base === undefined) notes.push(`It has no commit "${request.compareTo}".`);
  const compared = base !== undefined;
  const files: ChangedFile[] = [];
  const read = async (area: ChangedFile['area'], args: readonly string[]) => {
    files.push(...(await diff({ run, place, options, request, notes }, area, args)));
  };
  if (compared) await read('compared', [base]);
  if (request.staged && !compared) await read('staged', ['--cached']);
  if (request.unstaged && !compared) await read('unstaged', []);
  if (request.unstaged || compared) files.push(...(await newFiles(options, place, request, untracked, notes)));
  return { path: place.top, ...status, comparedWith: base, files, conflicted, notes };
}

/**
 * With the filters that the repository names switched off: git would start their programs for files that changed. Asking
 * for the settings starts nothing.
 */
export async function filterlessGit(
  options: GitOptions,
  place: RepositoryPlace,
  signal: AbortSignal | undefined,
): Promise<Run> {
  const command = { place, signal };
  const listing = ['config', '--list', '-z', '--name-only'];
  const listed = await well(args => runGit(options, { ...command, args }), place, listing);
  if (!listed.complete) {
    throw limitError('size', `${printablePath(place.top)} has more git settings than can be read.`, {
      next: 'Validate another repository, or make its .git/config smaller.',
    });
  }
  const names = new Set(listed.stdout.split('\0').flatMap(name => /^(filter\..*)\.[^.]+$/s.exec(name)?.[1] ?? []));
  const off = { clean: '', smudge: '', process: '', required: 'false' };
  const settings = [...names].flatMap(name =>
    Object.entries(off).map(([what, value]) => [`${name}.${what}`, value] as const),
  );
  return (args, input) => runGit(options, { ...command, args, settings, input });
}

async function well(run: Run, place: RepositoryPlace, args: readonly string[]): Promise<GitOutput> {
  const output = await run(args);
  if (output.exitCode === 0 || !output.complete) return output;
  const said = output.stderr.trim().split('\n', 1)[0] ?? '';
  throw new AppError('input', `git cannot read ${printablePath(place.top)}: ${said}`, {
    code: 'INVALID_INPUT_FORMAT',
    class: 'files',
    next: `See what "git ${args[0]}" says there, put it right, and send the step again.`,
  });
}

/** Where the work on top of a ref began; the ref itself where histories share nothing. */
async function commonCommit(run: Run, ref: string): Promise<string | undefined> {
  const commit = hashIn(await run(['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`]));
  if (commit === undefined) return undefined;
  return hashIn(await run(['merge-base', commit, 'HEAD'])) ?? commit;
}

const hashIn = ({ exitCode, stdout }: GitOutput): string | undefined =>
  exitCode === 0 ? /^[0-9a-f]{40,64}$/m.exec(stdout)?.[0] : undefined;

interface Reading {
  run: Run;
  place: RepositoryPlace;
  options: GitOptions;
  request: ChangesRequest;
  notes: string[];
}

async function diff(
  { run, place, options, request, notes }: Reading,
  area: ChangedFile['area'],
  args: readonly string[],
): Promise<ChangedFile[]> {
  const parts = ['--raw', '--numstat', '-z', '--patch'];
  const { stdout, complete } = await well(run, place, ['diff', ...parts, ...diffOptions, ...args, '--']);
  if (!complete) notes.push(`The ${area} changes are too large to be read whole.`);
  // Two NUL part what is said of files from their patches.
  const end = `${stdout}\0\0`.indexOf('\0\0');
  const byPath = splitPatches(stdout.slice(end + 2), complete);
  // Once more with all of each file around its changes, by which they are judged; what is too long for that is judged alone.
  const around =
    byPath.size === 0 ? undefined : await run(['diff', '--patch', ...diffOptions, allLines, ...args, '--']);
  const wholes = splitPatches(around?.stdout ?? '', around?.complete === true);
  const files: ChangedFile[] = [];
  for (const entry of parseEntries(stdout.slice(0, end))) {
    const patch = byPath.get(entry.path);
    // Git tells which commit it is at, wherever its data is.
    if (entry.submodule) await placeOf(options, join(place.top, entry.path));
    const file = { ...entry, area, secretFile: isSecret(place, entry) };
    files.push(await shown(options, request.scope, file, patch, wholes.get(entry.path)));
  }
  return files;
}

const heldBack = 'by its name it holds credentials';

const isSecret = (place: RepositoryPlace, { path, from }: Pick<DiffEntry, 'path' | 'from'>): boolean =>
  isSecretFile(join(place.top, path)) || (from !== undefined && isSecretFile(join(place.top, from)));

async function shown(
  { mask }: GitOptions,
  scope: string,
  file: Omit<ChangedFile, 'secrets' | 'patch' | 'withheld'>,
  patch: string | undefined,
  whole?: string,
): Promise<ChangedFile> {
  if (file.secretFile) return { ...file, secrets: [], withheld: heldBack };
  if (file.binary) return { ...file, secrets: [], withheld: 'binary' };
  if (patch === undefined) return { ...file, secrets: [], withheld: 'too large, or in conflict' };
  return { ...file, ...(await maskPatch(patch, mask, scope, whole)) };
}

/** Read as any other file is: through the sandbox. */
async function newFiles(
  options: GitOptions,
  place: RepositoryPlace,
  { scope, signal }: ChangesRequest,
  paths: readonly string[],
  notes: string[],
): Promise<ChangedFile[]> {
  // A folder is a repository of its own, which is found as one.
  const names = paths.filter(path => !path.endsWith('/'));
  if (names.length > maxUntracked) notes.push(`Only ${maxUntracked} of ${names.length} untracked files were read.`);
  const files: ChangedFile[] = [];
  let left = patchChars;
  for (const path of names.slice(0, maxUntracked)) {
    const secretFile = isSecret(place, { path });
    const file = { path, area: 'untracked', status: 'added', binary: false, submodule: false, secretFile } as const;
    if (secretFile) {
      files.push(await shown(options, scope, file, undefined));
      continue;
    }
    const read = await readFile(options.sandbox, join(place.top, path), { maxBytes: untrackedBytes, signal });
    if (isSkip(read)) {
      files.push({ ...file, binary: read.code === 'binary', secrets: [], withheld: read.code.replaceAll('_', ' ') });
    } else if (read.text.length > left) files.push({ ...file, secrets: [], withheld: 'too large' });
    else {
      left -= read.text.length;
      const known = { ...file, added: countLines(read.text), removed: 0 };
      files.push(await shown(options, scope, known, newFilePatch(path, read.text)));
    }
  }
  return files;
}

function newFilePatch(path: string, text: string): string {
  const name = printablePath(path);
  const head = `diff --git a/${name} b/${name}\nnew file (untracked)\n--- /dev/null\n+++ b/${name}\n`;
  if (text === '') return head;
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
  return `${head}@@ -0,0 +1,${lines.length} @@\n${lines.map(line => `+${line}\n`).join('')}`;
}

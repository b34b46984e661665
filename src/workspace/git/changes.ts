import { readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, limitError } from '../../core/errors.ts';
import { countLines, printablePath } from '../../core/text.ts';
import { isSecretFile, isSkip } from '../paths.ts';
import { readFile } from '../read-file.ts';
import { type AddedSecret, type DiffEntry, maskPatch, parseEntries, splitPatches } from './diff.ts';
import { placeOf } from './inside-roots.ts';
import { type GitOptions, type GitOutput, type RepositoryPlace, runGit } from './run-git.ts';

/** Reads what `git status --porcelain=v2 --branch -z` says. */
function parseStatus(output: string) {
  const said = new Map<string, string>();
  const untracked: string[] = [];
  const conflicted: string[] = [];
  const records = output.split('\0')[Symbol.iterator]();
  for (const record of records) {
    const [kind] = record;
    const [, name, value = ''] = /^# branch\.(\w+) (.*)$/s.exec(record) ?? [];
    if (name !== undefined) said.set(name, value);
    else if (kind === '?') untracked.push(record.slice(2));
    else if (kind === 'u') conflicted.push(record.split(' ').slice(10).join(' '));
    // A renamed entry is followed by the name it had.
    else if (kind === '2') records.next();
  }
  const [head, branch, apart] = [said.get('oid'), said.get('head'), said.get('ab')];
  const [, ahead = 0, behind = 0] = /^\+(\d+) -(\d+)$/.exec(apart ?? '') ?? [];
  return {
    /** Undefined when no branch is checked out. */
    branch: branch === '(detached)' ? undefined : branch,
    /** Hash of the last commit; undefined while there is none. */
    head: head === '(initial)' ? undefined : head,
    upstream: said.get('upstream'),
    /** Commits that only this side, or only the upstream, has. */
    ahead: apart === undefined ? undefined : Number(ahead),
    behind: apart === undefined ? undefined : Number(behind),
    untracked,
    /** Files in the middle of a merge. */
    conflicted,
  };
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

/** One file of a change. A file that is staged and changed again comes twice. */
export interface ChangedFile extends DiffEntry {
  /** `compared`: between the commit that was named and the files as they are. */
  area: 'staged' | 'unstaged' | 'untracked' | 'compared';
  /** By its name it holds credentials: its content is never shown. */
  secretFile: boolean;
  /** Masked, unless masking is switched off. */
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

/** How every patch is asked for, whatever the settings say: its names begin with `a/` and `b/`. */
export const diffOptions: readonly string[] = [
  ...['--no-ext-diff', '--no-textconv', '--no-color', '--find-renames', '--submodule=short', '--unified=5'],
  ...['--ignore-submodules=dirty', '--src-prefix=a/', '--dst-prefix=b/', '--no-relative'],
];

/** More lines than any file has: a patch with it shows each file in full. */
export const allLines = '--unified=100000000';

/** Runs git on one repository; `input` is what it reads from its standard input. */
export type RunGit = (args: readonly string[], input?: string) => Promise<GitOutput>;

export type RepositoryChanges = Awaited<ReturnType<typeof readChanges>>;

/** `path` is absolute; `comparedWith`: the commit that was compared with; `notes`: what was not read, one sentence each. */
export async function readChanges(options: GitOptions, place: RepositoryPlace, request: ChangesRequest) {
  const run = await filterlessGit(options, place, request.signal);
  const output = await well(run, place, statusArgs);
  const { untracked, conflicted, ...status } = parseStatus(output.stdout);
  const notes = output.complete ? [] : ['There are more untracked files than could be listed.'];
  const base = request.compareTo === undefined ? undefined : await commonCommit(run, request.compareTo);
  if (request.compareTo !== undefined && base === undefined) notes.push(`It has no commit "${request.compareTo}".`);
  const compared = base !== undefined;
  const files: ChangedFile[] = [];

  async function shownOf(patch: string, whole?: string) {
    const found = await maskPatch(patch, options.mask, request.scope, whole);
    return options.unmasked ? { ...found, patch } : found;
  }

  async function diff(area: ChangedFile['area'], ...args: string[]): Promise<void> {
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
    for (const entry of parseEntries(stdout.slice(0, end))) {
      const patch = byPath.get(entry.path);
      // Git tells which commit it is at, wherever its data is.
      if (entry.submodule) await placeOf(options, join(place.top, entry.path));
      const secretFile = isSecret(place, entry);
      const isShown = patch !== undefined && !secretFile && !entry.binary;
      const shown = isShown
        ? await shownOf(patch, wholes.get(entry.path))
        : { secrets: [], withheld: whyNot(entry, secretFile) };
      files.push({ ...entry, area, secretFile, ...shown });
    }
  }

  /** Read like other files: through the sandbox. */
  async function newFiles(): Promise<void> {
    // A folder is a repository of its own, which is found as one.
    const names = untracked.filter(path => !path.endsWith('/'));
    if (names.length > maxUntracked) notes.push(`Only ${maxUntracked} of ${names.length} untracked files were read.`);
    const limits = { maxBytes: untrackedBytes, signal: request.signal };
    let left = patchChars;
    for (const path of names.slice(0, maxUntracked)) {
      const secretFile = isSecret(place, { path });
      const file = { path, area: 'untracked', status: 'added', binary: false, submodule: false, secretFile } as const;
      // Git keeps where a link leads, and not what is there.
      const link = await readlink(join(place.top, path)).catch(() => undefined);
      const read = secretFile ? undefined : await readFile(options.sandbox, join(place.top, path), limits);
      if (link !== undefined) files.push({ ...file, secrets: [], withheld: `a link to ${printablePath(link)}` });
      else if (!read) files.push({ ...file, secrets: [], withheld: heldBack });
      else if (isSkip(read)) {
        files.push({ ...file, binary: read.code === 'binary', secrets: [], withheld: read.code.replaceAll('_', ' ') });
      } else if (read.text.length > left) files.push({ ...file, secrets: [], withheld: 'too large' });
      else {
        left -= read.text.length;
        const shown = await shownOf(newFilePatch(path, read.text));
        files.push({ ...file, added: countLines(read.text), removed: 0, ...shown });
      }
    }
  }

  if (compared) await diff('compared', base);
  if (request.staged && !compared) await diff('staged', '--cached');
  if (request.unstaged && !compared) await diff('unstaged');
  if (request.unstaged || compared) await newFiles();
  return { path: place.top, ...status, comparedWith: base, files, conflicted, notes };
}

/** Switches the repository's filters off: git would start their programs for changed files. Asking for settings starts nothing. */
export async function filterlessGit(options: GitOptions, place: RepositoryPlace, signal?: AbortSignal) {
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
  const run: RunGit = (args, input) => runGit(options, { ...command, args, settings, input });
  return run;
}

async function well(run: RunGit, place: RepositoryPlace, args: readonly string[]): Promise<GitOutput> {
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
async function commonCommit(run: RunGit, ref: string): Promise<string | undefined> {
  const commit = hashIn(await run(['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`]));
  if (commit === undefined) return undefined;
  return hashIn(await run(['merge-base', commit, 'HEAD'])) ?? commit;
}

const hashIn = ({ exitCode, stdout }: GitOutput): string | undefined =>
  exitCode === 0 ? /^[0-9a-f]{40,64}$/m.exec(stdout)?.[0] : undefined;

const whyNot = ({ binary, status }: DiffEntry, secretFile: boolean): string =>
  secretFile ? heldBack : binary ? 'binary' : status === 'conflicted' ? 'in conflict' : 'too large';

const heldBack = 'by its name it holds credentials';

const isSecret = (place: RepositoryPlace, { path, from }: Pick<DiffEntry, 'path' | 'from'>): boolean =>
  isSecretFile(join(place.top, path)) || (from !== undefined && isSecretFile(join(place.top, from)));

function newFilePatch(path: string, text: string): string {
  const name = printablePath(path);
  const head = `diff --git a/${name} b/${name}\nnew file (untracked)\n--- /dev/null\n+++ b/${name}\n`;
  if (text === '') return head;
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
  return `${head}@@ -0,0 +1,${lines.length} @@\n${lines.map(line => `+${line}\n`).join('')}`;
}

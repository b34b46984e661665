import * as fs from 'node:fs';
import { type FileHandle, lstat, open, opendir, readlink, realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { configError, errorCode, securityError } from '../core/errors.ts';
import type { Skip } from '../core/file.ts';
import { printablePath } from '../core/text.ts';
import { isIn, isSecretFile, isSkip, leavesRoots, skip, skipFor, tooLarge, upwards } from './paths.ts';

export interface SandboxOptions {
  /** Absolute paths of the directories that may be read. One that does not exist admits nothing. */
  roots: readonly string[];
  /** Whether files on the list of secret files may be read. */
  allowSecrets: boolean;
  /** Which of the roots are read only where they are named. Absent: none. */
  named?: readonly string[];
  /** Absolute paths of this program's own folders: nothing of them is written for a model, wherever the roots are. Absent: none. */
  own?: readonly string[];
  /** Where the system shows its open descriptors as links; `/proc/self/fd` unless told. Without them, the way there is watched. */
  descriptors?: string;
}

/** Something inside the roots, as it was a moment ago: good for choosing what to do, not for trusting a path. */
export interface Located {
  /** Absolute, with every symbolic link resolved. */
  path: string;
  kind: 'file' | 'directory';
  /** Bytes. */
  size: number;
  /** Of the last change, epoch milliseconds. */
  mtimeMs: number;
  /** The same, also of its name and its rights; no program can set it back. */
  ctimeMs: number;
}

/** A regular file, open for reading and judged by what was opened. The receiver closes the handle. */
export interface Opened {
  handle: FileHandle;
  path: string;
  stats: fs.Stats;
}

export interface Entry {
  name: string;
  kind: 'file' | 'directory' | 'link' | 'other';
}

export interface Listing {
  path: string;
  /** Sorted by name. */
  entries: Entry[];
  /** False when there were more entries than asked for. */
  complete: boolean;
}

/** The bytes of one file of a folder. */
export interface ReadBytes {
  bytes: Buffer;
  mtimeMs: number;
}

/** The only way from a path to the content of a user's files. All paths given to it are absolute. */
export interface Sandbox {
  /** What it was made from: a thread makes an equal one. */
  readonly options: SandboxOptions;
  /** With every symbolic link resolved. */
  readonly roots: readonly string[];
  /** Whether a path lies in a folder of this program's own, as it is written or as it really is. */
  isOwn(path: string): boolean;
  locate(path: string): Promise<Located | Skip>;
  /** Never waits for a writer or a device. */
  open(path: string): Promise<Opened | Skip>;
  /** At most `limit` entries of a directory. */
  list(path: string, limit: number): Promise<Listing | Skip>;
  /**
   * Regular files of one folder by their names, read at once and with no turn for others between them: for threads that do
   * nothing else. A link in the folder is not followed, nor one on the way to it.
   */
  readIn(folder: string, names: readonly string[], maxBytes: number): Promise<Map<string, ReadBytes | Skip> | Skip>;
  /** The real path of a directory inside the roots; throws an `AppError` of kind `security` for anything else. */
  assertWithin(path: string): Promise<string>;
}

const readFlags = fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK | fs.constants.O_NOCTTY;
const listFlags = readFlags | fs.constants.O_DIRECTORY;
/** What opening says when a path that was there a moment ago now is a link, a file for a directory, or gone. */
const swapCodes: readonly string[] = ['ELOOP', 'ENOENT', 'ENOTDIR'];
const deletedMark = ' (deleted)';
const maxPath = 8_192;
/** On Windows, whose real paths begin with a drive or a share, ordinary folders have these names. */
const kernelFolders = ['/proc', '/sys', '/dev'];

/**
 * Judges a path by where its real components lead, after opening it: what was opened is asked for its own path, so a link
 * swapped in between check and use is noticed. Links that stay inside the roots are fine.
 *
 * Hard links are ordinary files here. A hard link has no other name that could be judged, making one takes rights on
 * the file it points to, and package managers store whole dependency trees as hard links.
 */
export function createSandbox(options: SandboxOptions): Sandbox {
  const { roots, allowSecrets, own = [], descriptors = '/proc/self/fd' } = options;
  const realRoots = roots.flatMap(realRoot);
  const hasLinks = fs.existsSync(descriptors);

  /** `given` is what was asked for, `real` what it leads to: a file that is secret by either name is secret. */
  function judge(given: string, real: string, isFile: boolean): Skip | undefined {
    if (!isWithin(realRoots, real)) return outside(given, realRoots);
    if (!isFile || allowSecrets || !(isSecretFile(real) || (given !== real && isSecretFile(given)))) return undefined;
    return skip(given, 'secret', 'Blocked: it may contain secrets. The operator can allow it with ALLOW_SECRET_FILES.');
  }

  async function locate(path: string): Promise<Located | Skip> {
    if (!isAbsolute(path) || path.includes('\0') || path.length > maxPath)
      return skip(path, 'bad_path', `A path is absolute, has no NUL character and at most ${maxPath} characters.`);
    if (leavesRoots(path, [...roots, ...realRoots])) return outside(path, realRoots);
    try {
      const real = await realpath(path);
      if (!isWithin(realRoots, real)) return outside(path, realRoots);
      const stats = await lstat(real);
      const isFolder = stats.isDirectory();
      const refused = judge(path, real, !isFolder);
      if (refused) return refused;
      if (!isFolder && !stats.isFile()) return notRegular(path, stats);
      const { mtimeMs, ctimeMs } = stats;
      return { path: real, kind: isFolder ? 'directory' : 'file', size: isFolder ? 0 : stats.size, mtimeMs, ctimeMs };
    } catch (error) {
      const failure = skipFor(path, error);
      // what is outside the roots is not even told to be missing
      return isWithin(realRoots, deepestReal(path)) ? failure : outside(path, realRoots);
    }
  }

  /** Opens what `locate` found and asks the descriptor where it leads. Undefined: it was swapped meanwhile. */
  async function openJudged<Result extends object>(given: string, located: Located, use: Use<Result>) {
    let handle: FileHandle | undefined;
    let outcome: Result | Skip | undefined;
    try {
      const way = hasLinks ? '' : await wayTo(realRoots, located.path);
      if (way === undefined) return undefined;
      const opened = await open(located.path, located.kind === 'file' ? readFlags : listFlags);
      handle = opened;
      const stats = await opened.stat();
      const leadsWhere = () =>
        hasLinks ? linkedPath(opened, stats, descriptors) : watchedPath(realRoots, located.path, stats, way);
      const path = await leadsWhere();
      if (path !== undefined)
        outcome = judge(given, path, located.kind === 'file') ?? (await use({ handle, path, stats }, leadsWhere));
      return outcome;
    } catch (error) {
      return swapCodes.includes(errorCode(error) ?? '') ? undefined : skipFor(given, error);
    } finally {
      if (!outcome || !('handle' in outcome)) await handle?.close();
    }
  }

  /** Tries again when something was swapped in between, as editors do that save by renaming. */
  async function openAs<Result extends object>(kind: Located['kind'], given: string, use: Use<Result>) {
    for (let left = 3; left > 0; left--) {
      const located = await locate(given);
      if (isSkip(located)) return located;
      if (located.kind !== kind) return skip(given, 'not_regular', `It is a ${located.kind}, not a ${kind}.`);
      const outcome = await openJudged(given, located, use);
      if (outcome !== undefined) return outcome;
    }
    return skip(given, 'unreadable', 'It keeps changing. Retry when writing has finished.');
  }

  const openFile = (path: string) =>
    openAs('file', path, async opened => (opened.stats.isFile() ? opened : notRegular(path, opened.stats)));

  /** Opens a folder and judges it; `through` leads to the very folder that was opened, wherever it is moved. */
  const inFolder = <Result extends object>(given: string, use: (path: string, through: string) => Promise<Result>) =>
    openAs<Result>('directory', given, async ({ handle, path }, leadsWhere) => {
      const found = await use(path, hasLinks ? `${descriptors}/${handle.fd}` : path);
      return hasLinks || (await leadsWhere()) !== undefined ? found : undefined;
    });

  const list = (given: string, limit: number) =>
    inFolder<Listing>(given, async (path, through) => ({ path, ...(await takeEntries(through, limit)) }));

  const readIn: Sandbox['readIn'] = (given, names, maxBytes) =>
    inFolder(given, async (folder, through): Promise<Map<string, ReadBytes | Skip> | Skip> => {
      if (folder !== given)
        return skip(given, 'not_regular', 'It is reached by a symbolic link, which is not followed here.');
      const readOne = (path: string, name: string) =>
        judge(join(given, name), path, true) ?? readRegular(path, `${through}/${name}`, maxBytes);
      return new Map(names.map(name => [name, readOne(join(folder, name), name)]));
    });

  const assertWithin = async (path: string) => directoryAt(path, await locate(path), realRoots);

  return { options, roots: realRoots, isOwn: judgeOwn(own), locate, open: openFile, list, readIn, assertWithin };
}

/** What is searched where nothing is named: a project, and then all other root directories, none within another. */
export async function searchedRoots({ options, locate }: Sandbox, project: string): Promise<string[]> {
  const { roots, named = [] } = options;
  const first = await locate(project);
  if (isSkip(first)) return [project];
  const all = await Promise.all(roots.filter(root => !named.includes(root)).map(locate));
  const others = all.flatMap(found => (isSkip(found) || found.kind === 'file' ? [] : [found.path]));
  const apart = others.filter(path => !isIn(path, first.path) && !isIn(first.path, path));
  const isInner = (path: string) => apart.some(other => other !== path && isIn(path, other));
  return [project, ...new Set(apart.filter(path => !isInner(path)))];
}

/** What is done with what was opened and judged; undefined: it was swapped meanwhile. */
type Use<Result> = (
  opened: Opened,
  leadsWhere: () => Promise<string | undefined>,
) => Promise<Result | Skip | undefined>;

/** `through` is the way by a folder that is open and judged; `path` is what it is called. */
function readRegular(path: string, through: string, maxBytes: number): ReadBytes | Skip {
  let opened: number | undefined;
  try {
    const file = fs.openSync(through, readFlags);
    opened = file;
    const stats = fs.fstatSync(file);
    if (!stats.isFile()) return notRegular(path, stats);
    if (stats.size > maxBytes) return tooLarge(path, stats.size, maxBytes);
    let bytes = Buffer.allocUnsafe(stats.size + 1);
    let length = 0;
    for (;;) {
      const count = fs.readSync(file, bytes, length, bytes.length - length, null);
      length += count;
      if (length > maxBytes) return tooLarge(path, length, maxBytes);
      if (count === 0) return { bytes: bytes.subarray(0, length), mtimeMs: stats.mtimeMs };
      // It grows while it is read, or its size is not told.
      if (length === bytes.length) bytes = Buffer.concat([bytes, Buffer.allocUnsafe(length)]);
    }
  } catch (error) {
    return skipFor(path, error);
  } finally {
    if (opened !== undefined) fs.closeSync(opened);
  }
}

function realRoot(root: string): string[] {
  if (!isAbsolute(root))
    throw configError(`The root "${root}" is no absolute path.`, { next: 'Write every root in full, from / on.' });
  try {
    return [fs.realpathSync.native(root)];
  } catch {
    // a root that is not there must not close the others
    return [];
  }
}

/** Kernel folders are closed to roots that merely contain them. */
function isWithin(roots: readonly string[], path: string): boolean {
  const kernel = kernelFolders.find(folder => `${path}/`.startsWith(`${folder}/`));
  return roots.some(root => isIn(path, root) && (kernel === undefined || `${root}/`.startsWith(`${kernel}/`)));
}

function outside(path: string, roots: readonly string[]): Skip {
  const allowed =
    roots.length > 0
      ? `Files are readable only inside ${roots.map(printablePath).join(', ')}`
      : 'No directory is readable';
  return skip(path, 'outside_roots', `${allowed}. The operator can add directories to POLYLOGUE_ROOTS.`);
}

function directoryAt(path: string, found: Located | Skip, roots: readonly string[]): string {
  if (!isSkip(found) && found.kind === 'directory') return found.path;
  const problem = isSkip(found) ? found.reason : 'It is a file, not a directory.';
  throw securityError(`${printablePath(path)} cannot be used as a directory: ${problem}`, {
    next: `Name a directory inside ${roots.map(printablePath).join(', ') || 'a root that the operator has set'}.`,
  });
}

function notRegular(path: string, stats: fs.Stats): Skip {
  const kinds: [boolean, string][] = [
    [stats.isFIFO(), 'a named pipe'],
    [stats.isSocket(), 'a socket'],
    [stats.isCharacterDevice() || stats.isBlockDevice(), 'a device'],
    [stats.isDirectory(), 'a directory'],
  ];
  const kind = kinds.find(([is]) => is)?.[1] ?? 'no regular file';
  return skip(path, 'not_regular', `It is ${kind}; only regular files are read.`);
}

function judgeOwn(own: readonly string[]): Sandbox['isOwn'] {
  const folders = own.flatMap(folder => [resolve(folder), deepestReal(folder)]);
  return path => {
    const places = leavesRoots(path, folders) ? [resolve(path)] : [resolve(path), deepestReal(path)];
    return places.some(each => folders.some(folder => isIn(each, folder)));
  };
}

/** Where a path really leads that may not be there yet. */
function deepestReal(path: string): string {
  for (const at of upwards(resolve(path))) {
    try {
      return join(fs.realpathSync.native(at), relative(at, resolve(path)));
    } catch {}
  }
  return resolve(path);
}

/** Where an open descriptor leads, as the system tells. A file that was replaced while it was open is still the one at its path. */
async function linkedPath(handle: FileHandle, stats: fs.Stats, descriptors: string): Promise<string> {
  const path = await readlink(`${descriptors}/${handle.fd}`);
  return stats.nlink === 0 && path.endsWith(deletedMark) ? path.slice(0, -deletedMark.length) : path;
}

/**
 * The same for systems that do not tell: the path still leads to the very file that is open, and no folder on the way has
 * changed since before it was opened. Undefined: something moved.
 */
async function watchedPath(roots: readonly string[], path: string, stats: fs.Stats, way: string) {
  const now = await lstat(path);
  const same = now.dev === stats.dev && now.ino === stats.ino;
  return same && (await wayTo(roots, path)) === way ? path : undefined;
}

/** The folders from the root to a path with the time of their last change: renaming anything in one of them changes it. Undefined: one is a link. */
async function wayTo(roots: readonly string[], path: string): Promise<string | undefined> {
  const steps: string[] = [];
  for (const at of roots.includes(path) ? [] : upwards(dirname(path))) {
    const folder = await lstat(at, { bigint: true });
    if (!folder.isDirectory()) return undefined;
    steps.push(`${folder.dev} ${folder.ino} ${folder.ctimeNs}`);
    if (roots.includes(at)) break;
  }
  return steps.join();
}

async function takeEntries(folder: string, limit: number): Promise<Omit<Listing, 'path'>> {
  const entries: Entry[] = [];
  let complete = true;
  for await (const dirent of await opendir(folder, { bufferSize: 512 })) {
    if (entries.length >= limit) {
      complete = false;
      break;
    }
    entries.push({ name: dirent.name, kind: kindOf(dirent) });
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { entries, complete };
}

function kindOf(dirent: fs.Dirent): Entry['kind'] {
  if (dirent.isFile()) return 'file';
  if (dirent.isDirectory()) return 'directory';
  return dirent.isSymbolicLink() ? 'link' : 'other';
}

import { lstat, readdir, readlink } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { errorCode, limitError, securityError, throwIfAborted } from '../../core/errors.ts';
import { printablePath } from '../../core/text.ts';
import { isSkip, upwards } from '../paths.ts';
import { readWhole } from '../read-file.ts';
import type { Located } from '../sandbox.ts';
import { isSkippedFolder } from '../walk.ts';
import { type GitOptions, type RepositoryPlace, runGit } from './run-git.ts';

const deepest = 5;
const maxSearched = 5_000;
const maxEntries = 20_000;
const maxRepositories = 20;

/** The repository around a folder, and those below it to depth 5; `notes` say what was not looked at. */
export async function findRepositories(options: GitOptions, start: string, signal?: AbortSignal) {
  const { sandbox } = options;
  const top = await sandbox.assertWithin(start);
  const around = await enclosingRepository(options, top);
  const places = around ? [around] : [];
  const stopped = (note: string) => ({ places, notes: [`${note} Name a lower directory for the others.`] });
  let level = [top];
  let looked = 0;
  for (let depth = 0; depth <= deepest && level.length > 0; depth++) {
    const below: string[] = [];
    for (const folder of level) {
      throwIfAborted(signal);
      if (++looked > maxSearched) return stopped(`Only ${maxSearched} directories below "path" were searched.`);
      const listing = await sandbox.list(folder, maxEntries);
      if (isSkip(listing)) continue;
      const isRepository = folder !== around?.top && listing.entries.some(entry => entry.name === '.git');
      const place = isRepository ? await placeOf(options, folder) : undefined;
      if (place) places.push(place);
      if (places.length >= maxRepositories)
        return stopped(`There may be more than ${maxRepositories} repositories; only the first were read.`);
      for (const entry of listing.entries) {
        if (entry.kind === 'directory' && !isSkippedFolder(entry.name)) below.push(join(folder, entry.name));
      }
    }
    level = below;
  }
  return { places, notes: [] };
}

/** Upwards, but never out of the roots. */
export async function enclosingRepository(options: GitOptions, start: string): Promise<RepositoryPlace | undefined> {
  for (const at of upwards(start)) {
    const place = await placeOf(options, at);
    if (place || options.sandbox.roots.includes(at)) return place;
  }
  return undefined;
}

/** The repository of a folder that holds a `.git`; undefined where it holds none. */
export async function placeOf(options: GitOptions, top: string): Promise<RepositoryPlace | undefined> {
  const dot = await inside(options, top, join(top, '.git'));
  if (!dot) return undefined;
  let gitDir: string | undefined = dot.path;
  if (dot.kind === 'file') {
    // It says where the data is.
    const path = /^gitdir: (.+)$/m.exec((await textOf(options, top, join(top, '.git'))) ?? '')?.[1]?.trim();
    gitDir = path && (await inside(options, top, resolve(top, path)))?.path;
  }
  if (!gitDir || !(await inside(options, top, join(gitDir, 'HEAD')))) return undefined;
  return placeInside(options, top, gitDir);
}

/** Git never reads these for what it is asked here; a submodule is judged as the repository that it is. */
const unread: readonly string[] = ['annex', 'hooks', 'lfs', 'modules', 'worktrees'];
/** What is in the names of settings that make git read one more file. */
const namesFile = /include|excludesfile|attributesfile|orderfile|mailmap/i;
const maxBytes = 1024 * 1024;
const maxFolders = 20_000;
const maxLinks = 1_000;

/**
 * Answers a repository of which git reads nothing outside the roots: no link in its data leads there, at any depth, nor do
 * its alternates, theirs, or a file that its settings name. Throws an `AppError` of kind `security` for others.
 */
async function placeInside(options: GitOptions, top: string, gitDir: string): Promise<RepositoryPlace> {
  const shared = (await textOf(options, top, join(gitDir, 'commondir')))?.replace(/[\r\n]+$/, '');
  const commonDir = shared === undefined ? gitDir : (await inside(options, top, from(gitDir, shared)))?.path;
  if (commonDir === undefined) throw outside(top, join(gitDir, 'commondir'));
  const place = { top, gitDir, commonDir };
  const seen = new Set<string>();
  // Each store of objects can name others, which can name others.
  const stores = new Set([gitDir, commonDir]);
  const objects = await inside(options, top, join(commonDir, 'objects'));
  if (objects) stores.add(objects.path);
  for (const store of stores) {
    if (stores.size > maxLinks) throw tooMuch(top);
    await walk(options, top, store, seen);
    for (const path of await alternatesOf(options, top, store)) stores.add(path);
  }
  await checkSettings(options, place);
  return place;
}

/** Where a path leads that stands in a repository; undefined: nothing is there. Throws where it leads out of the roots. */
async function inside({ sandbox }: GitOptions, top: string, path: string): Promise<Located | undefined> {
  const located = await sandbox.locate(path);
  if (!isSkip(located)) return located;
  if (located.code === 'not_found') return undefined;
  const target = await readlink(path).catch(() => '');
  throw outside(top, path, target === '' ? path : resolve(dirname(path), target));
}

/** As git joins them, not made shorter: `a/link/..` is where the link's folder is. */
const from = (folder: string, path: string): string => (isAbsolute(path) ? path : `${folder}/${path}`);

/** A file of a repository, as git would read it; undefined where there is none. */
async function textOf({ sandbox }: GitOptions, top: string, path: string): Promise<string | undefined> {
  const read = await readWhole(sandbox, path, { maxBytes });
  if (isSkip(read) && read.code === 'not_found') return undefined;
  // Other text would name another path to git than to this program.
  const text = isSkip(read) ? '\0' : read.bytes.toString('utf8');
  if (text.includes('\0') || text.includes('\ufffd')) throw outside(top, path);
  return text;
}

/** What folders held, by path, as long as their inode tells no change: a result of the path and the stamp alone. */
const known = new Map<string, { stamp: string; folders: string[]; links: string[] }>();
/** A folder that changed a moment ago could change again within the same tick of its file system's clock. */
const settledMs = 2_000;

async function namesIn(folder: string, now: number) {
  const names: NonNullable<ReturnType<typeof known.get>> = { stamp: '', folders: [], links: [] };
  try {
    const { dev, ino, ctimeNs, ctimeMs } = await lstat(folder, { bigint: true });
    names.stamp = `${dev} ${ino} ${ctimeNs}`;
    const before = known.get(folder);
    if (before?.stamp === names.stamp) return before;
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      if (entry.isDirectory()) names.folders.push(entry.name);
      else if (entry.isSymbolicLink()) names.links.push(entry.name);
    }
    if (known.size >= maxFolders) known.clear();
    if (now - Number(ctimeMs) > settledMs) known.set(folder, names);
  } catch (error) {
    // Git, which runs as the same user, finds no more in a folder that was removed or can't be read.
    if (errorCode(error) === undefined) throw error;
  }
  return names;
}

/** Looks at every folder and every link below `start`, and below what the links lead to. Files that are no links cost nothing. */
async function walk(options: GitOptions, top: string, start: string, seen: Set<string>): Promise<void> {
  let level = seen.has(start) ? [] : [start];
  let links = 0;
  while (level.length > 0) {
    for (const folder of level) seen.add(folder);
    if (seen.size > maxFolders) throw tooMuch(top);
    const now = options.clock.now();
    const listed = await Promise.all(level.map(async folder => [folder, await namesIn(folder, now)] as const));
    const below = new Set<string>();
    for (const [folder, names] of listed) {
      const isRead = (name: string) => folder !== start || !unread.includes(name);
      for (const name of names.folders.filter(isRead)) below.add(join(folder, name));
      links += names.links.length;
      if (links > maxLinks) throw tooMuch(top);
      for (const name of names.links.filter(isRead)) {
        const located = await inside(options, top, join(folder, name));
        if (located?.kind === 'directory') below.add(located.path);
      }
    }
    level = [...below].filter(folder => !seen.has(folder));
  }
}

async function alternatesOf(options: GitOptions, top: string, store: string): Promise<string[]> {
  const list = join(store, 'info/alternates');
  const found: string[] = [];
  for (const line of (await textOf(options, top, list))?.split('\n') ?? []) {
    if (line === '' || line.startsWith('#')) continue;
    const path = /^"([^"\\]*)"$/.exec(line)?.[1] ?? line;
    // Git reads escapes in quotes, and takes a quote that does not end for a name.
    if (path.startsWith('"')) throw outside(top, list);
    for (const each of new Set([from(store, path), resolve(store, path)])) {
      const located = await inside(options, top, each);
      if (located?.kind === 'directory') found.push(located.path);
    }
  }
  return found;
}

/** Git itself reads the settings where they may name files: each file alone, without a repository and what it includes. */
async function checkSettings(options: GitOptions, { top, gitDir, commonDir }: RepositoryPlace): Promise<void> {
  const files = new Set([join(commonDir, 'config'), join(gitDir, 'config.worktree')]);
  const place = { top, gitDir: '/dev/null', commonDir: '/dev/null' };
  for (const file of files) {
    if (files.size > maxLinks) throw tooMuch(top);
    if (!namesFile.test((await textOf(options, top, file)) ?? '')) continue;
    const args = ['config', '--file', file, '--no-includes', '--list', '-z'];
    const { stdout, exitCode, complete } = await runGit(options, { place, args });
    if (exitCode !== 0 || !complete) throw outside(top, file);
    for (const setting of stdout.split('\0')) {
      const [name = '', path] = setting.split(/\n(.*)/s);
      if (!path || !namesFile.test(name)) continue;
      const expanded = path.startsWith('~/') ? join(options.homeDir, path.slice(2)) : path;
      // `~name`, `%(prefix)` and `:(optional)` lead where only git knows.
      if (/^(~|%\(|:\()/.test(expanded)) throw outside(top, file, path);
      const isInclude = name.startsWith('include');
      const named = from(isInclude ? dirname(file) : top, expanded);
      const located = await inside(options, top, named);
      if (isInclude && located?.kind === 'file') files.add(named);
    }
  }
}

const tooMuch = (top: string): Error =>
  limitError('size', `The git data of ${printablePath(top)} has more directories or links than can be checked.`, {
    next: 'Run "git pack-refs --all" and "git gc" there, or name another repository.',
  });

/** `path` is what leads outside, `to` where, as the repository itself says. */
function outside(top: string, path: string, to = path): Error {
  const root = /^(.+?)[\\/]\.git(?:[\\/]|$)/.exec(to)?.[1] ?? /^(.+\.git)[\\/]/.exec(to)?.[1] ?? to;
  const [name, way] = [printablePath(top), [...new Set([path, to])].map(printablePath).join(', which leads to ')];
  const next = root.startsWith(top)
    ? 'Repair or remove that file, or name another repository.'
    : `The operator can add ${printablePath(root)} with POLYLOGUE_ROOTS; or name another repository.`;
  return securityError(`The repository ${name} keeps its data outside of what may be read: git would read ${way}.`, {
    next,
  });
}

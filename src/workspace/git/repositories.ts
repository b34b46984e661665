import { dirname, join, resolve } from 'node:path';
import { inputError, securityError, throwIfAborted } from '../../core/errors.ts';
import { printablePath } from '../../core/text.ts';
import { isSkip } from '../paths.ts';
import { readFile } from '../read-file.ts';
import type { Sandbox } from '../sandbox.ts';
import { isSkippedFolder } from '../walk.ts';

/** A repository whose data and files are all inside the roots. */
export interface RepositoryPlace {
  /** The folder with its files. */
  top: string;
  /** Where its data is; elsewhere than in `.git` for a submodule or a linked worktree. */
  gitDir: string;
}

export interface FoundRepositories {
  places: RepositoryPlace[];
  /** What was not looked at, one sentence each. */
  notes: string[];
}

const deepest = 5;
const maxFolders = 5_000;
const maxEntries = 20_000;
const maxRepositories = 20;
const pointerBytes = 64 * 1024;
/** What decides which objects git reads; a link out of the roots in their place would show a stranger's. */
const vital = [
  'HEAD',
  'config',
  'index',
  'objects',
  'objects/info',
  'objects/pack',
  'packed-refs',
  'refs',
  'refs/heads',
];

/** The repository that a folder is in, and those below it to depth 5, nested ones too. */
export async function findRepositories(
  sandbox: Sandbox,
  start: string,
  signal?: AbortSignal,
): Promise<FoundRepositories> {
  const top = await sandbox.assertWithin(start);
  const found: FoundRepositories = { places: [], notes: [] };
  const around = await enclosingRepository(sandbox, top);
  if (around) found.places.push(around);
  let level = [top];
  let looked = 0;
  for (let depth = 0; depth <= deepest && level.length > 0; depth++) {
    const below: string[] = [];
    for (const folder of level) {
      throwIfAborted(signal);
      if (++looked > maxFolders) return stop(found, `Only ${maxFolders} folders below "path" were searched.`);
      const listing = await sandbox.list(folder, maxEntries);
      if (isSkip(listing)) continue;
      const isRepository = folder !== around?.top && listing.entries.some(entry => entry.name === '.git');
      const place = isRepository ? await placeOf(sandbox, folder) : undefined;
      if (place) found.places.push(place);
      if (found.places.length >= maxRepositories) {
        return stop(found, `There may be more than ${maxRepositories} repositories; only the first were read.`);
      }
      for (const entry of listing.entries) {
        if (entry.kind === 'directory' && !isSkippedFolder(entry.name)) below.push(join(folder, entry.name));
      }
    }
    level = below;
  }
  return found;
}

function stop(found: FoundRepositories, note: string): FoundRepositories {
  return { ...found, notes: [...found.notes, `${note} Name a folder further down for the others.`] };
}

/** Upwards, but never out of the roots. */
export async function enclosingRepository(sandbox: Sandbox, start: string): Promise<RepositoryPlace | undefined> {
  for (let at = start; ; at = dirname(at)) {
    const place = await placeOf(sandbox, at);
    if (place) return place;
    if (sandbox.roots.includes(at) || dirname(at) === at) return undefined;
  }
}

async function placeOf(sandbox: Sandbox, top: string): Promise<RepositoryPlace | undefined> {
  const dot = await sandbox.locate(join(top, '.git'));
  if (isSkip(dot)) {
    if (dot.code === 'outside_roots') throw elsewhere(top);
    return undefined;
  }
  const gitDir = dot.kind === 'directory' ? dot.path : await pointedTo(sandbox, top);
  if (gitDir === undefined || isSkip(await sandbox.locate(join(gitDir, 'HEAD')))) return undefined;
  await refuseForeignData(sandbox, top, gitDir);
  return { top, gitDir };
}

/** A `.git` file says where the data is. */
async function pointedTo(sandbox: Sandbox, top: string): Promise<string | undefined> {
  const pointer = await readFile(sandbox, join(top, '.git'), { maxBytes: pointerBytes });
  const path = isSkip(pointer) ? undefined : /^gitdir: (.+)$/m.exec(pointer.text)?.[1]?.trim();
  return path === undefined ? undefined : await folderInside(sandbox, top, resolve(top, path));
}

async function folderInside(sandbox: Sandbox, top: string, path: string): Promise<string | undefined> {
  const located = await sandbox.locate(path);
  if (!isSkip(located)) return located.path;
  if (located.code === 'outside_roots') throw elsewhere(top);
  return undefined;
}

async function refuseForeignData(sandbox: Sandbox, top: string, gitDir: string): Promise<void> {
  const shared = await lineOf(sandbox, join(gitDir, 'commondir'));
  const dataDir = shared === undefined ? gitDir : await folderInside(sandbox, top, resolve(gitDir, shared));
  for (const folder of new Set([gitDir, dataDir ?? gitDir])) {
    for (const name of vital) await folderInside(sandbox, top, join(folder, name));
    const alternates = await readFile(sandbox, join(folder, 'objects/info/alternates'), { maxBytes: pointerBytes });
    if (isSkip(alternates)) {
      if (alternates.code === 'not_found') continue;
      throw elsewhere(top);
    }
    for (const line of alternates.text.split('\n').filter(Boolean)) {
      await folderInside(sandbox, top, resolve(folder, 'objects', line.replace(/^"|"$/g, '')));
    }
  }
}

async function lineOf(sandbox: Sandbox, path: string): Promise<string | undefined> {
  const file = await readFile(sandbox, path, { maxBytes: pointerBytes });
  return isSkip(file) ? undefined : file.text.trim();
}

function elsewhere(top: string): Error {
  return securityError(`The repository ${printablePath(top)} keeps its data outside of what may be read.`, {
    next: 'The operator can add the folder that its .git (or objects/info/alternates) leads to with POLYLOGUE_ROOTS; or name another repository.',
  });
}

/** Refuses what git could take for an option or for more than one commit. */
export function checkRef(ref: string): string {
  const problem = ref.startsWith('-')
    ? 'it begins with "-"'
    : ref.length > 250
      ? 'it is longer than 250 characters'
      : /[\p{Cc}\s?*[\\:]|\.\./u.test(ref)
        ? 'it has a character that names of commits do not have'
        : undefined;
  if (problem === undefined) return ref;
  throw inputError(`"${printablePath(ref)}" can't be compared to: ${problem}.`, {
    next: 'Name one branch, tag or commit in compare_to, such as "main" or "HEAD~3".',
    validationErrors: [{ field: 'compare_to', error: problem, allowed: ['a branch, a tag, a commit'] }],
  });
}

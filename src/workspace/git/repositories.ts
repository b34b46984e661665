import { join, resolve } from 'node:path';
import { inputError, throwIfAborted } from '../../core/errors.ts';
import { printablePath } from '../../core/text.ts';
import { isSkip, upwards } from '../paths.ts';
import { isSkippedFolder } from '../walk.ts';
import { inside, type PlaceOptions, placeInside, textOf } from './inside-roots.ts';
import type { RepositoryPlace } from './run-git.ts';

export interface FoundRepositories {
  places: RepositoryPlace[];
  /** What was not looked at, one sentence each. */
  notes: string[];
}

const deepest = 5;
const maxFolders = 5_000;
const maxEntries = 20_000;
const maxRepositories = 20;
/** The repository that a folder is in, and those below it to depth 5, nested ones too. */
export async function findRepositories(
  options: PlaceOptions,
  start: string,
  signal?: AbortSignal,
): Promise<FoundRepositories> {
  const { sandbox } = options;
  const top = await sandbox.assertWithin(start);
  const found: FoundRepositories = { places: [], notes: [] };
  const around = await enclosingRepository(options, top);
  if (around) found.places.push(around);
  let level = [top];
  let looked = 0;
  for (let depth = 0; depth <= deepest && level.length > 0; depth++) {
    const below: string[] = [];
    for (const folder of level) {
      throwIfAborted(signal);
      if (++looked > maxFolders) return stop(found, `Only ${maxFolders} directories below "path" were searched.`);
      const listing = await sandbox.list(folder, maxEntries);
      if (isSkip(listing)) continue;
      const isRepository = folder !== around?.top && listing.entries.some(entry => entry.name === '.git');
      const place = isRepository ? await placeOf(options, folder) : undefined;
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
  return { ...found, notes: [...found.notes, `${note} Name a lower directory for the others.`] };
}

/** Upwards, but never out of the roots. */
export async function enclosingRepository(options: PlaceOptions, start: string): Promise<RepositoryPlace | undefined> {
  for (const at of upwards(start)) {
    const place = await placeOf(options, at);
    if (place || options.sandbox.roots.includes(at)) return place;
  }
  return undefined;
}

/** The repository of a folder that holds a `.git`; undefined where it holds none. */
export async function placeOf(options: PlaceOptions, top: string): Promise<RepositoryPlace | undefined> {
  const dot = await inside(options, top, join(top, '.git'));
  if (!dot) return undefined;
  const gitDir = dot.kind === 'directory' ? dot.path : await pointedTo(options, top);
  if (gitDir === undefined || !(await inside(options, top, join(gitDir, 'HEAD')))) return undefined;
  return placeInside(options, top, gitDir);
}

/** A `.git` file says where the data is. */
async function pointedTo(options: PlaceOptions, top: string): Promise<string | undefined> {
  const path = /^gitdir: (.+)$/m.exec((await textOf(options, top, join(top, '.git'))) ?? '')?.[1]?.trim();
  return path === undefined ? undefined : (await inside(options, top, resolve(top, path)))?.path;
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
  throw inputError(`"${printablePath(ref)}" cannot be compared to: ${problem}.`, {
    next: 'Name one branch, tag or commit in compare_to, such as "main" or "HEAD~3".',
    validationErrors: [{ field: 'compare_to', error: problem, allowed: ['a branch, a tag, a commit'] }],
  });
}

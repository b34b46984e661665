import { basename, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { inParallel } from '../core/concurrency.ts';
import { throwIfAborted } from '../core/errors.ts';
import type { Skip } from '../core/file.ts';
import { isSkip, skip } from '../files/skip.ts';
import { isMarkedFolder, isSkippedFolder } from '../files/walk/build-folders.ts';
import {
  chainAbove,
  chainWeight,
  enterDirectory,
  type IgnoreChain,
  type IgnoreContext,
  isIgnored,
} from './ignore-rules.ts';
import type { Entry, Listing, Sandbox } from './sandbox.ts';

export interface WalkLimits {
  /** Levels of folders below the start. */
  maxDepth: number;
  /** Entries looked at in all. */
  maxEntries: number;
  /** True once the walk has taken long enough; absent: it may take its time. */
  late?: (() => boolean) | undefined;
}

export interface Walk {
  /** Absolute paths of regular files, shallow ones first, then by name. */
  files: string[];
  /** What was left out for another reason than the rules for ignored, hidden and build folders. */
  skipped: Skip[];
}

interface Folder {
  path: string;
  /** The rules that hold in the folder above. */
  chain: IgnoreChain;
}

const openAtOnce = 8;
const linksJudged = 100;
/** Comparisons of an entry with a rule after which others get their turn. */
const workBetweenPauses = 50_000;

/**
 * Everything below a directory that a reader would call part of the project. Symbolic links are not followed (what they lead
 * to inside the directory is found by its own name), so there are no circles; each one is reported.
 */
export async function walkDirectory(
  sandbox: Sandbox,
  start: string,
  limits: WalkLimits,
  signal?: AbortSignal,
): Promise<Walk> {
  const walk: Walk = { files: [], skipped: [] };
  const context: IgnoreContext = { sandbox, report: problem => walk.skipped.push(problem), signal };
  const stop = (path: string, reason: string) => {
    walk.skipped.push(skip(path, 'too_many_files', reason));
    return walk;
  };
  let level: Folder[] = [{ path: start, chain: await chainAbove(context, start) }];
  let left = limits.maxEntries;
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limits.maxDepth) {
      return stop(
        level[0]?.path ?? start,
        `Folders more than ${limits.maxDepth} levels down were not read; name those you need.`,
      );
    }
    const below: Folder[] = [];
    for (let at = 0; at < level.length; at += openAtOnce) {
      throwIfAborted(signal);
      if (limits.late?.()) {
        return stop(
          level[at]?.path ?? start,
          'Looking through this tree took too long; name the files or folders you need.',
        );
      }
      const listings = await inParallel(level.slice(at, at + openAtOnce), openAtOnce, async folder => ({
        folder,
        listing: await sandbox.list(folder.path, left),
      }));
      for (const { folder, listing } of listings) {
        if (isSkip(listing)) {
          walk.skipped.push(listing);
          continue;
        }
        left -= listing.entries.length;
        await visit(context, walk, folder, listing, folder.path === start, below);
        if (listing.complete && left >= 0) continue;
        return stop(
          folder.path,
          `Only ${limits.maxEntries} entries were looked at; name the files or folders you need.`,
        );
      }
    }
    level = below;
  }
  return walk;
}

/** Sorts one folder's entries into files, folders to enter (`below`), and what is reported. */
async function visit(
  context: IgnoreContext,
  walk: Walk,
  folder: Folder,
  listing: Listing,
  named: boolean,
  below: Folder[],
): Promise<void> {
  const names = new Set(listing.entries.map(entry => entry.name));
  if (!named && isMarkedFolder(basename(listing.path), names)) return;
  const chain = await enterDirectory(context, folder.chain, listing.path, names);
  const pauseEvery = Math.ceil(workBetweenPauses / (chainWeight(chain) + 50));
  let links = 0;
  for (const [index, entry] of listing.entries.entries()) {
    if (index % pauseEvery === pauseEvery - 1) {
      await setImmediate();
      throwIfAborted(context.signal);
    }
    const path = join(listing.path, entry.name);
    const isFolder = entry.kind === 'directory';
    if (isFolder && isSkippedFolder(entry.name)) continue;
    if (isIgnored(chain, path, isFolder)) continue;
    const problem = entryProblem(entry, path);
    if (entry.kind === 'link' && links++ < linksJudged) walk.skipped.push(await judgeLink(context.sandbox, path));
    else if (problem) walk.skipped.push(problem);
    else if (isFolder) below.push({ path, chain });
    else walk.files.push(path);
  }
}

function entryProblem(entry: Entry, path: string): Skip | undefined {
  if (entry.kind === 'link') return linkSkip(path);
  if (entry.kind === 'other') return skip(path, 'not_regular', 'It is a pipe, a socket or a device.');
  // the name has bytes that are no UTF-8, so no string leads back to it
  if (entry.name.includes('\ufffd')) return skip(path, 'bad_path', 'Its name is not valid UTF-8; rename it.');
  return undefined;
}

async function judgeLink(sandbox: Sandbox, path: string): Promise<Skip> {
  const located = await sandbox.locate(path);
  return isSkip(located) ? located : linkSkip(path);
}

function linkSkip(path: string): Skip {
  return skip(
    path,
    'not_regular',
    'It is a symbolic link, which is not followed inside directories; name it to read it.',
  );
}

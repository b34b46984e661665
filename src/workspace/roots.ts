import { lstat, realpath } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { errorCode } from './paths.ts';

export interface RootSources {
  /** Roots that the operator set (`POLYLOGUE_ROOTS`, `PROJECT_ROOT`); taken as they are, whatever they are. */
  explicit: readonly string[];
  /** The directory that the host says the project is in. */
  projectRoot?: string;
  cwd: string;
  home: string;
}

export interface Roots {
  /** Absolute. Empty: no file may be read. */
  roots: string[];
  /** One sentence: where they come from or, when there are none, why and what to set. */
  reason: string;
  /** Nobody named them: they follow from the working directory. */
  isGuess?: boolean;
}

/**
 * Which directories a server may read when it starts: what the operator set, else the host's project, else the git top
 * level of the working directory. `/`, a home directory, what lies above one and the kernel's folders are only ever roots by the
 * operator's word.
 */
export async function defaultRoots({ explicit, projectRoot, cwd, home }: RootSources): Promise<Roots> {
  const set = explicit.filter(root => root.trim() !== '').map(root => resolve(cwd, expandHome(root, home)));
  if (set.length > 0) return { roots: [...new Set(set)], reason: 'set by the operator' };

  if (projectRoot) {
    const root = resolve(cwd, expandHome(projectRoot, home));
    return (await isTooWide(root, home)) ? refused(root) : { roots: [root], reason: 'given by the host' };
  }
  const top = await gitTop(cwd);
  if (!top) {
    return { roots: [], reason: `${cwd} is in no git repository; set POLYLOGUE_ROOTS to the directories to read.` };
  }
  return (await isTooWide(top, home))
    ? refused(top)
    : { roots: [top], reason: 'git top level of the working directory', isGuess: true };
}

function refused(root: string): Roots {
  return {
    roots: [],
    reason: `${root} holds far more than a project and is no root by default; set POLYLOGUE_ROOTS to the directories to read.`,
  };
}

function expandHome(path: string, home: string): string {
  return home !== '' && (path === '~' || /^~[\\/]/.test(path)) ? join(home, path.slice(1)) : path;
}

/** Holds what processes and the kernel tell of themselves, environments with keys among it. */
const kernelFolders = /^\/(proc|sys)(\/|$)/;

/** Whether a directory is `/`, a home directory, or lies above one; or no place of projects at all. */
export async function isTooWide(root: string, home: string): Promise<boolean> {
  const real = await realOrSame(root);
  const names = real.split(/[\\/]/).filter(name => name !== '' && !/^[a-z]:$/i.test(name));
  const isHomeByPlace = ['home', 'users'].includes(names[0]?.toLowerCase() ?? '') && names.length <= 2;
  if (dirname(real) === real || real === '/root' || isHomeByPlace || kernelFolders.test(real)) return true;
  if (home === '') return false;
  for (let at = await realOrSame(home); ; at = dirname(at)) {
    if (at === real) return true;
    if (dirname(at) === at) return false;
  }
}

/** The directory that holds `.git`, a folder or (in a work tree of its own) a file. */
async function gitTop(cwd: string): Promise<string | undefined> {
  for (let at = await realOrSame(resolve(cwd)); ; at = dirname(at)) {
    if (await exists(join(at, '.git'))) return at;
    if (dirname(at) === at) return undefined;
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    // any failed look-up means that this is no top level we could read from
    if (errorCode(error) === undefined) throw error;
    return false;
  }
}

async function realOrSame(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    // a directory that is not there yet is judged by its name; the sandbox looks again when it is used
    if (errorCode(error) === undefined) throw error;
    return path;
  }
}

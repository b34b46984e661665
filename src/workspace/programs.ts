import { constants, existsSync } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { configError } from '../core/errors.ts';
import { safeCut } from '../core/text.ts';
import { isIn, realOf, upwards } from './paths.ts';

export type ChildEnv = Readonly<Record<string, string | undefined>>;

/** Where a program is looked for. */
export interface ProgramSearch {
  env: ChildEnv;
  /** Absolute paths of projects: nothing in them, or in a repository around them, is started for its name. */
  projects: readonly string[];
  /** Default: the system that this process runs on. */
  platform?: string;
}

/**
 * The absolute path of the program that a name means, and the `PATH` that it is given: what it starts is looked for in the same folders.
 * Throws an error that says where it was looked for.
 */
export async function programNamed(name: string, search: ProgramSearch) {
  const [file, folders] = await Promise.all([findProgram(name, search), programFolders(search)]);
  if (file !== undefined) return { file, path: folders.join(pathDelimiter(search)) };
  const message = `Cannot start "${safeCut(name, 200)}": no absolute directory of PATH outside of the project has it.`;
  throw configError(message, {
    next: 'Install it there, or use a program that is installed. Programs of the project are run with "npx" or "npm run".',
  });
}

/** The file of an absolute path, or of a name in `programFolders`; undefined: none. Relative paths would depend on the caller. */
export async function findProgram(name: string, search: ProgramSearch): Promise<string | undefined> {
  const windows = isWindows(search);
  const endings = windows ? endingsOf(search.env, name) : [''];
  const named = (start: string) => endings.map(ending => start + ending);
  if (isAbsolute(name)) return firstRunnable(named(name), windows);
  if (/[\\/]/.test(name)) return undefined;
  for (const folder of pathFolders(search)) {
    const path = await firstRunnable(named(join(folder, name)), windows);
    // A link in a folder of the system may lead back into the project. Most folders have no such program, and are not looked into.
    if (path !== undefined && !(await isTheirs(folder, search)) && !(await isTheirs(path, search))) return path;
  }
  return undefined;
}

/**
 * The folders of `PATH` that count: absolute, and neither in a project, nor in the repository around it, nor the `node_modules/.bin` of
 * a folder above it. An empty entry, a relative one, and on Windows the current folder may be a stranger's checkout.
 */
export async function programFolders(search: ProgramSearch): Promise<string[]> {
  const folders = pathFolders(search);
  const theirs = await Promise.all(folders.map(folder => isTheirs(folder, search)));
  return folders.filter((_, at) => !theirs[at]);
}

function pathFolders(search: ProgramSearch): string[] {
  const windows = isWindows(search);
  const path = variableIn(search.env, 'PATH', windows) ?? standardPaths[windows ? 'windows' : 'posix'];
  const entries = path.split(pathDelimiter(search));
  return [...new Set(entries.filter(isAbsolute).map(entry => resolve(entry)))];
}

/** Where the machine's programs are, for an environment without a `PATH`. */
const standardPaths = {
  posix: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin:/snap/bin',
  windows: 'C:\\Windows\\System32;C:\\Windows;C:\\Program Files\\Git\\cmd;C:\\Program Files\\nodejs',
} as const;

async function isTheirs(path: string, { env, projects }: ProgramSearch): Promise<boolean> {
  const home = env.HOME ?? env.USERPROFILE;
  const places = new Set([path, await realOf(path)]);
  for (const project of new Set([...projects, ...(await Promise.all(projects.map(realOf)))])) {
    const top = repositoryAround(project, home);
    for (const place of places) {
      // The data of a whole user or machine is no project: what is installed for that user stays found.
      if (isIn(place, top) && !(home !== undefined && isIn(home, top))) return true;
      if (place === project || (isBin(place) && isIn(project, dirname(dirname(place))))) return true;
    }
  }
  return false;
}

/** Links of `node_modules/.bin` lead to packages beside it. */
const isBin = (path: string): boolean => basename(path) === '.bin' && basename(dirname(path)) === 'node_modules';

/** The outermost repository that a project is in, below the home folder; without one the project itself. */
function repositoryAround(project: string, home: string | undefined): string {
  let top = project;
  for (const at of upwards(project)) {
    if (home !== undefined && isIn(home, at)) break;
    if (existsSync(join(at, '.git'))) top = at;
  }
  return top;
}

const isWindows = ({ platform = process.platform }: ProgramSearch): boolean => platform === 'win32';

const pathDelimiter = (search: ProgramSearch): string => (isWindows(search) ? ';' : ':');

/** What makes a program of a file on Windows: the script without an ending that npm puts next to its `.cmd` is none there. */
function endingsOf(env: ChildEnv, name: string): string[] {
  const extensions = variableIn(env, 'PATHEXT', true) ?? '.COM;.EXE;.BAT;.CMD';
  const endings = extensions.split(';').filter(ending => /^\.\w+$/.test(ending));
  return endings.some(ending => name.toUpperCase().endsWith(ending.toUpperCase())) ? ['', ...endings] : endings;
}

/** What every program needs to find itself and its files on any system. Keys and tokens are not among it. */
const everybodys = [
  'PATH HOME USER SHELL LANG TMPDIR TEMP TMP',
  'PATHEXT COMSPEC SYSTEMROOT SYSTEMDRIVE WINDIR USERPROFILE HOMEDRIVE HOMEPATH',
  'APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES',
].flatMap(names => names.split(' '));

/** The part of an environment that a program is given: what every program needs, and `more`, where `LC_*` stands for all with this start. */
export function variablesFor(env: ChildEnv, more: readonly string[] = []): Record<string, string> {
  const wanted = [...everybodys, ...more];
  // Windows writes the same names in other cases.
  const isWanted = (name: string) =>
    wanted.some(each =>
      each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : [name, name.toUpperCase()].includes(each),
    );
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value !== undefined && isWanted(name) ? [[name, value]] : [])),
  );
}

function variableIn(env: ChildEnv, name: string, anyCase: boolean): string | undefined {
  if (!anyCase) return env[name];
  const found = Object.keys(env).find(variable => variable.toUpperCase() === name);
  return found === undefined ? undefined : env[found];
}

async function firstRunnable(paths: readonly string[], windows: boolean): Promise<string | undefined> {
  for (const path of paths) {
    try {
      if (!windows) await access(path, constants.X_OK);
      if ((await stat(path)).isFile()) return path;
    } catch {
      // Not there, or not ours to run: the next folder may have it.
    }
  }
  return undefined;
}

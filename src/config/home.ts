import { lstatSync, mkdtempSync, rmdirSync, type Stats, statSync } from 'node:fs';
import { dirname, join, posix, win32 } from 'node:path';
import { asError, configError, errorCode } from '../core/errors.ts';
import { isPlaceholder, printablePath } from '../core/text.ts';
import { options } from './options.ts';

/** The machine as the loader sees it. */
export interface MachineEnvironment {
  homeDir: string;
  platform: string;
  /** The working directory: relative paths of flags and of the environment start here. */
  cwd: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Paths are judged by the platform that the configuration is for. */
export const pathsOf = (platform: string) => (platform === 'win32' ? win32 : posix);

/** Makes a path absolute; `~` is the home directory. */
export function absolutePath(path: string, folder: string, { homeDir, platform }: MachineEnvironment): string {
  const paths = pathsOf(platform);
  if (path === '~') return homeDir;
  return /^~[/\\]/.test(path) ? paths.join(homeDir, path.slice(2)) : paths.resolve(folder, path);
}

/** The project that a program names. Throws where it is no directory. */
export function rootAt(path: string, environment: MachineEnvironment): string {
  const root = absolutePath(path, environment.cwd, environment);
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory()) return root;
  throw configError(`"root" is no directory: ${printablePath(root)}.`, {
    next: 'Give the directory of the project; a relative path starts at the working directory.',
  });
}

/** POLYLOGUE_HOME: by flag, by the environment, else `polylogue` in the platform's data directory. */
export function resolveHome(flag: string | undefined, env: Environment, environment: MachineEnvironment): string {
  const fromEnvironment = options.home.env.map(name => env[name]);
  const given = [flag, ...fromEnvironment].map(text => text?.trim()).find(text => text && !isPlaceholder(text));
  return given ? absolutePath(given, environment.cwd, environment) : platformHome(env, environment);
}

function platformHome(env: Environment, { homeDir, platform }: MachineEnvironment): string {
  const paths = pathsOf(platform);
  const under = (variable: string, ...fallback: string[]): string => {
    const folder = env[variable];
    // The XDG specification wants relative values ignored.
    return folder !== undefined && paths.isAbsolute(folder) ? folder : paths.join(homeDir, ...fallback);
  };
  if (platform === 'win32') return paths.join(under('LOCALAPPDATA', 'AppData', 'Local'), 'polylogue');
  if (platform === 'darwin') return paths.join(homeDir, 'Library', 'Application Support', 'polylogue');
  return paths.join(under('XDG_DATA_HOME', '.local', 'share'), 'polylogue');
}

/** What a full disk says: what is there can still be read, and writing works again once there is room. */
const passing = new Set(['ENOSPC', 'EDQUOT']);

/**
 * Why nothing can be kept in a data folder, as the end of a sentence; undefined when it can be used, or made. It is found out by
 * trying: there are folders, such as /proc, that let themselves be written by everything but the attempt. Nothing is left of it.
 */
export function homeProblem(home: string): string | undefined {
  for (let at = home; ; at = dirname(at)) {
    const found = looked(at);
    if (found === undefined && dirname(at) !== at) continue;
    if (typeof found === 'string') return `${at} ${found}`;
    if (found && !found.isDirectory()) return `${at} is not a directory`;
    try {
      rmdirSync(mkdtempSync(join(at, '.polylogue-')));
      return undefined;
    } catch (error) {
      const code = errorCode(error) ?? '';
      return passing.has(code) ? undefined : `nothing can be written in ${at} (${code})`;
    }
  }
}

/** What is there; a text: what is wrong with it; undefined: nothing, as far as one may see. */
function looked(path: string): Stats | string | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    return found ?? (lstatSync(path, { throwIfNoEntry: false }) && 'is a link to nothing');
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENAMETOOLONG') return 'has too long a name';
    if (code === 'ELOOP') return 'is a link that leads to itself';
    // What may not be looked at may not be written either: its parent tells.
    return undefined;
  }
}

/** Works on a file of the operator's; where that fails, `what` says of which file, and the system's own words say why. */
export function onFile<Result>(what: string, next: string, work: () => Result): Result {
  try {
    return work();
  } catch (cause) {
    throw configError(`${what}: ${asError(cause).message}`, { next, cause });
  }
}

export const homeAdvice = 'Set POLYLOGUE_HOME to a directory that you may write, or add --private to write nothing.';

/** Throws where nothing can be kept in the data folder. */
export function requireHome(home: string, next = homeAdvice): void {
  const problem = homeProblem(home);
  if (problem !== undefined) throw configError(`Cannot use the data directory ${home}: ${problem}.`, { next });
}

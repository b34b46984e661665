import { posix, win32 } from 'node:path';
import { options } from './options.ts';

/** The machine as the loader sees it. */
export interface Surroundings {
  homeDir: string;
  platform: string;
  /** The working directory: relative paths of flags and of the environment start here. */
  cwd: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Paths are judged by the platform that the configuration is for. */
export function pathsOf(platform: string) {
  return platform === 'win32' ? win32 : posix;
}

/** Makes a path absolute; `~` is the home directory. */
export function absolutePath(path: string, folder: string, { homeDir, platform }: Surroundings): string {
  const paths = pathsOf(platform);
  if (path === '~') return homeDir;
  return /^~[/\\]/.test(path) ? paths.join(homeDir, path.slice(2)) : paths.resolve(folder, path);
}

/** POLYLOGUE_HOME: by flag, by the environment, else `polylogue` in the platform's data directory. */
export function resolveHome(flag: string | undefined, env: Environment, surroundings: Surroundings): string {
  const fromEnvironment = options.home.env.map(name => env[name]);
  const given = [flag, ...fromEnvironment].find(text => text !== undefined && text.trim() !== '');
  return given === undefined
    ? platformHome(env, surroundings)
    : absolutePath(given.trim(), surroundings.cwd, surroundings);
}

function platformHome(env: Environment, { homeDir, platform }: Surroundings): string {
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

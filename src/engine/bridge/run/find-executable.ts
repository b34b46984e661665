import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { isAbsolute, join, resolve } from 'node:path';

export type ProgramEnv = Readonly<Record<string, string | undefined>>;

/**
 * The file that a name means. Only absolute directories of PATH count: a relative one, or the directory of the call, may be a
 * stranger's checkout. Undefined when there is none.
 */
export async function findExecutable(name: string, env: ProgramEnv, platform: string): Promise<string | undefined> {
  const windows = platform === 'win32';
  const endings = windows ? endingsOf(env) : [''];
  if (isAbsolute(name)) return firstRunnable(windows ? ['', ...endings].map(ending => name + ending) : [name], windows);
  // A name with a folder in it would be looked for from wherever the call comes.
  if (/[\\/]/.test(name)) return undefined;
  const folders = (variableIn(env, 'PATH', windows) ?? '').split(windows ? ';' : ':').filter(isAbsolute);
  const bare = windows && /\.[a-z]+$/i.test(name) ? ['', ...endings] : endings;
  return firstRunnable(
    folders.flatMap(folder => bare.map(ending => join(resolve(folder), name + ending))),
    windows,
  );
}

function endingsOf(env: ProgramEnv): string[] {
  const told = variableIn(env, 'PATHEXT', true) ?? '.COM;.EXE;.BAT;.CMD';
  return told.split(';').filter(ending => /^\.\w+$/.test(ending));
}

function variableIn(env: ProgramEnv, name: string, anyCase: boolean): string | undefined {
  if (!anyCase) return env[name];
  const found = Object.keys(env).find(variable => variable.toUpperCase() === name);
  return found === undefined ? undefined : env[found];
}

async function firstRunnable(paths: readonly string[], windows: boolean): Promise<string | undefined> {
  for (const path of paths) if (await isRunnable(path, windows)) return path;
  return undefined;
}

async function isRunnable(path: string, windows: boolean): Promise<boolean> {
  try {
    const stats = await stat(path);
    if (!stats.isFile()) return false;
    if (!windows) await access(path, constants.X_OK);
    return true;
  } catch {
    // Not there, or not ours to run: the next folder may have it.
    return false;
  }
}

import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { configError } from '../../core/errors.ts';

export interface ConfigFile {
  /** With symbolic links resolved: dotfiles are often kept elsewhere. */
  path: string;
  /** Undefined where there is none. */
  text: string | undefined;
}

export function openConfigFile(path: string): ConfigFile {
  return translated(path, () => {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (!stats) return { path, text: undefined };
    if (!stats.isFile()) throw new Error('it is not a regular file');
    const real = realpathSync(path);
    return { path: real, text: readFileSync(real, 'utf8') };
  });
}

/** The texts of the backups beside a file, the newest first. */
export function backupsOf({ path }: ConfigFile): string[] {
  return translated(path, () => {
    const folder = dirname(path);
    const names = readdirSync(folder).filter(name => name.startsWith(`${basename(path)}.bak-`));
    return names
      .toSorted()
      .reverse()
      .map(name => readFileSync(join(folder, name), 'utf8'));
  });
}

/** Replaces a file in one step, undefined removes it; answers where the old one was kept. */
export function replaceConfigFile(file: ConfigFile, text: string | undefined, now: number): string | undefined {
  return translated(file.path, () => {
    const backup = file.text === undefined ? undefined : keep(file.path, file.text, now);
    if (text === undefined) {
      rmSync(file.path, { force: true });
      return backup;
    }
    mkdirSync(dirname(file.path), { recursive: true });
    const draft = `${file.path}.new`;
    const mode = modeOf(file.path);
    writeFileSync(draft, text, { mode });
    chmodSync(draft, mode);
    renameSync(draft, file.path);
    return backup;
  });
}

function keep(path: string, text: string, now: number): string {
  const stamp = new Date(now).toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 19);
  const backup = `${path}.bak-${stamp}`;
  const mode = modeOf(path);
  writeFileSync(backup, text, { mode });
  chmodSync(backup, mode);
  return backup;
}

/** As it was; a new file may come to hold keys and is for its owner alone. */
function modeOf(path: string): number {
  return (statSync(path, { throwIfNoEntry: false })?.mode ?? 0o600) & 0o777;
}

function translated<Result>(path: string, work: () => Result): Result {
  try {
    return work();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw configError(`${path} can't be used: ${why}`, {
      next: 'See to it that you may read and write the file and its folder, and repeat the command.',
      cause,
    });
  }
}

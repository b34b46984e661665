import { open, rename, rm, stat } from 'node:fs/promises';
import { isRecord } from '../../core/json.ts';

/** When a file began, by its inode: a name may belong to another file by now. */
export interface Begun {
  inode: number;
  /** Epoch milliseconds; undefined when its first line does not tell. */
  at: number | undefined;
}

interface Standing {
  size: number;
  mtimeMs: number;
  inode: number;
}

/** Size zero for a file that is not there. */
export async function standingOf(path: string): Promise<Standing> {
  try {
    const { size, mtimeMs, ino } = await stat(path);
    return { size, mtimeMs, inode: ino };
  } catch (error) {
    if (isCode(error, 'ENOENT')) return { size: 0, mtimeMs: 0, inode: 0 };
    throw error;
  }
}

/**
 * Moves `file` to `file.1`, the older ones one on, and drops what is over `keep`. One process does it at a time; whoever
 * finds another one at it goes on with the file as it is. Answers whether this one did.
 */
export async function putAside(file: string, keep: number, isFull: () => Promise<boolean>): Promise<boolean> {
  const lock = `${file}.lock`;
  if (!(await take(lock, file))) return false;
  try {
    // The other process may just have finished.
    if (!(await isFull())) return false;
    for (let index = keep - 1; index >= 1; index--) await renameIfPresent(`${file}.${index}`, `${file}.${index + 1}`);
    if (keep > 0) await renameIfPresent(file, `${file}.1`);
    else await rm(file, { force: true });
    return true;
  } finally {
    await rm(lock, { force: true });
  }
}

const staleLockMs = 60_000;

async function take(lock: string, file: string): Promise<boolean> {
  try {
    await (await open(lock, 'wx', 0o600)).close();
    return true;
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error;
    // The lines that came in since tell how long the lock has been there: its holder died.
    const [{ mtimeMs: written }, { mtimeMs: locked }] = await Promise.all([standingOf(file), standingOf(lock)]);
    if (written - locked > staleLockMs) await rm(lock, { force: true });
    return false;
  }
}

async function renameIfPresent(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
  }
}

export function isCode(error: unknown, code: string): boolean {
  return isRecord(error) && error.code === code;
}

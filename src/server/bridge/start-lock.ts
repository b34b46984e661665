import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from './kept-token.ts';

/** No start takes longer; a lock that is older was left behind. */
const longestStartMs = 60_000;

/**
 * Sees to it that of several bridges one starts the daemon: undefined when another one is at it, else how to let go. Where two
 * take a lock that was left behind at the same moment, the second daemon finds its port taken and ends.
 */
export function takeStartLock(path: string, pid: number, now: number): (() => void) | undefined {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  for (const isLast of [false, true]) {
    try {
      writeFileSync(path, String(pid), { flag: 'wx', mode: 0o600 });
      return () => rmSync(path, { force: true });
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
      if (isLast || !isLeft(path, now)) return undefined;
      rmSync(path, { force: true });
    }
  }
  return undefined;
}

function isLeft(path: string, now: number): boolean {
  try {
    if (now - statSync(path).mtimeMs > longestStartMs) return true;
    const holder = Number(readFileSync(path, 'utf8'));
    // Between its making and its first byte it belongs to somebody all the same.
    return holder > 0 && !isAlive(holder);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return true;
    throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Somebody else's process is one too.
    return codeOf(error) === 'EPERM';
  }
}

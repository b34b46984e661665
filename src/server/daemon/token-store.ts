import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { normalize } from 'node:path';
import { configError } from '../../core/errors.ts';
import type { TokenEntry } from '../access/tokens.ts';
import { readTokens, withToken } from '../guards/token-file.ts';

/** The operator's file of tokens as it was when it was read. */
export interface TokenFile {
  entries: readonly TokenEntry[];
  /** Something the operator should know of the file, as a sentence. */
  warning?: string;
}

/** Where systemd and container engines put what one service alone may read, with modes of their own that nobody can change. */
export function isHandedIn(path: string): boolean {
  return /^\/run\/(credentials|secrets)\//.test(normalize(path));
}

/** Rejects with an `AppError` of kind `config` where it can't be read or says what can't be. */
export async function readTokenFile(path: string): Promise<TokenFile> {
  const entries = readTokens(await readText(path), path);
  const { mode } = await stat(path);
  const isOpen = process.platform !== 'win32' && !isHandedIn(path) && (mode & 0o077) !== 0;
  return { entries, ...(isOpen && { warning: `Other users of this machine may read ${path}; "chmod 600" it.` }) };
}

/** Is another text after each change of the file, as far as that can be told without reading it. */
export async function fingerprintOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch {
    // Why it can't be reached is told by who reads it.
    return 'none';
  }
}

/**
 * Puts a rotated token into the file in the place of the one that it came for (`before`: its digest, hexadecimal), so that it
 * holds after a restart too; false: the file does not say that one, and is let be.
 */
export async function keepToken(path: string, before: string | undefined, entry: TokenEntry): Promise<boolean> {
  const changed = withToken(await readText(path), path, before, entry);
  if (changed === undefined) return false;
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, changed, { mode: 0o600, flag: 'wx' });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  return true;
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw configError(`The file of tokens ${path} can't be read.`, {
      next: 'Correct POLYLOGUE_TOKENS_FILE, or let this user read the file.',
      cause: error,
    });
  }
}

import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { normalize } from 'node:path';
import { configError } from '../../domain/error.ts';
import { readTokens, withToken } from '../guards/token-file.ts';
import type { TokenEntry } from '../guards/tokens.ts';

export interface TokenStore {
  entries: readonly TokenEntry[];
  /** Something the operator should know of the file, a sentence each. */
  warnings: readonly string[];
  /** Puts a rotated token into the file, so that it holds after a restart too; a token that is not of the file is let be. */
  keep(entry: TokenEntry): Promise<void>;
}

/** Where systemd and container engines put what one service alone may read, with modes of their own that nobody can change. */
export function isHandedIn(path: string): boolean {
  return /^\/run\/(credentials|secrets)\//.test(normalize(path));
}

/** The operator's file of tokens. Rejects with an `AppError` of kind `config` where it can't be read or says what can't be. */
export async function openTokenStore(path: string): Promise<TokenStore> {
  const text = await readText(path);
  const entries = readTokens(text, path);
  const { mode } = await stat(path);
  const isOpen = process.platform !== 'win32' && !isHandedIn(path) && (mode & 0o077) !== 0;
  let last: Promise<void> = Promise.resolve();
  return {
    entries,
    warnings: isOpen ? [`Other users of this machine may read ${path}; "chmod 600" it.`] : [],
    keep(entry) {
      const kept = last.then(() => replaceToken(path, entry));
      // The failure of one is told to who asked for it; the next one is written all the same.
      last = kept.catch(() => undefined);
      return kept;
    },
  };
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

async function replaceToken(path: string, entry: TokenEntry): Promise<void> {
  const changed = withToken(await readText(path), path, entry);
  if (changed === undefined) return;
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, changed, { mode: 0o600, flag: 'wx' });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

import { chmodSync, mkdirSync, realpathSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configError } from '../core/errors.ts';
import { requireHome } from './home.ts';
import { parseTrusted, readIfPresent, trustFile } from './settings-files.ts';

/** Lets the `.env` of one directory (not of those below it) set options from now on. Answers its real path. */
export function trustDirectory(home: string, directory: string): string {
  const real = realDirectory(directory);
  const path = join(home, trustFile);
  const text = readIfPresent(path);
  const listed = text === undefined ? [] : parseTrusted(text);
  if (!listed) {
    throw configError(`${path} is damaged.`, {
      next: 'Remove the file, or make it {"directories": [...]} again, and repeat the command.',
    });
  }
  if (listed.includes(real)) return real;
  requireHome(home, 'Set POLYLOGUE_HOME to a directory that you may write.');
  mkdirSync(home, { recursive: true, mode: 0o700 });
  // A reader sees the old file or the new one, never half of one.
  const draft = `${path}.new`;
  writeFileSync(draft, `${JSON.stringify({ directories: [...listed, real] }, undefined, 2)}\n`, { mode: 0o600 });
  chmodSync(draft, 0o600);
  renameSync(draft, path);
  return real;
}

function realDirectory(directory: string): string {
  const stats = statSync(directory, { throwIfNoEntry: false });
  if (stats?.isDirectory()) return realpathSync(directory);
  throw configError(`${directory} is not a directory.`, { next: 'Name the directory whose .env may set options.' });
}

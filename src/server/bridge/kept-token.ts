import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { isRecord } from '../../core/json.ts';

/** The token of daemons that bridges start, in a file that only their user can read. */
export interface KeptToken {
  /** Undefined where no daemon was started yet. */
  read(): string | undefined;
  /** The one that is there, or a new one. */
  readOrMake(): string;
}

export function createKeptToken(path: string): KeptToken {
  function read(): string | undefined {
    try {
      return readFileSync(path, 'utf8').trim() || undefined;
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    }
  }
  return {
    read,
    readOrMake() {
      const kept = read();
      if (kept !== undefined) return kept;
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      try {
        writeFileSync(path, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' });
        // Whatever the umask made of it.
        chmodSync(path, 0o600);
      } catch (error) {
        // Another bridge was faster: its token is as good.
        if (codeOf(error) !== 'EEXIST') throw error;
      }
      return read() ?? '';
    },
  };
}

export function codeOf(error: unknown): unknown {
  return isRecord(error) || error instanceof Error ? Reflect.get(error, 'code') : undefined;
}

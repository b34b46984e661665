import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRecord } from '../core/json.ts';
import type { Random } from '../core/ports.ts';

/**
 * The key of the placeholders that stand for secrets, made on first use and kept in `home`: a secret gets the same
 * placeholder in every process, so that a thread's texts stay equal. Without a place to keep it, it is this process's own.
 */
export function maskKey(home: string | undefined, random: Random): string {
  const fresh = `${random.uuid()}${random.uuid()}`;
  if (home === undefined) return fresh;
  const file = join(home, 'mask.key');
  const draft = `${file}.${random.uuid()}`;
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    writeFileSync(draft, fresh, { mode: 0o600 });
  } catch {
    // Nothing can be written there. The store says so to the caller; masking goes on with a key of this process.
    return fresh;
  }
  try {
    // Linked into place whole: another process reads all of the key or none.
    linkSync(draft, file);
    return fresh;
  } catch (error) {
    // Another process or an earlier one made it.
    if (isRecord(error) && error.code === 'EEXIST') return readFileSync(file, 'utf8');
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

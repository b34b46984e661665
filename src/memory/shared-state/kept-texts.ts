import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bugError } from '../../core/errors.ts';
import type { KeptTexts, Random } from '../../core/ports.ts';

const namePattern = /^[a-z0-9][a-z0-9._-]{0,99}$/;
/** Nothing that is kept here comes near it; a file that does is not ours. */
const mostBytes = 32 * 1_048_576;

/** Texts as files of one folder, which is made with the first of them. Only the operator may read them. */
export function createKeptTexts({ folder, random }: { folder: string; random: Random }): KeptTexts {
  const pathOf = (name: string) => {
    if (!namePattern.test(name)) throw bugError(`"${name}" is no name for a kept text.`);
    return join(folder, name);
  };
  return {
    async read(name) {
      const path = pathOf(name);
      try {
        const { size } = await stat(path);
        return size > mostBytes ? undefined : await readFile(path, 'utf8');
      } catch {
        // Not there, or not readable: it can be had again.
        return undefined;
      }
    },
    async write(name, text) {
      const path = pathOf(name);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      // Another process may read or write it now: it sees the old text or the new one, never half of one.
      const draft = `${path}.${random.uuid()}.tmp`;
      try {
        await writeFile(draft, text, { mode: 0o600 });
        await rename(draft, path);
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    },
  };
}

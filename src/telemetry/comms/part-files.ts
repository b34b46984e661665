import { createHash } from 'node:crypto';
import { mkdir, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isCode, standingOf } from '../log/put-aside.ts';

/** Stands in a record where a long text or bytes stood. */
export interface PartReference {
  /** Name of the side file. */
  $part: string;
  bytes: number;
}

export interface PartFiles {
  folder: string;
  /** Writes it once, however often it comes. `at`: the time of the record that refers to it, in epoch milliseconds. */
  keep(part: string | Uint8Array, at: number): Promise<PartReference>;
  /** Whether it is still there; if so, it is kept as if it had been written at `at`. */
  isKept(reference: PartReference, at: number): Promise<boolean>;
  /** Removes what no record since `at` refers to. */
  dropBefore(at: number): Promise<void>;
}

/** Below the limit by so much at once, so that not each new file is a reason to look at all of them. */
const roomMade = 0.9;

/** Files named after their content, in `folder`: together at most `maxBytes`, those that were needed last. */
export function createPartFiles(folder: string, maxBytes: number): PartFiles {
  /** Of all of them, as far as this process knows. */
  let total: number | undefined;

  const shrink = async (): Promise<void> => {
    const found = await listed(folder);
    total = found.reduce((sum, { bytes }) => sum + bytes, 0);
    if (total <= maxBytes) return;
    for (const { name, bytes } of found.sort((a, b) => a.at - b.at)) {
      if (total <= maxBytes * roomMade) return;
      await rm(join(folder, name), { force: true });
      total -= bytes;
    }
  };

  return {
    folder,
    async keep(part, at) {
      const bytes = Buffer.byteLength(part);
      const hash = createHash('sha256').update(part).digest('hex').slice(0, 40);
      const $part = `${hash}.${typeof part === 'string' ? 'txt' : 'bin'}`;
      // One that will not stay is not written.
      if (bytes > maxBytes * roomMade) return { $part, bytes };
      const isNew = await writeOnce(folder, $part, part);
      await touch(join(folder, $part), at);
      if (isNew) {
        total = total === undefined ? undefined : total + bytes;
        if (total === undefined || total > maxBytes) await shrink();
      }
      return { $part, bytes };
    },
    isKept: ({ $part }, at) => touch(join(folder, $part), at),
    async dropBefore(at) {
      for (const found of await listed(folder)) {
        // File systems round times.
        if (found.at < at - 1) await rm(join(folder, found.name), { force: true });
      }
      total = undefined;
    },
  };
}

/** The time of the last record that needs a file says when it may go. Answers whether the file is there. */
async function touch(path: string, at: number): Promise<boolean> {
  try {
    await utimes(path, at / 1_000, at / 1_000);
    return true;
  } catch (error) {
    // Another process may have removed it.
    if (isCode(error, 'ENOENT')) return false;
    throw error;
  }
}

async function writeOnce(folder: string, name: string, part: string | Uint8Array): Promise<boolean> {
  const path = join(folder, name);
  const put = () => writeFile(path, part, { flag: 'wx', mode: 0o600 });
  try {
    await put().catch(async error => {
      if (!isCode(error, 'ENOENT')) throw error;
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await put();
    });
    return true;
  } catch (error) {
    // Half a file under the name of the whole would be taken for it.
    if (!isCode(error, 'EEXIST')) {
      await rm(path, { force: true });
      throw error;
    }
    // So would one whose writer died over it.
    const { size } = await standingOf(path);
    if (size !== Buffer.byteLength(part)) await writeFile(path, part, { mode: 0o600 });
    return false;
  }
}

interface Listed {
  name: string;
  bytes: number;
  /** Epoch milliseconds. */
  at: number;
}

const isPartName = (name: string): boolean => /^[0-9a-f]{40}\.(?:txt|bin)$/.test(name);

async function listed(folder: string): Promise<Listed[]> {
  const found: Listed[] = [];
  try {
    for (const name of await readdir(folder)) {
      if (!isPartName(name)) continue;
      const { size, mtimeMs, inode } = await standingOf(join(folder, name));
      // Without one, another process just removed it.
      if (inode !== 0) found.push({ name, bytes: size, at: mtimeMs });
    }
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
  }
  return found;
}

/** The path of a side file; undefined for what is no name of one, whoever wrote it there. */
export function partPath(folder: string, name: unknown): string | undefined {
  return typeof name === 'string' && isPartName(name) ? join(folder, name) : undefined;
}

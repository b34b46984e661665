import { constants } from 'node:fs';
import { copyFile, link, lstat, open, readlink, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { securityError } from '../core/errors.ts';
import { errorCode } from '../files/skip.ts';
import { checkTarget } from '../files/write/check-target.ts';
import { numberedName } from '../files/write/file-name.ts';
import { writeFailure } from '../files/write/write-failure.ts';
import type { Sandbox } from './sandbox.ts';

export interface Writing {
  directory: string;
  name: string;
  /** Whole, or in pieces. */
  text: string | AsyncIterable<string>;
  /** Tells drafts of two writings apart: a call's id, and more where one call writes several files. */
  unique: string;
  /** What is there already stays, and this file gets a number behind its name. Absent: a file of this name is replaced. */
  keep?: boolean;
  /** Permissions before the process's mask; absent: for the user alone. */
  mode?: number;
}

export interface Written {
  path: string;
  /** A file of this name was there before, and is no more. */
  replaced: boolean;
}

const mostNumbers = 1_000;

/**
 * Writes a file into a directory inside the roots. It is written beside its place and moved there, so that a link of its name
 * is replaced, never followed, and nobody sees half of it. A directory of that name is never replaced. Throws SECURITY for a
 * directory outside the roots, STORAGE where the system refuses.
 */
export async function writeInside(sandbox: Sandbox, { directory, name, ...writing }: Writing): Promise<Written> {
  const folder = await sandbox.assertWithin(directory);
  const place = join(folder, name);
  checkTarget(sandbox, place);
  try {
    const draft = await writeDraft(folder, writing);
    try {
      const found = await lstat(place).catch(() => undefined);
      if (writing.keep || found?.isDirectory()) return { path: await addFresh(draft, folder, name), replaced: false };
      await rename(draft, place);
      return { path: place, replaced: found !== undefined };
    } finally {
      await rm(draft, { force: true });
    }
  } catch (error) {
    throw writeFailure(place, error);
  }
}

/** Throws what writing into a directory would throw; leaves nothing behind. */
export async function probeInside(sandbox: Sandbox, directory: string, unique: string): Promise<void> {
  const folder = await sandbox.assertWithin(directory);
  try {
    await rm(await writeDraft(folder, { text: '', unique }), { force: true });
  } catch (error) {
    throw writeFailure(folder, error);
  }
}

async function writeDraft(
  folder: string,
  { text, unique, mode = 0o600 }: Pick<Writing, 'text' | 'unique' | 'mode'>,
): Promise<string> {
  const draft = join(folder, `.polylogue-${unique}`);
  const file = await open(draft, 'wx', mode);
  try {
    await assertStill(file.fd, draft);
    await file.writeFile(text);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  return draft;
}

/** Gives the draft the first free name; whoever takes a name meanwhile keeps it. */
async function addFresh(draft: string, folder: string, name: string): Promise<string> {
  for (let number = 1; ; number++) {
    const path = join(folder, numberedName(name, number));
    try {
      await linkOrCopy(draft, path);
      return path;
    } catch (error) {
      if (errorCode(error) !== 'EEXIST' || number >= mostNumbers) throw error;
    }
  }
}

/** What systems say that know no second name for a file. */
const noLinks: readonly (string | undefined)[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK', 'EINVAL'];

async function linkOrCopy(draft: string, path: string): Promise<void> {
  try {
    await link(draft, path);
  } catch (error) {
    if (!noLinks.includes(errorCode(error))) throw error;
    await copyFile(draft, path, constants.COPYFILE_EXCL);
  }
}

/** Throws when the folder was swapped for a link between its check and the opening. Systems without /proc can't tell. */
async function assertStill(descriptor: number, path: string): Promise<void> {
  const real = await readlink(`/proc/self/fd/${descriptor}`).catch(() => path);
  if (real === path) return;
  await rm(real, { force: true });
  throw securityError('The directory changed while it was written to.', {
    next: 'Name a directory of the project that nobody else is moving.',
  });
}

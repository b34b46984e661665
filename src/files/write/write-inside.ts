import { lstat, open, readlink, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { securityError } from '../../domain/error.ts';
import type { Sandbox } from '../sandbox.ts';

export interface Writing {
  directory: string;
  name: string;
  text: string;
  /** Tells drafts of two calls apart: a call's id. */
  unique: string;
}

export interface Written {
  path: string;
  /** A file of this name was there before. */
  replaced: boolean;
}

/**
 * Writes a file into a directory inside the roots. It is written beside its place and moved there, so that a link of its name
 * is replaced, never followed. Throws SECURITY for a directory outside the roots.
 */
export async function writeInside(sandbox: Sandbox, { directory, name, text, unique }: Writing): Promise<Written> {
  const folder = await sandbox.assertWithin(directory);
  const path = join(folder, name);
  const replaced = await lstat(path).then(
    () => true,
    () => false,
  );
  const draft = join(folder, `.${name}.${unique}`);
  const file = await open(draft, 'wx', 0o600);
  try {
    await assertStill(file.fd, draft);
    await file.writeFile(text);
    await file.close();
    await rename(draft, path);
  } catch (error) {
    await file.close().catch(() => {});
    await rm(draft, { force: true });
    throw error;
  }
  return { path, replaced };
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

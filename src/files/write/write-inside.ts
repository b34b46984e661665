import { lstat, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
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

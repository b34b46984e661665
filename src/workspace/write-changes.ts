import { constants } from 'node:fs';
import { lstat, mkdir, open, readlink, rm, unlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { securityError, storageError } from '../core/errors.ts';
import { printablePath } from '../core/text.ts';
import { isIn, isSkip } from './paths.ts';
import { readWhole } from './read-file.ts';
import type { Sandbox } from './sandbox.ts';
import { assertUnprotected, checkTarget, makeFolders, makeOwnFolder, writeFailure, writeInside } from './write-file.ts';

/** A file as it is to be; undefined: gone. */
export interface FileChange {
  /** Absolute. */
  path: string;
  text: string | undefined;
  /** What is there must still be these bytes; null: nothing may be there. Absent: whatever is there. */
  before?: Buffer | null;
}

export interface ChangeOptions {
  sandbox: Sandbox;
  /** Real paths of protected files whose change was approved. */
  approved?: ReadonlySet<string>;
  /** Absolute folder for what was there before; made when needed, outside of the project. */
  backups: string;
  /** Tells two writings apart. */
  unique: string;
  signal: AbortSignal;
}

/** `backup`: where the former content is; undefined where there was none. */
export type ChangedPlace = Awaited<ReturnType<typeof kept>>;

const maxBytes = 64 * 1024 * 1024;

interface Former extends Pick<FileChange, 'path' | 'text'> {
  bytes: Buffer | null;
  mode: number;
}

/**
 * Writes several files or none: what was there is kept in the folder of backups first, and when a file can't be written, those
 * before it are put back. Throws SECURITY for places where nothing may be written, STORAGE where the system refuses.
 */
export async function writeChanges(options: ChangeOptions, changes: readonly FileChange[]): Promise<ChangedPlace[]> {
  const formers: Former[] = [];
  for (const change of changes) formers.push(await formerOf(options, change));
  const places: ChangedPlace[] = [];
  for (const [index, former] of formers.entries()) places.push(await kept(options, former, index));
  const done: Former[] = [];
  try {
    for (const [index, former] of formers.entries()) {
      done.push(former);
      await put(options.sandbox, former, former.text, `${options.unique}-${index}`);
    }
  } catch (error) {
    for (const former of done) {
      const back = put(options.sandbox, former, former.bytes ?? undefined, `${options.unique}-back`);
      // The failure itself is what the caller has to know; the backup is there in any case.
      await back.catch(() => undefined);
    }
    throw error;
  }
  return places;
}

/** Throws where a file may not be written: by its name, its kind or where its folder really is. Answers its real path. */
export async function targetInside({ sandbox }: Pick<ChangeOptions, 'sandbox'>, path: string): Promise<string> {
  checkTarget(sandbox, path);
  const located = await sandbox.locate(path);
  if (!isSkip(located)) {
    checkTarget(sandbox, located.path);
    if (located.kind === 'file') return located.path;
    throw securityError(`${printablePath(path)} is a directory.`, { next: 'Name a file.' });
  }
  if (located.code !== 'not_found') throw notThere(path, located.reason);
  // Nothing would be kept of the link.
  if (await lstat(path).catch(() => undefined)) throw notThere(path, 'It is a link to what is not there.');
  return path;
}

const notThere = (path: string, reason: string): Error =>
  securityError(`${printablePath(path)} may not be written: ${reason}`, { next: 'Name a file inside the project.' });

async function formerOf({ sandbox, approved, signal }: ChangeOptions, change: FileChange): Promise<Former> {
  const { text, before } = change;
  const path = await targetInside({ sandbox }, change.path);
  const read = await readWhole(sandbox, path, { maxBytes, signal });
  if (isSkip(read) && read.code !== 'not_found') throw notThere(path, read.reason);
  const { bytes, mode, path: real } = isSkip(read) ? { path, bytes: null, mode: 0o644 } : read;
  const isExpected = before === undefined || (bytes ? before?.equals(bytes) : before === null);
  if (!isExpected) {
    const message = `${printablePath(path)} was changed by somebody else meanwhile; nothing was written.`;
    throw storageError('conflict', message, { next: 'Read it again and repeat the change.' });
  }
  if (!approved?.has(path)) await assertUnprotected(sandbox, path, { before: bytes?.toString('utf8'), after: text });
  return { path: real, bytes, mode: mode & 0o777, text };
}

async function kept({ backups, sandbox }: ChangeOptions, { path, bytes, text }: Former, index: number) {
  if (bytes === null) return { path, did: 'created', backup: undefined } as const;
  const root = sandbox.roots.find(each => isIn(path, each));
  const backup = join(backups, String(index), root === undefined ? basename(path) : relative(root, path));
  try {
    await makeOwnFolder(dirname(backups));
    await mkdir(dirname(backup), { recursive: true, mode: 0o700 });
    await writeFile(backup, bytes, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    throw writeFailure(backup, error);
  }
  return { path, did: text === undefined ? 'deleted' : 'changed', backup } as const;
}

async function put(sandbox: Sandbox, { path, mode }: Former, text: string | Buffer | undefined, unique: string) {
  if (text === undefined) return removeInside(sandbox, path);
  const [directory, name] = [await makeFolders(sandbox, dirname(path)), basename(path)];
  await writeInside(sandbox, { directory, name, text, unique, mode, approved: directory === dirname(path) });
}

/** Removes a file from a directory inside the roots; the directory is the one that was judged, whatever stands at its path now. */
async function removeInside(sandbox: Sandbox, path: string): Promise<void> {
  const folder = await sandbox.assertWithin(dirname(path));
  try {
    const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      const link = `/proc/self/fd/${handle.fd}`;
      const real = await readlink(link).catch(() => undefined);
      // Systems without /proc have no other name for an open directory.
      if (real === undefined) return await rm(join(folder, basename(path)), { force: true });
      if (real !== folder) throw notThere(path, 'its directory changed meanwhile.');
      await unlink(join(link, basename(path)));
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw writeFailure(path, error);
  }
}

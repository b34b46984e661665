import { constants } from 'node:fs';
import { copyFile, link, lstat, mkdir, open, readlink, rename, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, parse, relative, sep } from 'node:path';
import { errorCode, inputError, isAppError, securityError, storageError } from '../core/errors.ts';
import { printablePath, safeCut } from '../core/text.ts';
import { devices, isIn, isSecretFile, isSkip, readNames, upwards } from './paths.ts';
import { type ProtectedChange, reasonToProtect } from './protected-files.ts';
import type { Located, Sandbox } from './sandbox.ts';

/** Refuses places where a text of a model has no business: secret files, what git runs or believes, and what we do ourselves. */
export function checkTarget(sandbox: Pick<Sandbox, 'isOwn'>, path: string, separator = sep): void {
  const what = forbidden(sandbox, path, separator);
  if (what === undefined) return;
  throw securityError(`${printablePath(path)} is ${what} and is not written.`, {
    next: 'Name another place inside the project.',
  });
}

/** Makes a folder of this program's. In the directory for temporary files, another user may have made one of its name, or a link. */
export async function makeOwnFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  const uid = process.getuid?.();
  if (uid === undefined || !isIn(path, tmpdir())) return;
  const found = await lstat(path);
  if (found.isDirectory() && found.uid === uid && (found.mode & 0o022) === 0) return;
  throw storageError('unavailable', `${path} is not a directory of this user alone, so nothing is put into it.`, {
    next: 'Remove it, or set TMPDIR to a directory that only you may write to.',
  });
}

/** Of a path: a device, or at its end a stream behind a colon or what may be the short name of another file (`PACKAG~1.JSO`). */
const ambiguous = new RegExp(`${devices.source}|[^\\\\/]:[^\\\\/]+$|~\\d+(?:\\.[^.\\\\/]{0,3})?$`, 'i');

const versionControl = ['.git', '.hg', '.jj', '.sl', '.bzr', '.svn'];

function forbidden(sandbox: Pick<Sandbox, 'isOwn'>, path: string, separator: string): string | undefined {
  if (separator === '\\' && ambiguous.test(path)) return 'a name that Windows may read as another';
  const found = readNames(path).flatMap(names => versionControl.filter(each => names.includes(each)));
  if (found.length > 0) return `inside a ${found[0]} directory`;
  if (isSecretFile(path)) return 'on the list of secret files';
  return sandbox.isOwn(path) ? 'inside the data directory of Polylogue (POLYLOGUE_HOME)' : undefined;
}

/** Refuses files that make other programs run something, which nobody approved by themselves. */
export async function assertUnprotected(sandbox: Pick<Sandbox, 'roots'>, path: string, change?: ProtectedChange) {
  const reason = await reasonToProtect(sandbox, path, change);
  if (reason === undefined) return;
  const message = `${printablePath(path)} is protected (${reason}) and is not written without a separate approval.`;
  const next = 'Name another place inside the project, or tell the user what to write there.';
  throw securityError(message, { class: 'approval', next });
}

/** Below what file systems take (255 bytes), so that a number and a draft's name still fit. */
const maxNameBytes = 180;

/**
 * Parts joined by `_` into a file name that every platform takes: no separators, colons, control characters or dots and
 * spaces at its ends, and not too long; the first part is cut first. Two different names may become one.
 */
export function fileName(parts: readonly [string, ...string[]], extension: string): string {
  const [first, ...others] = parts.map(safePart);
  const tail = `${others.map(part => `_${within(part, maxNameBytes / 3)}`).join('')}.${extension}`;
  const head = within(first ?? '', Math.max(8, maxNameBytes - Buffer.byteLength(tail)));
  const name = `${head === '' ? 'prompt' : head}${tail}`;
  return devices.test(name) ? `_${name}` : name;
}

/** `a.md`, `a-2.md`, `a-3.md` … */
export function numberedName(name: string, number: number): string {
  const { name: stem, ext } = parse(name);
  return number === 1 ? name : `${stem}-${number}${ext}`;
}

const safePart = (text: string): string =>
  safeCut(text, maxNameBytes * 4)
    .normalize('NFC')
    .replace(/[^\p{L}\p{M}\p{N}._+@=-]+/gu, '-')
    .replace(/^[-.]+|[-.]+$/g, '');

function within(text: string, bytes: number): string {
  let cut = text;
  while (Buffer.byteLength(cut) > bytes) cut = [...cut].slice(0, -1).join('');
  return cut.replace(/[-.]+$/, '');
}

const reasons: Readonly<Record<string, string>> = {
  EROFS: 'the file system is read-only',
  EACCES: 'the server may not write there',
  EPERM: 'the server may not write there',
  ENOENT: 'the directory is gone',
  ENOTDIR: 'the directory is gone',
};

/** A failed system call as an error of ours; anything else comes back as it is. */
export function writeFailure(path: string, error: unknown): unknown {
  const code = errorCode(error);
  if (isAppError(error) || !(error instanceof Error) || code === undefined || !('errno' in error)) return error;
  const shown = printablePath(path);
  if (code === 'ENAMETOOLONG')
    return inputError(`${shown} is longer than this system allows.`, { next: 'Choose a shorter name.', cause: error });
  const isFull = code === 'ENOSPC' || code === 'EDQUOT';
  const reason = isFull ? 'the disk is full' : (reasons[code] ?? `the system refused (${code})`);
  return storageError(isFull ? 'storage_full' : 'unavailable', `${shown} cannot be written: ${reason}.`, {
    next: 'Name a directory of the project that can be written, or free space there, and resend the call.',
    cause: error,
  });
}

/** The real path of a directory inside the roots, made where missing, each part judged where it is. Throws SECURITY. */
export async function makeFolders(sandbox: Sandbox, path: string): Promise<string> {
  const { at } = await deepestThere(sandbox, path);
  let real = await sandbox.assertWithin(at);
  for (const name of relative(at, path).split(sep).filter(Boolean)) real = await makeFolder(sandbox, join(real, name));
  return real;
}

/** The path or the nearest folder above it that is there, or that may not be looked at. */
export async function deepestThere(sandbox: Sandbox, path: string): Promise<{ at: string; found?: Located }> {
  for (const at of upwards(path)) {
    const located = await sandbox.locate(at);
    if (!isSkip(located)) return { at, found: located };
    if (located.code !== 'not_found') return { at };
  }
  return { at: path };
}

async function makeFolder(sandbox: Sandbox, path: string): Promise<string> {
  const made = await mkdir(path).then(
    () => true,
    error => {
      if (errorCode(error) === 'EEXIST') return false;
      throw writeFailure(path, error);
    },
  );
  try {
    return await sandbox.assertWithin(path);
  } catch (error) {
    // A folder on the way was swapped for a link: what was made where it leads is taken away again.
    if (made) await rmdir(path).catch(() => {});
    throw error;
  }
}

export interface Writing {
  directory: string;
  name: string;
  /** Whole, or in pieces. */
  text: string | Buffer | AsyncIterable<string>;
  /** Tells drafts of two writings apart: a call's id, and more where one call writes several files. */
  unique: string;
  /** What is there already stays, and this file gets a number behind its name. Absent: a file of this name is replaced. */
  keep?: boolean;
  /** It may be a protected file: somebody approved this very one, or a change of it that needs no approval. */
  approved?: boolean;
  /** Permissions before the process's mask; absent: for the user alone. */
  mode?: number;
}

const maxNumbers = 1_000;

/**
 * Writes a file into a directory inside the roots. It is written beside its place and moved there, so that a link of its name
 * is replaced, never followed, and nobody sees half of it. A directory of that name is never replaced. Throws SECURITY for a
 * directory outside the roots, STORAGE where the system refuses. `replaced`: a file of this name was there before, and is no more.
 */
export async function writeInside(sandbox: Sandbox, { directory, name, ...writing }: Writing) {
  const folder = await sandbox.assertWithin(directory);
  const place = join(folder, name);
  checkTarget(sandbox, place);
  if (!writing.approved) await assertUnprotected(sandbox, place);
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

async function writeDraft(folder: string, { text, unique, mode = 0o600 }: Pick<Writing, 'text' | 'unique' | 'mode'>) {
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
      if (errorCode(error) !== 'EEXIST' || number >= maxNumbers) throw error;
    }
  }
}

/** What systems say that know no second name for a file. */
const noLinks: readonly (string | undefined)[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK', 'EINVAL'];

const linkOrCopy = (draft: string, path: string): Promise<void> =>
  link(draft, path).catch(error => {
    if (!noLinks.includes(errorCode(error))) throw error;
    return copyFile(draft, path, constants.COPYFILE_EXCL);
  });

/** Throws when the folder was swapped for a link between its check and the opening. Systems without /proc can't tell. */
async function assertStill(descriptor: number, path: string): Promise<void> {
  const real = await readlink(`/proc/self/fd/${descriptor}`).catch(() => path);
  if (real === path) return;
  await rm(real, { force: true });
  throw securityError('The directory changed while it was written to.', {
    next: 'Name a directory of the project that nobody else is moving.',
  });
}

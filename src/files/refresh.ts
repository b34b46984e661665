import { isAbsolute } from 'node:path';
import type { Fingerprint, Skip, TextFile } from '../core/file.ts';
import { type ReadOptions, readFile } from '../workspace/read-file.ts';
import type { Sandbox } from '../workspace/sandbox.ts';
import { isSkip, skip } from './skip.ts';

/** A file as it was last read. */
export interface KnownFile extends Fingerprint {
  path: string;
}

export type FileCheck = 'unchanged' | 'deleted' | { changed: TextFile } | { skip: Skip };

/**
 * Looks whether a file is still what it was. Size and time of the last change come first; only when one of them differs is the
 * file read and its hash compared, so that a file that was merely touched counts as unchanged.
 */
export async function checkFile(sandbox: Sandbox, known: KnownFile, options: ReadOptions): Promise<FileCheck> {
  const opened = await sandbox.open(known.path);
  if (isSkip(opened)) return opened.code === 'not_found' ? 'deleted' : { skip: opened };
  const { size, mtimeMs } = opened.stats;
  await opened.handle.close();
  if (opened.path === known.path && size === known.size && mtimeMs === known.mtimeMs) return 'unchanged';

  const file = await readFile(sandbox, known.path, options);
  if (isSkip(file)) return file.code === 'not_found' ? 'deleted' : { skip: file };
  return file.sha256 === known.sha256 ? 'unchanged' : { changed: file };
}

/**
 * The same for a document, whose text only a vendor can read: that it changed is told, and the caller names it again. What never
 * was a file here (an upload that was named by its id) stays what it is.
 */
export async function checkDocument(sandbox: Sandbox, known: KnownFile): Promise<FileCheck> {
  if (!isAbsolute(known.path)) return 'unchanged';
  const opened = await sandbox.open(known.path);
  if (isSkip(opened)) return opened.code === 'not_found' ? 'deleted' : { skip: opened };
  const { size, mtimeMs } = opened.stats;
  await opened.handle.close();
  if (opened.path === known.path && size === known.size && mtimeMs === known.mtimeMs) return 'unchanged';
  const reason = 'It changed since its text was read; name it again to send the new text.';
  return { skip: skip(known.path, 'unreadable', reason) };
}

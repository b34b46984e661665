import { createHash } from 'node:crypto';
import { throwIfAborted } from '../core/errors.ts';
import type { LineRange, Skip, TextFile } from '../core/file.ts';
import { sha256 } from '../core/ids.ts';
import { countLines } from '../core/text.ts';
import { decodeText } from '../files/decode.ts';
import { isSkip, skip, skipFor } from '../files/skip.ts';
import type { PathReference } from './paths.ts';
import type { Located, Opened, Sandbox } from './sandbox.ts';

export interface ReadOptions {
  /** The most a file may have, counted as it is read. */
  maxBytes: number;
  signal?: AbortSignal;
}

export type ReadOutcome =
  /** The file is always whole; `range` says which lines of it were asked for, cut to those that exist. */
  { ok: true; file: TextFile; range?: LineRange } | { ok: false; skip: Skip };

const chunkBytes = 1024 * 1024;

/** Reads a text file that a caller named. Skips carry the caller's own words as their path. */
export async function readTextFile(
  sandbox: Sandbox,
  reference: PathReference,
  options: ReadOptions,
): Promise<ReadOutcome> {
  const found = await locateReference(sandbox, reference);
  if (isSkip(found)) return { ok: false, skip: found };
  const file = await readFile(sandbox, found.path, options);
  if (isSkip(file)) return { ok: false, skip: skip(reference.input, file.code, file.reason) };
  if (!found.range) return { ok: true, file };
  const range = clampRange(reference.input, found.range, file.lines);
  return isSkip(range) ? { ok: false, skip: range } : { ok: true, file, range };
}

/** What a reference leads to: a file whose name ends like a range is preferred to the range. */
export async function locateReference(
  sandbox: Sandbox,
  { input, path, range, literal }: PathReference,
): Promise<(Located & { range?: LineRange }) | Skip> {
  if (literal !== undefined && range) {
    const whole = await sandbox.locate(literal);
    if (!isSkip(whole)) return whole;
    if (whole.code !== 'not_found' && whole.code !== 'outside_roots') return skip(input, whole.code, whole.reason);
  }
  const located = await sandbox.locate(path);
  if (isSkip(located)) return skip(input, located.code, located.reason);
  return range ? { ...located, range } : located;
}

/** Reads a text file by its absolute path. */
export async function readFile(
  sandbox: Sandbox,
  path: string,
  { maxBytes, signal }: ReadOptions,
): Promise<TextFile | Skip> {
  throwIfAborted(signal);
  const opened = await sandbox.open(path);
  if (isSkip(opened)) return opened;
  const bytes = await readBytes(opened, path, { maxBytes, signal });
  if (!Buffer.isBuffer(bytes)) return bytes;
  const text = decodeText(bytes);
  if (text === undefined) {
    return skip(path, 'binary', 'It is no text in UTF-8 or UTF-16; name a text file.');
  }
  return {
    path: opened.path,
    text,
    lines: countLines(text),
    size: bytes.length,
    mtimeMs: opened.stats.mtimeMs,
    sha256: sha256(createHash('sha256').update(bytes).digest('hex')),
  };
}

/** All bytes of an open file; closes it. The size on disk is only believed when it is too large: some files grow, some lie. */
export async function readBytes(
  { handle, stats }: Opened,
  path: string,
  { maxBytes, signal }: ReadOptions,
): Promise<Buffer | Skip> {
  try {
    if (stats.size > maxBytes) return tooLarge(path, stats.size, maxBytes);
    const limit = maxBytes + 1;
    let bytes = Buffer.allocUnsafe(Math.min(limit, stats.size + 1));
    let length = 0;
    while (length < limit) {
      throwIfAborted(signal);
      if (length === bytes.length)
        bytes = Buffer.concat([bytes, Buffer.allocUnsafe(Math.min(limit - length, chunkBytes))]);
      const { bytesRead } = await handle.read(bytes, length, Math.min(chunkBytes, bytes.length - length), length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return length > maxBytes ? tooLarge(path, length, maxBytes) : bytes.subarray(0, length);
  } catch (error) {
    return skipFor(path, error);
  } finally {
    await handle.close();
  }
}

function tooLarge(path: string, bytes: number, maxBytes: number): Skip {
  return skip(
    path,
    'too_large',
    `It has ${bytes} bytes or more; at most ${maxBytes} are read. Cut out the part that matters into a smaller file.`,
  );
}

export function clampRange(path: string, { from, to }: LineRange, lines: number): LineRange | Skip {
  const has = lines === 0 ? 'the file is empty' : `the file has lines 1 to ${lines}`;
  if (from < 1 || to < from) return skip(path, 'bad_range', `${from}-${to} is no range of lines; ${has}.`);
  if (from > lines) return skip(path, 'bad_range', `Line ${from} is beyond the end; ${has}.`);
  return { from, to: Math.min(to, lines) };
}

/** The bytes of an open file, piece by piece; closes it at the end, or when nobody wants more. */
export async function* readPieces({ handle }: Opened, path: string): AsyncGenerator<Uint8Array, Skip | undefined> {
  try {
    for await (const piece of handle.createReadStream({ highWaterMark: chunkBytes })) yield piece;
    return undefined;
  } catch (error) {
    return skipFor(path, error);
  } finally {
    await handle.close();
  }
}

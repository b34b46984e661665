import { isAbsolute } from 'node:path';
import { throwIfAborted } from '../core/errors.ts';
import type { Fingerprint, LineRange, Skip, TextFile } from '../core/file.ts';
import { hashOf } from '../core/ids.ts';
import { countLines, decodeText } from '../core/text.ts';
import { isSkip, notText, parsePathReference, skip, skipFor, tooLarge } from './paths.ts';
import type { Opened, Sandbox } from './sandbox.ts';

export interface ReadOptions {
  /** The most a file may have, counted as it is read. */
  maxBytes: number;
  signal?: AbortSignal;
}

/** For what a caller names. */
export interface NamedPlace {
  /** Where relative paths start. */
  root: string;
  home: string;
}

export interface NamedReadOptions extends ReadOptions, NamedPlace {}

const chunkBytes = 1024 * 1024;

/** Reads a named text file, always whole; `range`: which of the lines asked for exist. Skips carry the caller's words as their path. */
export async function readTextFile(sandbox: Sandbox, input: string, options: NamedReadOptions) {
  const found = await locateNamed(sandbox, input, options);
  if (isSkip(found)) return found;
  const file = await readFile(sandbox, found.path, options);
  if (isSkip(file)) return skip(input, file.code, file.reason);
  const range = found.range && clampRange(input, found.range, file.lines);
  return range && isSkip(range) ? range : { file, range };
}

/** What a caller named: a file whose name ends like a range is preferred to the range. */
export async function locateNamed(sandbox: Sandbox, input: string, { root, home }: NamedPlace) {
  const reference = parsePathReference(input, root, home);
  if (isSkip(reference)) return reference;
  const { path, range, literal } = reference;
  if (literal !== undefined && range) {
    const whole = await sandbox.locate(literal);
    if (!isSkip(whole)) return { ...whole, input, range: undefined };
    if (whole.code !== 'not_found' && whole.code !== 'outside_roots') return skip(input, whole.code, whole.reason);
  }
  const located = await sandbox.locate(path);
  if (isSkip(located)) return skip(input, located.code, located.reason);
  return { ...located, input, range };
}

/** Reads a text file by its absolute path. */
export async function readFile(sandbox: Sandbox, path: string, options: ReadOptions): Promise<TextFile | Skip> {
  throwIfAborted(options.signal);
  const read = await readWhole(sandbox, path, options);
  if (isSkip(read)) return read;
  const { bytes, mtimeMs } = read;
  const text = decodeText(bytes);
  if (text === undefined) return notText(path);
  return { path: read.path, text, lines: countLines(text), size: bytes.length, mtimeMs, sha256: hashOf(bytes) };
}

/** The bytes of a file by its absolute path, its real path, and what it was when it was opened. */
export async function readWhole(sandbox: Sandbox, path: string, options: ReadOptions) {
  const opened = await sandbox.open(path);
  if (isSkip(opened)) return opened;
  const bytes = await readBytes(opened, path, options);
  const { mtimeMs, mode } = opened.stats;
  return Buffer.isBuffer(bytes) ? { path: opened.path, bytes, mtimeMs, mode } : bytes;
}

/** All bytes of an open file; closes it. The size on disk is only believed when it is too large: some files grow, some lie. */
export async function readBytes({ handle, stats }: Opened, path: string, { maxBytes, signal }: ReadOptions) {
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

/** Documents whose text is read on this machine. */
export type DocumentFormat = 'pdf' | 'docx' | 'pptx' | 'xlsx';

const formats: readonly (readonly [DocumentFormat, endings: RegExp])[] = [
  ['pdf', /\.pdf$/i],
  ['docx', /\.(?:doc[xm]|dot[xm])$/i],
  ['pptx', /\.(?:ppt[xm]|ppsx|potx)$/i],
  ['xlsx', /\.(?:xls[xm]|xltx)$/i],
];

/** By the name of a file; undefined for what is none or can't be read here. */
export const documentFormat = (path: string): DocumentFormat | undefined =>
  formats.find(([, endings]) => endings.test(path))?.[0];

const signatures: readonly (readonly [mediaType: string, matches: (bytes: Buffer) => boolean])[] = [
  ['image/png', bytes => bytes.subarray(0, 8).equals(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]))],
  ['image/jpeg', bytes => bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff],
  ['image/gif', bytes => /^GIF8[79]a/.test(bytes.toString('latin1', 0, 6))],
  ['image/webp', bytes => bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP'],
];

/** Reads an image, by path or data URL, and judges it by its bytes. `source`: its absolute path, or `data:`. */
export async function readImage(sandbox: Sandbox, input: string, options: NamedReadOptions) {
  if (/^https?:/i.test(input))
    return skip(input, 'bad_path', 'Images are not fetched: save it as a file of the project.');
  const found = /^data:/i.test(input) ? fromDataUrl(input, options.maxBytes) : await fromFile(sandbox, input, options);
  if (isSkip(found)) return found;
  const mediaType = signatures.find(([, matches]) => matches(found.bytes))?.[0];
  if (mediaType) return { ...found, mediaType };
  return skip(found.source, 'binary', 'It is no image that models take: PNG, JPEG, GIF or WebP.');
}

function fromDataUrl(input: string, maxBytes: number) {
  const data = /^data:[\w/+.-]*;base64,([A-Za-z0-9+/=\s]*)$/i.exec(input)?.[1];
  if (data === undefined) return skip('data:', 'bad_path', 'A data URL must be base64: data:image/png;base64,…');
  if (data.length > maxBytes * 1.4) return skip('data:', 'too_large', `An image has at most ${maxBytes} bytes.`);
  return { source: 'data:', bytes: Buffer.from(data, 'base64') };
}

async function fromFile(sandbox: Sandbox, input: string, options: NamedReadOptions) {
  const reference = parsePathReference(input, options.root, options.home);
  if (isSkip(reference)) return reference;
  const read = await readWhole(sandbox, reference.literal ?? reference.path, options);
  return isSkip(read) ? read : { source: read.path, bytes: read.bytes };
}

/** A file as it was last read. */
export type KnownFile = Fingerprint & Pick<TextFile, 'path'>;

export type FileCheck = 'unchanged' | 'deleted' | { changed: TextFile } | { skip: Skip };

/**
 * Looks whether a file is still what it was. Size and time of the last change come first; only when one of them differs is the
 * file read and its hash compared, so that a file that was merely touched counts as unchanged.
 *
 * Without `options` it is a document, whose text only a vendor can read: that it changed is told, and the caller names it again.
 * What never was a file here (an upload that was named by its id) stays what it is.
 */
export async function checkFile(sandbox: Sandbox, known: KnownFile, options?: ReadOptions): Promise<FileCheck> {
  if (!options && !isAbsolute(known.path)) return 'unchanged';
  const found = await sandbox.locate(known.path);
  if (isSkip(found)) return goneOr(found);
  if (found.path === known.path && found.size === known.size && found.mtimeMs === known.mtimeMs) return 'unchanged';
  if (!options) {
    const reason = 'It changed since its text was read; name it again to send the new text.';
    return { skip: skip(known.path, 'unreadable', reason) };
  }
  const file = await readFile(sandbox, known.path, options);
  if (isSkip(file)) return goneOr(file);
  return file.sha256 === known.sha256 ? 'unchanged' : { changed: file };
}

const goneOr = (refused: Skip): FileCheck => (refused.code === 'not_found' ? 'deleted' : { skip: refused });

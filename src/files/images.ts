import type { Skip } from '../core/file.ts';
import { parsePathReference } from '../workspace/paths.ts';
import { readBytes } from '../workspace/read-file.ts';
import type { Sandbox } from '../workspace/sandbox.ts';
import { isSkip, skip } from './skip.ts';

/** An image that a model may be shown. */
export interface ImageFile {
  /** Absolute path, or `data:` for one that came in the call. */
  source: string;
  mediaType: string;
  bytes: Buffer;
}

export interface ImageOptions {
  root: string;
  home: string;
  /** Bytes of one image. */
  maxBytes: number;
  signal?: AbortSignal;
}

const signatures: readonly (readonly [mediaType: string, matches: (bytes: Buffer) => boolean])[] = [
  ['image/png', bytes => bytes.subarray(0, 8).equals(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]))],
  ['image/jpeg', bytes => bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff],
  ['image/gif', bytes => /^GIF8[79]a/.test(bytes.toString('latin1', 0, 6))],
  ['image/webp', bytes => bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP'],
];

/** Reads an image by path or data URL. What it is is judged by its bytes, not by its name. */
export async function readImage(sandbox: Sandbox, input: string, options: ImageOptions): Promise<ImageFile | Skip> {
  const found = /^data:/i.test(input) ? fromDataUrl(input, options.maxBytes) : await fromFile(sandbox, input, options);
  if (isSkip(found)) return found;
  const mediaType = signatures.find(([, matches]) => matches(found.bytes))?.[0];
  if (mediaType) return { ...found, mediaType };
  return skip(found.source, 'binary', 'It is no image that models take: PNG, JPEG, GIF or WebP.');
}

type Bytes = Pick<ImageFile, 'source' | 'bytes'>;

function fromDataUrl(input: string, maxBytes: number): Bytes | Skip {
  const data = /^data:[\w/+.-]*;base64,([A-Za-z0-9+/=\s]*)$/i.exec(input)?.[1];
  if (data === undefined) return skip('data:', 'bad_path', 'A data URL must be base64: data:image/png;base64,…');
  if (data.length > maxBytes * 1.4) return skip('data:', 'too_large', `An image has at most ${maxBytes} bytes.`);
  return { source: 'data:', bytes: Buffer.from(data, 'base64') };
}

async function fromFile(sandbox: Sandbox, input: string, options: ImageOptions): Promise<Bytes | Skip> {
  const reference = parsePathReference(input, options.root, options.home);
  if (isSkip(reference)) return reference;
  const path = reference.literal ?? reference.path;
  const opened = await sandbox.open(path);
  if (isSkip(opened)) return opened;
  const bytes = await readBytes(opened, path, options);
  return Buffer.isBuffer(bytes) ? { source: opened.path, bytes } : bytes;
}

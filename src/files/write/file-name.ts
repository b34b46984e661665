import { extname } from 'node:path';

/** Below what file systems take (255 bytes), so that a number and a draft's name still fit. */
const longestBytes = 180;
/** Names that Windows keeps for devices, whatever follows their first dot. */
const devices = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/**
 * Parts joined by `_` into a file name that every platform takes: no separators, colons, control characters or dots and
 * spaces at its ends, and not too long; the first part is cut first. Two different names may become one.
 */
export function fileName(parts: readonly [string, ...string[]], extension: string): string {
  const [first, ...others] = parts.map(safePart);
  const tail = [...others.map(part => within(part, longestBytes / 3)).map(part => `_${part}`), `.${extension}`].join(
    '',
  );
  const head = within(first ?? '', Math.max(8, longestBytes - Buffer.byteLength(tail)));
  const name = `${head === '' ? 'prompt' : head}${tail}`;
  return devices.test(name) ? `_${name}` : name;
}

/** `a.md`, `a-2.md`, `a-3.md` … */
export function numberedName(name: string, number: number): string {
  if (number === 1) return name;
  const extension = extname(name);
  return `${name.slice(0, name.length - extension.length)}-${number}${extension}`;
}

function safePart(text: string): string {
  return text
    .normalize('NFC')
    .replace(/[^\p{L}\p{M}\p{N}._+@=-]+/gu, '-')
    .replace(/^[-.]+|[-.]+$/g, '');
}

function within(text: string, bytes: number): string {
  let cut = text;
  while (Buffer.byteLength(cut) > bytes) cut = [...cut].slice(0, -1).join('');
  return cut.replace(/[-.]+$/, '');
}

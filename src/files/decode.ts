import { isUtf8 } from 'node:buffer';

/** Above this share of bytes that make no sense as UTF-8, a file is taken for binary. */
const mostInvalid = 0.1;
/** Above this share of control characters (white space and escapes aside) too. */
const mostControl = 0.1;
/** Characters looked at for them: a binary file shows itself early. */
const sample = 65_536;

/**
 * The text in a file's bytes, or undefined when they are no text. UTF-8 and, with a byte-order mark, UTF-16; the mark is
 * removed and line ends become `\n`. A few broken bytes become U+FFFD; text in an old 8-bit encoding is read as Windows-1252.
 */
export function decodeText(bytes: Buffer): string | undefined {
  const text =
    bytes[0] === 0xff && bytes[1] === 0xfe
      ? utf16(bytes, 'utf-16le')
      : bytes[0] === 0xfe && bytes[1] === 0xff
        ? utf16(bytes, 'utf-16be')
        : utf8(bytes);
  if (text === undefined || hasManyControls(text)) return undefined;
  return text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text;
}

/** A NUL character means that it was no UTF-16 (UTF-32 begins with the same mark). */
function utf16(bytes: Buffer, encoding: 'utf-16le' | 'utf-16be'): string | undefined {
  const text = new TextDecoder(encoding).decode(bytes);
  if (text.includes('\0')) return undefined;
  return count(text, isReplacement) > text.length * mostInvalid ? undefined : text;
}

function utf8(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined;
  const text = new TextDecoder().decode(bytes);
  if (isUtf8(bytes)) return text;
  if (count(text, isReplacement) > bytes.length * mostInvalid) return undefined;
  const understood = count(text, code => code > 0x7f && !isReplacement(code));
  return understood === 0 ? new TextDecoder('windows-1252').decode(bytes) : text;
}

function hasManyControls(text: string): boolean {
  const start = text.slice(0, sample);
  return count(start, isControl) > start.length * mostControl;
}

function isReplacement(code: number): boolean {
  return code === 0xfffd;
}

function isControl(code: number): boolean {
  return code < 0x20 && !(code >= 0x08 && code <= 0x0d) && code !== 0x1b;
}

function count(text: string, test: (code: number) => boolean): number {
  let found = 0;
  for (let at = 0; at < text.length; at++) if (test(text.charCodeAt(at))) found++;
  return found;
}

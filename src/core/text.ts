import { isAscii, isUtf8 } from 'node:buffer';

/** The known name that is closest to a mistyped one; undefined when none is close. */
export function nearName(name: string, known: Iterable<string>): string | undefined {
  const wanted = plain(name);
  let best: { name: string; distance: number } | undefined;
  for (const candidate of known) {
    const limit = Math.min(best ? best.distance - 1 : 3, Math.ceil((wanted.length - 2) / 4));
    const distance = editDistance(wanted, plain(candidate), limit);
    if (distance <= limit) best = { name: candidate, distance };
  }
  return best?.name;
}

/** A question with the name that was probably meant, for the start of a sentence; empty where none is near. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const near = nearName(name, known);
  return near === undefined ? '' : `Did you mean "${near}"? `;
}

/** `1 turn`, `2 turns`. */
export const counted = (count: number, one: string): string => `${count} ${one}${count === 1 ? '' : 's'}`;

const plain = (name: string): string => name.toLowerCase().replace(/[^a-z0-9.]/g, '');

/** Insertions, deletions, replacements and swaps of neighbours between two names; at most `limit + 1` is answered. */
export function editDistance(from: string, to: string, limit: number): number {
  if (Math.abs(from.length - to.length) > limit) return limit + 1;
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      const swaps = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      const swapped = swaps ? (before[j - 2] ?? 0) + 1 : replaced;
      next.push(Math.min(replaced, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return Math.min(row[to.length] ?? 0, limit + 1);
}

/** What stands between the first match of `opens` and the first `closes` after it; in one pass, however often either begins. */
export function textBetween(text: string, opens: RegExp, closes: string): string | undefined {
  const found = opens.exec(text);
  const start = found ? found.index + found[0].length : 0;
  const end = found ? text.indexOf(closes, start) : -1;
  return end === -1 ? undefined : text.slice(start, end);
}

/** Counts lines as an editor does: a final line end starts no new line. */
export const countLines = (text: string): number => timesIn(text, '\n') + (text === '' || text.endsWith('\n') ? 0 : 1);

/** How often a character stands in a text. */
function timesIn(text: string, char: string): number {
  let found = 0;
  for (let at = text.indexOf(char); at !== -1; at = text.indexOf(char, at + 1)) found++;
  return found;
}

/** Puts `  12│ ` before each line, counting from `from`; the width grows with the last number and is at least 4. */
export function numberLines(text: string, from = 1): string {
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
  const width = Math.max(4, String(from + lines.length - 1).length);
  return lines.map((line, index) => `${String(from + index).padStart(width)}│ ${line}`).join('\n');
}

/** The largest number up to `limit` that fits, where with each all smaller ones fit as well; 0 is taken to fit. */
export function mostThatFit(limit: number, fits: (count: number) => boolean): number {
  let low = 0;
  let high = limit;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Keeps the beginning and the end of a text, and says between them how much was left out. `lines`: the end begins with a line, where one is near. */
export function cutMiddle(text: string, maxChars: number, lines = false): string {
  if (text.length <= maxChars) return text;
  const note = (left: number) => `\n[… ${left} characters left out …]\n`;
  const room = Math.max(0, maxChars - note(text.length).length);
  const head = safeCut(text, Math.ceil(room * 0.6));
  const least = text.length - Math.floor(room * 0.4);
  const tailStart = least + (lines ? Math.max(0, text.slice(least - 1, least + 4_000).indexOf('\n')) : 0);
  const tail = text.slice(isLowSurrogate(text, tailStart) ? tailStart + 1 : tailStart);
  return `${head}${note(text.length - head.length - tail.length)}${tail}`;
}

/** The first `chars` characters, never half of a surrogate pair. */
export const safeCut = (text: string, chars: number): string =>
  text.slice(0, isLowSurrogate(text, chars) ? Math.max(0, chars - 1) : chars);

/** A text in pieces, each the beginning that `cut` leaves of the rest, which is never empty. */
export function piecesOf(text: string, cut: (rest: string) => string): string[] {
  const pieces: string[] = [];
  for (let rest = text; rest !== ''; rest = rest.slice(pieces.at(-1)?.length)) pieces.push(cut(rest));
  return pieces;
}

function isLowSurrogate(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff;
}

const maxShownLength = 500;

// Control, format (right-to-left marks, zero-width), surrogate and line-separating characters.
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * A path as it may stand in a reply, a log or a prompt: a name with a line break or a right-to-left mark cannot pretend to
 * be something else there. Ordinary paths come back as they are; the result is for reading, not for opening.
 */
export function printablePath(path: string): string {
  const shown = path.length > maxShownLength ? `${safeCut(path, maxShownLength)}…` : path;
  return shown.replace(unprintable, escaped);
}

const escaped = (char: string): string => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`;

// Steers a terminal, turns the direction of writing, or is not seen at all. Tabs and line ends do no harm.
const unseen = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

// Of scripts whose letters take joiners or marks of direction after them.
const scripts =
  'Arab|Hebr|Syrc|Thaa|Nkoo|Mong|Deva|Beng|Guru|Gujr|Orya|Taml|Telu|Knda|Mlym|Sinh|Thai|Laoo|Khmr|Mymr|Tibt';
const joining = scripts.replace(/\w+\|?/g, name => `\\p{scx=${name.slice(0, 4)}}`);

/** Where such a character belongs: a line end, emoji, joiners and marks after a letter that takes them, signs that are seen. */
const belonging = [
  '\\r\\n',
  '\\p{RGI_Emoji_Tag_Sequence}',
  '\\p{Extended_Pictographic}[\\u{fe0e}\\u{fe0f}\\p{Emoji_Modifier}]{0,2}\\u{200d}?',
  '[0-9#*]\\u{fe0f}',
  '[\\p{scx=Han}\\p{Sm}][\\u{fe00}-\\u{fe0f}\\u{e0100}-\\u{e01ef}]',
  `[[${joining}]--\\p{DI}][\\u{180b}-\\u{180d}\\u{180f}\\u{200b}-\\u{200f}\\u{61c}]`,
  '[\\u{600}-\\u{605}\\u{6dd}\\u{70f}\\u{890}\\u{891}\\u{8e2}\\u{110bd}\\u{110cd}]',
].join('|');

/** Made with the first text that needs it, which few starts of the program see. */
let terminalParts: RegExp | undefined;

/**
 * A text that came from outside, as a terminal may be given it: no character of it steers the terminal, overwrites what was
 * printed, turns the direction of writing or is there unseen. Each of these is shown as `\u{1b}`; letters, emoji and line ends stay.
 */
export function printableText(text: string): string {
  if (!unseen.test(text)) return text;
  terminalParts ??= new RegExp(`(${belonging})|${unseen.source}`, 'gv');
  return text.replace(terminalParts, (char: string, kept?: string) => kept ?? escaped(char));
}

/** A character that the next one may belong to, with what belongs to it already; never longer than `openChars`. */
const openEnd = /[\r0-9#*[\P{ASCII}--\p{DI}]][\p{DI}\p{Emoji_Modifier}\u{d800}-\u{dbff}]{0,8}$/v;
const openChars = 24;

/** The same for a text in pieces; the end of a piece may wait for the next one. */
export function createPrintable(): { add(piece: string): string; end(): string } {
  let held = '';
  const add = (piece: string, isEnd = false) => {
    const text = held + piece;
    held = isEnd ? '' : (openEnd.exec(text.slice(-openChars))?.[0] ?? '');
    return printableText(text.slice(0, text.length - held.length));
  };
  return { add, end: () => add('', true) };
}

/** A JSON document of the same value whose text is harmless on a terminal. */
export function printableJson(json: string): string {
  const unit = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return json.replace(new RegExp(unseen, 'gu'), char => char.split('').map(unit).join(''));
}

/** The lines `from` to `to` of a text, counted from 1. Of a long text, only what stands before them is looked at. */
export function linesBetween(text: string, from: number, to: number): string {
  let start = 0;
  for (let line = 1; line < from; line++) {
    const end = text.indexOf('\n', start);
    if (end === -1) return '';
    start = end + 1;
  }
  let stop = start - 1;
  for (let line = from; line <= to; line++) {
    const end = text.indexOf('\n', stop + 1);
    if (end === -1) return text.slice(start);
    stop = end;
  }
  return text.slice(start, Math.max(start, stop));
}

/** Text as HTML shows it. Nothing in it can become markup, in an element or in a quoted attribute. */
export const escapeHtml = (text: string): string =>
  text.toWellFormed().replace(/[&<>"'\p{Cc}]/gu, char => entities[char] ?? '\ufffd');

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '\n': '\n',
  '\t': '\t',
  '\r': '',
};

/** Whether a secret can be looked for by its value: short ones and plain words stand in every other text. */
export const isDistinctiveSecret = (secret: string): boolean =>
  secret.length >= 6 && !/^(?:[A-Za-z]{1,11}|\d{1,7})$/.test(secret) && !/^(.)\1*$/s.test(secret);

/** A text without its percent-encoding; one that has none after all is as it stands. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What sample files have for a value (`your_openai_api_key_here`, `sk-…`), and references that a host left there. */
export function isPlaceholder(value: string): boolean {
  const text = value.trim();
  if (text.length > 100) return false;
  return (
    /^<?your[-_ ].*here>?$/i.test(text) ||
    /^[\w-]{0,12}(?:…|\.{3})$/.test(text) ||
    /^\$(?:\{(?:env:)?[a-z_]\w*(?::-)?\}(?:[/\\].*)?|[A-Z_]+_(?:KEY|TOKEN))$/i.test(text)
  );
}

/** Above this share of bytes that make no sense as UTF-8, bytes are taken for binary. */
const maxInvalid = 0.1;

/** Above this share of control characters (white space and escapes aside) too. */
const maxControl = 0.1;

/** Characters looked at for them: a binary file shows itself early. */
const sample = 65_536;

/**
 * The text in a file's or a pipe's bytes, or undefined when they are no text. UTF-8 and, with a byte-order mark, UTF-16; the mark is
 * removed and line ends become `\n`. A few broken bytes become U+FFFD; text in an old 8-bit encoding is read as Windows-1252.
 */
export function decodeText(bytes: Buffer): string | undefined {
  const text =
    bytes[0] === 0xff && bytes[1] === 0xfe
      ? utf16(bytes, 'utf-16le')
      : bytes[0] === 0xfe && bytes[1] === 0xff
        ? utf16(bytes, 'utf-16be')
        : utf8(bytes);
  const start = text?.slice(0, sample) ?? '';
  if (text === undefined || (start.match(controls)?.length ?? 0) > start.length * maxControl) return undefined;
  return text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text;
}

/** A NUL character means that it was no UTF-16 (UTF-32 begins with the same mark). */
function utf16(bytes: Buffer, encoding: 'utf-16le' | 'utf-16be'): string | undefined {
  const text = new TextDecoder(encoding).decode(bytes);
  if (text.includes('\0')) return undefined;
  return timesIn(text, '\ufffd') > text.length * maxInvalid ? undefined : text;
}

const utf8Decoder = new TextDecoder();

function utf8(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined;
  if (isAscii(bytes)) return bytes.toString('latin1');
  const text = utf8Decoder.decode(bytes);
  if (isUtf8(bytes)) return text;
  if (timesIn(text, '\ufffd') > bytes.length * maxInvalid) return undefined;
  const isUnderstood = /[\u0080-\ufffc\ufffe\uffff]/.test(text);
  return isUnderstood ? text : new TextDecoder('windows-1252').decode(bytes);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const controls = /[\0-\x07\x0e-\x1a\x1c-\x1f]/g;

const removed = '[removed]';

/** Shorter ones are words such as `none`. */
const shortestKey = 8;

/** Takes out `keys`, and what looks like a key, a token or the user part of an address. Vendors repeat the key they refuse. */
export const withoutKeys = (text: string, keys: readonly string[] = []): string =>
  keys
    .reduce((rest, key) => (key.length < shortestKey ? rest : rest.replaceAll(key, removed)), text)
    .replace(/(?<=:\/\/)[^\s/@]+@/g, `${removed}@`)
    .replace(/([?&](?:key|api_key|apikey|token|access_token)=)[^\s&"']+/gi, `$1${removed}`)
    .replace(/\b(bearer|basic)\s+[^\s"',;]+/gi, `$1 ${removed}`)
    .replace(/\b((?:api[ _-]?)?(?:key|token)["']?(?: provided)?\s*[:=]\s*["']?)[^\s"',;]+/gi, `$1${removed}`)
    .replace(/\b(?:sk|pk|rk|xai|gsk|nvapi|hf|ghp|r8|fw|tgp|ak)[-_][A-Za-z0-9*_-]{6,}/g, removed)
    .replace(/\bAIza[A-Za-z0-9_-]{10,}/g, removed)
    .replace(/\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{24,}(?:\.[A-Za-z0-9_-]{8,})*/g, removed);

/** What one UTF-16 unit is to o200k, which cuts a text into pieces before it merges any. */
const kinds = { unknown: 0, newline: 1, space: 2, upper: 3, lower: 4, letter: 5, digit: 6, mark: 7 } as const;

let table: Uint8Array | undefined;

function kindAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (Number.isNaN(code)) return kinds.unknown;
  table ??= new Uint8Array(0x10000);
  const known = table[code];
  if (known) return known;
  const kind = kindOf(String.fromCharCode(code));
  table[code] = kind;
  return kind;
}

function kindOf(character: string): number {
  if (/[\r\n]/.test(character)) return kinds.newline;
  if (/\s/.test(character)) return kinds.space;
  if (/[\p{Lu}\p{Lt}]/u.test(character)) return kinds.upper;
  if (/\p{Ll}/u.test(character)) return kinds.lower;
  if (/[\p{Lm}\p{Lo}\p{M}]/u.test(character)) return kinds.letter;
  return /\p{N}/u.test(character) ? kinds.digit : kinds.mark;
}

const blank = 32;
const slash = 47;
const apostrophe = 39;

function isLetter(kind: number): boolean {
  return kind === kinds.upper || kind === kinds.lower || kind === kinds.letter;
}

/** Where the piece ends that begins at `at`: a word with what stands before it, three digits, marks, or white space. */
export function pieceEnd(text: string, at: number): number {
  const kind = kindAt(text, at);
  if (isLetter(kind)) return wordEnd(text, at);
  if (kind === kinds.digit) return digitsEnd(text, at);
  const next = kindAt(text, at + 1);
  if (kind !== kinds.newline && isLetter(next)) return wordEnd(text, at + 1);
  if (kind === kinds.mark) return marksEnd(text, at);
  if (next === kinds.mark && text.charCodeAt(at) === blank) return marksEnd(text, at + 1);
  return spaceEnd(text, at);
}

/** A word ends where a capital follows a small letter; `'s` and its like belong to it. */
function wordEnd(text: string, from: number): number {
  let at = from;
  let kind = kindAt(text, at);
  while (kind === kinds.upper || kind === kinds.letter) kind = kindAt(text, ++at);
  while (kind === kinds.lower || kind === kinds.letter) kind = kindAt(text, ++at);
  if (text.charCodeAt(at) !== apostrophe) return at;
  return at + (/^'(?:s|t|re|ve|m|ll|d)/i.exec(text.slice(at, at + 3))?.[0].length ?? 0);
}

function digitsEnd(text: string, from: number): number {
  let at = from;
  while (at < from + 3 && kindAt(text, at) === kinds.digit) at++;
  return at;
}

/** Marks take line ends and slashes along. */
function marksEnd(text: string, from: number): number {
  let at = from;
  while (kindAt(text, at) === kinds.mark) at++;
  while (kindAt(text, at) === kinds.newline || text.charCodeAt(at) === slash) at++;
  return at;
}

/** White space is one piece up to its last line end; what follows leaves its last unit to what stands after it. */
function spaceEnd(text: string, from: number): number {
  let at = from;
  let lineEnd = from;
  for (;;) {
    const kind = kindAt(text, at);
    if (kind !== kinds.space && kind !== kinds.newline) break;
    at++;
    if (kind === kinds.newline) lineEnd = at;
  }
  if (lineEnd > from) return lineEnd;
  return at < text.length && at - from > 1 ? at - 1 : at;
}

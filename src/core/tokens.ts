import { readFileSync } from 'node:fs';
import { remember } from './concurrency.ts';
import { mostThatFit, safeCut } from './text.ts';

/** What one UTF-16 unit is to o200k, which cuts a text into pieces before it merges any. */
const kinds = { unknown: 0, newline: 1, space: 2, upper: 3, lower: 4, letter: 5, digit: 6, mark: 7 } as const;

const table = new Uint8Array(0x10000);

/** Longer texts are looked at in blocks of so many units; what is cut at their ends makes no difference that counts. */
const blockLength = 0x40000;

/** The units of the block that is looked at, and what each of them is: an array is read several times as fast as a text. */
const codes = new Uint16Array(blockLength + 1);
const kindOfUnit = new Uint8Array(blockLength + 2);

/** Makes a block of the text the one that is looked at; answers its end. */
function look(text: string, from: number): number {
  const length = Math.min(text.length - from, blockLength);
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(from + at);
    codes[at] = code;
    kindOfUnit[at] = table[code] ||= kindOf(String.fromCharCode(code));
  }
  codes[length] = 0;
  kindOfUnit.fill(kinds.unknown, length, length + 2);
  return length;
}

function kindOf(character: string): number {
  if (/[\r\n]/.test(character)) return kinds.newline;
  if (/\s/.test(character)) return kinds.space;
  if (/[a-z]/.test(character)) return kinds.lower;
  if (/[A-Z]/.test(character)) return kinds.upper;
  // What most texts have alone needs none of the tables of Unicode, which take milliseconds to build.
  if (/[ -~\u2010-\u205e\u2190-\u23ff\u2500-\u2767]/.test(character))
    return /\d/.test(character) ? kinds.digit : kinds.mark;
  if (/[\p{Lu}\p{Lt}]/u.test(character)) return kinds.upper;
  if (/\p{Ll}/u.test(character)) return kinds.lower;
  if (/[\p{Lm}\p{Lo}\p{M}]/u.test(character)) return kinds.letter;
  return /\p{N}/u.test(character) ? kinds.digit : kinds.mark;
}

const [blank, slash, apostrophe] = [32, 47, 39] as const;

const isLetter = (kind: number | undefined): boolean =>
  kind === kinds.upper || kind === kinds.lower || kind === kinds.letter;

/** Where the piece of the block ends that begins at `at`: a word with what stands before it, three digits, marks, or white space. */
function pieceEnd(at: number, length: number): number {
  const kind = kindOfUnit[at];
  if (isLetter(kind)) return wordEnd(at);
  if (kind === kinds.digit) return digitsEnd(at);
  const next = kindOfUnit[at + 1];
  if (kind !== kinds.newline && isLetter(next)) return wordEnd(at + 1);
  if (kind === kinds.mark) return marksEnd(at);
  if (next === kinds.mark && codes[at] === blank) return marksEnd(at + 1);
  return spaceEnd(at, length);
}

/** A word ends where a capital follows a small letter; `'s` and its like belong to it. */
function wordEnd(from: number): number {
  let at = from;
  let kind = kindOfUnit[at];
  while (kind === kinds.upper || kind === kinds.letter) kind = kindOfUnit[++at];
  while (kind === kinds.lower || kind === kinds.letter) kind = kindOfUnit[++at];
  if (codes[at] !== apostrophe) return at;
  return at + (/^'(?:s|t|re|ve|m|ll|d)/i.exec(String.fromCharCode(...codes.subarray(at, at + 3)))?.[0].length ?? 0);
}

function digitsEnd(from: number): number {
  let at = from;
  while (at < from + 3 && kindOfUnit[at] === kinds.digit) at++;
  return at;
}

/** Marks take line ends and slashes along. */
function marksEnd(from: number): number {
  let at = from;
  while (kindOfUnit[at] === kinds.mark) at++;
  while (kindOfUnit[at] === kinds.newline || codes[at] === slash) at++;
  return at;
}

/** White space is one piece up to its last line end; what follows leaves its last unit to what stands after it. */
function spaceEnd(from: number, length: number): number {
  let at = from;
  let lineEnd = from;
  for (;;) {
    const kind = kindOfUnit[at];
    if (kind !== kinds.space && kind !== kinds.newline) break;
    at++;
    if (kind === kinds.newline) lineEnd = at;
  }
  if (lineEnd > from) return lineEnd;
  return at < length && at - from > 1 ? at - 1 : at;
}

function mixed(hash: number): number {
  const half = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return Math.imul(half ^ (half >>> 13), 0xc2b2ae35) >>> 0;
}

/** Bits of a slot of the filter, and of the number of a slot within its segment. */
export const [slotBits, segmentBits] = [7, 10] as const;

/** Two hashes of one text, which grow by one UTF-16 unit at a time, and what follows from them. */
export class WordHash {
  #a = 0;
  #b = 0;
  /** Slots that make up the text's mark, one in each of four segments that follow each other. */
  readonly slots = new Int32Array(4);

  reset(): void {
    this.#a = 0x811c9dc5;
    this.#b = 0x9e3779b9;
  }

  add(code: number): void {
    this.#a = Math.imul(this.#a ^ code, 0x01000193) >>> 0;
    this.#b = Math.imul(this.#b + code, 0x85ebca6b) >>> 0;
  }

  /** Finds the slots in a filter of so many bytes; answers the mark. */
  locate(bytes: number): number {
    const first = mixed(this.#a);
    const second = mixed(this.#b ^ (this.#a >>> 5));
    const segment = first % (Math.floor((bytes * 8) / slotBits / 2 ** segmentBits) - 3);
    for (let nth = 0; nth < 4; nth++) {
      const within = nth === 3 ? first >>> (32 - segmentBits) : second >>> (nth * segmentBits);
      this.slots[nth] = ((segment + nth) << segmentBits) | (within & (2 ** segmentBits - 1));
    }
    return mixed(first ^ (second >>> 3)) & (2 ** slotBits - 1);
  }
}

/** UTF-16 units of the longest word there is. */
const maxWordLength = 128;

/** So many lengths in a row that are no word end the search for a longer one. */
const patience = 2;

const hash = new WordHash();

/** A binary fuse filter of o200k's vocabulary, made by `npm run generate` and read with the first word. */
let filter: Buffer | undefined;

/** Whether there is a word with the present hash; one in 128 that are none is taken for one. */
function isWord(): boolean {
  filter ??= readFileSync(new URL('./vocabulary.gen.bin', import.meta.url));
  let mark = hash.locate(filter.length);
  for (let nth = 0; nth < 4; nth++) {
    const bit = (hash.slots[nth] ?? 0) * slotBits;
    mark ^= (((filter[bit >>> 3] ?? 0) | ((filter[(bit >>> 3) + 1] ?? 0) << 8)) >>> (bit & 7)) & (2 ** slotBits - 1);
  }
  return mark === 0;
}

function isWhole(from: number, to: number): boolean {
  if (to - from > maxWordLength) return false;
  hash.reset();
  for (let at = from; at < to; at++) hash.add(codes[at] ?? 0);
  return isWord();
}

/** Length of the longest word that stands at `from`; 0 where not even the character is one. */
function longestAt(from: number, to: number): number {
  const end = Math.min(to, from + maxWordLength);
  let longest = 0;
  let misses = 0;
  hash.reset();
  for (let at = from; at < end && misses < patience; at++) {
    hash.add(codes[at] ?? 0);
    if (isWord()) {
      longest = at - from + 1;
      misses = 0;
    } else misses++;
  }
  return longest;
}

/** Tokens of a UTF-16 unit that no word begins with: its bytes are put together from parts of characters. */
function unknownPrice(code: number): number {
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code >= 0xd800 && code < 0xe000 ? 1.7 : 2.25;
}

function inWords(from: number, to: number): number {
  let tokens = 0;
  for (let at = from; at < to; ) {
    const length = longestAt(at, to);
    tokens += length > 0 ? 1 : unknownPrice(codes[at] ?? 0);
    at += Math.max(1, length);
  }
  return tokens;
}

/** Tokens of a piece that o200k merges by itself: one where it is a word, else as many as the longest words that make it up. */
function pieceTokens(from: number, to: number): number {
  if (isWhole(from, to)) return 1;
  const tokens = inWords(from, to);
  if (tokens <= 2) return tokens;
  // What is merged first decides, and a whole word after its blank or mark is merged early.
  return Math.min(tokens, 1 + (isWhole(from + 1, to) ? 1 : inWords(from + 1, to)));
}

/** Prices of pieces after two hashes of theirs, four numbers a place: texts repeat most of their words. Later pieces replace earlier ones. */
const prices = new Int32Array(0x40000);

/** UTF-16 units of the longest piece whose price is kept. */
const maxKept = 24;

function piecesTokens(text: string): number {
  let tokens = 0;
  for (let from = 0; from < text.length; from += blockLength) {
    const length = look(text, from);
    for (let at = 0; at < length; ) {
      const end = pieceEnd(at, length);
      tokens += end - at > maxKept ? pieceTokens(at, end) : knownTokens(at, end);
      at = end;
    }
  }
  return tokens;
}

function knownTokens(from: number, to: number): number {
  let a = to - from;
  let b = 0;
  for (let at = from; at < to; at++) {
    const code = codes[at] ?? 0;
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b + code, 0x85ebca6b) ^ (b >>> 13);
  }
  const place = ((a ^ (a >>> 15) ^ b) << 2) & (prices.length - 1);
  const known = prices[place] ?? 0;
  if (known > 0 && prices[place + 1] === a && prices[place + 2] === b) return known;
  const tokens = pieceTokens(from, to);
  // What has parts of a token is rare.
  if (Number.isInteger(tokens)) prices.set([tokens, a, b], place);
  return tokens;
}

/** What is added, so that few texts cost more than their estimate. */
const surplus = 1.03;

/**
 * Tokens of a text by o200k, without a tokenizer: it is cut where o200k cuts it, and a piece costs the words of o200k's that it
 * is made of. Within a tenth of the exact count for code, prose, minified programs, East Asian scripts and base64, and rather
 * above than below. Never more than its length in UTF-8 bytes, which is the most that a byte-level tokenizer can need. What must
 * not exceed a window is counted. `factor` is the surplus of the model's family.
 */
export function estimateTokens(text: string, factor = 1): number {
  if (text === '') return 0;
  return Math.ceil(Math.min(scanned(text) * surplus, Buffer.byteLength(text)) * factor);
}

/** A call counts its preamble, question and tail in several places, and the next call the same preamble again. */
const lately = new Map<string, number>();

const maxCached = 64;

const [shortest, longest] = [64, 20_000];

function scanned(text: string): number {
  if (text.length < shortest || text.length > longest) return piecesTokens(text);
  const tokens = lately.get(text) ?? piecesTokens(text);
  // What was asked for last goes last.
  remember(lately, text, tokens, maxCached);
  return tokens;
}

/** How many more tokens than o200k a family's tokenizer makes of the same text, at the worst measured, and a tenth for what an estimate may be short of. */
const familyFactors: readonly (readonly [pattern: RegExp, factor: number])[] = [
  [/claude/i, 1.55],
  [/glm|mistral/i, 1.42],
  [/^(gpt|o\d|chatgpt|codex|echo-)/i, 1],
];

export const tokenFactor = (modelId: string): number =>
  familyFactors.find(([pattern]) => pattern.test(modelId))?.[1] ?? 1.2;

/** What a provider adds around each message: role, separators. */
export const tokensPerMessage = 8;

/** The longest beginning of a text that costs at most `tokens` as a JSON string; never half of a surrogate pair. */
export function prefixWithin(text: string, tokens: number): string {
  const most = Math.min(text.length, Math.max(0, Math.floor(tokens)) * 8);
  const fits = (chars: number) => estimateTokens(JSON.stringify(text.slice(0, chars))) <= tokens;
  return safeCut(text, mostThatFit(most, fits));
}

/** What vendors charge for an image at the most, about. */
export const imageTokens = 1_600;

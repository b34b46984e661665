import { vocabularyFilter } from '../../core/vocabulary.gen.ts';
import { probes, WordHash } from './word-hash.ts';

/** UTF-16 units of the longest word there is. */
const longestWord = 128;
/** So many lengths in a row that are no word end the search for a longer one. */
const patience = 2;

const hash = new WordHash();
let filter: Buffer | undefined;

/** Whether there is a word with the present hash; one in a hundred that are none is taken for one. */
function isWord(): boolean {
  filter ??= Buffer.from(vocabularyFilter, 'base64');
  const size = filter.length * 8;
  for (let probe = 0; probe < probes; probe++) {
    const bit = hash.bit(probe, size);
    if (((filter[bit >>> 3] ?? 0) & (1 << (bit & 7))) === 0) return false;
  }
  return true;
}

function isWhole(text: string, from: number, to: number): boolean {
  if (to - from > longestWord) return false;
  hash.reset();
  for (let at = from; at < to; at++) hash.add(text.charCodeAt(at));
  return isWord();
}

/** Length of the longest word that stands at `from`; 0 where not even the character is one. */
function longestAt(text: string, from: number, to: number): number {
  const end = Math.min(to, from + longestWord);
  let longest = 0;
  let misses = 0;
  hash.reset();
  for (let at = from; at < end && misses < patience; at++) {
    hash.add(text.charCodeAt(at));
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

function inWords(text: string, from: number, to: number): number {
  let tokens = 0;
  for (let at = from; at < to; ) {
    const length = longestAt(text, at, to);
    tokens += length > 0 ? 1 : unknownPrice(text.charCodeAt(at));
    at += Math.max(1, length);
  }
  return tokens;
}

/** Tokens of a piece that o200k merges by itself: one where it is a word, else as many as the longest words that make it up. */
export function pieceTokens(text: string, from: number, to: number): number {
  if (isWhole(text, from, to)) return 1;
  const tokens = inWords(text, from, to);
  if (tokens <= 2) return tokens;
  // What is merged first decides, and a whole word after its blank or mark is merged early.
  return Math.min(tokens, 1 + (isWhole(text, from + 1, to) ? 1 : inWords(text, from + 1, to)));
}

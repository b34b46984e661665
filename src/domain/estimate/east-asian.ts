import { eastAsianFilter } from './east-asian.gen.ts';
import { bitOf, emptyHash, hashStep, probes, type WordHash } from './word-hash.ts';

/** Characters of the longest word that is looked up; the tokenizer has few longer ones. */
const longestWord = 6;

/** A little more than one: taking the longest word first is not always how the tokenizer merges. */
const wordTokens = 1.05;

let filter: Buffer | undefined;

function known(hash: WordHash): boolean {
  filter ??= Buffer.from(eastAsianFilter, 'base64');
  const size = filter.length * 8;
  for (let probe = 0; probe < probes; probe++) {
    const bit = bitOf(hash, probe, size);
    if (((filter[bit >>> 3] ?? 0) & (1 << (bit & 7))) === 0) return false;
  }
  return true;
}

/** Kana, Han, Hangul, their punctuation and full-width forms. */
export function isEastAsian(code: number): boolean {
  return (
    (code >= 0x3000 && code <= 0x30ff) ||
    (code >= 0x3400 && code <= 0x9fff) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xff00 && code <= 0xffef)
  );
}

/** Tokens of a character that the tokenizer has no word for: the pieces of its bytes. */
function unknownPrice(code: number): number {
  if (code < 0x3100) return 1.2;
  return code >= 0xff00 ? 1.6 : 2.25;
}

/**
 * The longest word of o200k's at a place, and what it costs: one token, or more where not even the character has one. Which
 * words there are is known by a filter that is wrong about one in a hundred.
 */
export function eastAsianWord(text: string, at: number): { length: number; tokens: number } {
  let hash = emptyHash;
  let longest = 0;
  for (let length = 1; length <= longestWord; length++) {
    const code = text.charCodeAt(at + length - 1);
    if (!isEastAsian(code)) break;
    hash = hashStep(hash, code);
    if (known(hash)) longest = length;
  }
  return longest > 0
    ? { length: longest, tokens: wordTokens }
    : { length: 1, tokens: unknownPrice(text.charCodeAt(at)) };
}

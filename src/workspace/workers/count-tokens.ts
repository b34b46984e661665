import { countTokens, setMergeCacheSize } from 'gpt-tokenizer/encoding/o200k_base';

// A hit in the tokenizer's cache moves its entry to the end of a Map, and the hole that is left is walked over by the next hit of the same
// word, until the Map is packed: with its 100,000 entries, a word that recurs took up to 35 ms.
setMergeCacheSize(1_000);

/** Merging is quadratic in an unbroken run, so that no piece may be longer than this. */
const pieceChars = 512;

/**
 * Tokens of texts by OpenAI's o200k, or a few more: cutting a text into pieces can only add tokens. Loading the tokenizer takes
 * about 0.2 s and 70 MB, counting up to a second for each megabyte, so this is work for a thread.
 */
export function countO200k(texts: readonly string[]): number {
  const options = { disallowedSpecial: new Set<string>() };
  let total = 0;
  for (const text of texts) {
    for (let at = 0; at < text.length; ) {
      const end = pieceEnd(text, at);
      total += countTokens(text.slice(at, end), options);
      at = end;
    }
  }
  return total;
}

/** Cuts before white space where there is some, and never within a surrogate pair. */
function pieceEnd(text: string, at: number): number {
  const end = at + pieceChars;
  if (end >= text.length) return text.length;
  for (let cut = end; cut > end - 128; cut--) if (/\s/.test(text.charAt(cut))) return cut;
  const code = text.charCodeAt(end);
  return code >= 0xdc00 && code <= 0xdfff ? end - 1 : end;
}

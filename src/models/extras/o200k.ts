import { setImmediate as nextTurn } from 'node:timers/promises';

/** Merging is quadratic in an unbroken run, so that no piece may be longer than this. */
const pieceChars = 512;
/** Characters counted before other work gets a turn. */
const sliceChars = 64_000;

/**
 * Tokens of texts by OpenAI's o200k, or a few more: cutting a text into pieces can only add tokens. The tokenizer is loaded on
 * first use (about 0.2 s and 70 MB), so this is for prompts near their limit.
 */
export async function countO200k(texts: readonly string[]): Promise<number> {
  const { countTokens } = await import('gpt-tokenizer/encoding/o200k_base');
  const options = { disallowedSpecial: new Set<string>() };
  let total = 0;
  let sinceTurn = 0;
  for (const text of texts) {
    for (let at = 0; at < text.length; ) {
      const end = pieceEnd(text, at);
      total += countTokens(text.slice(at, end), options);
      sinceTurn += end - at;
      at = end;
      if (sinceTurn < sliceChars) continue;
      sinceTurn = 0;
      await nextTurn();
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

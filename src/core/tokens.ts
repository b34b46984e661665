import { pieceEnd } from '../domain/estimate/pieces.ts';
import { pieceTokens } from '../domain/estimate/vocabulary.ts';
import { safeCut } from './text.ts';

function piecesTokens(text: string): number {
  let tokens = 0;
  for (let at = 0; at < text.length; ) {
    const end = pieceEnd(text, at);
    tokens += pieceTokens(text, at, end);
    at = end;
  }
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
const mostLately = 64;
const [shortest, longest] = [64, 20_000];

function scanned(text: string): number {
  if (text.length < shortest || text.length > longest) return piecesTokens(text);
  const known = lately.get(text);
  const tokens = known ?? piecesTokens(text);
  // What was asked for last goes last.
  lately.delete(text);
  lately.set(text, tokens);
  const [oldest] = lately.keys();
  if (lately.size > mostLately && oldest !== undefined) lately.delete(oldest);
  return tokens;
}

/** How many more tokens than o200k a family's tokenizer makes of the same text, at the worst measured, and a tenth for what an estimate may be short of. */
const familyFactors: readonly (readonly [pattern: RegExp, factor: number])[] = [
  [/claude/i, 1.55],
  [/glm|mistral/i, 1.42],
  [/^(gpt|o\d|chatgpt|codex|echo-)/i, 1],
];

export function tokenFactor(modelId: string): number {
  return familyFactors.find(([pattern]) => pattern.test(modelId))?.[1] ?? 1.2;
}

/** What a provider adds around each message: role, separators. */
export const tokensPerMessage = 8;

/** The longest beginning of a text that costs at most `tokens` as a JSON string; never half of a surrogate pair. */
export function prefixWithin(text: string, tokens: number): string {
  let low = 0;
  let high = Math.min(text.length, Math.max(0, Math.floor(tokens)) * 8);
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (estimateTokens(JSON.stringify(text.slice(0, middle))) <= tokens) low = middle;
    else high = middle - 1;
  }
  return safeCut(text, low);
}

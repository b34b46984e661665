import { eastAsianWord, isEastAsian } from './estimate/east-asian.ts';
import { denseRun, encodedTokens, isLetter, kindOf, kinds } from './estimate/pieces.ts';
import { marksPrice, spacePrice, unitPrice, type Word, wordPrice } from './estimate/prices.ts';
import { safeCut } from './text.ts';

const blank = 32;
const slash = 47;

/** Reads a text once, cut as o200k cuts it before it merges, and adds up what the pieces cost on the average. */
class Scan {
  readonly #text: string;
  #at = 0;
  /** Up to here no encoded data was found. */
  #plainUpTo = 0;

  constructor(text: string) {
    this.#text = text;
  }

  tokens(): number {
    let tokens = 0;
    while (this.#at < this.#text.length) tokens += this.#next();
    return tokens;
  }

  #code(at: number): number {
    return this.#text.charCodeAt(at);
  }

  #kind(at: number): number {
    return kindOf(this.#text.charCodeAt(at));
  }

  #next(): number {
    const kind = this.#kind(this.#at);
    switch (kind) {
      case kinds.lower:
      case kinds.upper:
        return this.#encoded() ?? this.#word('nothing');
      case kinds.digit:
        return this.#encoded() ?? this.#digits();
      case kinds.space:
      case kinds.newline:
        return this.#whiteSpace();
      case kinds.mark:
        return this.#marked(this.#at);
      case kinds.beyond:
        return this.#beyond();
      default:
        this.#at++;
        return 1;
    }
  }

  #encoded(): number | undefined {
    const from = this.#at;
    if (from < this.#plainUpTo) return undefined;
    const run = denseRun(this.#text, from);
    const tokens = encodedTokens(from, run);
    if (tokens === undefined) {
      this.#plainUpTo = run.end;
      return undefined;
    }
    this.#at = run.end;
    return tokens;
  }

  #word(before: Word['before']): number {
    const start = this.#at;
    while (this.#kind(this.#at) === kinds.upper) this.#at++;
    const capitals = this.#at - start;
    while (this.#kind(this.#at) === kinds.lower) this.#at++;
    const length = this.#at - start;
    const form =
      capitals === 0 ? 'lower' : capitals === length ? 'upper' : capitals === 1 ? 'capital' : ('mixed' as const);
    const besideDigit = this.#kind(start - 1) === kinds.digit || this.#kind(this.#at) === kinds.digit;
    return wordPrice({ before, form, length, besideDigit });
  }

  #digits(): number {
    const start = this.#at;
    while (this.#kind(this.#at) === kinds.digit) this.#at++;
    return Math.ceil((this.#at - start) / 3);
  }

  /** White space up to its last line end is one piece, what follows another; its last blank goes with the word after it. */
  #whiteSpace(): number {
    const start = this.#at;
    let lineEnd = start;
    let changes = 0;
    for (;;) {
      const kind = this.#kind(this.#at);
      if (kind !== kinds.space && kind !== kinds.newline) break;
      if (this.#code(this.#at) !== this.#code(this.#at - 1)) changes++;
      this.#at++;
      if (kind === kinds.newline) lineEnd = this.#at;
    }
    let tokens = lineEnd > start ? spacePrice(lineEnd - start, changes) : 0;
    const spaces = this.#at - lineEnd;
    if (spaces === 0) return tokens;
    if (this.#at >= this.#text.length) return tokens + spacePrice(spaces);
    if (spaces > 1) tokens += spacePrice(spaces - 1);
    return tokens + (this.#code(this.#at - 1) === blank ? this.#afterBlank() : 1);
  }

  #afterBlank(): number {
    const kind = this.#kind(this.#at);
    if (isLetter(kind)) return this.#encoded() ?? this.#word('space');
    if (kind === kinds.mark) return this.#marks(this.#at);
    return kind === kinds.beyond ? 0 : 1;
  }

  /** One mark goes with the word after it; several are a piece of their own. */
  #marked(from: number): number {
    if (!isLetter(this.#kind(from + 1))) return this.#marks(from);
    this.#at = from + 1;
    const encoded = this.#encoded();
    return encoded === undefined ? this.#word('mark') : encoded + 1;
  }

  #marks(from: number): number {
    const first = this.#code(from);
    let repeated = true;
    for (this.#at = from; this.#kind(this.#at) === kinds.mark; this.#at++) repeated &&= this.#code(this.#at) === first;
    const length = this.#at - from;
    const end = this.#at;
    while (this.#kind(this.#at) === kinds.newline || (this.#at > end && this.#code(this.#at) === slash)) this.#at++;
    return marksPrice(length, repeated, this.#at > end);
  }

  #beyond(): number {
    const code = this.#code(this.#at);
    if (!isEastAsian(code)) {
      this.#at++;
      return unitPrice(code);
    }
    const { length, tokens } = eastAsianWord(this.#text, this.#at);
    this.#at += length;
    return tokens;
  }
}

/** What is added to the average, so that few texts cost more than their estimate. */
const surplus = 1.03;

/**
 * Tokens of a text by o200k, without a tokenizer: within a tenth for code, prose, minified programs, East Asian scripts and
 * base64, and rather above than below; other scripts and random letters are priced high. Never more than its length in UTF-8
 * bytes, which is the most that a byte-level tokenizer can need. What must not exceed a window is counted. `factor` is the
 * surplus of the model's family.
 */
export function estimateTokens(text: string, factor = 1): number {
  if (text === '') return 0;
  return Math.ceil(Math.min(scanned(text) * surplus + 1, Buffer.byteLength(text)) * factor);
}

/** A call counts its preamble, question and tail in several places, and the next call the same preamble again. */
const lately = new Map<string, number>();
const mostLately = 64;
const [shortest, longest] = [64, 20_000];

function scanned(text: string): number {
  if (text.length < shortest || text.length > longest) return new Scan(text).tokens();
  const known = lately.get(text);
  const tokens = known ?? new Scan(text).tokens();
  // What was asked for last goes last.
  lately.delete(text);
  lately.set(text, tokens);
  const [oldest] = lately.keys();
  if (lately.size > mostLately && oldest !== undefined) lately.delete(oldest);
  return tokens;
}

/** How many more tokens than o200k a family's tokenizer makes of the same text, at the worst measured, with what an estimate may be short of. */
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

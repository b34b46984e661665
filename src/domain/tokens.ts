import { safeCut } from './text.ts';

const space = 0;
const newline = 1;
const lower = 2;
const upper = 3;
const digit = 4;
const mark = 5;
const control = 6;

const asciiClass = new Uint8Array(128).map((_, code) => {
  if (code === 10 || code === 13) return newline;
  if (code === 32 || code === 9) return space;
  if (code < 32 || code === 127) return control;
  if (code >= 97 && code <= 122) return lower;
  if (code >= 65 && code <= 90) return upper;
  if (code >= 48 && code <= 57) return digit;
  return mark;
});

/** Tokens per UTF-16 unit beyond ASCII, up to the end of the block. */
const scripts: readonly (readonly [below: number, perUnit: number])[] = [
  [0x250, 0.9], // Latin with marks
  [0x370, 1.4], // phonetic letters, combining marks
  [0x530, 0.6], // Greek, Cyrillic
  [0x590, 1.6], // Armenian
  [0x700, 0.7], // Hebrew, Arabic
  [0x900, 2.2],
  [0xe80, 0.9], // Indic scripts, Thai
  [0x1e00, 3],
  [0x2000, 2],
  [0x2190, 1.2], // punctuation
  [0x2e80, 2],
  [0xa000, 1.1], // kana, CJK
  [0xac00, 3],
  [0xd7b0, 1.2], // Hangul
  [0xf900, 1.7], // halves of surrogate pairs: emoji, rare CJK
  [0x10000, 2],
];

function perUnit(code: number): number {
  for (const [below, tokens] of scripts) if (code < below) return tokens;
  return 3;
}

interface Run {
  kind: number;
  length: number;
  /** All of it is one character. */
  repeated: boolean;
  /** Letters with a digit right before or after them: encoded data rather than words. */
  besideDigit: boolean;
}

function runCost({ kind, length, repeated, besideDigit }: Run): number {
  switch (kind) {
    case space:
      return length === 1 ? 0.05 : 1 + Math.floor(length / 32);
    case newline:
      return 1 + Math.floor(length / 8);
    case digit:
      return Math.ceil(length / 3);
    case control:
      return length;
    case mark:
      return length === 1 ? 0.85 : repeated ? 1 + length / 8 : length * 0.7;
    default:
      if (besideDigit) return 1 + (length - 1) / 1.9;
      return length <= 8 ? 1.02 : 1.02 + (length - 8) / 3;
  }
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function scan(text: string): number {
  let tokens = 0;
  let at = 0;
  let previous = -1;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code >= 128) {
      tokens += perUnit(code);
      previous = -1;
      at++;
      continue;
    }
    let kind = asciiClass[code] ?? mark;
    const start = at++;
    let repeated = true;
    for (; at < text.length; at++) {
      const next = text.charCodeAt(at);
      const nextKind = next < 128 ? (asciiClass[next] ?? mark) : -1;
      // A capital and the letters after it are one word.
      if (kind === upper && nextKind === lower && at === start + 1) kind = lower;
      else if (nextKind !== kind) break;
      repeated &&= next === code;
    }
    const besideDigit = previous === digit || isDigit(text.charCodeAt(at));
    tokens += runCost({ kind, length: at - start, repeated, besideDigit });
    previous = kind;
  }
  return tokens;
}

/**
 * Tokens of a text without a tokenizer: one pass that cuts it as byte-level tokenizers do before they merge (words at
 * changes of case, digits in threes, runs of space and of marks) and prices the pieces high, so that code, prose, other
 * scripts and encoded data come out at or above o200k's count. (Random letters do not: what must not exceed a window is counted.) Never more than its length in UTF-8 bytes, which is the most
 * that such a tokenizer can need. `factor` is the surplus of the model's family.
 */
export function estimateTokens(text: string, factor = 1): number {
  if (text === '') return 0;
  const estimate = scan(text) * 1.05 + 2;
  return Math.ceil(Math.min(estimate, Buffer.byteLength(text)) * factor);
}

/** How many more tokens than o200k a family's tokenizer makes of the same text, at the worst measured. */
const familyFactors: readonly (readonly [pattern: RegExp, factor: number])[] = [
  [/claude/i, 1.45],
  [/glm|mistral/i, 1.3],
  [/^(gpt|o\d|chatgpt|codex|echo-)/i, 1],
];

export function tokenFactor(modelId: string): number {
  return familyFactors.find(([pattern]) => pattern.test(modelId))?.[1] ?? 1.15;
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

/**
 * What o200k makes of pieces of text on the average, measured on source code, documentation and minified programs. Each list is
 * by length, from 1; beyond its end a piece costs `more` for each further letter.
 */
interface Prices {
  byLength: readonly number[];
  more: number;
}

const spacedLower = {
  byLength: [1, 1, 1.02, 1.02, 1.03, 1.05, 1.06, 1.08, 1.17, 1.2, 1.25, 1.28, 1.3, 1.4],
  more: 0.4,
};
const bareLower = {
  byLength: [1, 1, 1.08, 1.05, 1.1, 1.15, 1.22, 1.25, 1.55, 1.65, 1.65, 1.8, 1.9, 2.2],
  more: 0.4,
};
const markedLower = { byLength: [1.05, 1.1, 1.2, 1.12, 1.2, 1.28, 1.38, 1.48, 1.75, 1.95, 2.1, 2.5, 2.6], more: 0.4 };
const spacedCapital = { byLength: [1, 1, 1.06, 1.04, 1.05, 1.12, 1.17, 1.25, 1.33, 1.33, 1.5, 1.55], more: 0.35 };
const bareCapital = { byLength: [1, 1.05, 1.05, 1.02, 1.02, 1.06, 1.1, 1.1, 1.22, 1.24, 1.3, 1.5], more: 0.35 };
const markedCapital = { byLength: [1.3, 1.6, 1.65, 1.5, 1.6, 1.6, 1.7, 1.9, 1.9, 2.05], more: 0.35 };
const spacedUpper = { byLength: [1, 1, 1.1, 1.1, 1.4, 1.4, 1.4, 2.4, 2.6, 3], more: 0.4 };
const bareUpper = { byLength: [1, 1.04, 1.2, 1.4, 1.6, 1.6, 1.95, 2.3, 3, 3.1], more: 0.4 };
const markedUpper = { byLength: [1.3, 1.35, 1.35, 1.45, 1.7, 1.78, 2, 2.3, 2.6, 3], more: 0.4 };

const spaced = { lower: spacedLower, capital: spacedCapital, upper: spacedUpper };
const bare = { lower: bareLower, capital: bareCapital, upper: bareUpper };
const marked = { lower: markedLower, capital: markedCapital, upper: markedUpper };

/** Marks in a row cost by their number; a line end after them makes them commoner. */
const marks: Prices = { byLength: [1, 1.03, 1.22, 1.55, 2.15, 2.9, 3.3, 4], more: 0.7 };
const marksAtLineEnd: Prices = { byLength: [1, 1.01, 1.08, 1.3, 1.7, 2.1, 3], more: 0.65 };

function priceOf({ byLength, more }: Prices, length: number): number {
  return byLength[length - 1] ?? (byLength.at(-1) ?? 1) + (length - byLength.length) * more;
}

export interface Word {
  /** What a piece takes along before its letters. */
  before: 'space' | 'mark' | 'nothing';
  /** Small letters, a capital and small letters, or capitals alone; several capitals and small letters are `mixed`. */
  form: 'lower' | 'capital' | 'upper' | 'mixed';
  length: number;
  besideDigit: boolean;
}

/** Tokens of one word. */
export function wordPrice({ before, form, length, besideDigit }: Word): number {
  if (form === 'mixed') return 1.3 + length * 0.12 + (before === 'mark' ? 0.4 : 0);
  // Letters among digits are encoded data more often than words.
  if (besideDigit && length > 2) return 1 + (length - 1) / 1.9;
  const prices = before === 'space' ? spaced : before === 'mark' ? marked : bare;
  return priceOf(prices[form], length);
}

/** Tokens of marks in a row; of one that repeats itself there are long tokens. */
export function marksPrice(length: number, repeated: boolean, atLineEnd: boolean): number {
  if (repeated && length > 3) return 1.2 + length / 12;
  return priceOf(atLineEnd ? marksAtLineEnd : marks, length);
}

/** Tokens of white space: there are tokens for long stretches of it, fewer for those that change from one kind to another. */
export function spacePrice(length: number, changes = 1): number {
  return 1 + Math.floor(length / 48) + Math.max(0, changes - 4) * 0.75;
}

/** Tokens per UTF-16 unit beyond ASCII, up to the end of the block; East Asian scripts are priced by their words. */
const scripts: readonly (readonly [below: number, perUnit: number])[] = [
  [0x250, 0.85], // Latin with marks
  [0x370, 1.4], // phonetic letters, combining marks
  [0x400, 0.5], // Greek
  [0x530, 0.42], // Cyrillic
  [0x590, 1.6], // Armenian
  [0x700, 0.55], // Hebrew, Arabic
  [0x900, 2.2],
  [0x980, 0.55], // Devanagari
  [0xe00, 0.9], // other Indic scripts
  [0xe80, 0.7], // Thai
  [0x1e00, 3],
  [0x2000, 2],
  [0x2190, 1.05], // punctuation
  [0x2600, 1.25], // arrows, boxes
  [0x2e80, 2], // symbols
  [0xd7b0, 1.2],
  [0xf900, 1.7], // halves of surrogate pairs: emoji, rare Han
  [0x10000, 2],
];

/** Tokens of one UTF-16 unit that is neither ASCII nor East Asian. */
export function unitPrice(code: number): number {
  for (const [below, tokens] of scripts) if (code < below) return tokens;
  return 3;
}

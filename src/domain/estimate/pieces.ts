/** What one character is to a tokenizer that cuts words at changes of case and digits in threes. */
export const kinds = { space: 0, newline: 1, lower: 2, upper: 3, digit: 4, mark: 5, control: 6, beyond: 7 } as const;

const ascii = new Uint8Array(128).map((_, code) => {
  if (code === 10 || code === 13) return kinds.newline;
  if (code === 32 || code === 9) return kinds.space;
  if (code < 32 || code === 127) return kinds.control;
  if (code >= 97 && code <= 122) return kinds.lower;
  if (code >= 65 && code <= 90) return kinds.upper;
  if (code >= 48 && code <= 57) return kinds.digit;
  return kinds.mark;
});

/** `beyond` for all that is not ASCII; NaN, beyond the end of a text, is none of them. */
export function kindOf(code: number): number {
  return code < 128 ? (ascii[code] ?? -1) : code >= 128 ? kinds.beyond : -1;
}

export function isLetter(kind: number): boolean {
  return kind === kinds.lower || kind === kinds.upper;
}

/** A stretch of letters, digits and the marks of base64, with how often the kind of character changes in it. */
export interface DenseRun {
  end: number;
  changes: number;
  digits: number;
  uppers: number;
  lowers: number;
}

const slash = 47;
const plus = 43;
const equals = 61;
const dash = 45;
const underscore = 95;

/** The run that begins at `from`. */
export function denseRun(text: string, from: number): DenseRun {
  const run: DenseRun = { end: from, changes: 0, digits: 0, uppers: 0, lowers: 0 };
  let before = -1;
  for (; run.end < text.length; run.end++) {
    const code = text.charCodeAt(run.end);
    const kind = kindOf(code);
    if (kind === kinds.digit) run.digits++;
    else if (kind === kinds.upper) run.uppers++;
    else if (kind === kinds.lower) run.lowers++;
    else if (code !== slash && code !== plus && code !== equals && code !== dash && code !== underscore) break;
    if (kind !== before) run.changes++;
    before = kind;
  }
  return run;
}

/** Shorter runs are words and names. */
const leastEncoded = 20;

/** Tokens of a run that is encoded data rather than words, by how restless it is; undefined for words. */
export function encodedTokens(from: number, { end, changes, digits, uppers, lowers }: DenseRun): number | undefined {
  const length = end - from;
  if (length < leastEncoded) return undefined;
  const restless = changes / length;
  if (uppers > 0 && lowers > 0 && digits > 0 && restless > 0.38) return length * (0.425 + restless * 0.41);
  return (uppers === 0 || lowers === 0) && digits > length / 4 ? length * (0.34 + restless * 0.5) : undefined;
}

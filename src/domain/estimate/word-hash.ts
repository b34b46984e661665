/** Two hashes of the same text; they grow by one UTF-16 unit at a time. */
export interface WordHash {
  readonly a: number;
  readonly b: number;
}

export const emptyHash: WordHash = { a: 0x811c9dc5, b: 0x9e3779b9 };

export function hashStep({ a, b }: WordHash, code: number): WordHash {
  return { a: Math.imul(a ^ code, 0x01000193) >>> 0, b: Math.imul(b + code, 0x85ebca6b) >>> 0 };
}

/** Bits that one word sets in a filter. */
export const probes = 5;

/** Which of the `size` bits of a filter is the probe's for a word. */
export function bitOf({ a, b }: WordHash, probe: number, size: number): number {
  const start = (a ^ (a >>> 16)) >>> 0;
  const step = ((b ^ (b >>> 15)) | 1) >>> 0;
  return (start + probe * step) % size;
}

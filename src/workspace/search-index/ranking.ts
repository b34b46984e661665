import { countMask, pathFlag, type Terms, wordMask } from './file-terms.ts';

/** A vector in one byte a number: near enough for comparing, and a quarter of the size. */
export function packVector(vector: Float32Array): Int8Array {
  let maxMagnitude = 0;
  for (const value of vector) maxMagnitude = Math.max(maxMagnitude, Math.abs(value));
  return Int8Array.from(vector, value => (maxMagnitude === 0 ? 0 : Math.round((value / maxMagnitude) * 127)));
}

/** The cosine of the angle between two packed vectors; 0 where they can't be compared. */
export function cosineSimilarity(a: Int8Array, b: Int8Array): number {
  if (a.length !== b.length) return 0;
  let dot = 0;
  let aa = 0;
  let bb = 0;
  for (let at = 0; at < a.length; at++) {
    const x = a[at] ?? 0;
    const y = b[at] ?? 0;
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  return aa === 0 || bb === 0 ? 0 : dot / Math.sqrt(aa * bb);
}

/** The constant of reciprocal rank fusion as its authors have it: high ranks count, but none decides alone. */
const flattening = 60;

/** Brings rankings of the same things together: each gives a thing one part in its place. */
export function reciprocalRankFusion<Key>(rankings: readonly (readonly Key[])[]): Map<Key, number> {
  const scores = new Map<Key, number>();
  for (const ranking of rankings) {
    for (const [place, key] of ranking.entries()) {
      scores.set(key, (scores.get(key) ?? 0) + 1 / (flattening + place + 1));
    }
  }
  return scores;
}

/** How soon more of a word counts no more, and how much the length of a text does. */
const bm25 = { k1: 1.2, b: 0.4 };
/** What a word in the path of a file is worth, in parts of its rarity. */
const pathShare = 2;
/** Of a term, so many bits show that it is none of those that are wanted. */
const sieve = 0xfff;

/** A ranked file or chunk. */
export interface Ranked<Item> {
  item: Item;
  score: number;
}

export interface Match<Item> {
  item: Item;
  /** What stands in it of each wanted term, in their order. */
  entries: Uint8Array;
  length: number;
}

/** What has at least one of the terms. Every term of every text is looked at: a few nanoseconds each. */
export function matches<Item>(wanted: Terms, texts: Iterable<readonly [Item, { terms: Terms }]>): Match<Item>[] {
  const places = new Uint8Array(sieve + 1);
  const placeOf = new Map<number, number>();
  for (const [place, entry] of wanted.entries()) {
    placeOf.set((entry & wordMask) >>> 0, place);
    places[(entry >>> 4) & sieve] = 1;
  }
  const found: Match<Item>[] = [];
  for (const [item, { terms }] of texts) {
    let entries: Uint8Array | undefined;
    for (let at = 0; at < terms.length; at++) {
      const entry = terms[at] ?? 0;
      if (places[(entry >>> 4) & sieve] === 0) continue;
      const place = placeOf.get((entry & wordMask) >>> 0);
      if (place === undefined) continue;
      entries ??= new Uint8Array(wanted.length);
      entries[place] = entry & (pathFlag | countMask);
    }
    if (entries) found.push({ item, entries, length: terms.length });
  }
  return found;
}

/** By BM25 and by what their paths have, the best first. */
export function ranked<Item>(rarity: readonly number[], found: Match<Item>[], weightOf: (item: Item) => number) {
  const { k1, b } = bm25;
  const average = found.reduce((sum, { length }) => sum + length, 0) / Math.max(1, found.length);
  return found
    .map(({ item, entries, length }): Ranked<Item> => {
      const damping = k1 * (1 - b + (b * length) / average);
      const score = rarity.reduce((sum, rare, place) => {
        const entry = entries[place] ?? 0;
        const count = entry & countMask;
        const inPath = (entry & pathFlag) === 0 ? 0 : pathShare;
        return sum + rare * (inPath + (count * (k1 + 1)) / (count + damping));
      }, 0);
      return { item, score: score * weightOf(item) };
    })
    .sort((a, b) => b.score - a.score);
}

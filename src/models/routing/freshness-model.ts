import { readFileSync } from 'node:fs';
import lists from './freshness-words.json' with { type: 'json' };

/** Characters of a text that are looked at: what is asked is said within them. */
const maxChars = 400;

const maxGram = 5;

/** Buckets of features. Each has a weight of one byte. */
export const buckets = 1 << 16;

/** The closed classes of words in twenty languages: times, releases, prices and so on, and what speaks against the present. */
const classes = [...Object.values(lists.now), ...Object.values(lists.other)];

/** Signs are numbered: first each class of words, then each two of them. */
export const signs = (classes.length * (classes.length + 1)) / 2;

/** The size of the pieces of the file of weights, in bytes: scale and bias, the signs' weights; the buckets' follow. */
export const fileParts = { head: 8, sign: 4 };

/** Scripts without spaces between words, or with endings that are written to them: there a word counts inside of another. */
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;

/**
 * A character of a word, for expressions: what is neither space nor punctuation. `\p{L}` says it better, but with it each
 * expression takes ten times as long to compile, and all of them wait for the first call.
 */
export const letter = '[^\\s!-/:-@\\[-^`{-\u00bf\u2000-\u206f\u3000-\u303f\uff01-\uff0f\uff1a-\uff20]';

/** In a list `*` stands for the rest of a word, and between two spaces for a few words. */
function patternOf(list: string): RegExp {
  const { inside = [], whole = [] } = Object.groupBy(list.split('|'), word =>
    unspaced.test(word) ? 'inside' : 'whole',
  );
  const words = whole.join('|').replaceAll(' * ', ' [^.?!]{0,30}').replaceAll('*', `${letter}*`);
  return new RegExp([`(?<!${letter})(?:${words})(?!${letter})`, ...inside].join('|'), 'i');
}

let patterns: RegExp[] | undefined;

/** The signs that a text shows: the classes that it has words of, and each two of them. */
export function signsOf(text: string): number[] {
  patterns ??= classes.map(patternOf);
  const shown = text.slice(0, maxChars);
  const found = patterns.flatMap((pattern, at) => (pattern.test(shown) ? [at] : []));
  const before = (row: number) => row * classes.length - (row * (row + 1)) / 2;
  const pairs = found.flatMap((a, at) => found.slice(at + 1).map(b => classes.length + before(a) + b - a - 1));
  return [...found, ...pairs];
}

/** The buckets of a text's features: runs of up to five characters within a word, words, and neighbouring words. */
export function featuresOf(text: string): Set<number> {
  const found = new Set<number>();
  const shown = text
    .slice(0, maxChars)
    .toLowerCase()
    .replace(/\p{N}+/gu, '0');
  let before = 0;
  for (const word of shown.match(/[\p{L}\p{M}\p{N}]+|[?？؟]/gu) ?? []) {
    const marked = ` ${word} `;
    for (let from = 0; from < marked.length; from++) {
      let hash = offsetBasis;
      for (let at = from; at < Math.min(marked.length, from + maxGram); at++) {
        hash = Math.imul(hash ^ marked.charCodeAt(at), prime);
        found.add(bucketOf(hash));
      }
    }
    found.add(bucketOf(hashOf(marked, wholeWord)));
    found.add(bucketOf(hashOf(marked, before)));
    before = hashOf(marked, wholeWord);
  }
  found.add(bucketOf(before ^ lastWord));
  return found;
}

/** FNV-1a. */
const offsetBasis = 2_166_136_261;
const prime = 16_777_619;

/** Seeds that keep kinds of features apart. */
const wholeWord = 7;
const lastWord = 0x5bd1e995;

function hashOf(text: string, seed: number): number {
  let hash = offsetBasis ^ seed;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), prime);
  return hash;
}

function bucketOf(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 2_246_822_507);
  return (mixed ^ (mixed >>> 13)) & (buckets - 1);
}

interface Weights {
  scale: number;
  bias: number;
  signs: number[];
  buckets: Int8Array;
}

let weights: Weights | undefined;

/** Reads what `node scripts/train-freshness.ts` wrote. */
function readWeights(): Weights {
  const data = readFileSync(new URL('./freshness.gen.bin', import.meta.url));
  const { head, sign } = fileParts;
  return {
    scale: data.readFloatLE(0),
    bias: data.readFloatLE(4),
    signs: Array.from({ length: signs }, (_, at) => data.readFloatLE(head + at * sign)),
    buckets: new Int8Array(data.buffer, data.byteOffset + head + signs * sign, buckets),
  };
}

/** Whether a text has words of the present: of times, releases, prices and so on. */
export const speaksOfNow = (text: string): boolean => signsOf(text).some(sign => sign < Object.keys(lists.now).length);

/** A shorter text says too little for a sum of weights: "Go on." */
const minChars = 12;

/** How likely a text asks for what is true now in the world, from 0 to 1, by a linear model over its features and signs. */
export function likelyAboutNow(text: string): number {
  if (text.length < minChars && !unspaced.test(text)) return 0;
  weights ??= readWeights();
  const features = featuresOf(text);
  let sum = 0;
  for (const feature of features) sum += weights.buckets[feature] ?? 0;
  let odds = weights.bias + (sum * weights.scale) / Math.sqrt(features.size);
  for (const sign of signsOf(text)) odds += weights.signs[sign] ?? 0;
  return 1 / (1 + Math.exp(-odds));
}

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LineRange } from '../../core/file.ts';
import { chunksOf } from '../../workspace/search-index/chunks.ts';
import { isTellingWord, stem, wordsOf } from '../../workspace/words.ts';
import type { FoundSymbol } from '../../workspace/workers/run-job.ts';

/** Once so many in a row had no room, there is none. */
const maxRefused = 20;

/** Stretches of one file that are shown. */
const maxRanges = 40;

/** Stretches this near to each other are shown as one. */
const nearby = 3;

/** A piece that scores less than this part of the best one says nothing about the question. */
const leastPart = 0.15;

/** The part of its score that a piece gives to its neighbours: what is named is explained near it. */
const neighbourPart = 0.3;

/** Words of a heading or a declared name count like so many in the text. */
const titleWeight = 4;

/** A name that stands in the question as it is written in the file tells more than its parts. */
const nameWeight = 3;

/** Lines of a piece for which the words of all pieces count the same. */
const usualLines = 40;

/** What a stretch of lines costs in the prompt, and what there is for all of them. */
export interface RangeRoom {
  tokens: number;
  /** For the markers of each stretch. */
  overhead: number;
  costOf(range: LineRange): number;
}

type Terms = ReturnType<typeof termsOf>;

/** A word, or a number with its parts: `4.7`. */
const token = /\p{L}[\p{L}\p{N}_$]*|[_$][\p{L}\p{N}_$]+|\p{N}+(?:[.:-]\p{N}+)*/gu;

const namedLine = /(?:\blines?\s+|\bzeilen?\s+|:)(\d{1,7})\b/giu;

const maxTerms = 300;

function termsOf(question: string) {
  /** Word as it is written, lower-case, or the stem of a part → its place in counts. */
  const keys = new Map<string, number>();
  /** How much more than a usual word each says. */
  const weights: number[] = [];
  for (const [word] of question.slice(0, 20_000).matchAll(token)) {
    const isName = /^[\p{L}_$].*[\p{Lu}\p{N}_$]/u.test(word) || /^\p{N}{3}|^\p{N}+\D/u.test(word);
    for (const key of keysOf(word)) {
      if (keys.has(key) || weights.length >= maxTerms) continue;
      keys.set(key, weights.length);
      weights.push(isName && key === word.toLowerCase() ? nameWeight : 1);
    }
  }
  /** Lines that are named: `file.ts:120`, `line 120`. */
  const lines = [...question.matchAll(namedLine)].map(([, line]) => Number(line));
  return { keys, weights, lines };
}

/** By what a word is found: as it is written, lower-case, and by the stems of its parts that say something. */
function keysOf(word: string): string[] {
  const whole = word.toLowerCase();
  if (/^\p{N}/u.test(word)) return [whole];
  const parts = [...wordsOf(word)].filter(isTellingWord);
  return parts.length === 0 ? [] : [...new Set([whole, ...parts.map(stem)])];
}

/** How often each term stands in a text. Distinct words are taken apart once. */
function counter({ keys, weights }: Terms) {
  const known = new Map<string, readonly number[]>();
  return (text: string): Float64Array => {
    const counts = new Float64Array(weights.length);
    for (const [word] of text.matchAll(token)) {
      let places = known.get(word);
      if (!places) {
        places = keysOf(word).flatMap(key => keys.get(key) ?? []);
        known.set(word, places);
      }
      for (const place of places) counts[place] = (counts[place] ?? 0) + 1;
    }
    return counts;
  };
}

/**
 * The lines of a file that speak of what is asked for, the most telling first, as long as there is room for all of them
 * together. In the order of the file; empty when nothing in it does. A word counts the more the fewer parts of the file have it;
 * the whole file is looked at.
 */
export async function relevantRanges(
  text: string,
  symbols: readonly FoundSymbol[] | undefined,
  question: string,
  room: RangeRoom,
): Promise<LineRange[]> {
  const terms = termsOf(question);
  if (terms.keys.size === 0) return [];
  const pieces = chunksOf(text, symbols, Number.POSITIVE_INFINITY);
  const scores = await scoresOf(pieces, terms);
  const near = scores.map((score, at) => score + neighbourPart * Math.max(scores[at - 1] ?? 0, scores[at + 1] ?? 0));
  const best = Math.max(0, ...near);
  const ranked = pieces
    .map(({ from, to }, at) => ({ range: { from, to }, score: near[at] ?? 0 }))
    .filter(({ score }) => score > best * leastPart)
    .sort((a, b) => b.score - a.score || a.range.from - b.range.from);
  return best === 0 ? [] : fitting(ranked, room);
}

async function scoresOf(pieces: ReturnType<typeof chunksOf>, terms: Terms): Promise<number[]> {
  const countIn = counter(terms);
  const holding = new Float64Array(terms.weights.length);
  const counted: { counts: Float64Array; lines: number }[] = [];
  for (const [index, { name, text, from, to }] of pieces.entries()) {
    if (index % 100 === 99) await nextTurn();
    const counts = countIn(text);
    for (const [place, count] of countIn(name).entries())
      if (count > 0) counts[place] = (counts[place] ?? 0) + titleWeight;
    for (const [place, count] of counts.entries()) if (count > 0) holding[place] = (holding[place] ?? 0) + 1;
    counted.push({ counts, lines: to - from + 1 });
  }
  const rarity = terms.weights.map(
    (weight, place) => weight * Math.log((pieces.length + 1) / ((holding[place] ?? 0) + 0.5)),
  );
  const named = rarity.reduce((sum, value) => sum + value, 0) + 1;
  return counted.map(({ counts, lines }, at) => {
    const { from, to } = pieces[at] ?? { from: 0, to: 0 };
    const isNamed = terms.lines.some(line => line >= from && line <= to);
    // A word that stands there ten times does not say ten times as much, and a long piece has more of all words.
    const worth = (count: number) => (count * 2) / (count + 0.5 + lines / usualLines);
    return counts.reduce((sum, count, place) => sum + worth(count) * (rarity[place] ?? 0), isNamed ? named * 2 : 0);
  });
}

function fitting(ranked: readonly { range: LineRange }[], { tokens, overhead, costOf }: RangeRoom): LineRange[] {
  let chosen: LineRange[] = [];
  let used = 0;
  let refused = 0;
  for (const { range } of ranked) {
    if (refused >= maxRefused) break;
    const next = joined([...chosen, range].sort((a, b) => a.from - b.from));
    const cost = costOf(range);
    if (next.length <= maxRanges && used + cost + next.length * overhead <= tokens) {
      chosen = next;
      used += cost;
      refused = 0;
    } else refused++;
  }
  return chosen;
}

/** Ranges of one file in the order given, those that touch as one, in the place of the first. */
export function joined(ranges: readonly LineRange[]): LineRange[] {
  const out: LineRange[] = [];
  for (const range of ranges) {
    const at = out.findIndex(({ from, to }) => range.from <= to + nearby && from <= range.to + nearby);
    const other = out[at];
    if (other) out[at] = { from: Math.min(other.from, range.from), to: Math.max(other.to, range.to) };
    else out.push(range);
  }
  return out;
}

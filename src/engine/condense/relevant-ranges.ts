import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LineRange } from '../../core/file.ts';
import type { FoundSymbol } from '../../files/work/job.ts';
import { relevance } from './relevance.ts';

/** Longer stretches are looked at in windows of this many lines. */
const windowLines = 40;
const longestSymbol = 80;
const mostCandidates = 3_000;
/** Once so many in a row had no room, there is none. */
const mostRefused = 20;
/** Stretches of one file that are shown. */
const mostRanges = 24;
/** Stretches this near to each other are shown as one. */
const nearby = 3;

/**
 * The lines of a file that speak of what is asked for, the most telling first, as long as `fits` says that there is room for
 * all of them together. In the order of the file; empty when nothing in it does.
 */
export async function relevantRanges(
  text: string,
  symbols: readonly FoundSymbol[] | undefined,
  words: readonly string[],
  fits: (ranges: readonly LineRange[]) => boolean,
): Promise<LineRange[]> {
  if (words.length === 0) return [];
  const lines = text.toLowerCase().split('\n');
  if (lines.at(-1) === '') lines.pop();
  const scored: { range: LineRange; score: number }[] = [];
  for (const [index, range] of candidates(lines.length, symbols).entries()) {
    if (index % 100 === 99) await nextTurn();
    const score = relevance(words, lines.slice(range.from - 1, range.to).join('\n'));
    if (score > 0) scored.push({ range, score });
  }
  scored.sort((a, b) => b.score - a.score || a.range.from - b.range.from);
  const best = scored[0]?.score ?? 0;
  let chosen: LineRange[] = [];
  let refused = 0;
  for (const { range, score } of scored) {
    if (score < best / 2 || refused >= mostRefused) break;
    const next = merged([...chosen, range]);
    if (next.length <= mostRanges && fits(next)) {
      chosen = next;
      refused = 0;
    } else refused++;
  }
  return chosen;
}

function candidates(count: number, symbols: readonly FoundSymbol[] | undefined): LineRange[] {
  const named = (symbols ?? []).filter(({ from, to }) => to - from < longestSymbol && to <= count);
  if (named.length > 0) return named.slice(0, mostCandidates).map(({ from, to }) => ({ from, to }));
  const windows: LineRange[] = [];
  for (let from = 1; from <= count && windows.length < mostCandidates; from += windowLines) {
    windows.push({ from, to: Math.min(count, from + windowLines - 1) });
  }
  return windows;
}

function merged(ranges: readonly LineRange[]): LineRange[] {
  const out: LineRange[] = [];
  for (const range of ranges.toSorted((a, b) => a.from - b.from)) {
    const last = out.at(-1);
    if (last && range.from <= last.to + nearby)
      out[out.length - 1] = { from: last.from, to: Math.max(last.to, range.to) };
    else out.push(range);
  }
  return out;
}

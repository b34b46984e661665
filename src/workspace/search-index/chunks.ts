import type { LineRange } from '../../core/file.ts';
import { safeCut } from '../../core/text.ts';
import type { FoundSymbol } from '../workers/run-job.ts';

/** A part of a text that belongs together. */
export interface Section extends LineRange {
  /** Its heading or first line. */
  title: string;
  /** Its lines, the first of which is number `from`. */
  lines: readonly string[];
}

const heading = /^(?:#{1,6}\s+\S|={3,}[^=]+={3,}\s*$|\d+(?:\.\d+)*\.?\s+\p{Lu})/u;
const fence = /^\s*(?:```|~~~)/;
/** A section that is longer is cut at an empty line. */
const maxHeadingLength = 120;
const shortest = 5;

/** Cuts a text at its headings, and at empty lines where there are none for long. */
export function sectionsOf(text: string): Section[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const sections: Section[] = [];
  let start = 0;
  let fenced = false;
  const close = (end: number) => {
    const own = lines.slice(start, end);
    const title = own.find(line => line.trim() !== '')?.trim() ?? '';
    const last = sections.at(-1);
    // A heading alone is no section: it goes with what follows.
    if (title !== '' && last && last.lines.length < shortest && last.to === start) {
      sections.splice(-1, 1, { ...last, to: end, lines: [...last.lines, ...own] });
    } else if (title !== '') sections.push({ from: start + 1, to: end, title, lines: own });
    start = end;
  };
  for (const [index, line] of lines.entries()) {
    if (fence.test(line)) fenced = !fenced;
    const length = index - start;
    const atHeading = !fenced && heading.test(line) && length > 0;
    const atGap = length >= maxHeadingLength / 2 && line.trim() === '';
    if (atHeading || atGap || length >= maxHeadingLength) close(index);
  }
  close(lines.length);
  return sections;
}

/** A stretch of a file that is found as one. */
export interface Chunk extends LineRange {
  /** What it declares, or its heading. */
  name: string;
  text: string;
}

/** Declarations that are shorter share a chunk with their neighbours. */
const shortLines = 24;
/** What is longer is cut. */
const maxChunkLines = 90;
const maxChunkChars = 8_000;
/** A file in the index has no more chunks than this: what comes after is data. */
const indexedChunks = 400;

/** Cuts a file where declarations end (with their comments), long classes at members, prose at headings; no line is in two chunks. */
export function chunksOf(text: string, symbols: readonly FoundSymbol[] | undefined, maxChunks = indexedChunks) {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const bySection = () => sectionsOf(text).map(({ from, to, title }) => ({ from, to, name: title.slice(0, 120) }));
  const ranges = symbols && symbols.length > 0 ? bySymbol(symbols, lines.length) : bySection();
  return ranges
    .flatMap(range => pieces(range, lines))
    .slice(0, maxChunks)
    .map(range => ({ ...range, text: safeCut(lines.slice(range.from - 1, range.to).join('\n'), maxChunkChars) }))
    .filter(chunk => chunk.text.trim() !== '');
}

type Named = Omit<Chunk, 'text'>;

/** Cuts behind each declaration; what stands between two of them belongs to the second, as its comment does. */
function bySymbol(symbols: readonly FoundSymbol[], count: number): Named[] {
  const out: Named[] = [];
  let from = 1;
  for (const { name, to } of leaves(symbols)) {
    const last = out.at(-1);
    if (!last || (to >= from && to - last.from >= shortLines)) out.push({ from, to: Math.min(to, count), name });
    else {
      if (to >= from) last.to = to;
      // Names that several share, as members share their class's, count once.
      last.name = [...new Set(`${last.name} ${name}`.split(' '))].join(' ');
    }
    from = Math.max(from, to + 1);
  }
  const last = out.at(-1);
  if (from <= count) {
    if (last && count - last.from < shortLines) last.to = count;
    else out.push({ from, to: count, name: '' });
  }
  return out;
}

/** The declarations to cut at: a class that is too long for one chunk gives its members instead. */
function leaves(symbols: readonly FoundSymbol[]): FoundSymbol[] {
  return symbols.flatMap(symbol => {
    if (symbol.depth > 0) return [];
    if (symbol.to - symbol.from < maxChunkLines) return [symbol];
    const members = symbols.filter(
      ({ depth, from, to }) => depth === 1 && from > symbol.from && to <= symbol.to && to > from,
    );
    return members.length > 1
      ? members.map(member => ({ ...member, name: `${symbol.name} ${member.name}` }))
      : [symbol];
  });
}

/** A stretch that is too long in parts of equal length. */
function pieces({ from, to, name }: Named, lines: readonly string[]): Named[] {
  const length = to - from + 1;
  const chars = lines.slice(from - 1, to).reduce((sum, line) => sum + line.length + 1, 0);
  const parts = Math.min(length, Math.max(Math.ceil(length / maxChunkLines), Math.ceil(chars / maxChunkChars)));
  const size = Math.ceil(length / Math.max(1, parts));
  return Array.from({ length: Math.ceil(length / size) }, (_, index) => {
    const start = from + index * size;
    return { from: start, to: Math.min(to, start + size - 1), name };
  });
}

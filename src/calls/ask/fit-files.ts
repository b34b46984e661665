import { setImmediate as nextTurn } from 'node:timers/promises';
import { throwIfAborted } from '../../core/errors.ts';
import type { FileRecord, LineRange } from '../../core/file.ts';
import { hashOf } from '../../core/ids.ts';
import { countLines, numberLines, printablePath } from '../../core/text.ts';
import { estimateTokens } from '../../core/tokens.ts';
import { covers } from '../../threads/transcript.ts';
import type { CollectedFile } from '../../workspace/collect-files.ts';
import { slashedFrom } from '../../workspace/paths.ts';
import { classifyFile, classRank } from '../../workspace/walk.ts';
import { questionWords } from '../../workspace/words.ts';
import type { FoundSymbol } from '../../workspace/workers/run-job.ts';
import type { FileInclusion, IncludedFiles, MaskedText } from './included-files.ts';
import { costOf, countMasked, masked, recordOf, skipForRoom, take } from './included-files.ts';
import { type RangeRoom, relevantRanges } from './relevant-ranges.ts';
import type { FoundFile } from './search-files.ts';
import { mostThatFit } from './shorten-files.ts';

/** Places that had no room which are named. */
const maxListed = 5;

/** Sends what a search found, as long as there is room; what stands in the prompt already is not sent again. */
export async function fitSearchResults(
  request: FileInclusion,
  out: IncludedFiles,
  found: readonly FoundFile[],
): Promise<void> {
  let listed = 0;
  for (const { file, ranges } of found) {
    const wanted = ranges.filter(range => !isThere(request, out, file, range));
    if (wanted.length === 0) continue;
    const { base, text, found: secrets } = await masked(request, file);
    const blobs = new Map([[base, text]]);
    const records = new Map(wanted.map(range => [recordOf(file, 'range', base, range), range]));
    const placed = [...records.keys()].filter(record => take(request, out, record, blobs));
    // In the prompt, the ranges of a file stand in its order.
    out.records.splice(-placed.length || out.records.length, placed.length, ...placed.toSorted(byLine));
    if (placed.length > 0) countMasked(out, secrets);
    for (const record of placed) out.report.found.push(placeOf(file.path, records.get(record)));
    for (const [record, range] of records) {
      if (placed.includes(record) || listed++ >= maxListed) continue;
      skipForRoom(out, placeOf(file.path, range), 'what use_search found here does not fit');
    }
  }
}

function isThere(request: FileInclusion, out: IncludedFiles, file: FoundFile['file'], range: LineRange): boolean {
  const inPrompt = request.inPrompt.get(file.path);
  // A file that changed is sent as a change, all of it.
  if (inPrompt && (inPrompt.sha256 !== file.sha256 || covers(inPrompt, range))) return true;
  return out.records.some(
    ({ path, form, range: shown }) =>
      path === file.path &&
      (form === 'full' ||
        form === 'diff' ||
        (form === 'range' && shown !== undefined && shown.from <= range.from && shown.to >= range.to)),
  );
}

const byLine = (a: FileRecord, b: FileRecord): number => (a.range?.from ?? 0) - (b.range?.from ?? 0);

const placeOf = (path: string, range: LineRange | undefined): string =>
  range ? `${printablePath(path)}:${range.from}-${range.to}` : printablePath(path);

/** Longer words tell more. */
const weightOf = (word: string): number => Math.min(4, word.length / 4);

/** How much of what is asked for a text speaks of: 0 when of nothing. Both are lower-case. */
export function relevance(words: readonly string[], text: string): number {
  let score = 0;
  for (const word of words) if (text.includes(word)) score += weightOf(word);
  return score;
}

/** The same for a file: its name tells more than its text. */
export const fileRelevance = (words: readonly string[], path: string, text: string): number =>
  relevance(words, path.toLowerCase()) * 3 + relevance(words, text.toLowerCase());

/** A part of a file is only worth sending from this many lines on. */
const leastLines = 20;

/** Of what directories hold, whole files may take this much; the others are outlined in the rest. */
const wholeShare = 0.7;

/** Of what there is for a named file that does not fit, its outline may take this much. */
const outlineShare = 0.35;

/** Tokens for the outline of a file that nobody named. */
const outlineTokens = { max: 400, least: 48 };

/** Files that nobody named: more outlines than this are no overview. */
const maxOutlined = 300;

const skipsShown = 20;

/** Markers and path. */
const overheadTokens = 40;

/** What parts, estimated each by itself, may come to less than the whole. */
const seamTokens = 10;

/** No text has fewer tokens than one for so many characters, but what is made to. */
const charsPerToken = 12;

/**
 * Sends files that are not in the prompt yet. When not all of them fit: the named ones come first, then those of directories by
 * kind, by how much they speak of the question, and by size; what has no room whole is outlined or summarised, with the lines
 * that matter; what has no room even for that is named in the report.
 */
export async function fitNewFiles(
  request: FileInclusion,
  out: IncludedFiles,
  files: readonly CollectedFile[],
): Promise<void> {
  if (await allFit(request, out, files)) {
    for (const file of files) if (!(await placeWhole(request, out, file))) await placeShort(request, out, file, 1);
    if (request.found.length > 0) await fitSearchResults(request, out, request.found);
    return;
  }
  const named = files.filter(file => file.named);
  for (const [index, file] of named.entries()) {
    if (!(await placeWhole(request, out, file))) await placeShort(request, out, file, named.length - index);
  }
  await fitSearchResults(request, out, request.found);
  const there = new Set(out.records.map(({ path }) => path));
  const others = files.filter(({ named, path }) => !named && !there.has(path));
  await placeFound(request, out, await byWorth(request, others));
}

/** By estimate; what it does not see is that a file may be masked. */
async function allFit(request: FileInclusion, out: IncludedFiles, files: readonly CollectedFile[]): Promise<boolean> {
  let left = request.budget - out.tokens;
  for (const { text, lines } of files) {
    if (text.length / charsPerToken > left) return false;
    left -= estimateTokens(text, request.factor) + lines * 2 + 40;
    if (left < 0) return false;
    await nextTurn();
  }
  return true;
}

/** In the order in which they are to have what room there is. */
async function byWorth({ call }: FileInclusion, files: readonly CollectedFile[]): Promise<CollectedFile[]> {
  const words = questionWords(call.plan.contribution);
  const judged: { file: CollectedFile; rank: number; worth: number }[] = [];
  for (const file of files) {
    await nextTurn();
    throwIfAborted(call.signal);
    const path = slashedFrom(call.request.principal.root, file.path);
    const rank = classRank(classifyFile(path, file.text));
    judged.push({ file, rank, worth: fileRelevance(words, path, file.text) });
  }
  return judged
    .sort(
      (a, b) =>
        a.rank - b.rank || b.worth - a.worth || a.file.size - b.file.size || (a.file.path < b.file.path ? -1 : 1),
    )
    .map(({ file }) => file);
}

async function placeWhole(
  request: FileInclusion,
  out: IncludedFiles,
  file: CollectedFile,
  limit = request.budget - out.tokens,
): Promise<boolean> {
  if (!file.range && file.text.length / charsPerToken > limit) return false;
  const { base, text, found } = await masked(request, file);
  const record = recordOf(file, file.range ? 'range' : 'full', base, file.range);
  if (!take(request, out, record, new Map([[base, text]]), limit)) return false;
  countMasked(out, found);
  out.report.embedded.push(printablePath(file.path));
  return true;
}

/** A named file that does not fit: what it declares or says, and the lines that matter or else its first ones. */
async function placeShort(request: FileInclusion, out: IncludedFiles, file: CollectedFile, sharers: number) {
  const { services, call } = request;
  const { fileShortener } = services;
  const shown = await masked(request, file);
  const share = Math.floor((request.budget - out.tokens) / sharers);
  const end = out.tokens + share;
  const form = file.range ? undefined : await placeCondensed(request, out, file, shown, share * outlineShare);
  const parts = await placeParts(request, out, file, shown, {
    end,
    symbols: file.range
      ? undefined
      : await fileShortener.symbols({ path: file.path, hash: shown.base, text: shown.text }, call.signal),
  });
  if (form || parts.length > 0) countMasked(out, shown.found);
  if (parts.length > 0) out.report.embedded.push(printablePath(file.path));
  const lines = parts.map(({ from, to }) => `${from}-${to}`).join(', ');
  const fit = [form && (form === 'outline' ? 'an outline' : 'a summary'), lines && `lines ${lines} of ${file.lines}`];
  const what = fit.filter(Boolean).join(' and ');
  skipForRoom(out, file.path, what === '' ? 'it does not fit' : `only ${what} fit`);
}

async function placeParts(
  request: FileInclusion,
  out: IncludedFiles,
  file: CollectedFile,
  { base, text }: MaskedText,
  { end, symbols }: { end: number; symbols?: readonly FoundSymbol[] },
): Promise<LineRange[]> {
  const blobs = new Map([[base, text]]);
  const overhead = costOf(request, recordOf(file, 'range', base, { from: 1, to: 1 }), blobs) + seamTokens;
  const tokens = end - out.tokens;
  const room = { tokens, overhead, costOf: rangeCosts(text, tokens, request.factor) };
  const chosen = file.range ? [] : await relevantRanges(text, symbols, request.call.plan.contribution, room);
  const first = chosen.length === 0 ? firstLines(file.range ?? { from: 1, to: countLines(text) }, room) : undefined;
  return (first ? [first] : chosen).filter(range =>
    take(request, out, recordOf(file, 'range', base, range), blobs, end - out.tokens),
  );
}

/** What ranges of a text cost, about; more than `max` where their length alone tells. */
function rangeCosts(text: string, max: number, factor: number): RangeRoom['costOf'] {
  const lines = text.split('\n');
  const ends: number[] = [0];
  for (const line of lines) ends.push((ends.at(-1) ?? 0) + line.length + 1);
  return ({ from, to }) => {
    const chars = (ends[Math.min(to, lines.length)] ?? 0) - (ends[from - 1] ?? 0);
    if (chars / charsPerToken > max) return Number.POSITIVE_INFINITY;
    return Math.ceil(estimateTokens(numberLines(lines.slice(from - 1, to).join('\n'), from)) * factor);
  };
}

/** The first lines of the file, or of the range that was asked for, that still fit. */
function firstLines({ from, to }: LineRange, { tokens, overhead, costOf }: RangeRoom): LineRange | undefined {
  const count = mostThatFit(to - from + 1, lines => costOf({ from, to: from + lines - 1 }) + overhead <= tokens);
  return count >= leastLines ? { from, to: from + count - 1 } : undefined;
}

/** Puts an outline or a summary in the place of a file; answers which. What stands in the prompt already is not sent again. */
async function placeCondensed(
  request: FileInclusion,
  out: IncludedFiles,
  file: CollectedFile,
  { base, text }: MaskedText,
  limit: number,
): Promise<'outline' | 'summary' | undefined> {
  const { services, call } = request;
  const room = Math.floor(limit / request.factor) - overheadTokens;
  const made = await services.fileShortener.condense({ path: file.path, hash: base, text }, room, call.signal);
  if (!made) return undefined;
  const { path, size, mtimeMs, lines, sha256 } = file;
  const shown = hashOf(made.text);
  const record: FileRecord = { path, form: made.form, size, mtimeMs, lines, sha256, shown };
  const report = made.form === 'outline' ? out.report.outlined : out.report.summarised;
  if (request.shownTexts.has(shown) || take(request, out, record, new Map([[shown, made.text]]))) {
    report.push(printablePath(path));
    return made.form;
  }
  return undefined;
}

/** Whole files as long as their share lasts, then outlines of the others, then their names alone. */
async function placeFound(request: FileInclusion, out: IncludedFiles, files: readonly CollectedFile[]): Promise<void> {
  const { budget, factor, call } = request;
  const wholeEnd = out.tokens + (budget - out.tokens) * wholeShare;
  const others: CollectedFile[] = [];
  for (const file of files) {
    await nextTurn();
    throwIfAborted(call.signal);
    if (!(await placeWhole(request, out, file, wholeEnd - out.tokens))) others.push(file);
  }
  const leftOut: CollectedFile[] = [];
  for (const [index, file] of others.entries()) {
    await nextTurn();
    throwIfAborted(call.signal);
    const left = Math.min(others.length, maxOutlined) - index;
    const share = Math.max(outlineTokens.least * factor, (budget - out.tokens) / Math.max(1, left));
    const limit = Math.min(outlineTokens.max * factor, share, budget - out.tokens);
    const tooLittle = left <= 0 || limit < outlineTokens.least * factor;
    const shown = tooLittle ? undefined : await masked(request, file);
    if (shown && (await placeCondensed(request, out, file, shown, limit + overheadTokens * factor))) {
      countMasked(out, shown.found);
    } else leftOut.push(file);
  }
  reportOmitted(out, leftOut);
}

function reportOmitted(out: IncludedFiles, files: readonly CollectedFile[]): void {
  for (const { path } of files.slice(0, skipsShown)) skipForRoom(out, path, 'it does not fit');
  const [next] = files.slice(skipsShown);
  if (next) skipForRoom(out, next.path, `this and ${files.length - skipsShown - 1} more do not fit`);
}

import { setImmediate as nextTurn } from 'node:timers/promises';
import { throwIfAborted } from '../../core/errors.ts';
import type { FileRecord, LineRange, TextFile } from '../../core/file.ts';
import { hashOf, type Sha256 } from '../../core/ids.ts';
import type { Masked } from '../../core/ports.ts';
import { countLines, mostThatFit, numberLines, printablePath } from '../../core/text.ts';
import { estimateTokens } from '../../core/tokens.ts';
import { type Blobs, covers, type PromptFile, renderDocument, renderFile } from '../../threads/transcript.ts';
import type { CollectedFile } from '../../workspace/collect-files.ts';
import { slashedFrom } from '../../workspace/paths.ts';
import { classifyFile, classRank } from '../../workspace/walk.ts';
import { questionWords } from '../../workspace/words.ts';
import type { FileReport, RoutedCall } from '../call-record.ts';
import { type RangeRoom, relevantRanges } from './relevant-ranges.ts';
import type { FoundFile } from './search-files.ts';
import type { CallServices } from './services.ts';

/** The files of a new turn as they are put together. */
export interface IncludedFiles {
  records: FileRecord[];
  blobs: Map<Sha256, string>;
  report: FileReport;
  tokens: number;
}

/** The same, with what they are made of. */
export interface FileInclusion extends IncludedFiles {
  services: CallServices;
  /** What has no room whole is shown where it speaks of what is asked. */
  call: RoutedCall;
  named: readonly CollectedFile[];
  found: readonly FoundFile[];
  inPrompt: ReadonlyMap<string, PromptFile>;
  /** Outlines, summaries and diffs that stand in the prompt already. */
  shownTexts: ReadonlySet<Sha256>;
  /** Texts of the standing files. */
  bases: Blobs;
  /** Tokens for all of it, and how many the model counts for one of ours. */
  budget: number;
  factor: number;
}

/** A file as it may be shown: masked. */
type MaskedText = Pick<Masked, 'text' | 'found'> & { base: Sha256 };

export function fileRecord(file: TextFile, form: FileRecord['form'], base: Sha256, range?: LineRange): FileRecord {
  const { path, size, mtimeMs, lines, sha256: hash, document } = file;
  const facts = { path, form, size, mtimeMs, lines, sha256: hash, base };
  return { ...facts, ...(range && { range }), ...(document && { document }) };
}

/** What a record costs in the prompt, for the model. */
export function recordCost({ factor }: Pick<FileInclusion, 'factor'>, record: FileRecord, blobs: Blobs): number {
  const texts = [renderFile(record, blobs), renderDocument(record, blobs)].filter(text => text !== undefined);
  return Math.ceil(estimateTokens(`${texts.join('\n\n')}\n\n`) * factor);
}

const roomIn = ({ budget, tokens }: FileInclusion): number => budget - tokens;

/** Adds a record if it costs no more than `limit`, which is all that is left unless told. */
export function addIfFits(into: FileInclusion, record: FileRecord, blobs: Blobs, limit = roomIn(into)): boolean {
  const cost = recordCost(into, record, blobs);
  if (cost > limit) return false;
  into.tokens += cost;
  into.records.push(record);
  for (const [hash, text] of blobs) into.blobs.set(hash, text);
  return true;
}

export async function maskedFile({ services, call }: FileInclusion, file: TextFile): Promise<MaskedText> {
  const { text, found } = await services.mask(file.text, call.thread.id);
  return { base: hashOf(text), text, found };
}

export function countMasked({ report }: IncludedFiles, found: MaskedText['found']): void {
  for (const [kind, count] of Object.entries(found)) report.masked[kind] = (report.masked[kind] ?? 0) + count;
}

export function skipForRoom({ report }: IncludedFiles, path: string, what: string): void {
  const reason = `${what} into the model's context window with the conversation; name a range (file.ts:10-80) or use a model with a larger one.`;
  report.skipped.push({ path: printablePath(path), code: 'over_budget', reason });
}

/** Places that had no room which are named. */
const maxListed = 5;

/** Sends what a search found, as long as there is room; what stands in the prompt already is not sent again. */
async function fitSearchResults(into: FileInclusion): Promise<void> {
  let listed = 0;
  for (const { file, ranges } of into.found) {
    const wanted = ranges.filter(range => !isThere(into, file, range));
    if (wanted.length === 0) continue;
    const { base, text, found } = await maskedFile(into, file);
    const records = wanted.map(range => fileRecord(file, 'range', base, range));
    const placed = records.filter(record => addIfFits(into, record, new Map([[base, text]])));
    // In the prompt, the ranges of a file stand in its order.
    into.records.splice(-placed.length || into.records.length, placed.length, ...placed.toSorted(byLine));
    if (placed.length > 0) countMasked(into, found);
    into.report.found.push(...placed.map(placeOf));
    for (const record of records) {
      if (placed.includes(record) || listed++ >= maxListed) continue;
      skipForRoom(into, placeOf(record), 'what use_search found here does not fit');
    }
  }
}

function isThere(into: FileInclusion, file: TextFile, range: LineRange): boolean {
  const inPrompt = into.inPrompt.get(file.path);
  // A file that changed is sent as a change, all of it.
  if (inPrompt && (inPrompt.sha256 !== file.sha256 || covers(inPrompt, range))) return true;
  const shows = ({ form, range: shown }: FileRecord) =>
    ['full', 'diff'].includes(form) ||
    (form === 'range' && shown !== undefined && shown.from <= range.from && shown.to >= range.to);
  return into.records.some(record => record.path === file.path && shows(record));
}

const byLine = (a: FileRecord, b: FileRecord): number => (a.range?.from ?? 0) - (b.range?.from ?? 0);

const placeOf = ({ path, range }: FileRecord): string =>
  range ? `${printablePath(path)}:${range.from}-${range.to}` : printablePath(path);

/** How much of what is asked for a file speaks of: 0 when of nothing. Its name tells more than its text, longer words more. */
function relevance(words: readonly string[], path: string, text: string): number {
  const [name, content] = [path.toLowerCase(), text.toLowerCase()];
  const times = (word: string) => (name.includes(word) ? 3 : 0) + (content.includes(word) ? 1 : 0);
  return words.reduce((sum, word) => sum + Math.min(4, word.length / 4) * times(word), 0);
}

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
export async function fitNewFiles(into: FileInclusion, files: readonly CollectedFile[]): Promise<void> {
  const all = await allFit(into, files);
  const first = all ? files : files.filter(file => file.named);
  for (const [index, file] of first.entries()) {
    if (!(await placeWhole(into, file))) await placeShort(into, file, all ? 1 : first.length - index);
  }
  await fitSearchResults(into);
  if (all) return;
  const there = new Set(into.records.map(({ path }) => path));
  const others = files.filter(({ named, path }) => !named && !there.has(path));
  await placeFound(into, await byWorth(into, others));
}

/** By estimate; what it does not see is that a file may be masked. */
async function allFit(into: FileInclusion, files: readonly CollectedFile[]): Promise<boolean> {
  let left = roomIn(into);
  for (const { text, lines } of files) {
    if (text.length / charsPerToken > left) return false;
    left -= estimateTokens(text, into.factor) + lines * 2 + 40;
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
    judged.push({ file, rank: classRank(classifyFile(path, file.text)), worth: relevance(words, path, file.text) });
  }
  return judged
    .sort(
      (a, b) =>
        a.rank - b.rank || b.worth - a.worth || a.file.size - b.file.size || (a.file.path < b.file.path ? -1 : 1),
    )
    .map(({ file }) => file);
}

async function placeWhole(into: FileInclusion, file: CollectedFile, limit = roomIn(into)): Promise<boolean> {
  if (!file.range && file.text.length / charsPerToken > limit) return false;
  const { base, text, found } = await maskedFile(into, file);
  const record = fileRecord(file, file.range ? 'range' : 'full', base, file.range);
  if (!addIfFits(into, record, new Map([[base, text]]), limit)) return false;
  countMasked(into, found);
  into.report.embedded.push(printablePath(file.path));
  return true;
}

/** A named file that does not fit: what it declares or says, and the lines that matter or else its first ones. */
async function placeShort(into: FileInclusion, file: CollectedFile, sharers: number) {
  const shown = await maskedFile(into, file);
  const share = Math.floor(roomIn(into) / sharers);
  const end = into.tokens + share;
  const form = file.range ? undefined : await placeCondensed(into, file, shown, share * outlineShare);
  const parts = await placeParts(into, file, shown, end);
  if (form || parts.length > 0) countMasked(into, shown.found);
  if (parts.length > 0) into.report.embedded.push(printablePath(file.path));
  const lines = parts.map(({ from, to }) => `${from}-${to}`).join(', ');
  const fit = [form && (form === 'outline' ? 'an outline' : 'a summary'), lines && `lines ${lines} of ${file.lines}`];
  const what = fit.filter(Boolean).join(' and ');
  skipForRoom(into, file.path, what === '' ? 'it does not fit' : `only ${what} fit`);
}

async function placeParts(into: FileInclusion, file: CollectedFile, { base, text }: MaskedText, end: number) {
  const { services, call, factor } = into;
  const symbols = file.range
    ? undefined
    : await services.fileShortener.symbols({ path: file.path, hash: base, text }, call.signal);
  const blobs = new Map([[base, text]]);
  const overhead = recordCost(into, fileRecord(file, 'range', base, { from: 1, to: 1 }), blobs) + seamTokens;
  const tokens = end - into.tokens;
  const room = { tokens, overhead, costOf: rangeCosts(text, tokens, factor) };
  const chosen = file.range ? [] : await relevantRanges(text, symbols, call.plan.contribution, room);
  const first = chosen.length === 0 ? firstLines(file.range ?? { from: 1, to: countLines(text) }, room) : undefined;
  return (first ? [first] : chosen).filter(range =>
    addIfFits(into, fileRecord(file, 'range', base, range), blobs, end - into.tokens),
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
async function placeCondensed(into: FileInclusion, file: CollectedFile, { base, text }: MaskedText, limit: number) {
  const { services, call } = into;
  const room = Math.floor(limit / into.factor) - overheadTokens;
  const made = await services.fileShortener.condense({ path: file.path, hash: base, text }, room, call.signal);
  if (!made) return undefined;
  const { path, size, mtimeMs, lines, sha256 } = file;
  const shown = hashOf(made.text);
  const record: FileRecord = { path, form: made.form, size, mtimeMs, lines, sha256, shown };
  const report = made.form === 'outline' ? into.report.outlined : into.report.summarised;
  if (!into.shownTexts.has(shown) && !addIfFits(into, record, new Map([[shown, made.text]]))) return undefined;
  report.push(printablePath(path));
  return made.form;
}

/** Whole files as long as their share lasts, then outlines of the others, then their names alone. */
async function placeFound(into: FileInclusion, files: readonly CollectedFile[]): Promise<void> {
  const { factor, call } = into;
  const wholeEnd = into.tokens + roomIn(into) * wholeShare;
  const others: CollectedFile[] = [];
  for (const file of files) {
    await nextTurn();
    throwIfAborted(call.signal);
    if (!(await placeWhole(into, file, wholeEnd - into.tokens))) others.push(file);
  }
  const leftOut: CollectedFile[] = [];
  for (const [index, file] of others.entries()) {
    await nextTurn();
    throwIfAborted(call.signal);
    const left = Math.min(others.length, maxOutlined) - index;
    const share = Math.max(outlineTokens.least * factor, roomIn(into) / Math.max(1, left));
    const limit = Math.min(outlineTokens.max * factor, share, roomIn(into));
    const tooLittle = left <= 0 || limit < outlineTokens.least * factor;
    const shown = tooLittle ? undefined : await maskedFile(into, file);
    if (shown && (await placeCondensed(into, file, shown, limit + overheadTokens * factor))) {
      countMasked(into, shown.found);
    } else leftOut.push(file);
  }
  for (const { path } of leftOut.slice(0, skipsShown)) skipForRoom(into, path, 'it does not fit');
  const next = leftOut[skipsShown];
  if (next) skipForRoom(into, next.path, `this and ${leftOut.length - skipsShown - 1} more do not fit`);
}

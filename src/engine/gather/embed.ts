import { createHash } from 'node:crypto';
import { inputError, securityError } from '../../domain/error.ts';
import type { FileRecord, LineRange, Skip, TextFile } from '../../domain/file.ts';
import { type Sha256, sha256 } from '../../domain/ids.ts';
import type { Mask } from '../../domain/ports.ts';
import { countLines, printablePath } from '../../domain/text.ts';
import { estimateTokens } from '../../domain/tokens.ts';
import type { CollectedFile } from '../../files/collect.ts';
import { unifiedDiff } from '../../files/diff.ts';
import { checkDocument, checkFile } from '../../files/refresh.ts';
import type { Sandbox } from '../../files/sandbox.ts';
import { covers, type StandingFile } from '../../memory/seen-files.ts';
import { type Blobs, renderDocument, renderFile } from '../../memory/transcript.ts';
import type { FileReport } from '../call-record.ts';

/** A changed file of up to this many lines is sent whole: a diff would be harder to read and hardly shorter. */
const smallFileLines = 200;
/** A part of a file is only worth sending from this many lines on. */
const leastLines = 20;

export interface EmbedRequest {
  named: readonly CollectedFile[];
  standing: ReadonlyMap<string, StandingFile>;
  /** Texts of the standing files. */
  bases: Blobs;
  sandbox: Sandbox;
  maxBytes: number;
  /** Tokens for all of it, and how many the model counts for one of ours. */
  budget: number;
  factor: number;
  mask: Mask;
  /** Keys the masks: the thread's id. */
  scope: string;
  signal: AbortSignal;
}

export interface Embedded {
  records: FileRecord[];
  blobs: Map<Sha256, string>;
  report: FileReport;
  tokens: number;
}

export function hashOf(text: string): Sha256 {
  return sha256(createHash('sha256').update(text).digest('hex'));
}

/**
 * Decides for every file how it stands in the new turn: named ones that are not in the prompt yet are sent, those that are
 * there are listed, and whatever changed on disk since it was sent is sent as a change, named or not.
 */
export async function embedFiles(request: EmbedRequest): Promise<Embedded> {
  const report: FileReport = { embedded: [], unchanged: [], changed: [], skipped: [], masked: {} };
  const out: Embedded = { records: [], blobs: new Map(), report, tokens: 0 };
  const handled = new Set<string>();
  for (const file of request.named) {
    handled.add(file.path);
    const before = request.standing.get(file.path);
    if (!before) await embedNew(request, out, file);
    else if (before.sha256 !== file.sha256) await embedChange(request, out, before, file);
    else if (covers(before, file.range)) note(out, file, 'unchanged');
    else await embedNew(request, out, file);
  }
  for (const before of [...request.standing.values()].toReversed()) {
    if (handled.has(before.path)) continue;
    const now = await lookAgain(request, before);
    if (now === 'deleted') deleted(out, before);
    else if (typeof now === 'object' && 'changed' in now) await embedChange(request, out, before, now.changed);
    else if (typeof now === 'object') report.skipped.push(now.skip);
  }
  return out;
}

function lookAgain({ sandbox, maxBytes, signal }: EmbedRequest, before: StandingFile) {
  return before.document ? checkDocument(sandbox, before) : checkFile(sandbox, before, { maxBytes, signal });
}

/** Refuses a call that named files none of which can be read, before a model is paid for it. */
export function refuseIfNothingReadable(named: readonly string[], read: number, skipped: readonly Skip[]): void {
  if (named.length === 0 || read > 0) return;
  const told = skipped.slice(0, 10).map(skip => `${skip.path}: ${skip.reason}`);
  const message = `None of the named files can be read. ${told.join(' ')}`;
  const details = {
    next: 'Name files or directories inside the project (PROJECT_ROOT or POLYLOGUE_ROOTS say where that is), or none at all.',
    validationErrors: skipped.slice(0, 20).map(skip => ({ field: 'files', error: `${skip.code}: ${skip.path}` })),
  };
  const refused = skipped.some(
    skip => skip.code === 'outside_roots' || skip.code === 'secret' || skip.code === 'not_regular',
  );
  throw refused
    ? securityError(message, { ...details, class: 'files' })
    : inputError(message, { ...details, class: 'files' });
}

async function embedNew(request: EmbedRequest, out: Embedded, file: CollectedFile): Promise<void> {
  const { base, text } = await masked(request, out, file);
  const record = recordOf(file, file.range ? 'range' : 'full', base, file.range);
  if (take(request, out, record, new Map([[base, text]]))) {
    out.report.embedded.push(printablePath(file.path));
    return;
  }
  const part = largestPart(request, out, { file, base, text });
  if (part) {
    take(request, out, recordOf(file, 'range', base, part), new Map([[base, text]]));
    out.report.embedded.push(printablePath(file.path));
    skipForRoom(out, file.path, `only lines ${part.from}-${part.to} of ${file.lines} fit`);
  } else {
    skipForRoom(out, file.path, 'it does not fit');
  }
}

/** The first lines of the file, or of the range that was asked for, that still fit. */
function largestPart(
  request: EmbedRequest,
  out: Embedded,
  { file, base, text }: { file: CollectedFile; base: Sha256; text: string },
): LineRange | undefined {
  const { from, to } = file.range ?? { from: 1, to: countLines(text) };
  const blobs = new Map([[base, text]]);
  const fits = (lines: number) =>
    costOf(request, recordOf(file, 'range', base, { from, to: from + lines - 1 }), blobs) <=
    request.budget - out.tokens;
  let low = 0;
  let high = to - from + 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  return low >= leastLines ? { from, to: from + low - 1 } : undefined;
}

async function embedChange(request: EmbedRequest, out: Embedded, before: StandingFile, file: TextFile): Promise<void> {
  const { base, text } = await masked(request, out, file);
  out.report.changed.push(printablePath(file.path));
  const full = recordOf(file, 'full', base);
  const oldText = request.bases.get(before.base);
  const diff = file.lines > smallFileLines && oldText !== undefined ? plainDiff(file.path, oldText, text) : undefined;
  const shown = diff === undefined ? undefined : hashOf(diff);
  const change = shown && { ...recordOf(file, 'diff', base), shown };
  const blobs = new Map([[base, text], ...(shown && diff !== undefined ? [[shown, diff] as const] : [])]);
  const useDiff = change && costOf(request, change, blobs) < costOf(request, full, blobs);
  if (!take(request, out, useDiff ? change : full, blobs)) note(out, file, 'changed');
}

/** A removed line gets a dash in front and can so come to look like a marker of ours; then the file is sent whole. */
const markerLike = /^--- (?:BEGIN|END|FILE) /m;

function plainDiff(path: string, before: string, after: string): string | undefined {
  const diff = unifiedDiff(path, before, after);
  return diff !== undefined && markerLike.test(diff) ? undefined : diff;
}

function note(out: Embedded, file: TextFile, form: 'unchanged' | 'changed'): void {
  const { path, size, mtimeMs, lines, sha256: hash } = file;
  out.records.push({ path, form, size, mtimeMs, lines, sha256: hash });
  if (form === 'unchanged') out.report.unchanged.push(printablePath(path));
  else skipForRoom(out, path, 'it changed, and the change does not fit');
}

function deleted(out: Embedded, before: StandingFile): void {
  const { path, size, mtimeMs, sha256: hash } = before;
  out.records.push({ path, form: 'deleted', size, mtimeMs, lines: 0, sha256: hash });
  out.report.changed.push(printablePath(path));
}

function skipForRoom(out: Embedded, path: string, what: string): void {
  const reason = `${what} into the model's window beside the conversation; name a range (file.ts:10-80) or use a model with a larger one.`;
  out.report.skipped.push({ path: printablePath(path), code: 'over_budget', reason });
}

function recordOf(file: TextFile, form: FileRecord['form'], base: Sha256, range?: LineRange): FileRecord {
  const { path, size, mtimeMs, lines, sha256: hash, document } = file;
  return {
    path,
    form,
    size,
    mtimeMs,
    lines,
    sha256: hash,
    base,
    ...(range && { range }),
    ...(document && { document }),
  };
}

function costOf(request: EmbedRequest, record: FileRecord, blobs: Blobs): number {
  const texts = [renderFile(record, blobs), renderDocument(record, blobs)].filter(text => text !== undefined);
  return Math.ceil(estimateTokens(`${texts.join('\n\n')}\n\n`) * request.factor);
}

function take(request: EmbedRequest, out: Embedded, record: FileRecord, blobs: Map<Sha256, string>): boolean {
  const cost = costOf(request, record, blobs);
  if (out.tokens + cost > request.budget) return false;
  out.tokens += cost;
  out.records.push(record);
  for (const [hash, text] of blobs) out.blobs.set(hash, text);
  return true;
}

async function masked(request: EmbedRequest, out: Embedded, file: TextFile): Promise<{ base: Sha256; text: string }> {
  const { text, found } = await request.mask(file.text, request.scope);
  for (const [kind, count] of Object.entries(found)) out.report.masked[kind] = (out.report.masked[kind] ?? 0) + count;
  return { base: hashOf(text), text };
}

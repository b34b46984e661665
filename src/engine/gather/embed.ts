import {
  costOf,
  countMasked,
  type Embedded,
  type EmbedRequest,
  hashOf,
  masked,
  recordOf,
  skipForRoom,
  take,
} from '../../calls/ask/file-embedding.ts';
import { placeNew } from '../../calls/ask/place-files.ts';
import type { FileReport } from '../../calls/call-record.ts';
import { inputError, securityError } from '../../core/errors.ts';
import type { Skip, TextFile } from '../../core/file.ts';
import { printablePath } from '../../core/text.ts';
import { checkDocument, checkFile } from '../../files/refresh.ts';
import { covers, type StandingFile } from '../../memory/seen-files.ts';
import type { CollectedFile } from '../../workspace/collect-files.ts';

/** A changed file of up to this many lines is sent whole: a diff would be harder to read and hardly shorter. */
const smallFileLines = 200;

/**
 * Decides for every file how it stands in the new turn: named ones that are not in the prompt yet are sent, those that are
 * there are listed, and whatever changed on disk since it was sent is sent as a change, named or not.
 */
export async function embedFiles(request: EmbedRequest): Promise<Embedded> {
  const report: FileReport = {
    embedded: [],
    outlined: [],
    summarised: [],
    found: [],
    unchanged: [],
    changed: [],
    skipped: [],
    masked: {},
  };
  const out: Embedded = { records: [], blobs: new Map(), report, tokens: 0 };
  const handled = new Set<string>();
  const fresh: CollectedFile[] = [];
  for (const file of request.named) {
    handled.add(file.path);
    const before = request.standing.get(file.path);
    if (!before) fresh.push(file);
    else if (before.sha256 !== file.sha256) await embedChange(request, out, before, file);
    else if (covers(before, file.range)) note(out, file, 'unchanged');
    else fresh.push(file);
  }
  await placeNew(request, out, fresh);
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

async function embedChange(request: EmbedRequest, out: Embedded, before: StandingFile, file: TextFile): Promise<void> {
  const { base, text, found } = await masked(request, file);
  countMasked(out, found);
  out.report.changed.push(printablePath(file.path));
  const full = recordOf(file, 'full', base);
  const oldText = request.bases.get(before.base);
  const compared = file.lines > smallFileLines && oldText !== undefined;
  const diff = compared ? await plainDiff(request, file.path, oldText, text) : undefined;
  const shown = diff === undefined ? undefined : hashOf(diff);
  const change = shown && { ...recordOf(file, 'diff', base), shown };
  const blobs = new Map([[base, text], ...(shown && diff !== undefined ? [[shown, diff] as const] : [])]);
  const useDiff = change && costOf(request, change, blobs) < costOf(request, full, blobs);
  if (!take(request, out, useDiff ? change : full, blobs)) note(out, file, 'changed');
}

/** A removed line gets a dash in front and can so come to look like a marker of ours; then the file is sent whole. */
const markerLike = /^--- (?:BEGIN|END|FILE) /m;

async function plainDiff(
  { pool, signal }: EmbedRequest,
  path: string,
  before: string,
  after: string,
): Promise<string | undefined> {
  const diff = await pool.diff({ path, before, after }, signal);
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

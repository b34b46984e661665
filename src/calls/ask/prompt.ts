import { limitError } from '../../core/errors.ts';
import type { FileRecord, Skip, TextFile } from '../../core/file.ts';
import { hashOf, type Sha256 } from '../../core/ids.ts';
import { tailHeading } from '../../core/message.ts';
import { mostThatFit, printablePath, safeCut } from '../../core/text.ts';
import type { Compaction, ImageRecord, Thread, Turn } from '../../core/thread.ts';
import { estimateTokens, imageTokens, tokensPerMessage } from '../../core/tokens.ts';
import { compact, exceedsHistoryBudget, planBudget, selectionTokens, windowClass } from '../../threads/compaction.ts';
import {
  asMessage,
  type Blobs,
  blobsOf,
  covers,
  type PromptFile,
  promptFiles,
  renderTurn,
  renderTurns,
  type Selection,
  selectTurns,
  shownTexts,
  turnTokens,
} from '../../threads/transcript.ts';
import type { CollectedFile, Collection } from '../../workspace/collect-files.ts';
import { isSkip } from '../../workspace/paths.ts';
import { checkFile, readImage } from '../../workspace/read-file.ts';
import { fileError } from '../call-limits.ts';
import type { FileReport, ParsedCall, RoutedCall } from '../call-record.ts';
import type { EvidencePiece } from '../tool.ts';
import type { FileInclusion, IncludedFiles } from './fit-files.ts';
import { addIfFits, countMasked, fileRecord, fitNewFiles, maskedFile, recordCost, skipForRoom } from './fit-files.ts';
import type { FoundFile } from './search-files.ts';
import type { CallServices } from './services.ts';

/** A changed file of up to this many lines is sent whole: a diff would be harder to read and hardly shorter. */
const smallFileLines = 200;

/** How each file stands in the new turn: named ones are sent, or listed once they were; changes on disk are always sent. */
async function includeFiles(request: Omit<FileInclusion, keyof IncludedFiles>): Promise<IncludedFiles> {
  const { sandbox, maxFileBytes: maxBytes } = request.services;
  const { signal } = request.call;
  const sent = { embedded: [], outlined: [], summarised: [], found: [] };
  const report: FileReport = { ...sent, unchanged: [], changed: [], skipped: [], masked: {} };
  const into: FileInclusion = { ...request, records: [], blobs: new Map(), report, tokens: 0 };
  const handled = new Set(into.named.map(({ path }) => path));
  const fresh: CollectedFile[] = [];
  for (const file of into.named) {
    const before = into.inPrompt.get(file.path);
    if (before && before.sha256 !== file.sha256) await embedChange(into, before, file);
    else if (before && covers(before, file.range)) note(into, file, 'unchanged');
    else fresh.push(file);
  }
  if (fresh.length + into.found.length > 0) await fitNewFiles(into, fresh);
  for (const before of [...into.inPrompt.values()].toReversed()) {
    if (handled.has(before.path)) continue;
    const now = await checkFile(sandbox, before, before.document ? undefined : { maxBytes, signal });
    if (now === 'deleted') note(into, { ...before, lines: 0 }, now);
    else if (typeof now === 'object' && 'changed' in now) await embedChange(into, before, now.changed);
    else if (typeof now === 'object') {
      const reason = `The model has it as it was sent before. ${now.skip.reason}`;
      report.skipped.push({ ...now.skip, reason });
    }
  }
  return into;
}

/** Refuses a call none of whose files and images can be read, before a model is paid. A question whose files are just missing is asked. */
export function refuseIfNothingReadable(
  { plan: { files, fileIds = [], images = [], aboutFiles } }: RoutedCall,
  read: number,
  skipped: readonly Skip[],
  skippedImages: readonly Skip[],
): void {
  const others = fileIds.length + images.length;
  if (files.length + others === 0 || read > 0) return;
  if (!aboutFiles && others === 0 && skipped.every(({ code }) => code === 'not_found')) return;
  const reasons = skipped.slice(0, 10).map(skip => `${skip.path}: ${skip.reason}`);
  const codes = skipped.map(({ code }) => code);
  throw fileError(codes, `None of the named files can be read. ${reasons.join(' ')}`, {
    next: 'Name files inside the project (see PROJECT_ROOT or POLYLOGUE_ROOTS), or send the call without files.',
    validationErrors: skipped.slice(0, 20).map(skip => {
      return { field: skippedImages.includes(skip) ? 'images' : 'files', error: `${skip.code}: ${skip.path}` };
    }),
  });
}

async function embedChange(into: FileInclusion, before: PromptFile, file: TextFile) {
  const { base, text, found } = await maskedFile(into, file);
  countMasked(into, found);
  into.report.changed.push(printablePath(file.path));
  const full = fileRecord(file, 'full', base);
  const oldText = into.bases.get(before.base);
  const compared = file.lines > smallFileLines && oldText !== undefined;
  const diff = compared ? await plainDiff(into, file.path, oldText, text) : undefined;
  const shown = diff === undefined ? undefined : hashOf(diff);
  const change = shown && { ...fileRecord(file, 'diff', base), shown };
  const blobs = new Map([[base, text], ...(shown && diff !== undefined ? [[shown, diff] as const] : [])]);
  const useDiff = change && recordCost(into, change, blobs) < recordCost(into, full, blobs);
  if (!addIfFits(into, useDiff ? change : full, blobs)) note(into, file, 'changed');
}

/** A removed line gets a dash in front and can so come to look like a marker of ours; then the file is sent whole. */
const markerLike = /^--- (?:BEGIN|END|FILE) /m;

async function plainDiff({ services, call }: FileInclusion, path: string, before: string, after: string) {
  const diff = await services.pool.diff({ path, before, after }, call.signal);
  return diff !== undefined && markerLike.test(diff) ? undefined : diff;
}

function note(into: IncludedFiles, file: Omit<FileRecord, 'form'>, form: 'unchanged' | 'changed' | 'deleted'): void {
  const { path, size, mtimeMs, lines, sha256: hash } = file;
  into.records.push({ path, form, size, mtimeMs, lines, sha256: hash });
  if (form === 'changed') skipForRoom(into, path, 'it changed, and the change does not fit');
  else into.report[form === 'deleted' ? 'changed' : form].push(printablePath(path));
}

/** A beginning is only worth showing from this many lines on. */
const leastLines = 20;

/** Room for the list of what is missing. */
const listTokens = 200;

const listed = 20;

const listChars = 400;

/** What fits comes whole, in its order; the others share what is left, each cut at a line. `leftOut`: their titles. */
export function fitEvidence(pieces: readonly EvidencePiece[], tokens: number): { text: string; leftOut: string[] } {
  const named = pieces.map(({ title, text }) => ({ name: printablePath(title), text, shown: '' }));
  let left = tokens - listTokens;
  const show = (piece: (typeof named)[number], shown = '') => {
    const cost = estimateTokens(shown);
    if (shown === '' || cost > left) return false;
    piece.shown = shown;
    left -= cost;
    return true;
  };
  const large = named.filter(piece => !show(piece, enclosed(piece.name, piece.text)));
  for (const piece of large) show(piece, beginning(piece.name, piece.text, left));
  const leftOut = large.map(({ name }) => name);
  const shown = named.map(piece => piece.shown).filter(Boolean);
  const names = safeCut(leftOut.slice(0, listed).join(', '), listChars);
  const more = leftOut.length > listed ? ` and ${leftOut.length - listed} more` : '';
  if (leftOut.length > 0) shown.push(`Left out or cut because it does not fit: ${names}${more}`);
  return { text: shown.join('\n\n'), leftOut };
}

/** No line within can look like a mark of ours. */
function enclosed(name: string, text: string, extent = ''): string {
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).replace(/^===/gm, ' ===');
  return `=== BEGIN EVIDENCE: ${name}${extent} ===\n${lines}\n=== END EVIDENCE: ${name} ===`;
}

function beginning(name: string, text: string, tokens: number): string | undefined {
  const lines = text.split('\n');
  const cut = (count: number) =>
    enclosed(name, lines.slice(0, count).join('\n'), ` (the first ${count} of ${lines.length} lines)`);
  const count = mostThatFit(lines.length - 1, all => estimateTokens(cut(all)) <= tokens);
  return count >= leastLines ? cut(count) : undefined;
}

/** Of a file's text in a prompt: what the number of each line takes, about. */
const lineTokens = 4;

/** Tokens (o200k), about, of the files that do not stand in a prompt as they are now. */
function newTokens(selection: Selection, files: readonly CollectedFile[]): number {
  const inPrompt = promptFiles(selection);
  const added = files.filter(({ path, sha256 }) => inPrompt.get(path)?.sha256 !== sha256);
  return added.reduce((sum, { text, lines }) => sum + estimateTokens(text) + lineTokens * lines, 0);
}

/**
 * The turns that go into a prompt for a window. They may take `budget` tokens (o200k), and of `rest` what new files leave. A thread
 * that outgrew that is compacted, to less and less until it fits; `compaction` is to be stored with the new turn.
 */
function selectHistory(
  { maxTurns, clock }: CallServices,
  thread: Thread,
  window: number,
  { budget, rest, files }: { budget: number; rest: number; files: readonly CollectedFile[] },
): { selection: Selection; compaction?: Compaction } {
  const now = clock.now();
  const forModel = windowClass(window);
  const selection = selectTurns(thread, forModel);
  const fits = (tokens: number) => !exceedsHistoryBudget(selection, tokens, maxTurns);
  if (fits(budget) || fits(rest - newTokens(selection, files))) return { selection };
  // Too many turns are too many for every window; too many tokens are so for this class and smaller ones.
  const forClass = selectionTokens(selection) > budget ? forModel : Number.MAX_SAFE_INTEGER;
  for (let target = budget; ; target /= 2) {
    const compaction = compact({ thread, selection, windowClass: forClass, historyBudget: target, maxTurns, now });
    const after = selectTurns({ ...thread, compactions: [...thread.compactions, compaction] }, forModel);
    if (selectionTokens(after) <= budget || target < 50) return { selection: after, compaction };
  }
}

/** Most images of one message. */
export const maxImages = 5;

/** Vendors refuse larger ones. */
const maxImageBytes = 20 * 1024 * 1024;

/** Reads the images that the caller named. Throws LIMIT for more than vendors take in one message. */
export async function collectImages(
  services: CallServices,
  { request, signal }: ParsedCall,
  named: readonly string[] = [],
) {
  if (named.length > maxImages) {
    throw limitError('files', `${named.length} images were named; one call takes at most ${maxImages}.`, {
      next: `Send at most ${maxImages} images, the others in the next call on the same thread.`,
    });
  }
  const records: ImageRecord[] = [];
  /** Bytes in base64, by hash. */
  const blobs = new Map<Sha256, string>();
  const skipped: Skip[] = [];
  const place = { root: request.principal.root, home: services.home, maxBytes: maxImageBytes, signal };
  for (const source of named) {
    const image = await readImage(services.sandbox, source, place);
    if (isSkip(image)) {
      skipped.push(image);
      continue;
    }
    const text = image.bytes.toString('base64');
    const blob = hashOf(text);
    blobs.set(blob, text);
    records.push({ source: image.source, mediaType: image.mediaType, blob });
  }
  return { records, blobs, skipped };
}

export interface PromptParts {
  /** The new turn without its files. */
  draft: Turn;
  images: Awaited<ReturnType<typeof collectImages>>;
  collected: Collection;
  found: readonly FoundFile[];
  /** Tokens that the model counts for one of our estimate. */
  factor: number;
}

/** The part of what is left beside the question that a tool's own evidence may take. */
const evidenceShare = 0.6;

export type Prompt = Awaited<ReturnType<typeof buildPrompt>>;

/** One prompt by estimate: reserved parts, then history up to its share, then files in what is left. */
export async function buildPrompt(services: CallServices, call: RoutedCall, parts: PromptParts) {
  const { plan, thread, common } = call;
  const { collected, factor } = parts;
  const [{ model, maxPrompt }] = call.candidates;
  const { window, maxOutput } = model;
  const tail = [plan.tail, model.allowCodeGeneration && plan.codeTail].filter(Boolean).join('\n\n');
  const preamble = plan.preamble ?? services.preamble;
  const least = reservedTokens(preamble, parts, tail);
  const plainly = planBudget({ window, maxOutput, reserved: least, maxPrompt });
  const evidence = fitEvidence(plan.evidence ?? [], (plainly.rest * evidenceShare) / factor);
  const content = [parts.draft.content, evidence.text].filter(Boolean).join('\n\n');
  const asked = { ...parts.draft, content };
  const reserved = evidence.text === '' ? least : reservedTokens(preamble, { ...parts, draft: asked }, tail);
  const budget = planBudget({ window, maxOutput, reserved, maxPrompt });
  // What is made shorter for its price is so for that much room, and not for the whole window.
  const shown = Math.min(window, (maxPrompt ?? window) + budget.answer);
  const room = { budget: budget.history / factor, rest: budget.rest / factor, files: collected.files };
  const history: ReturnType<typeof selectHistory> =
    common.context === 'thread' ? selectHistory(services, thread, shown, room) : { selection: { turns: [] } };
  const { selection } = history;
  const historyUsed = Math.ceil(selectionTokens(selection) * factor);
  const isNew = ({ blob }: ImageRecord) =>
    plan.earlierImages === undefined || !selection.turns.some(turn => turn.images.some(image => image.blob === blob));
  const draft = { ...asked, images: asked.images.filter(isNew) };

  const inPrompt = promptFiles(selection);
  const hashes = new Set([...blobsOf(selection), ...[...inPrompt.values()].map(file => file.base)]);
  const stored: Blobs = hashes.size > 0 ? await services.store.blobs([...hashes]) : new Map();
  const embedded = await includeFiles({
    ...{ services, call, named: collected.files, found: parts.found, inPrompt },
    ...{ shownTexts: shownTexts(selection), bases: stored, budget: budget.rest - historyUsed, factor },
  });
  const blobs: Blobs = new Map<Sha256, string>([...stored, ...parts.images.blobs, ...embedded.blobs]);
  const previous = selection.turns.at(-1);
  const withFiles = { ...draft, files: embedded.records };
  const turn: Turn = { ...withFiles, tokens: turnTokens(withFiles, previous, blobs) };
  const { compaction, turns } = selection;
  const stable = renderTurns({ compaction, turns: [...turns, { ...turn, status: 'pending' }] }, blobs);
  const messages = [
    asMessage('system', 'preamble', preamble),
    ...stable,
    asMessage('user', 'tail', `${tailHeading}\n${tail}`),
  ];
  // The ends of what stays the same in the next call: the preamble, the turns so far, the new turn.
  const ends = new Set([0, messages.length - 3, messages.length - 2]);
  return {
    ...history,
    turn,
    messages: messages.map((message, index) => (ends.has(index) ? { ...message, cacheMark: true } : message)),
    embedded,
    budget,
    historyUsed,
    evidenceLeftOut: evidence.leftOut,
  };
}

/** Preamble, question and tail, with room for the headers that name the answer before. */
function reservedTokens(preamble: string, { draft, factor }: PromptParts, tail: string): number {
  const question = renderTurn(draft, undefined, new Map());
  const texts = estimateTokens(preamble) + estimateTokens(question) + estimateTokens(tail) + 60;
  return Math.ceil((texts + draft.images.length * imageTokens + 4 * tokensPerMessage) * factor);
}

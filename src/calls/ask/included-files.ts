import type { FileRecord, LineRange, TextFile } from '../../core/file.ts';
import { hashOf, type Sha256 } from '../../core/ids.ts';
import { printablePath } from '../../core/text.ts';
import { estimateTokens } from '../../core/tokens.ts';
import { type Blobs, type PromptFile, renderDocument, renderFile } from '../../threads/transcript.ts';
import type { CollectedFile } from '../../workspace/collect-files.ts';
import type { FileReport, RoutedCall } from '../call-record.ts';
import type { FoundFile } from './search-files.ts';
import type { CallServices } from './services.ts';

export interface FileInclusion {
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

/** The files of a new turn as they are put together. */
export interface IncludedFiles {
  records: FileRecord[];
  blobs: Map<Sha256, string>;
  report: FileReport;
  tokens: number;
}

/** A file as it may be shown: masked. */
export interface MaskedText {
  base: Sha256;
  text: string;
  /** Kind of secret → how many were masked. */
  found: Readonly<Record<string, number>>;
}

export function recordOf(file: TextFile, form: FileRecord['form'], base: Sha256, range?: LineRange): FileRecord {
  const { path, size, mtimeMs, lines, sha256: hash, document } = file;
  const facts = { path, form, size, mtimeMs, lines, sha256: hash, base };
  return { ...facts, ...(range && { range }), ...(document && { document }) };
}

/** What a record costs in the prompt, for the model. */
export function costOf({ factor }: Pick<FileInclusion, 'factor'>, record: FileRecord, blobs: Blobs): number {
  const texts = [renderFile(record, blobs), renderDocument(record, blobs)].filter(text => text !== undefined);
  return Math.ceil(estimateTokens(`${texts.join('\n\n')}\n\n`) * factor);
}

/** Adds a record if it costs no more than `limit`, which is all that is left unless told. */
export function take(
  request: FileInclusion,
  out: IncludedFiles,
  record: FileRecord,
  blobs: ReadonlyMap<Sha256, string>,
  limit = request.budget - out.tokens,
): boolean {
  const cost = costOf(request, record, blobs);
  if (cost > limit) return false;
  out.tokens += cost;
  out.records.push(record);
  for (const [hash, text] of blobs) out.blobs.set(hash, text);
  return true;
}

export async function masked({ services, call }: FileInclusion, file: TextFile): Promise<MaskedText> {
  const { text, found } = await services.mask(file.text, call.thread.id);
  return { base: hashOf(text), text, found };
}

export function countMasked({ report }: IncludedFiles, found: MaskedText['found']): void {
  for (const [kind, count] of Object.entries(found)) report.masked[kind] = (report.masked[kind] ?? 0) + count;
}

export function skipForRoom(out: IncludedFiles, path: string, what: string): void {
  const reason = `${what} into the model's context window with the conversation; name a range (file.ts:10-80) or use a model with a larger one.`;
  out.report.skipped.push({ path: printablePath(path), code: 'over_budget', reason });
}

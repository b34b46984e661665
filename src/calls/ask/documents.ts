import { createHash } from 'node:crypto';
import { inParallel } from '../../core/concurrency.ts';
import { type AppError, isAppError, limitError } from '../../core/errors.ts';
import type { Skip } from '../../core/file.ts';
import { type Sha256, sha256 } from '../../core/ids.ts';
import { countLines } from '../../core/text.ts';
import type { DocumentLibrary } from '../../models/vendor-services.ts';
import type { CollectedFile, Collection } from '../../workspace/collect-files.ts';
import { isSkip, parsePathReference, skip } from '../../workspace/paths.ts';
import { clampRange, locateReference, readBytes } from '../../workspace/read-file.ts';
import type { RoutedCall } from '../call-record.ts';
import type { CallServices } from './services.ts';

export interface CollectedDocuments {
  /** By path, so that the same documents make the same prompt in whatever order they were named. */
  files: CollectedFile[];
  skipped: Skip[];
  /** What was named and is no document: to be read here. */
  others: string[];
  /** What kept the vendor from reading a document. */
  failures: AppError[];
}

/** Uploads at the same time. */
const maxConcurrent = 3;

/**
 * Has a vendor read the documents that a call names, where its first candidate (or the tool's own provider) is that vendor's.
 * Anything else stays with the files.
 */
export async function collectDocuments(services: CallServices, call: RoutedCall): Promise<CollectedDocuments> {
  const { documents } = services;
  const { plan, candidates } = call;
  const served =
    documents && (candidates[0].model.provider === documents.provider || plan.provider === documents.provider);
  if (!documents || (!served && !plan.fileIds?.length))
    return { files: [], skipped: [], others: [...plan.files], failures: [] };
  const named = [...new Set(plan.files)];
  const isDocument = (input: string) => served === true && documents.reads(input.replace(/:\d+(-\d+)?$/, ''));
  const inputs = named.filter(isDocument);
  const ids = [...new Set(plan.fileIds ?? [])];
  refuseTooMany(inputs.length + ids.length, services.maxNamedFiles);
  const out: CollectedDocuments = {
    files: [],
    skipped: [],
    others: named.filter(input => !isDocument(input)),
    failures: [],
  };
  const read = await inParallel(inputs, maxConcurrent, input => readDocument(services, documents, call, input));
  const fetched = await inParallel(ids, maxConcurrent, id => fetchDocument(documents, call, id));
  for (const outcome of [...read, ...fetched]) {
    if (outcome === undefined) continue;
    if ('file' in outcome) out.files.push(outcome.file);
    else out.skipped.push(outcome.skip);
    if ('failure' in outcome && outcome.failure) out.failures.push(outcome.failure);
  }
  out.others.push(...inputs.filter((_input, index) => read[index] === undefined));
  const unique = new Map(out.files.map(file => [file.path, file]));
  out.files = [...unique.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  return out;
}

/**
 * Documents and files as one collection. When the vendor failed and nothing else can be read, its own error says more than a
 * list of what is missing. What only a vendor could read is named with the way to it.
 */
export function withDocuments(
  { documents }: CallServices,
  { files, skipped, failures }: CollectedDocuments,
  found: Collection,
): Collection {
  const [failure] = failures;
  if (failure && files.length + found.files.length === 0) throw failure;
  const advised = found.skipped.map(each =>
    documents && each.code === 'binary' && documents.reads(each.path)
      ? {
          ...each,
          reason: `${each.reason} A model of ${documents.provider} reads documents: name one, or call smart_file_query.`,
        }
      : each,
  );
  return { files: [...files, ...found.files], skipped: [...skipped, ...advised] };
}

type Outcome = { file: CollectedFile } | { skip: Skip; failure?: AppError };

/** Undefined: it is none of the vendor's, such as a directory that is named like a document. */
async function readDocument(
  { sandbox, home, store, maxFileBytes }: CallServices,
  documents: DocumentLibrary,
  { request: { principal }, signal, thread }: RoutedCall,
  input: string,
): Promise<Outcome | undefined> {
  const reference = parsePathReference(input, principal.root, home);
  if (isSkip(reference)) return { skip: reference };
  const located = await locateReference(sandbox, reference);
  if (isSkip(located)) return { skip: located };
  if (located.kind === 'directory') return undefined;
  const opened = await sandbox.open(located.path);
  if (isSkip(opened)) return { skip: opened };
  const { path, stats } = opened;
  const bytes = await readBytes(opened, input, { maxBytes: documents.maxBytes, signal });
  if (!Buffer.isBuffer(bytes)) return { skip: bytes };
  const hash = sha256(createHash('sha256').update(bytes).digest('hex'));
  try {
    const text =
      (await shownBefore({ store }, thread, hash)) ??
      (await documentText(documents, { path, bytes, hash, owner: principal.owner }, signal));
    if (text.length > maxFileBytes) throw tooLong(input, text.length, maxFileBytes);
    const lines = countLines(text);
    const range = located.range && clampRange(input, located.range, lines);
    if (range && isSkip(range)) return { skip: range };
    const facts = { path, text, lines, size: bytes.length, mtimeMs: stats.mtimeMs, sha256: hash };
    return { file: { ...facts, named: true, document: true, ...(range && { range }) } };
  } catch (error) {
    return failed(input, error);
  }
}

interface Bytes {
  path: string;
  bytes: Buffer;
  hash: Sha256;
  owner: string;
}

async function documentText(
  documents: DocumentLibrary,
  { path, bytes, hash, owner }: Bytes,
  signal: AbortSignal,
): Promise<string> {
  const name = path.split(/[\\/]/).at(-1) ?? path;
  const { text } = await documents.read({ name, bytes, sha256: hash, owner }, signal);
  return plain(text);
}

/** The text that this very document had in this thread: the same bytes again, and no vendor is asked. */
async function shownBefore(
  { store }: Pick<CallServices, 'store'>,
  thread: RoutedCall['thread'],
  hash: Sha256,
): Promise<string | undefined> {
  const records = thread.turns.filter(turn => turn.status === 'done').flatMap(turn => turn.files);
  const base = records.findLast(file => file.document && file.sha256 === hash && file.base !== undefined)?.base;
  return base && (await store.blobs([base])).get(base);
}

async function fetchDocument(
  documents: DocumentLibrary,
  { request: { principal }, signal }: RoutedCall,
  id: string,
): Promise<Outcome> {
  try {
    const { filename, text: content } = await documents.readById(id, principal.owner, signal);
    const text = plain(content);
    const hash = sha256(createHash('sha256').update(text).digest('hex'));
    const path = `${documents.provider}:${id}/${filename}`;
    const facts = { path, text, lines: countLines(text), size: Buffer.byteLength(text), mtimeMs: 0, sha256: hash };
    return { file: { ...facts, named: true, document: true } };
  } catch (error) {
    return failed(id, error);
  }
}

/** As files are read here: line ends are plain, and nothing ends a text early. */
function plain(text: string): string {
  return text.replace(/\r\n?/g, '\n').replaceAll('\0', '').toWellFormed();
}

/** A document that the vendor can't take is skipped with its reason; a cancelled call and our own mistakes are not. */
function failed(input: string, error: unknown): Outcome {
  if (!isAppError(error) || error.kind === 'cancelled') throw error;
  const code = error.kind === 'limit' ? 'too_large' : 'unreadable';
  const reason = [error.message, error.details.next].filter(Boolean).join(' ');
  return { skip: skip(input, code, reason), failure: error };
}

function tooLong(input: string, length: number, limit: number): AppError {
  return limitError('size', `${input} holds ${length} characters of text; at most ${limit} are taken.`, {
    next: 'Split the document, or send the part that matters.',
  });
}

function refuseTooMany(named: number, limit: number): void {
  if (named <= limit) return;
  throw limitError('files', `${named} documents were named; at most ${limit} are taken in one call.`, {
    next: `Name at most ${limit}, the others in the next call on the same thread.`,
    data: { named, limit },
  });
}

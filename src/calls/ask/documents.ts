import { basename } from 'node:path';
import { inParallel } from '../../core/concurrency.ts';
import { type AppError, isAppError, limitError } from '../../core/errors.ts';
import { type FileRecord, isPicture, type Skip } from '../../core/file.ts';
import { hashOf, type Sha256 } from '../../core/ids.ts';
import { countLines } from '../../core/text.ts';
import { documentsAmong } from '../../models/routing/requirements.ts';
import type { DocumentLibrary } from '../../models/vendor-services.ts';
import type { CollectedFile, Collection } from '../../workspace/collect-files.ts';
import { isSkip, skip } from '../../workspace/paths.ts';
import { clampRange, documentFormat, locateNamed, readBytes } from '../../workspace/read-file.ts';
import type { RoutedCall } from '../call-record.ts';
import type { CallServices } from './services.ts';

const maxConcurrent = 3;

/** Bytes of a document that is read here. */
const maxBytes = 100 * 1024 * 1024;

/**
 * Reads the documents that a call names: by a vendor, where its first candidate (or the tool's own provider) is that vendor's;
 * else, and where the vendor fails, PDF and Office files are read here. Anything else stays with the files.
 */
export async function collectDocuments(services: CallServices, call: RoutedCall) {
  const { documents } = services;
  const { plan, candidates } = call;
  const served = candidates[0].model.provider === documents?.provider || plan.provider === documents?.provider;
  const library = served ? documents : undefined;
  const isDocument = (input: string) => {
    const name = input.replace(/:\d+(-\d+)?$/, '');
    return documentFormat(name) !== undefined || library?.reads(name) === true;
  };
  const named = [...new Set(plan.files)];
  const inputs = named.filter(isDocument);
  const ids = documents ? [...new Set(plan.fileIds ?? [])] : [];
  const [count, limit] = [inputs.length + ids.length, services.maxNamedFiles];
  if (count > limit)
    throw limitError('files', `${count} documents were named; at most ${limit} are taken in one call.`, {
      next: `Name at most ${limit}, the others in the next call on the same thread.`,
      data: { named: count, limit },
    });
  const read = await inParallel(inputs, maxConcurrent, input => readDocument(services, library, call, input));
  const fetched = documents
    ? await inParallel(ids, maxConcurrent, id => fetchDocument(services, documents, call, id))
    : [];
  const outcomes = [...read, ...fetched].filter(outcome => outcome !== undefined);
  const files = new Map(outcomes.flatMap(({ file }) => (file ? [[file.path, file]] : [])));
  return {
    /** By path, so that the same documents make the same prompt in whatever order they were named. */
    files: [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1)),
    skipped: outcomes.flatMap(each => each.skip ?? []),
    /** What was named and is no document: to be read here. */
    others: [...named.filter(input => !isDocument(input)), ...inputs.filter((_input, at) => read[at] === undefined)],
    /** What kept the vendor from reading a document. */
    failure: outcomes.find(({ failure }) => failure)?.failure,
    warnings: outcomes.flatMap(({ warning }) => warning || []),
  };
}

/**
 * Documents and files as one collection. When the vendor failed and nothing else can be read, its own error says more than a
 * list of what is missing. What could be read in another way is named with it.
 */
export function withDocuments(
  services: CallServices,
  { files, skipped, failure }: Awaited<ReturnType<typeof collectDocuments>>,
  found: Collection,
): Collection {
  if (failure && files.length + found.files.length === 0) throw failure;
  const advised = [...skipped, ...found.skipped].map(each =>
    each.code === 'binary' ? { ...each, reason: `${each.reason}${wayToRead(services, each.path)}` } : each,
  );
  return { files: [...files, ...found.files], skipped: advised };
}

function wayToRead({ documents }: CallServices, path: string): string {
  if (isPicture(path)) return ' Send a picture in `images` of a tool that takes them, such as chat.';
  if (documents?.reads(path))
    return ` A model of ${documents.provider} reads documents: name one, or call smart_file_query.`;
  if (documentFormat(path))
    return ' Name a document itself to have its text read; send pages that are pictures as images.';
  return documentsAmong([path], '').length > 0 ? ' Save it as PDF, DOCX, PPTX or XLSX, whose text can be read.' : '';
}

type Outcome = { file?: CollectedFile; warning?: string; skip?: Skip; failure?: AppError };

/** Undefined: it is no document, such as a directory that is named like one. */
async function readDocument(
  services: CallServices,
  library: DocumentLibrary | undefined,
  { request: { principal }, signal, thread }: RoutedCall,
  input: string,
): Promise<Outcome | undefined> {
  const { sandbox, home, maxFileBytes } = services;
  const located = await locateNamed(sandbox, input, { root: principal.root, home });
  if (isSkip(located)) return { skip: located };
  if (located.kind === 'directory') return undefined;
  const opened = await sandbox.open(located.path);
  if (isSkip(opened)) return { skip: opened };
  const { path, stats } = opened;
  const reader = library?.reads(path) ? library : undefined;
  const bytes = await readBytes(opened, input, { maxBytes: reader?.maxBytes ?? maxBytes, signal });
  if (!Buffer.isBuffer(bytes)) return { skip: bytes };
  const hash = hashOf(bytes);
  try {
    const shown = await shownBefore(services, thread, file => file.sha256 === hash);
    const read = shown ?? (await textOf(services, reader, { path, bytes, hash, owner: principal.owner }, signal));
    if ('problem' in read) return { skip: skip(input, 'binary', read.problem) };
    const { text, warning } = read;
    if (text.length > maxFileBytes) throw tooLong(input, text.length, maxFileBytes);
    const lines = countLines(text);
    const range = located.range && clampRange(input, located.range, lines);
    if (range && isSkip(range)) return { skip: range };
    const facts = { path, text, lines, size: bytes.length, mtimeMs: stats.mtimeMs, sha256: hash };
    return { file: { ...facts, named: true, document: true, ...(range && { range }) }, warning };
  } catch (error) {
    return failed(input, error);
  }
}

/** Read by the vendor where there is one, else here. */
async function textOf(
  { pool, maxFileBytes }: CallServices,
  library: DocumentLibrary | undefined,
  { path, bytes, hash, owner }: { path: string; bytes: Buffer; hash: Sha256; owner: string },
  signal: AbortSignal,
): Promise<{ text: string; warning?: string } | { problem: string }> {
  const name = basename(path);
  const format = documentFormat(path);
  const here = async () => {
    if (!format) return { problem: 'It is no text.' };
    const read = await pool.document({ format, bytes, maxChars: maxFileBytes }, signal);
    if ('tooLong' in read) throw tooLong(name, read.tooLong, maxFileBytes);
    return 'text' in read ? { text: plain(read.text) } : read;
  };
  if (!library) return here();
  try {
    const { text } = await library.read({ name, bytes, sha256: hash, owner }, signal);
    return { text: plain(text) };
  } catch (error) {
    const read = format && isAppError(error) && error.kind !== 'cancelled' ? await here() : { problem: '' };
    if (!('text' in read)) throw error;
    const why = isAppError(error) ? error.message : '';
    return { ...read, warning: `${library.provider} could not read ${name}, so its text was read here. ${why}` };
  }
}

/** The text that this very document had in this thread: the same one again, and no vendor is asked. */
async function shownBefore(
  { store }: Pick<CallServices, 'store'>,
  thread: RoutedCall['thread'],
  isSame: (file: FileRecord) => boolean,
): Promise<{ text: string; path: string; warning?: string } | undefined> {
  const records = thread.turns.filter(turn => turn.status === 'done').flatMap(turn => turn.files);
  const record = records.findLast(file => file.document && file.base !== undefined && isSame(file));
  const text = record?.base && (await store.blobs([record.base])).get(record.base);
  return record && text !== undefined ? { text, path: record.path } : undefined;
}

/** What the vendor gives no more is taken from the thread, where it was shown there. */
async function fetchDocument(
  services: CallServices,
  documents: DocumentLibrary,
  { request: { principal }, signal, thread }: RoutedCall,
  id: string,
): Promise<Outcome> {
  const folder = `${documents.provider}:${id}/`;
  try {
    const { filename, text } = await documents.readById(id, principal.owner, signal);
    return { file: uploaded(`${folder}${filename}`, plain(text)) };
  } catch (error) {
    const shown = await shownBefore(services, thread, ({ path }) => path.startsWith(folder));
    return shown ? { file: uploaded(shown.path, shown.text) } : failed(id, error);
  }
}

function uploaded(path: string, text: string): CollectedFile {
  const size = Buffer.byteLength(text);
  const facts = { path, text, lines: countLines(text), size, mtimeMs: 0, sha256: hashOf(text) };
  return { ...facts, named: true, document: true };
}

/** As files are read here: line ends are plain, and nothing ends a text early. */
const plain = (text: string): string => text.replace(/\r\n?/g, '\n').replaceAll('\0', '').toWellFormed();

/** A document that the vendor can't take is skipped with its reason; a cancelled call and our own mistakes are not. */
function failed(input: string, error: unknown): Outcome {
  if (!isAppError(error) || error.kind === 'cancelled') throw error;
  const code = error.kind === 'limit' ? 'too_large' : 'unreadable';
  const reason = [error.message, error.details.next].filter(Boolean).join(' ');
  return { skip: skip(input, code, reason), failure: error };
}

const tooLong = (input: string, length: number, limit: number): AppError =>
  limitError('size', `${input} holds at least ${length} characters of text; at most ${limit} are taken.`, {
    next: 'Split the document, or send the part that matters.',
  });

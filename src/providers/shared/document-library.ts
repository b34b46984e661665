import { createHash } from 'node:crypto';
import { AppError } from '../../core/errors.ts';
import type { Clock, SharedState } from '../../core/ports.ts';
import { createUploadMemory, type RememberedUpload } from '../../models/extras/documents/upload-memory.ts';
import type { ReadingVendorFiles, VendorFile } from '../../models/extras/documents/vendor-files.ts';
import { badUpstream } from '../../models/resilience/errors.ts';

/** A document as it is handed over. */
export interface Document {
  /** Its file name, for the vendor and for errors. */
  name: string;
  bytes: Uint8Array;
  /** Of the bytes. */
  sha256: string;
  /** Whose it is. */
  owner: string;
}

export interface UploadedDocument extends VendorFile {
  /** False where the vendor had it already. */
  fresh: boolean;
  /** What stands in it. */
  text: string;
}

/** A file of the account, and whether it came from here. */
export interface KeptDocument extends VendorFile {
  ours: boolean;
}

/** Documents that a vendor reads for its models. All of it throws an `AppError`. */
export interface DocumentLibrary {
  /** Id of the provider whose models get documents this way. */
  provider: string;
  /** Bytes of one document at the most. */
  maxBytes: number;
  /** Whether a file is of a kind that is no plain text and that the vendor reads; told by its name. */
  reads(path: string): boolean;
  /** The text of a document, which is uploaded unless the vendor still has it. */
  read(document: Document, signal: AbortSignal): Promise<UploadedDocument>;
  /** The text of what was uploaded before. */
  readById(id: string, owner: string, signal: AbortSignal): Promise<{ filename: string; text: string }>;
  /** What the owner may see: its own; the one owner of a server without accounts sees all files of the account. */
  list(owner: string, signal: AbortSignal): Promise<KeptDocument[]>;
  /** False when the vendor had it no more. */
  remove(id: string, owner: string, signal: AbortSignal): Promise<boolean>;
}

export interface LibraryParts {
  provider: string;
  files: ReadingVendorFiles;
  /** Names the account without telling its key. */
  account: string;
  state: SharedState;
  clock: Pick<Clock, 'now'>;
}

/** Of a server without accounts. */
const soleOwner = 'local';
const extensions =
  /\.(pdf|docx?|dot|xlsx?|pptx?|epub|mobi|png|jpe?g|jfif|pjpeg|pjp|webp|bmp|dib|gif|tiff?|ico|avif|apng|xbm|svgz)$/i;

/** A short name for a key, which can't be told back from it. */
export function accountOf(key: string): string {
  return createHash('sha256').update(`account\0${key}`).digest('hex').slice(0, 16);
}

export function createDocumentLibrary({ provider, files, account, state, clock }: LibraryParts): DocumentLibrary {
  const memory = createUploadMemory(`uploads/${provider}/${account}/`, state, clock);
  const inTurn = createTurns();

  async function readOnce({ name, bytes, sha256, owner }: Document, signal: AbortSignal): Promise<UploadedDocument> {
    const before = await memory.find(sha256, owner);
    if (before) {
      const text = await files.content(before.id, signal);
      if (text !== undefined) return { ...before, fresh: false, text };
      // Somebody deleted it at the vendor.
      await memory.forget(sha256);
    }
    const told = await files.upload({ name, bytes }, signal);
    const file = { ...told, filename: name, bytes: bytes.byteLength };
    await memory.keep(sha256, file, owner);
    const text = await files.content(file.id, signal);
    if (text === undefined) throw badUpstream(`${provider} does not know ${name}, which it was just given.`);
    return { ...file, fresh: true, text };
  }

  /** Nobody reaches a file by an id that somebody else was given. */
  async function visible(id: string, owner: string): Promise<RememberedUpload | undefined> {
    const found = (await memory.all()).get(id);
    if (owner !== soleOwner && !found?.owners.includes(owner)) throw noSuchFile(provider, id);
    return found;
  }

  return {
    provider,
    maxBytes: files.maxBytes,
    reads: path => extensions.test(path),
    read: (document, signal) => inTurn(document.sha256, () => readOnce(document, signal)),
    async readById(id, owner, signal) {
      const found = await visible(id, owner);
      const text = await files.content(id, signal);
      if (text !== undefined) return { filename: found?.file.filename ?? id, text };
      if (found) await memory.forget(found.sha256);
      throw noSuchFile(provider, id);
    },
    async list(owner, signal) {
      const [kept, ours] = await Promise.all([files.list(signal), memory.all()]);
      const shown = kept.filter(({ id }) => owner === soleOwner || ours.get(id)?.owners.includes(owner));
      return shown.map(file => ({ ...file, ours: ours.has(file.id) })).sort(newestFirst);
    },
    async remove(id, owner, signal) {
      const found = await visible(id, owner);
      const removed = await files.remove(id, signal);
      if (found) await memory.forget(found.sha256);
      return removed;
    },
  };
}

function newestFirst(a: KeptDocument, b: KeptDocument): number {
  return b.createdAt - a.createdAt || (a.id < b.id ? -1 : 1);
}

/** Runs work on one key one after the other: two calls with the same document must not both upload it. */
function createTurns(): <Result>(key: string, work: () => Promise<Result>) => Promise<Result> {
  const last = new Map<string, Promise<unknown>>();
  return (key, work) => {
    const mine = (last.get(key) ?? Promise.resolve()).then(work, work);
    last.set(key, mine);
    const forget = () => {
      if (last.get(key) === mine) last.delete(key);
    };
    mine.then(forget, forget);
    return mine;
  };
}

function noSuchFile(provider: string, id: string): AppError {
  return new AppError('input', `${provider} has no file ${JSON.stringify(id.slice(0, 100))}.`, {
    code: 'INVALID_INPUT_FORMAT',
    class: 'files',
    provider,
    next: 'kimi_manage_files with operation "list" shows the files; upload the document again.',
    validationErrors: [{ field: 'file_ids', error: 'unknown file' }],
  });
}

import { hash } from 'node:crypto';
import { createQueue } from '../../core/concurrency.ts';
import { AppError } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import type { Clock, SharedState } from '../../core/ports.ts';
import { badUpstream } from '../../models/resilience/errors.ts';
import type {
  Document,
  DocumentLibrary,
  UploadedDocument,
  VendorFile,
  VendorFiles,
} from '../../models/vendor-services.ts';

/** Ids are forgotten after this time without use; the document is then uploaded again. */
const rememberedMs = 30 * 24 * 3_600_000;

/**
 * Which documents an account has at its vendor: what makes a second upload needless. Shared by all processes on one store.
 * `prefix` names vendor and account and ends with a slash.
 */
const createUploadMemory = (prefix: string, state: SharedState, clock: Pick<Clock, 'now'>) => ({
  /** Also notes who asks. */
  async find(sha256: string, owner: string) {
    const value = await state.change(
      prefix + sha256,
      rememberedMs,
      before => before && { ...before, owners: [...new Set([...ownersOf(before), owner])] },
    );
    return value && fileOf(value);
  },
  async keep(sha256: string, { id, filename, bytes }: VendorFile, owner: string) {
    const value = { file_id: id, filename, bytes, at: clock.now(), owners: [owner] };
    await state.change(prefix + sha256, rememberedMs, () => value);
  },
  async forget(sha256: string) {
    await state.change(prefix + sha256, rememberedMs, () => undefined);
  },
  /** By file id. `owners`: everybody who handed the document over. */
  async all() {
    const entries = Array.from(await state.list(prefix), ([key, value]) => {
      const file = fileOf(value);
      return [file.id, { sha256: key.slice(prefix.length), file, owners: ownersOf(value) }] as const;
    });
    return new Map(entries);
  },
});

function fileOf({ file_id: id, filename, bytes, at }: JsonObject): VendorFile {
  const createdAt = Math.floor(Number(at) / 1_000);
  return { id: String(id), filename: String(filename), bytes: Number(bytes), createdAt, status: 'ok' };
}

const ownersOf = ({ owners }: JsonObject): string[] => (Array.isArray(owners) ? owners.map(String) : []);

export interface LibraryParts {
  provider: string;
  files: VendorFiles;
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
export const accountOf = (key: string): string => hash('sha256', `account\0${key}`).slice(0, 16);

export function createDocumentLibrary({ provider, files, account, state, clock }: LibraryParts): DocumentLibrary {
  const memory = createUploadMemory(`uploads/${provider}/${account}/`, state, clock);
  const queue = createQueue();

  async function readOnce({ name, bytes, sha256, owner }: Document, signal: AbortSignal): Promise<UploadedDocument> {
    const before = await memory.find(sha256, owner);
    if (before) {
      const text = await files.content(before.id, signal);
      if (text !== undefined) return { ...before, fresh: false, text };
      // Somebody deleted it at the vendor.
      await memory.forget(sha256);
    }
    const uploaded = await files.upload({ name, bytes }, signal);
    const file = { ...uploaded, filename: name, bytes: bytes.byteLength };
    await memory.keep(sha256, file, owner);
    const text = await files.content(file.id, signal);
    if (text === undefined) throw badUpstream(`${provider} does not know ${name}, which it was just given.`);
    return { ...file, fresh: true, text };
  }

  /** Nobody reaches a file by an id that somebody else was given. */
  async function visible(id: string, owner: string) {
    const found = (await memory.all()).get(id);
    if (owner !== soleOwner && !found?.owners.includes(owner)) throw noSuchFile(provider, id);
    return found;
  }

  return {
    provider,
    maxBytes: files.maxBytes,
    reads: path => extensions.test(path),
    // Two calls with the same document must not both upload it.
    read: (document, signal) => queue.run(document.sha256, () => readOnce(document, signal), signal),
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

const newestFirst = (a: VendorFile, b: VendorFile): number => b.createdAt - a.createdAt || (a.id < b.id ? -1 : 1);

const noSuchFile = (provider: string, id: string): AppError =>
  new AppError('input', `${provider} has no file ${JSON.stringify(id.slice(0, 100))}.`, {
    code: 'INVALID_INPUT_FORMAT',
    class: 'files',
    provider,
    next: 'kimi_manage_files with operation "list" shows the files; upload the document again.',
    validationErrors: [{ field: 'file_ids', error: 'unknown file' }],
  });

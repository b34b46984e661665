import { type AppError, inputError, isAppError, limitError } from '../../core/errors.ts';
import { numberIn, parsedJson, recordIn, recordsIn, textIn } from '../../core/json.ts';
import { safeCut } from '../../core/text.ts';
import type { VendorEndpoint } from '../../models/provider.ts';
import { badUpstream } from '../../models/resilience/errors.ts';
import type { VendorFile, VendorFiles } from '../../models/vendor-services.ts';
import { vendorJson, vendorRequest } from '../shared/http.ts';
import { allPages } from '../shared/list-models.ts';

const what = 'its files';
const limitMs = { upload: 180_000, ask: 60_000, extract: 120_000 };
const maxNameLength = 200;

/** The most files of one account. */
const maxFiles = 1_000;
/** What the vendor is told that files are for. */
const purpose = 'file-extract';

/** Files of Moonshot, which reads documents of many kinds and pictures of text: `POST`, `GET` and `DELETE /files`. */
export const createMoonshotFiles = (endpoint: VendorEndpoint, maxBytes: number): VendorFiles => ({
  maxBytes,
  async upload({ name, bytes }, signal) {
    if (bytes.byteLength === 0) throw inputError(`${name} is empty; ${endpoint.provider} takes no empty files.`);
    const oversize = () => tooLarge(name, bytes.byteLength, maxBytes);
    if (bytes.byteLength > maxBytes) throw oversize();
    const body = new FormData();
    body.set('purpose', purpose);
    body.set('file', new Blob([Uint8Array.from(bytes)]), plainName(name));
    try {
      const answer = await vendorJson(endpoint, { path: '/files', body, what, timeoutMs: limitMs.upload, signal });
      return uploaded(endpoint.provider, name, answer);
    } catch (error) {
      throw isAppError(error) ? limitOf(error, endpoint.provider, oversize) : error;
    }
  },
  list: signal =>
    allPages(async after => {
      const path = `/files?purpose=${purpose}${after === undefined ? '' : `&after=${encodeURIComponent(after)}`}`;
      const { data, has_more: more } = await vendorJson(endpoint, { path, what, timeoutMs: limitMs.ask, signal });
      const entries = recordsIn(data).flatMap(fileOf);
      return { entries, next: more === true && entries.at(-1)?.id };
    }),
  async remove(id, signal) {
    if (!isFileId(id)) return false;
    const file = { path: `/files/${id}`, what, timeoutMs: limitMs.ask, signal, expects: [404] };
    const { status } = await vendorRequest(endpoint, { method: 'DELETE', ...file });
    return status !== 404;
  },
  async content(id, signal) {
    if (!isFileId(id)) return undefined;
    const path = `/files/${id}/content`;
    const text = { path, what: 'the text of a file', timeoutMs: limitMs.extract, signal, expects: [404] };
    const answer = await vendorRequest(endpoint, text);
    if (answer.status === 404) return undefined;
    // The vendor wraps the text into an object with the file's kind and name.
    const { content } = recordIn(parsedJson(answer.text));
    return typeof content === 'string' ? content : answer.text;
  },
});

/** Whether a text can be an id of a vendor's file; anything else could lead to another address. */
const isFileId = (id: string): boolean => /^[A-Za-z0-9_-]{1,200}$/.test(id);

function fileOf({ id, filename, bytes, created_at: createdAt, status }: Record<string, unknown>): VendorFile[] {
  if (typeof id !== 'string' || !isFileId(id)) return [];
  const state = typeof status === 'string' ? safeCut(status, 40) : 'ok';
  const told = { filename: safeCut(textIn(filename), maxNameLength), bytes: numberIn(bytes) };
  return [{ id, ...told, createdAt: numberIn(createdAt), status: state }];
}

function uploaded(provider: string, name: string, answer: Record<string, unknown>): VendorFile {
  const [file] = fileOf(answer);
  if (!file) throw badUpstream(`${provider} told no id for ${name}.`);
  if (file.status !== 'error') return file;
  const details = typeof answer.status_details === 'string' ? ` (${safeCut(answer.status_details, 200)})` : '';
  throw inputError(`${provider} cannot read ${name}${details}.`, {
    class: 'files',
    provider,
    next: 'Check that the file opens and is not protected by a password, or send its text.',
  });
}

/** The name alone: where a file stands is nobody's business. */
function plainName(path: string): string {
  const name = path.split(/[\\/]/).at(-1) ?? '';
  const plain = name.replace(/[\p{Cc}\p{Cf}"]/gu, '_');
  return plain.length <= maxNameLength ? plain || 'file' : `${safeCut(plain, maxNameLength - 20)}${plain.slice(-20)}`;
}

const tooLarge = (name: string, bytes: number, maxBytes: number): AppError =>
  limitError('size', `${name} has ${bytes} bytes; a document has at most ${maxBytes}.`, {
    next: 'Split the document, or send the part that matters.',
    data: { bytes, limit: maxBytes },
  });

/** Vendors tell their limits in sentences of a 400. */
function limitOf(error: AppError, provider: string, oversize: () => AppError): AppError {
  const { status } = error.details;
  if (status === 413 || status === 435 || /file size is too large/i.test(error.message)) return oversize();
  if (!/number of files|max file count|storage (quota|limit)|total size/i.test(error.message)) return error;
  return limitError('files', `${provider} keeps no more files for this account (at most ${maxFiles}).`, {
    provider,
    next: 'Delete files that are no longer needed with kimi_manage_files, then resend the call.',
    data: { limit: maxFiles },
  });
}

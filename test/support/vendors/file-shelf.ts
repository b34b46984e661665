import { Buffer } from 'node:buffer';
import type { BesideAnswer, BesideRequest } from './vendor-kind.ts';

export interface ShelvedFile {
  id: string;
  filename: string;
  purpose: string;
  bytes: Buffer;
  /** Epoch seconds. */
  createdAt: number;
}

/** A vendor's files, as its `/files` has them. */
export interface FileShelf {
  /** By id. A test deletes here what somebody deletes at the vendor. */
  kept: Map<string, ShelvedFile>;
  /** Names of all that were uploaded, in order. */
  uploads: string[];
  /** `METHOD /path` of all requests about files. */
  asked: string[];
  beside(request: BesideRequest): BesideAnswer | undefined;
}

export interface ShelfRules {
  purpose: string;
  extensions: RegExp;
  maxBytes: number;
  maxFiles: number;
  refusal(status: number, message: string): BesideAnswer;
  /** The answer of `GET /files/{id}/content`; absent: there is no such address. */
  content?(file: ShelvedFile): BesideAnswer;
}

export function createFileShelf(rules: ShelfRules): FileShelf {
  const kept = new Map<string, ShelvedFile>();
  const shelf: FileShelf = {
    kept,
    uploads: [],
    asked: [],
    beside({ method, path, headers, bytes }) {
      const [, id, content] = /^\/files(?:\/([^/?]+)(\/content)?)?(?:\?.*)?$/.exec(path) ?? [];
      if (!path.startsWith('/files')) return undefined;
      shelf.asked.push(`${method} ${path}`);
      if (id === undefined && method === 'POST') return take(shelf, rules, headers, bytes);
      if (id === undefined && method === 'GET')
        return { status: 200, body: { object: 'list', data: [...kept.values()].map(told) } };
      const file = kept.get(id ?? '');
      if (!file) return rules.refusal(404, `File ${id} not found`);
      if (method === 'DELETE' && !content) {
        kept.delete(file.id);
        return { status: 200, body: { id: file.id, object: 'file', deleted: true } };
      }
      if (method !== 'GET') return undefined;
      return content ? rules.content?.(file) : { status: 200, body: told(file) };
    },
  };
  return shelf;
}

function told({ id, filename, purpose, bytes, createdAt }: ShelvedFile) {
  const facts = { id, object: 'file', bytes: bytes.length, created_at: createdAt, filename, purpose };
  return { ...facts, status: 'ok', status_details: '' };
}

function take(shelf: FileShelf, rules: ShelfRules, headers: Record<string, string>, bytes: Buffer): BesideAnswer {
  const boundary = /^multipart\/form-data; boundary=(.+)$/.exec(headers['content-type'] ?? '')?.[1];
  if (boundary === undefined) return rules.refusal(400, 'Invalid request: expected multipart/form-data');
  const parts = partsOf(bytes, boundary);
  const purpose = parts.find(part => part.name === 'purpose')?.body.toString('utf8');
  const file = parts.find(part => part.name === 'file');
  if (purpose !== rules.purpose) return rules.refusal(400, `Invalid purpose: only '${rules.purpose}' accepted`);
  if (file?.filename === undefined) return rules.refusal(400, 'Invalid request: file is required');
  if (file.body.length === 0) return rules.refusal(400, 'File size is zero, please confirm and re-upload the file');
  if (file.body.length > rules.maxBytes)
    return rules.refusal(400, 'File size is too large, max file size is 100MB, please confirm and re-upload the file');
  if (!rules.extensions.test(file.filename))
    return rules.refusal(400, `Invalid request: unsupported file type ${file.filename}`);
  if (shelf.kept.size >= rules.maxFiles)
    return rules.refusal(
      400,
      `The number of files you have uploaded exceeded the max file count ${rules.maxFiles}, please delete previous uploaded files`,
    );
  shelf.uploads.push(file.filename);
  const id = `file-${String(shelf.uploads.length).padStart(4, '0')}`;
  const made = {
    id,
    filename: file.filename,
    purpose,
    bytes: file.body,
    createdAt: Math.floor(Date.now() / 1_000) - 1_000 + shelf.uploads.length,
  };
  shelf.kept.set(id, made);
  return { status: 200, body: told(made) };
}

interface FormPart {
  name?: string;
  filename?: string;
  body: Buffer;
}

function partsOf(bytes: Buffer, boundary: string): FormPart[] {
  const text = bytes.toString('latin1');
  return text
    .split(`--${boundary}`)
    .slice(1, -1)
    .map(part => {
      const at = part.indexOf('\r\n\r\n');
      const head = part.slice(0, at);
      const body = Buffer.from(part.slice(at + 4, -2), 'latin1');
      const name = /[; ]name="([^"]*)"/.exec(head)?.[1];
      const filename = /filename="([^"]*)"/.exec(head)?.[1];
      return { body, ...(name !== undefined && { name }), ...(filename !== undefined && { filename }) };
    });
}

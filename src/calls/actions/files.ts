import { basename, dirname } from 'node:path';
import { inParallel } from '../../core/concurrency.ts';
import { type AppError, configError, inputError, isAppError, limitError } from '../../core/errors.ts';
import type { Skip, SkipCode } from '../../core/file.ts';
import { hashOf } from '../../core/ids.ts';
import type { Emit, Mask, Random } from '../../core/ports.ts';
import { decodeText } from '../../core/text.ts';
import { estimateTokens } from '../../core/tokens.ts';
import type { Principal } from '../../core/tool-host.ts';
import type { DocumentLibrary } from '../../models/vendor-services.ts';
import type { Transfer } from '../../threads/transfer/transfer.ts';
import { isSkip, parsePathReference } from '../../workspace/paths.ts';
import { readBytes, readPieces } from '../../workspace/read-file.ts';
import type { Sandbox } from '../../workspace/sandbox.ts';
import { checkTarget, makeFolders, writeInside } from '../../workspace/write-file.ts';
import type { TransferActions, UploadActions, UploadOutcome } from '../action-context.ts';
import { fileError } from '../call-limits.ts';
import type { CallWorld } from '../call-record.ts';

export interface ReportedCall {
  reqId: string;
  tool: string;
}

/** Tells the observers which files an action read and wrote, and which it was refused. */
type FileReporter = ReturnType<typeof createFileReporter>;

export const createFileReporter = (emit: Emit, call: ReportedCall) => ({
  /** `code`: why it was not read. */
  read(path: string, code?: SkipCode): void {
    const skipped = code === undefined ? [] : [{ path, code }];
    emit({ type: 'files.read', ...call, embedded: code === undefined ? [path] : [], skipped });
  },
  /** Does it, and tells what came of it; resolves with where the file is. */
  async writing(path: string, write: () => Promise<{ path: string }>): Promise<string> {
    try {
      const written = await write();
      emit({ type: 'files.written', ...call, path: written.path });
      return written.path;
    } catch (error) {
      const code = isAppError(error) ? error.details.code : 'INTERNAL_SERVER_ERROR';
      emit({ type: 'files.written', ...call, path, code });
      throw error;
    }
  },
});

/** What actions do with files is made of this. */
export interface FileParts extends Pick<CallWorld, 'sandbox' | 'home' | 'replyTokens'> {
  transfer: Transfer;
  documents?: DocumentLibrary;
  mask: Mask;
  random: Random;
  maxNamedFiles: number;
}

const maxConcurrent = 3;

/** Keys the masks of texts that go to the vendor: the same for all, so that equal files stay equal. */
const maskScope = 'uploads';

export function uploadActions(
  { documents, sandbox, mask, home, maxNamedFiles: limit }: FileParts,
  files: FileReporter,
  { root, owner }: Principal,
  signal: AbortSignal,
): UploadActions {
  function library(): DocumentLibrary {
    if (documents) return documents;
    throw configError('No provider that reads documents is configured.', {
      next: 'Set MOONSHOT_API_KEY, so that Kimi can read them.',
    });
  }

  function refused({ path, code, reason }: Skip): AppError {
    files.read(path, code);
    const details = { class: 'files', validationErrors: [{ field: 'files', error: `${code}: ${path}` }] };
    return code === 'too_large'
      ? limitError('size', `${path}: ${reason}`, details)
      : fileError([code], `${path}: ${reason}`, details);
  }

  async function upload(documents: DocumentLibrary, input: string): Promise<UploadOutcome> {
    const reference = parsePathReference(input, root, home);
    if (isSkip(reference)) throw refused(reference);
    const opened = await sandbox.open(reference.literal ?? reference.path);
    if (isSkip(opened)) throw refused(opened);
    const { path } = opened;
    const read = await readBytes(opened, input, { maxBytes: documents.maxBytes, signal });
    if (!Buffer.isBuffer(read)) throw refused(read);
    files.read(path);
    // What is text goes out masked; what stands in other documents can only be masked once the vendor has read it.
    const plain = decodeText(read);
    const bytes = plain === undefined ? read : Buffer.from((await mask(plain, maskScope)).text);
    const name = path.split(/[\\/]/).at(-1) ?? path;
    const sha256 = hashOf(bytes);
    const { id, status, fresh, text, bytes: size } = await documents.read({ name, bytes, sha256, owner }, signal);
    return { filename: name, fileId: id, status, bytes: size, fresh, text: (await mask(text, maskScope)).text };
  }

  return {
    async add(paths) {
      const documents = library();
      const unique = [...new Set(paths)];
      const named = unique.length;
      if (named > limit)
        throw limitError('files', `${named} files were named; at most ${limit} are uploaded in one call.`, {
          next: `Name at most ${limit}, the others in another call.`,
          data: { named, limit },
        });
      const failures: unknown[] = [];
      const outcomes = await inParallel(unique, maxConcurrent, async (path): Promise<UploadOutcome> => {
        try {
          return await upload(documents, path);
        } catch (error) {
          if (!isAppError(error) || error.kind === 'cancelled') throw error;
          failures.push(error);
          const { code, next } = error.details;
          return { filename: path, error: { code, message: error.message, next } };
        }
      });
      if (outcomes.every(outcome => 'error' in outcome) && failures.length > 0) throw failures[0];
      return outcomes;
    },
    list: async () => library().list(owner, signal),
    remove: async id => library().remove(id, owner, signal),
  };
}

/** Of a reply's room: what a file's text takes, with the signs that JSON adds to it. */
const textShare = 0.8;

export function createTransferActions(
  { transfer, sandbox, random, home, replyTokens }: FileParts,
  files: FileReporter,
  { owner, root }: Principal,
  signal: AbortSignal,
): TransferActions {
  const place = { owner, workspace: root };
  return {
    async export({ continuationId, format, outputPath }) {
      const { thread, pieces } = await transfer.export(continuationId, place, format);
      const facts = { continuation_id: thread.id, format, turns: thread.turns.length };
      if (outputPath === undefined) return { ...facts, content: await textOf(pieces, replyTokens * textShare) };
      const path = pathOf('output_path', outputPath, root, home);
      const file = await files.writing(path, async () => {
        checkTarget(sandbox, path);
        const directory = await makeFolders(sandbox, dirname(path));
        // Never over what is there: the file gets a number then.
        const unique = random.uuid();
        return writeInside(sandbox, { directory, name: basename(path), text: pieces, unique, keep: true });
      });
      return { ...facts, file };
    },
    async import({ filePath, asNew }) {
      const path = pathOf('file_path', filePath, root, home);
      // It is gone through more than once.
      let isFirst = true;
      const reportRead = (code?: SkipCode): void => {
        if (isFirst) files.read(path, code);
        isFirst = false;
      };
      const { thread, blobs, missing, masked } = await transfer.import({
        open: () => bytesOf(sandbox, path, reportRead),
        place,
        asNew,
        signal,
      });
      return {
        continuation_id: thread.id,
        title: thread.title,
        turns: thread.seq,
        texts: blobs,
        missing_texts: missing > 0 ? missing : undefined,
        masked: Object.keys(masked).length > 0 ? { ...masked } : undefined,
        expires_at: new Date(thread.expiresAt).toISOString(),
      };
    },
  };
}

async function textOf(pieces: AsyncIterable<string>, maxTokens: number): Promise<string> {
  let text = '';
  let tokens = 0;
  for await (const piece of pieces) {
    text += piece;
    tokens += estimateTokens(JSON.stringify(piece));
    if (tokens > maxTokens)
      throw limitError(
        'size',
        `The export is longer than a reply, which holds about ${Math.floor(maxTokens)} tokens.`,
        { next: 'Send output_path: a file inside the project. On a read-only server, "polylogue export" writes it.' },
      );
  }
  return text;
}

async function* bytesOf(sandbox: Sandbox, path: string, reportRead: (code?: SkipCode) => void) {
  const opened = await sandbox.open(path);
  reportRead(isSkip(opened) ? opened.code : undefined);
  if (isSkip(opened)) throw unreadable(opened);
  const skip = yield* readPieces(opened, path);
  if (skip) throw unreadable(skip);
}

function pathOf(field: string, value: string, root: string, home: string): string {
  const reference = parsePathReference(value, root, home);
  if (!isSkip(reference)) return reference.literal ?? reference.path;
  throw inputError(`${field} is no path: ${reference.reason}`, {
    validationErrors: [{ field, error: reference.reason }],
  });
}

const unreadable = ({ path, code, reason }: Skip): Error =>
  fileError([code], `${path} cannot be read: ${reason}`, {
    next: 'Name a file inside the project that was exported with format jsonl.',
    validationErrors: [{ field: 'file_path', error: `${code}: ${path}` }],
  });

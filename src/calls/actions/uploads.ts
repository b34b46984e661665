import { inParallel } from '../../core/concurrency.ts';
import { type AppError, configError, isAppError, limitError } from '../../core/errors.ts';
import type { Skip, SkipCode } from '../../core/file.ts';
import { hashOf } from '../../core/ids.ts';
import type { Emit, Mask } from '../../core/ports.ts';
import type { Principal } from '../../core/tool-host.ts';
import type { DocumentLibrary } from '../../models/vendor-services.ts';
import { isSkip, parsePathReference } from '../../workspace/paths.ts';
import { decodeText, readBytes } from '../../workspace/read-file.ts';
import type { Sandbox } from '../../workspace/sandbox.ts';
import type { UploadActions, UploadOutcome } from '../action-context.ts';
import { fileError } from '../call-limits.ts';

export interface ReportedCall {
  reqId: string;
  tool: string;
}

/** Tells the observers which files an action read and wrote, and which it was refused. */
export type FileReporter = ReturnType<typeof createFileReporter>;

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

export interface UploadParts {
  documents?: DocumentLibrary;
  sandbox: Sandbox;
  mask: Mask;
  home: string;
  maxNamedFiles: number;
  files: FileReporter;
}

const maxConcurrent = 3;

/** Keys the masks of texts that go to the vendor: the same for all, so that equal files stay equal. */
const maskScope = 'uploads';

export function uploadActions(parts: UploadParts, principal: Principal, signal: AbortSignal): UploadActions {
  const { owner } = principal;
  return {
    async add(paths) {
      const documents = libraryOf(parts);
      const unique = [...new Set(paths)];
      const [named, limit] = [unique.length, parts.maxNamedFiles];
      if (named > limit)
        throw limitError('files', `${named} files were named; at most ${limit} are uploaded in one call.`, {
          next: `Name at most ${limit}, the others in another call.`,
          data: { named, limit },
        });
      const failures: unknown[] = [];
      const outcomes = await inParallel(unique, maxConcurrent, async (path): Promise<UploadOutcome> => {
        try {
          return await upload(parts, documents, principal, path, signal);
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
    list: async () => libraryOf(parts).list(owner, signal),
    remove: async id => libraryOf(parts).remove(id, owner, signal),
  };
}

async function upload(
  { sandbox, home, mask, files }: UploadParts,
  documents: DocumentLibrary,
  { root, owner }: Principal,
  input: string,
  signal: AbortSignal,
): Promise<UploadOutcome> {
  const reference = parsePathReference(input, root, home);
  const refuse = ({ path, code, reason }: Skip): AppError => {
    files.read(path, code);
    const details = { class: 'files', validationErrors: [{ field: 'files', error: `${code}: ${path}` }] };
    return code === 'too_large'
      ? limitError('size', `${path}: ${reason}`, details)
      : fileError([code], `${path}: ${reason}`, details);
  };
  if (isSkip(reference)) throw refuse(reference);
  const opened = await sandbox.open(reference.literal ?? reference.path);
  if (isSkip(opened)) throw refuse(opened);
  const { path } = opened;
  const read = await readBytes(opened, input, { maxBytes: documents.maxBytes, signal });
  if (!Buffer.isBuffer(read)) throw refuse(read);
  files.read(path);
  // What is text goes out masked; what stands in other documents can only be masked once the vendor has read it.
  const plain = decodeText(read);
  const bytes = plain === undefined ? read : Buffer.from((await mask(plain, maskScope)).text);
  const name = path.split(/[\\/]/).at(-1) ?? path;
  const sha256 = hashOf(bytes);
  const { id, status, fresh, text, bytes: size } = await documents.read({ name, bytes, sha256, owner }, signal);
  return { filename: name, fileId: id, status, bytes: size, fresh, text: (await mask(text, maskScope)).text };
}

function libraryOf({ documents }: UploadParts): DocumentLibrary {
  if (documents) return documents;
  throw configError('No provider that reads documents is configured.', {
    next: 'Set MOONSHOT_API_KEY, so that Kimi can read them.',
  });
}

import { basename, dirname } from 'node:path';
import { inputError, limitError } from '../../core/errors.ts';
import type { Skip, SkipCode } from '../../core/file.ts';
import type { Random } from '../../core/ports.ts';
import { estimateTokens } from '../../core/tokens.ts';
import type { Principal } from '../../core/tool-host.ts';
import type { Transfer } from '../../threads/transfer/transfer.ts';
import { isSkip, parsePathReference } from '../../workspace/paths.ts';
import { readPieces } from '../../workspace/read-file.ts';
import type { Sandbox } from '../../workspace/sandbox.ts';
import { checkTarget, makeInside, writeInside } from '../../workspace/write-file.ts';
import type { TransferActions } from '../action-context.ts';
import { fileError } from '../call-limits.ts';
import type { FileReporter } from './uploads.ts';

export interface TransferParts {
  transfer: Transfer;
  sandbox: Sandbox;
  random: Random;
  /** For `~` in paths. */
  home: string;
  replyTokens: number;
  files: FileReporter;
}

/** Of a reply's room: what a file's text takes, with the signs that JSON adds to it. */
const textShare = 0.8;

export function createTransferActions(
  parts: TransferParts,
  { owner, root }: Principal,
  signal: AbortSignal,
): TransferActions {
  const { transfer, sandbox, files } = parts;
  const place = { owner, workspace: root };
  return {
    async export({ continuationId, format, outputPath }) {
      const { thread, pieces } = await transfer.export(continuationId, place, format);
      const facts = { continuation_id: thread.id, format, turns: thread.turns.length };
      if (outputPath === undefined) return { ...facts, content: await textOf(pieces, parts.replyTokens * textShare) };
      return { ...facts, file: await write(parts, pathOf('output_path', outputPath, root, parts.home), pieces) };
    },
    async import({ filePath, asNew }) {
      const path = pathOf('file_path', filePath, root, parts.home);
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

/** Never over what is there: the file gets a number then. */
async function write({ sandbox, random, files }: TransferParts, path: string, text: AsyncIterable<string>) {
  return files.writing(path, async () => {
    checkTarget(sandbox, path);
    const directory = await makeInside(sandbox, dirname(path));
    return writeInside(sandbox, { directory, name: basename(path), text, unique: random.uuid(), keep: true });
  });
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

import type { ComposeOptions } from '../../calls/ask/options.ts';
import { limitError } from '../../core/errors.ts';
import type { Skip } from '../../core/file.ts';
import { linesBetween, numberLines, printablePath } from '../../core/text.ts';
import { isSkip } from '../../files/skip.ts';
import { parsePathReference } from '../../workspace/paths.ts';
import { readTextFile } from '../../workspace/read-file.ts';

export interface Shown {
  /** One block of text a file, masked. */
  texts: string[];
  /** Absolute paths of files that are shown. */
  paths: string[];
  skipped: Skip[];
  warnings: string[];
}

export interface ShownRequest {
  root: string;
  files: readonly string[];
  message: string;
  search: boolean;
  scope: string;
  /** Who pays for vectors; absent: the operator. */
  payer?: { owner: string };
  signal: AbortSignal;
}

const mostHits = 12;

/** The files of a request as its model reads them: whole, or the lines that were named, each line with its number. */
export async function readShown(options: ComposeOptions, request: ShownRequest): Promise<Shown> {
  const shown: Shown = { texts: [], paths: [], skipped: [], warnings: [] };
  if (request.files.length > options.maxNamedFiles) throw tooMany(request.files.length, options.maxNamedFiles);
  for (const input of request.files) await show(options, request, input, shown);
  if (request.search) {
    const index = await options.indexes.of(request.root);
    const { signal, payer } = request;
    await index.refresh({ signal, payer });
    for (const { path, from, to } of await index.search(request.message, mostHits, signal, payer)) {
      if (!shown.paths.includes(path)) await show(options, request, `${path}:${from}-${to}`, shown);
    }
  }
  return shown;
}

async function show(
  { sandbox, home, maxFileBytes, mask }: ComposeOptions,
  { root, scope, signal }: ShownRequest,
  input: string,
  shown: Shown,
): Promise<void> {
  const reference = parsePathReference(input, root, home);
  if (isSkip(reference)) return void shown.skipped.push(reference);
  const outcome = await readTextFile(sandbox, reference, { maxBytes: maxFileBytes, signal });
  if (!outcome.ok) return void shown.skipped.push(outcome.skip);
  const { file, range } = outcome;
  // Masked as a whole: part of a file may not show that what stands in it is a secret.
  const { text } = await mask(file.text, scope);
  const lines = range ? linesBetween(text, range.from, range.to) : text;
  const name = printablePath(file.path);
  const which = range ? ` (lines ${range.from}-${range.to})` : '';
  shown.texts.push(
    `--- BEGIN FILE: ${name}${which} ---\n${numberLines(lines, range?.from)}\n--- END FILE: ${name} ---`,
  );
  if (!shown.paths.includes(file.path)) shown.paths.push(file.path);
}

function tooMany(count: number, limit: number): Error {
  return limitError('files', `${count} files were named; at most ${limit} go along.`, {
    next: 'Name fewer, or raise MAX_NAMED_FILES.',
  });
}

import { basename, dirname, extname, join } from 'node:path';
import type { Parsed } from '../../calls/call-record.ts';
import { inputError, securityError } from '../../core/errors.ts';
import { printablePath } from '../../core/text.ts';
import { isSkip } from '../../files/skip.ts';
import { checkTarget } from '../../files/write/check-target.ts';
import { makeInside } from '../../files/write/make-inside.ts';
import { parsePathReference } from '../../workspace/paths.ts';
import { probeInside } from '../../workspace/write-file.ts';
import type { FanoutOptions } from './fan.ts';

/** Where the answers of a call are written. */
export interface Output {
  /** Inside the roots when it was checked. */
  directory: string;
  /** The one file's name, where the caller gave a whole path. */
  name?: string;
  /** What names begin with. */
  stem: string;
  /** Without a dot. */
  extension: string;
  /** Files of the same name may be replaced. */
  overwrite: boolean;
}

/** Reads where the answers go: one path for one model, else a directory (`responses` beside the prompt) and an ending. */
export function planOutput(options: FanoutOptions, { args, request }: Parsed, question: string): Output {
  const overwrite = args.overwrite === true;
  const stem = basename(question, extname(question));
  const absolute = (field: string) => pathIn(field, args[field], request.principal.root, options.compose.home);
  const exact = absolute('output_path');
  const directory = absolute('output_dir');
  if (exact === undefined) {
    const extension = extensionIn(args.output_extension);
    return { directory: directory ?? join(dirname(question), 'responses'), stem, extension, overwrite };
  }
  if (directory !== undefined) throw misplaced('output_dir', 'output_path is whole: it takes no output_dir beside it');
  return { directory: dirname(exact), name: basename(exact), stem, extension: extname(exact).slice(1), overwrite };
}

/** Refuses what can't be written before anybody is paid for it; makes the directory. */
export async function prepareOutput(
  { compose: { sandbox } }: FanoutOptions,
  { reqId }: Parsed,
  output: Output,
): Promise<Output> {
  const { name = '', overwrite } = output;
  checkTarget(sandbox, join(output.directory, name));
  const directory = await makeInside(sandbox, output.directory);
  checkTarget(sandbox, join(directory, name));
  await probeInside(sandbox, directory, `${reqId}-probe`);
  if (name !== '') {
    const path = join(directory, name);
    const found = await sandbox.locate(path);
    if (isSkip(found) ? found.code !== 'not_found' : found.kind === 'directory' || !overwrite) {
      throw taken(path, !isSkip(found) && found.kind === 'file');
    }
  }
  return { ...output, directory };
}

/** Only one answer can have the one path. */
export function refuseOnePathForMany({ name }: Output, models: number): void {
  if (name === undefined || models === 1) return;
  throw misplaced('output_path', `output_path is for one model; ${models} are asked. Name a directory as output_dir`);
}

function taken(path: string, isFile: boolean): Error {
  const shown = printablePath(path);
  if (!isFile) {
    return securityError(`${shown} is no file that may be replaced.`, { next: 'Name another output_path.' });
  }
  return inputError(`${shown} exists already.`, {
    class: 'exists',
    next: 'Name another output_path, or send overwrite: true to replace the file.',
    validationErrors: [{ field: 'output_path', error: 'exists' }],
  });
}

function misplaced(field: string, why: string): Error {
  return inputError(`${why}.`, { validationErrors: [{ field, error: why }] });
}

function pathIn(field: string, value: unknown, root: string, home: string): string | undefined {
  if (typeof value !== 'string') return undefined;
  const reference = parsePathReference(value, root, home);
  if (!isSkip(reference)) return reference.literal ?? reference.path;
  throw securityError(`${field} is no path: ${reference.reason}`, {
    next: `Name a place inside the project as ${field}.`,
  });
}

function extensionIn(value: unknown): string {
  if (typeof value !== 'string') return 'md';
  const extension = value.trim().replace(/^\./, '');
  if (/^[a-z0-9]{1,16}$/i.test(extension)) return extension;
  throw inputError(`"${value.slice(0, 40)}" is no ending of a file's name.`, {
    next: 'Send letters and digits alone, such as md or txt.',
    validationErrors: [
      { field: 'output_extension', error: 'letters and digits alone', allowed: ['md', 'txt', 'json'] },
    ],
  });
}

import type { ComposeOptions } from '../../calls/ask/options.ts';
import type { Parsed } from '../../calls/call-record.ts';
import { type AppError, inputError, limitError, securityError } from '../../core/errors.ts';
import type { Skip, SkipCode } from '../../core/file.ts';
import { isSkip } from '../../files/skip.ts';
import { parsePathReference } from '../../workspace/paths.ts';
import { readTextFile } from '../../workspace/read-file.ts';

/** What the models are asked, masked, and the file that it was in. */
export interface Question {
  text: string;
  /** Absolute, with every symbolic link resolved. */
  path: string;
}

/** Reads the file that the field `file_path` names; lines of it, where the path ends like `:10-80`. */
export async function readQuestion(
  options: ComposeOptions,
  { args, request, signal, reqId }: Parsed,
): Promise<Question> {
  const { sandbox, home, maxFileBytes: maxBytes, mask } = options;
  const reference = parsePathReference(String(args.file_path), request.principal.root, home);
  if (isSkip(reference)) throw unreadable(reference);
  const outcome = await readTextFile(sandbox, reference, { maxBytes, signal });
  if (!outcome.ok) throw unreadable(outcome.skip);
  const { file, range } = outcome;
  const lines = range
    ? file.text
        .split('\n')
        .slice(range.from - 1, range.to)
        .join('\n')
    : file.text;
  if (lines.trim() === '')
    throw inputError(`${reference.input} holds no text.`, { next: 'Name a file with a prompt in it.' });
  return { text: (await mask(lines.toWellFormed(), reqId)).text, path: file.path };
}

const refused: readonly SkipCode[] = ['outside_roots', 'secret', 'not_regular'];

function unreadable({ path, code, reason }: Skip): AppError {
  const message = `The prompt can't be read. ${path}: ${reason}`;
  const details = {
    next: 'Name one text file inside the project (PROJECT_ROOT or POLYLOGUE_ROOTS say where that is).',
    validationErrors: [{ field: 'file_path', error: `${code}: ${path}` }],
  };
  if (code === 'too_large') return limitError('size', message, details);
  return refused.includes(code)
    ? securityError(message, { ...details, class: 'files' })
    : inputError(message, { ...details, class: 'files' });
}

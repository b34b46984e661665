import { basename, dirname, extname, join } from 'node:path';
import type { ParsedCall } from '../../../calls/call-record.ts';
import { errorOf } from '../../../calls/reply.ts';
import { type AppError, inputError, isAppError, securityError } from '../../../core/errors.ts';
import type { JsonObject } from '../../../core/json.ts';
import { printablePath } from '../../../core/text.ts';
import { splitSuffix } from '../../../models/routing/names.ts';
import { isSkip, parsePathReference } from '../../../workspace/paths.ts';
import { readFile } from '../../../workspace/read-file.ts';
import { maskedLines, maskFile } from '../../../workspace/restore-secrets.ts';
import {
  assertUnprotected,
  checkTarget,
  fileName,
  makeFolders,
  numberedName,
  probeInside,
  type Writing,
  writeInside,
} from '../../../workspace/write-file.ts';
import type { ModeServices } from '../mode.ts';
import { nameOf, type TargetEntry, type TargetResponse, targetFacts } from './ask-many.ts';
import type { FanoutRun } from './targets.ts';

export type OutputPlan = ReturnType<typeof planOutput>;

/**
 * Reads where the answers go: one path for one model, else a directory (`responses` beside the prompt) and an ending without a dot.
 * `name`: the one file's, where the caller gave a whole path; `stem`: what the names of others begin with.
 */
export function planOutput(services: ModeServices, { args, request }: ParsedCall, question: string) {
  const overwrite = args.overwrite === true;
  const stem = basename(question, extname(question));
  const absolute = (field: string) => pathIn(field, args[field], request.principal.root, services.home);
  const exact = absolute('output_path');
  const directory = absolute('output_dir');
  if (exact === undefined) {
    const extension = extensionIn(args.output_extension);
    return { directory: directory ?? join(dirname(question), 'responses'), stem, extension, overwrite };
  }
  if (directory !== undefined) throw misplaced('output_dir', 'output_path is complete: it takes no output_dir');
  return { directory: dirname(exact), name: basename(exact), stem, extension: extname(exact).slice(1), overwrite };
}

/** Refuses what can't be written before anybody is paid for it; makes the directory. */
export async function prepareOutput({ sandbox }: ModeServices, { reqId }: ParsedCall, output: OutputPlan) {
  const { name = '', overwrite } = output;
  checkTarget(sandbox, join(output.directory, name));
  const directory = await makeFolders(sandbox, output.directory);
  checkTarget(sandbox, join(directory, name));
  await assertUnprotected(sandbox, join(directory, name));
  await probeInside(sandbox, directory, `${reqId}-probe`);
  if (name !== '') {
    const path = join(directory, name);
    const found = await sandbox.locate(path);
    if (isSkip(found) ? found.code !== 'not_found' : found.kind === 'directory' || !overwrite)
      throw taken(path, !isSkip(found) && found.kind === 'file');
  }
  return { ...output, directory };
}

/** Only one answer can have the one path. */
export function assertSeparateOutputs({ name }: OutputPlan, models: number): void {
  if (name === undefined || models === 1) return;
  throw misplaced('output_path', `output_path is for one model; ${models} are asked. Name a directory as output_dir`);
}

function taken(path: string, isFile: boolean): Error {
  const shown = printablePath(path);
  if (!isFile)
    return securityError(`${shown} is not a file that may be replaced.`, { next: 'Name another output_path.' });
  return inputError(`${shown} exists already.`, {
    class: 'exists',
    next: 'Name another output_path, or send overwrite: true to replace the file.',
    validationErrors: [{ field: 'output_path', error: 'exists' }],
  });
}

const misplaced = (field: string, why: string): Error =>
  inputError(`${why}.`, { validationErrors: [{ field, error: why }] });

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

/** A response whose answer is in a file; where writing failed, the answer is in the reply. */
export interface WrittenAnswer extends TargetEntry {
  path?: string;
}

export type AnswerWriter = ReturnType<typeof createAnswerWriter>;

/**
 * Writes one call's files, one after the other: two of its answers never get the same name. `question`: the file that was sent; where
 * an answer replaces it, its masked secrets are put back.
 */
export function createAnswerWriter({ services, call }: FanoutRun, output: OutputPlan, question: string) {
  const { sandbox, mask, emit, maxFileBytes: maxBytes } = services;
  const used = new Set<string>();
  let count = 0;

  async function write(wanted: string, answer: string): Promise<{ path?: string; facts: JsonObject }> {
    const name = unused(wanted, used);
    const { directory, overwrite } = output;
    const unique = `${call.reqId}-${++count}`;
    try {
      const found = await sandbox.locate(join(directory, name));
      const asked = await sandbox.locate(question);
      const isSame = overwrite && !isSkip(found) && !isSkip(asked) && found.path === asked.path;
      const own = isSame ? await restored(answer) : undefined;
      // The file with the secret may be readable for the user alone; this one must not be for more.
      const mode = own?.count ? 0o600 : 0o666;
      const text = own?.text ?? answer;
      const writing: Writing = { directory, name, text, unique, keep: !overwrite, mode };
      const { path, replaced } = await writeInside(sandbox, writing);
      emit({ type: 'files.written', reqId: call.reqId, tool: call.tool.name, path });
      const secrets = {
        secrets_put_back: own?.count || undefined,
        secrets_left_masked: (own ? 0 : maskedLines(answer).length) || undefined,
      };
      return { path, facts: { file: path, overwritten: replaced ? true : undefined, ...secrets } };
    } catch (error) {
      // The answer was paid for: it comes in the reply, with the reason why it is there.
      if (!isAppError(error)) throw error;
      const { code } = error.details;
      emit({ type: 'files.written', reqId: call.reqId, tool: call.tool.name, path: join(directory, name), code });
      return { facts: { file_error: errorOf(error) } };
    }
  }

  /** Throws where the file would lose a secret, or have it at another place. */
  async function restored(answer: string): Promise<{ text: string; count: number }> {
    const file = await readFile(sandbox, question, { maxBytes, signal: call.signal });
    const masked = await maskFile({ mask, scopes: [call.reqId] }, question, isSkip(file) ? '' : file.text);
    const { text, secrets } = await masked.restore(answer);
    return { text, count: secrets.length };
  }

  return {
    /** `name` is without its ending. */
    text: (name: string, extension: string, text: string) => write(fileName([name], extension), text),
    async response(response: TargetResponse): Promise<WrittenAnswer> {
      const { outcome } = response;
      const isAnswer = outcome.status === 'success';
      const name = output.name ?? fileName(namesOf(response, output.stem), output.extension);
      const file = await write(name, isAnswer ? outcome.said : failureText(response, outcome.error));
      const facts = { ...targetFacts(response), ...file.facts };
      return file.path === undefined && isAnswer ? { facts, text: outcome.answer.text } : { path: file.path, facts };
    },
  };
}

/** `<stem>_<provider>_<model>`, with the effort where the name had one, and `_error` where there is no answer. */
function namesOf(response: TargetResponse, stem: string): [string, ...string[]] {
  const { target, outcome } = response;
  const name = nameOf(response);
  const at = name.indexOf(':');
  const suffix = 'candidates' in target.who ? splitSuffix(target.model) : undefined;
  return [
    stem,
    ...(at < 0 ? [name] : [name.slice(0, at), name.slice(at + 1)]),
    ...(suffix?.ask && !name.endsWith(suffix.suffix) ? [suffix.suffix] : []),
    ...('error' in outcome ? ['error'] : []),
  ];
}

function failureText(response: TargetResponse, error: AppError): string {
  const { code, message, next } = errorOf(error);
  return `# No answer of ${nameOf(response)}\n\n${code}: ${message}\n\n${next}\n`;
}

/** Names that differ in their case alone are one on some systems. */
function unused(wanted: string, used: Set<string>): string {
  let name = wanted;
  for (let number = 2; used.has(name.toLowerCase()); number++) name = numberedName(wanted, number);
  used.add(name.toLowerCase());
  return name;
}

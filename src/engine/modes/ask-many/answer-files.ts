import { join } from 'node:path';
import { errorOf } from '../../../calls/reply.ts';
import { isAppError } from '../../../core/errors.ts';
import type { JsonObject } from '../../../core/json.ts';
import { findOriginals, placeholdersIn } from '../../../files/put-back/originals.ts';
import { fileName, numberedName } from '../../../files/write/file-name.ts';
import { splitSuffix } from '../../../models/routing/suffixes.ts';
import { type PutBack, putBack } from '../../../workspace/restore-secrets.ts';
import { type Writing, writeInside } from '../../../workspace/write-file.ts';
import type { SlotEntry } from '../../fanout/cap-slots.ts';
import type { Fan, Response } from '../../fanout/fan.ts';
import type { Output } from '../../fanout/plan-output.ts';
import { factsOf } from '../../fanout/response-of.ts';
import { nameOf } from './ask-each.ts';

/** A slot whose answer is in a file; where writing failed, the answer is in the slot. */
export interface Filed extends SlotEntry {
  path?: string;
}

/** One call's files, one after the other: two of its answers never get the same name. */
export interface Writer {
  response(response: Response): Promise<Filed>;
  /** `name` is without its ending. */
  text(name: string, extension: string, text: string): Promise<FileFacts>;
}

type FileFacts = { path: string; facts: JsonObject } | { path?: undefined; facts: JsonObject };

/** `question`: the file that was sent, whose masked secrets are put back into what is written. */
export function createWriter({ options, call }: Fan, output: Output, question: string): Writer {
  const { sandbox, mask, emit, maxFileBytes: maxBytes } = options.compose;
  const used = new Set<string>();
  let count = 0;

  async function write(wanted: string, text: string, mode = 0o666): Promise<FileFacts> {
    const name = unused(wanted, used);
    const { directory, overwrite } = output;
    const unique = `${call.reqId}-${++count}`;
    const writing: Writing = { directory, name, text, unique, keep: !overwrite, mode };
    try {
      const { path, replaced } = await writeInside(sandbox, writing);
      emit({ type: 'files.written', reqId: call.reqId, tool: call.tool.name, path });
      return { path, facts: { file: path, overwritten: replaced ? true : undefined } };
    } catch (error) {
      // The answer was paid for: it comes in the reply, with the reason why it is there.
      if (!isAppError(error)) throw error;
      const { code } = error.details;
      emit({ type: 'files.written', reqId: call.reqId, tool: call.tool.name, path: join(directory, name), code });
      return { facts: { file_error: errorOf(error) } };
    }
  }

  async function clear(text: string): Promise<PutBack> {
    const request = { wanted: placeholdersIn(text), paths: [question], scopes: [call.reqId], signal: call.signal };
    return putBack(text, await findOriginals({ ...request, sandbox, mask, maxBytes }));
  }

  return {
    text: (name, extension, text) => write(fileName([name], extension), text),
    async response(response) {
      const { outcome } = response;
      const facts = factsOf(response);
      const name = output.name ?? fileName(namesOf(response, output.stem), output.extension);
      if ('answer' in outcome) {
        const { text, count, left } = await clear(outcome.said);
        // The file with the secret may be readable for the user alone; this one must not be for more.
        const file = await write(name, text, count > 0 ? 0o600 : undefined);
        if (file.path === undefined) return { facts: { ...facts, ...file.facts }, text: outcome.answer.text };
        const secrets = { secrets_put_back: count || undefined, secrets_left_masked: left.length || undefined };
        return { path: file.path, facts: { ...facts, ...file.facts, ...secrets } };
      }
      const file = await write(name, failureText(response));
      return { path: file.path, facts: { ...facts, ...file.facts } };
    },
  };
}

/** `<stem>_<provider>_<model>`, with the effort where the name had one, and `_error` where there is no answer. */
function namesOf({ slot, outcome }: Response, stem: string): [string, ...string[]] {
  const name = nameOf(slot, outcome);
  const at = name.indexOf(':');
  const suffix = 'candidates' in slot.who ? splitSuffix(slot.requested) : undefined;
  return [
    stem,
    ...(at < 0 ? [name] : [name.slice(0, at), name.slice(at + 1)]),
    ...(suffix?.ask && !name.endsWith(suffix.suffix) ? [suffix.suffix] : []),
    ...('error' in outcome ? ['error'] : []),
  ];
}

function failureText({ slot, outcome }: Response): string {
  if (!('error' in outcome)) return '';
  const { code, message, next } = errorOf(outcome.error);
  return `# No answer of ${nameOf(slot, outcome)}\n\n${code}: ${message}\n\n${next}\n`;
}

/** Names that differ in their case alone are one on some systems. */
function unused(wanted: string, used: Set<string>): string {
  let name = wanted;
  for (let number = 2; used.has(name.toLowerCase()); number++) name = numberedName(wanted, number);
  used.add(name.toLowerCase());
  return name;
}

import { basename, join } from 'node:path';
import { askModelTurn } from '../../calls/ask/ask.ts';
import type { CallServices } from '../../calls/ask/services.ts';
import { onThread } from '../../calls/ask/with-thread.ts';
import type { AnsweredCall, ThreadedCall } from '../../calls/call-record.ts';
import { isTruncated, type Reply, readControlStatus, requestedInputs } from '../../calls/reply.ts';
import type { DocumentQuestion, PromptMode } from '../../calls/tool.ts';
import { asError, isAppError, missingError } from '../../core/errors.ts';
import { isPicture } from '../../core/file.ts';
import { type JsonObject, textIn, textsIn } from '../../core/json.ts';
import { isSkip } from '../../workspace/paths.ts';
import { locateNamed, readTextFile } from '../../workspace/read-file.ts';
import { maskedLines } from '../../workspace/restore-secrets.ts';
import { writeInside } from '../../workspace/write-file.ts';
import type { Mode } from './mode.ts';

/** Instructions on the output format for models that may generate code. */
const generationProtocol = `If, and only if, the question asks for substantial new or rewritten code, put all of it into one element, with brief text before it:
<GENERATED-CODE>
Numbered instructions for the caller, and between them complete files:
<NEWFILE: path/of/file>…whole content…</NEWFILE>
<UPDATED_EXISTING_FILE: path/of/file>…whole changed functions or blocks, with enough around them to place them…</UPDATED_EXISTING_FILE>
</GENERATED-CODE>
No placeholders, no "rest as before" inside a block; say which code is to be deleted and why. For small fixes and discussion answer in plain Markdown without the element.`;

const artifactName = 'polylogue_generated.code';

/** The last element of a name in an answer, which may mention its tag earlier: its place and its content; undefined: none. */
export function lastElement(text: string, name: string) {
  // Some letters of other alphabets are more than one in lower case, and all that follows them would be shifted.
  const lower = text.replace(/[A-Z]+/g, word => word.toLowerCase());
  const end = lower.lastIndexOf(`</${name}>`);
  const start = end === -1 ? -1 : lower.lastIndexOf(`<${name}>`, end);
  if (start === -1) return undefined;
  return { start, after: end + name.length + 3, content: text.slice(start + name.length + 2, end) };
}

/** The last generated-code element of an answer, and the answer without it; undefined when there is none. */
export function splitGeneratedCode(text: string): { code: string; rest: string } | undefined {
  const element = lastElement(text, 'generated-code');
  if (!element) return undefined;
  const { start, after } = element;
  const rest = [text.slice(0, start).trim(), text.slice(after).trim()].filter(part => part !== '').join('\n\n');
  return { code: text.slice(start, after), rest };
}

const artifactInstructions = (path: string, replaced: boolean): string =>
  [
    `The generated code is in ${path}${replaced ? ' (an older file of that name was replaced)' : ''}.`,
    'It is a proposal: instructions and partial snippets among whole files, never to be pasted as it is.',
    'Read it in sections if it is long; apply the updates of existing files, then the new files; check partial snippets against the code; build and test; then delete the artifact.',
  ].join(' ');

/** What the caller must know of masked secrets in lines of a file; empty when there is nothing to know. */
function secretsNote(masked: readonly number[]): string {
  if (masked.length === 0) return '';
  const lines = masked.slice(0, 20).join(', ');
  return `Lines ${lines} of it hold masked secrets as [masked:…]: a secret is written to no other file than its own. Keep the lines of files that have one, and have the user put the values into new places.`;
}

/** From this many tokens on, a prompt is one for models that are made for long ones. */
const longContextTokens = 128_000;

/** Whether a prompt of so many tokens is pinned to Kimi's long-context family, where it is configured. */
export const isLongContext = (tokens: number): boolean => tokens > longContextTokens;

/** Bytes of text that make a token, about. */
const bytesPerToken = 4;

/**
 * Chooses how documents are sent. The document provider gets documents and very long texts, if it is configured. Otherwise
 * any model gets the text in its prompt, and a model with vision gets the images. `provider`: undefined where any model will do;
 * `anyProvider`: any may read it as well.
 */
async function documentSubject(about: DocumentQuestion, call: ThreadedCall, services: CallServices) {
  const { files, fileIds = [], provider } = about;
  const { documents } = services;
  if (!documents || (provider !== undefined && provider !== documents.provider)) {
    const images = files.filter(isPicture);
    return { files: files.filter(path => !images.includes(path)), fileIds, images, provider };
  }
  const wanted = provider !== undefined || fileIds.length > 0 || files.some(path => documents.reads(path));
  const long = !wanted && isLongContext((await bytesOf(files, call, services)) / bytesPerToken);
  return { files, fileIds, images: [], provider: wanted || long ? documents.provider : undefined, anyProvider: long };
}

/** Bytes of the files that exist. Missing files are reported when they are read. */
async function bytesOf(files: readonly string[], { request }: ThreadedCall, { sandbox, home }: CallServices) {
  const { root } = request.principal;
  let bytes = 0;
  for (const path of files) {
    const located = await locateNamed(sandbox, path, { root, home });
    // A range of lines is short by the caller's choice, so it does not count.
    if (!isSkip(located) && located.range === undefined) bytes += located.size;
  }
  return bytes;
}

type Definition = PromptMode<Record<string, unknown>>;

/** One question, one answer. */
export const prompt: Mode<Definition> = onThread(ask);

async function ask(mode: Definition, call: ThreadedCall, services: CallServices): Promise<Reply> {
  const { args } = call;
  const named = textsIn(args.absolute_file_paths ?? args.relevant_files);
  const asked = mode.question?.(args) ?? textIn(args.prompt);
  const { question, files: others } = await questionOf(asked, named, call, services);
  const subject = mode.documents && (await documentSubject(mode.documents(args), call, services));
  const files = subject?.files ?? others;
  const directory = typeof args[directoryField] === 'string' ? args[directoryField] : undefined;
  // Checked before a model is paid for code that could not be written.
  if (directory !== undefined && call.tool.effects.writes) await services.sandbox.assertWithin(directory);
  const turn = {
    contribution: question,
    tail: mode.role,
    ...(mode.generatesCode && directory && { codeTail: generationProtocol }),
    files,
    aboutFiles: subject !== undefined,
    ...(subject && { fileIds: subject.fileIds, provider: subject.provider, anyProvider: subject.anyProvider }),
    images: [...textsIn(args.images), ...(subject?.images ?? [])],
    category: mode.category,
    effort: mode.effort,
  };
  return askModelTurn(services, call, turn, async answered => {
    const { text, document } = await deliver(services, directory, answered);
    return { text, document: shown => ({ ...conclude(answered, shown), ...document }) };
  });
}

function conclude({ answer, files: { skipped }, plan }: AnsweredCall, text: string): JsonObject {
  const special = readControlStatus(text);
  const cut = isTruncated(answer) || skipped.some(({ code }) => plan.aboutFiles || code !== 'not_found');
  return {
    status: special?.status ?? (cut ? 'partial' : 'continuation_available'),
    content: text,
    content_type: special ? 'json' : 'text',
    ...(special && requestedInputs(special.object)),
  };
}

const directoryField = 'working_directory_absolute_path';

/**
 * The question of a call with its files. An empty one stands in a file called prompt.txt: callers send it when a question is
 * too long for a text field. Beside a question, such a file is one like any other.
 */
export async function questionOf(
  question: string,
  named: readonly string[],
  { request, signal, thread, tool }: ThreadedCall,
  { sandbox, home, maxFileBytes: maxBytes, mask }: CallServices,
): Promise<{ question: string; files: readonly string[] }> {
  if (question.trim() !== '') return { question, files: named };
  const carrier = named.find(path => basename(path) === 'prompt.txt');
  if (carrier !== undefined) {
    const { root } = request.principal;
    const read = await readTextFile(sandbox, carrier, { root, home, maxBytes, signal });
    const text = isSkip(read) ? '' : (await mask(read.file.text, thread.id)).text;
    if (text.trim() !== '') return { question: text, files: named.filter(path => path !== carrier) };
  }
  const why = carrier === undefined ? '' : `, and so is ${carrier}, or it cannot be read`;
  throw missingError(
    'prompt',
    `${tool.name} has no question: "prompt" is empty${why}.`,
    'Send "prompt" with the question. One that is too long goes into a file called prompt.txt, named in absolute_file_paths with an empty prompt.',
  );
}

/** Writes generated code to the caller's directory, if the operator lets it, and returns a text that says where it is. */
async function deliver(services: CallServices, directory: string | undefined, answered: AnsweredCall) {
  const { answer, said, reqId, tool } = answered;
  const generated = directory !== undefined && answer.model.allowCodeGeneration ? splitGeneratedCode(said) : undefined;
  if (!generated || directory === undefined) return { text: answer.text, document: {} };
  if (!tool.effects.writes) {
    const path = join(directory, artifactName);
    const note = `The code was not written to ${path}: WRITE_GENERATED_CODE is off. It is above: check it and apply it yourself.`;
    const document = { generated_code: { path, written: false, characters: generated.code.length } };
    return { text: `${answer.text}\n\n${note}`, document };
  }
  try {
    // It is no file that they stood in, and whoever reads it next may send it to any vendor.
    const masked = maskedLines(generated.code);
    const artifact = { directory, name: artifactName, text: generated.code, unique: reqId };
    const { path, replaced } = await writeInside(services.sandbox, artifact);
    services.emit({ type: 'files.written', reqId, tool: tool.name, path });
    // From the masked text: a local model may repeat a secret that it read in a file.
    const rest = splitGeneratedCode(answer.text)?.rest ?? '';
    const text = [rest, artifactInstructions(path, replaced), secretsNote(masked)].filter(Boolean).join('\n\n');
    const facts = { characters: generated.code.length, secrets_left_masked: masked.length || undefined };
    return { text, document: { generated_code: { path, replaced, ...facts } } };
  } catch (error) {
    // The code is paid for, so the reply contains it with the reason for the failure.
    const reason = asError(error).message;
    const code = isAppError(error) ? error.details.code : 'INTERNAL_SERVER_ERROR';
    services.emit({ type: 'files.written', reqId, tool: tool.name, path: join(directory, artifactName), code });
    const warning = `WARNING: the code could not be written to ${directory}: ${reason}`;
    return { text: `${answer.text}\n\n${warning}`, document: {} };
  }
}

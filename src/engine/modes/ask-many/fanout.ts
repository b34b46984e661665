import { turnOf } from '../../../calls/ask/prepare-context.ts';
import type { CallServices } from '../../../calls/ask/services.ts';
import { maskCall, titleOf } from '../../../calls/ask/with-thread.ts';
import { fileError } from '../../../calls/call-limits.ts';
import type { ParsedCall } from '../../../calls/call-record.ts';
import { documentTokens, fitTexts } from '../../../calls/format-reply.ts';
import { errorReply, type Reply, successReply } from '../../../calls/reply.ts';
import type { FanoutMode } from '../../../calls/tool.ts';
import { type AppError, inputError, isAppError, limitError, throwIfAborted } from '../../../core/errors.ts';
import type { Skip } from '../../../core/file.ts';
import type { JsonObject } from '../../../core/json.ts';
import { linesBetween } from '../../../core/text.ts';
import { estimateTokens } from '../../../core/tokens.ts';
import { noUsage } from '../../../core/usage.ts';
import { isSkip } from '../../../workspace/paths.ts';
import { readTextFile } from '../../../workspace/read-file.ts';
import type { Mode } from '../mode.ts';
import type { AnswerWriter, WrittenAnswer } from './answer-files.ts';
import { assertSeparateOutputs, createAnswerWriter, planOutput, prepareOutput } from './answer-files.ts';
import {
  errorOfAll,
  runMetadata,
  type Target,
  type TargetEntry,
  type TargetResponse,
  targetFacts,
} from './ask-many.ts';
import { askTargets, decide, decisionPrompt, type FanoutRun, resolveDecider, resolveTargets } from './targets.ts';

/** Reads the file that the field `file_path` names, masked; lines of it, where the path ends like `:10-80`. */
async function readQuestion(services: CallServices, { args, request, signal, reqId }: ParsedCall) {
  const { sandbox, home, maxFileBytes: maxBytes, mask } = services;
  const { root } = request.principal;
  const read = await readTextFile(sandbox, String(args.file_path), { root, home, maxBytes, signal });
  if (isSkip(read)) throw unreadable(read);
  const { file, range } = read;
  const lines = range ? linesBetween(file.text, range.from, range.to) : file.text;
  if (lines.trim() === '')
    throw inputError(`${args.file_path} holds no text.`, { next: 'Name a file with a prompt in it.' });
  return { text: (await mask(lines.toWellFormed(), reqId)).text, path: file.path };
}

function unreadable({ path, code, reason }: Skip): AppError {
  const message = `The prompt cannot be read. ${path}: ${reason}`;
  const details = {
    next: 'Name one text file inside the project (PROJECT_ROOT or POLYLOGUE_ROOTS say where that is).',
    validationErrors: [{ field: 'file_path', error: `${code}: ${path}` }],
  };
  return code === 'too_large' ? limitError('size', message, details) : fileError([code], message, details);
}

/** One text to several models at once; each answer in a slot of its own, or in a file. */
export const fanout: Mode<FanoutMode> = async (mode, parsed, services) => {
  const call = await maskCall(services.mask, parsed, parsed.reqId);
  const run = { services, call, scope: call.reqId, spent: { usage: noUsage } };
  if (mode.from === 'text') return intoReply({ ...run, text: String(call.args.text) }, mode);
  call.progress.stage('reading the prompt');
  const { text, path } = await readQuestion(services, call);
  return mode.to === 'reply' ? intoReply({ ...run, text }, mode) : intoFiles({ ...run, text }, mode, path);
};

async function intoReply(run: FanoutRun, mode: FanoutMode): Promise<Reply> {
  const responses = await askTargets(run, await resolveTargets(run, mode));
  if (responses.every(hasFailed)) return noAnswer(run, responses);
  const entries = responses.map(response => ({
    facts: targetFacts(response),
    text: response.outcome.status === 'success' ? response.outcome.answer.text : undefined,
  }));
  return answered(run, await replyWith(run, entries, documents => ({ result: { responses: documents } })));
}

async function intoFiles(run: FanoutRun, mode: FanoutMode, question: string): Promise<Reply> {
  const { services, call } = run;
  const planned = planOutput(services, call, question);
  const targets = await resolveTargets(run, mode);
  assertSeparateOutputs(planned, targets.length);
  if (targets.every(({ who }) => 'failure' in who)) return noAnswer(run, await askTargets(run, targets));
  const { decision: task } = mode;
  const decider = task === undefined ? undefined : await resolveDecider(run, mode, targets);
  const output = await prepareOutput(services, call, planned);
  const responses = await askTargets(run, targets);
  if (responses.every(hasFailed)) return noAnswer(run, responses);
  const writer = createAnswerWriter(run, output, question);
  const filed: WrittenAnswer[] = [];
  for (const response of responses) filed.push(await writer.response(response));
  const decision =
    decider && task !== undefined
      ? await decided(run, writer, decider, decisionPrompt(task, run.text, responses), output.extension)
      : undefined;
  const files = [...filed.flatMap(({ path }) => path ?? []), ...(decision?.paths ?? [])];
  // Answers stand in the reply only where they could not be written.
  const document = await replyWith(run, decision ? [...filed, decision.ceo] : filed, documents => ({
    result: { files, responses: documents.slice(0, filed.length), ceo: decision && documents[filed.length] },
  }));
  // The board was heard and is in its files: only the decision is missing.
  if (decision?.error) return failed(run, decision.error, document);
  return answered(run, document);
}

async function decided(run: FanoutRun, writer: AnswerWriter, decider: Target, prompt: string, extension: string) {
  const asked = await writer.text('ceo_prompt', 'xml', prompt);
  const outcome = await decide(run, decider, prompt);
  const promptFile = { prompt_file: asked.path, file_error: asked.facts.file_error };
  const facts = { ...targetFacts({ target: decider, outcome }), ...promptFile };
  const paths = asked.path === undefined ? [] : [asked.path];
  if ('error' in outcome) return { ceo: { facts }, paths, error: outcome.error };
  const { text } = outcome.answer;
  const { path, facts: where } = await writer.text('ceo_decision', extension, text);
  if (path === undefined) return { ceo: { facts: { ...facts, ...where }, text }, paths };
  const written = { ...facts, decision_file: path, overwritten: where.overwritten };
  return { ceo: { facts: written }, paths: [...paths, path] };
}

const answered = ({ call }: FanoutRun, document: JsonObject): Reply =>
  successReply({ tool_name: call.tool.name, status: 'success', ...document });

const failed = ({ call }: FanoutRun, error: AppError, local: JsonObject): Reply =>
  errorReply(error, { toolName: call.tool.name, reqId: call.reqId, local });

const hasFailed = ({ outcome }: TargetResponse): boolean => 'error' in outcome;

/** No model answered: an error, with every slot's own beside it. */
function noAnswer(run: FanoutRun, responses: readonly TargetResponse[]): Reply {
  throwIfAborted(run.call.signal);
  const [first, ...others] = responses.flatMap(({ outcome }) => ('error' in outcome ? [outcome.error] : []));
  if (!first) throw new TypeError('no model was asked');
  const message = `None of the ${others.length + 1} models answered. The first: ${first.message}`;
  const error = others.length === 0 ? first : errorOfAll([first, ...others], message, first.details);
  return failed(run, error, { result: { responses: responses.map(targetFacts) } });
}

/** An entry with the answer that is shown. A cut one has the cursor to read on, where a thread `kept` the whole. */
function entryOf({ facts, text }: TargetEntry, shown: string, kept?: { thread: string; seq: number; offset: number }) {
  if (text === undefined) return facts;
  const { model, requested, ...rest } = facts;
  const entry = { model, requested, response: shown, ...rest };
  if (shown.length === text.length) return entry;
  const place = kept && {
    artifact: `polylogue://threads/${kept.thread}/turns/${kept.seq}`,
    next_cursor: `${kept.seq}:${kept.offset + shown.length}`,
  };
  return { ...entry, truncated: { total_tokens: estimateTokens(text), shown_characters: shown.length, ...place } };
}

const note =
  'Some answers are longer than a reply takes. Read on: call "threads" with action "read", this continuation_id and a slot\'s next_cursor as cursor. "prompt_from_file_to_file" writes answers into files instead.';

/**
 * The keys of a reply around its entries: `result`, and what goes with it. Answers that are too long for one reply were paid
 * for all the same: only then a thread is written, which has them whole.
 */
async function replyWith(run: FanoutRun, entries: TargetEntry[], make: (documents: JsonObject[]) => JsonObject) {
  const { replyTokens } = run.services;
  const texts = entries.map(({ text = '' }) => text);
  const whole = { ...make(entries.map(entry => entryOf(entry, entry.text ?? ''))), metadata: runMetadata(run) };
  if (documentTokens(whole) <= replyTokens) return whole;
  const { kept, warnings } = await keep(run, entries);
  const thread = kept.find(place => place)?.thread;
  const rest = {
    ...(thread !== undefined && { continuation_id: thread, truncated: { note } }),
    metadata: runMetadata(run, warnings),
  };
  return fitTexts(texts, replyTokens, shown => ({
    ...make(entries.map((entry, index) => entryOf(entry, shown[index] ?? '', kept[index]))),
    ...rest,
  }));
}

async function keep({ services, call, text, spent }: FanoutRun, entries: readonly TargetEntry[]) {
  const { threads } = services;
  const { content, offsets } = joined(entries);
  const { owner, root } = call.request.principal;
  const blank = threads.start({ owner, workspace: root }, call.tool.name);
  const exchange = threads.newExchange();
  const asked = entries.flatMap(({ facts, text: answer }) => (answer === undefined ? [] : [String(facts.model)]));
  const modelMetadata = { asked, usage: spent.usage, costUsd: spent.costUsd };
  const turns = [
    turnOf(services, call, { seq: 1, role: 'user', content: text, exchange }),
    turnOf(services, call, { seq: 2, role: 'assistant', content, exchange, modelMetadata }),
  ];
  const tokens = spent.usage.input + spent.usage.output;
  try {
    const started = { ...blank, title: titleOf(text) };
    const addition = { turns, status: 'done' as const, tokens, costUsd: spent.costUsd };
    const thread = await threads.add(started, exchange, addition);
    return { kept: offsets.map(offset => offset && { thread: thread.id, seq: 2, ...offset }), warnings: [] };
  } catch (error) {
    // The beginnings are worth having; the reply says that there is no more.
    const why = isAppError(error) ? error.message : 'the store failed';
    return { kept: [], warnings: [`not_persisted: what was cut of the answers is not kept: ${why}`] };
  }
}

/** All answers as one text, each below its model's name, and where each begins. */
function joined(entries: readonly TargetEntry[]): { content: string; offsets: ({ offset: number } | undefined)[] } {
  let content = '';
  const offsets = entries.map(({ facts, text }) => {
    if (text === undefined) return undefined;
    content += `${content === '' ? '' : '\n\n'}## ${String(facts.model)}\n\n`;
    const offset = content.length;
    content += text;
    return { offset };
  });
  return { content, offsets };
}

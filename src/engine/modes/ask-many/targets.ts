import { continueTruncated, questionBase } from '../../../calls/ask/ask.ts';
import { createMaskedStream } from '../../../calls/ask/redaction.ts';
import type { FanoutMode } from '../../../calls/tool.ts';
import { AppError, type FieldError, inputError, limitError } from '../../../core/errors.ts';
import { textsIn } from '../../../core/json.ts';
import { type Message, textOf } from '../../../core/message.ts';
import { type Candidate, type Candidates, modelName } from '../../../core/model.ts';
import { safeCut } from '../../../core/text.ts';
import { estimateTokens, tokenFactor, tokensPerMessage } from '../../../core/tokens.ts';
import type { ModelAnswer, ModelQuestion } from '../../../models/ask-model.ts';
import { findProvider, type ModelRequest } from '../../../models/routing/roster.ts';
import { planBudget } from '../../../threads/compaction.ts';
import { asMessage } from '../../../threads/transcript.ts';
import type { ModeServices } from '../mode.ts';
import type { ManyRun, NamedRequest, Target, TargetOutcome, TargetResponse } from './ask-many.ts';
import { askEach, askOneTarget, nameOf, resolveTarget } from './ask-many.ts';
import { choosePanel, chooseSynthesizer } from './panelists.ts';

const modelsField = 'models_prefixed_by_provider';
const maxModels = 24;
/** Characters of a name, in an error. */
const maxShownLength = 200;
/** The part of a window that a text may take at the most; the rest is the answer's. */
const textShare = 0.6;

/**
 * Who is asked, in the order of the request: the named models, else the operator's DEFAULT_MODELS, else the default model or
 * one that is chosen (several of different vendors, where a decision follows). A name that leads nowhere keeps its slot.
 */
export async function resolveTargets({ services, call, text }: FanoutRun, mode: FanoutMode): Promise<Target[]> {
  const request = { category: mode.category, needs: {}, effort: call.common.effort };
  const named = namesIn(call.args[modelsField]);
  if (named.length > maxModels)
    throw limitError('size', `${named.length} models were named; one call asks at most ${maxModels}.`, {
      next: `Name at most ${maxModels} models.`,
    });
  if (named.length > 0) return resolvePrefixed(services, modelsField, named, request);
  const { defaultModels } = services.fanout;
  if (defaultModels.length > 0)
    return Promise.all(defaultModels.map(name => resolveName(services, { ...request, name })));
  const promptTokens = estimateTokens(text);
  const left = await services.leftToSpend(call.reqId, questionBase(call).payer);
  const chosen = { ...request, promptTokens, left, needs: { window: Math.ceil(promptTokens / textShare) } };
  if (mode.decision !== undefined) return choosePanel(services, chosen);
  const { candidates, requested, corrected, warnings } = await services.route(chosen);
  return [{ model: requested, who: { candidates, corrected }, warnings }];
}

async function resolveName(services: ModeServices, request: NamedRequest): Promise<Target> {
  const target = await resolveTarget(services, request);
  if (!('failure' in target.who)) return target;
  const { details, kind, message } = target.who.failure;
  if (details.code !== 'MODEL_NOT_FOUND' || details.next === undefined) return target;
  // Other tools take a bare name, and so routing suggests some.
  const next = `${details.next} Write a name as provider:model.`;
  return { ...target, who: { failure: new AppError(kind, message, { ...details, next }) } };
}

const prefixOf = (name: string): string | undefined => /^([^:]*):/.exec(name)?.[1];

function hasProvider({ fanout }: ModeServices, name: string): boolean {
  const prefix = prefixOf(name);
  return prefix !== undefined && findProvider({ providers: fanout.prefixes }, prefix) !== undefined;
}

function noProvider({ fanout }: ModeServices, name: string): AppError {
  const allowed = fanout.prefixes.map(({ id, names: [short] }) => (short ? `${id} (${short})` : id));
  return new AppError('input', `"${safeCut(name, maxShownLength)}" names no provider of this installation.`, {
    code: 'PROVIDER_NOT_FOUND',
    class: 'unknown',
    next: `Allowed before the colon: ${allowed.join(', ')}.`,
  });
}

/**
 * The slots of names that a caller wrote: what stands before the colon is a provider, or the slot says that it is none. Throws for
 * names without one in front, with the names that they probably stand for.
 */
async function resolvePrefixed(services: ModeServices, field: string, names: string[], request: ModelRequest) {
  const errors: FieldError[] = [];
  const targets = await Promise.all(names.map(name => resolveName(services, { ...request, name })));
  const slots = targets.map((target): Target => {
    const { model: name, who } = target;
    if (hasProvider(services, name)) return target;
    const meant = 'candidates' in who && !who.corrected ? modelName(who.candidates[0]) : undefined;
    // The name of no model either: before the colon stands a provider that is none of ours, and its own slot says so.
    if (prefixOf(name) !== undefined && meant === undefined)
      return { model: name, who: { failure: noProvider(services, name) }, warnings: [] };
    const error = `"${safeCut(name, maxShownLength)}" names no provider`;
    errors.push({ field, error, allowed: [meant ?? 'provider:model'] });
    return target;
  });
  if (errors.length === 0) return slots;
  const messages = errors.map(({ error }) => error).join(', ');
  throw inputError(`${messages}: every model is written as provider:model.`, {
    next: `Write ${errors.flatMap(({ allowed = [] }) => allowed).join(', ')}; "list_providers" and "list_models" have the names. Leave ${field} out to have the default asked.`,
    validationErrors: errors,
  });
}

/** Hosts that know no lists send "a,b". */
const namesIn = (value: unknown): string[] =>
  textsIn(value).flatMap(item => item.split(',').flatMap(name => name.trim() || []));

const field = 'ceo_model';

/** Who decides: the named model, else the best of a named board, else one outside it. Throws if it can't be asked. */
export async function resolveDecider({ services, call }: FanoutRun, { category }: FanoutMode, board: Target[]) {
  const request = { category, needs: {}, effort: call.common.effort };
  const name = call.args[field];
  const [named] = typeof name === 'string' ? await resolvePrefixed(services, field, [name], request) : [];
  if (named && 'failure' in named.who) throw named.who.failure;
  if (named) return named;
  const panelNamed = [...namesIn(call.args[modelsField]), ...services.fanout.defaultModels].length > 0;
  const candidates = await chooseSynthesizer(services, { panelNamed }, board, request);
  if (!candidates) throw new TypeError('a board with a model has one that can decide');
  return { model: modelName(candidates[0]), who: { candidates }, warnings: [] };
}

export async function decide(run: FanoutRun, target: Target, prompt: string): Promise<TargetOutcome> {
  const { progress } = run.call;
  progress.stage(`${nameOf({ target })} decides`);
  const outcome = await askTarget(run, target, promptForTargets(run, prompt));
  progress.stage(`${nameOf({ target, outcome })} ${outcome.status === 'success' ? 'decided' : 'failed'}`);
  return outcome;
}

/** What the deciding model reads: its task, the question, each answer with its model, and who is absent and why. */
export function decisionPrompt(task: string, question: string, board: readonly TargetResponse[]): string {
  const members = board.map(response => {
    const { outcome } = response;
    const model = escaped(nameOf(response)).replaceAll('"', '&quot;');
    if (outcome.status === 'success') return `  <response model="${model}">${literal(outcome.answer.text)}</response>`;
    return `  <absent model="${model}">${escaped(outcome.error.message)}</absent>`;
  });
  return [
    '<decision-request>',
    `<task>${literal(task)}</task>`,
    `<question>${literal(question)}</question>`,
    '<board>',
    ...members,
    '</board>',
    '</decision-request>',
    '',
  ].join('\n');
}

/** A text that can't close the element around it, readable as it is. */
const literal = (text: string): string => `<![CDATA[\n${text.replaceAll(']]>', ']]]]><![CDATA[>')}\n]]>`;

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

export interface FanoutRun extends ManyRun {
  text: string;
}

interface TargetPrompt {
  messages: readonly Message[];
  /** Tokens of the messages by o200k, counted once for all models, and only where estimates can't decide. */
  counted(): Promise<number>;
  onText?: ((delta: string) => void) | undefined;
  /** How many models, this one included, are still to be asked. */
  sharers?: number;
}

/** The text as it is, without a word of ours but the language that the operator wants. */
function promptForTargets({ services }: FanoutRun, text: string): TargetPrompt {
  const { language } = services.fanout;
  const messages = [...(language ? [asMessage('system', 'preamble', language)] : []), asMessage('user', 'turn', text)];
  let count: Promise<number> | undefined;
  return {
    messages,
    counted() {
      count ??= services.countTokens(messages.map(textOf));
      return count;
    },
  };
}

async function askTarget(run: FanoutRun, { who }: Target, prompt: TargetPrompt): Promise<TargetOutcome> {
  if ('failure' in who) return { status: 'error', error: who.failure, latencyMs: 0 };
  return askOneTarget(run, () => ask(run, who.candidates, prompt));
}

async function ask({ services, call, scope }: FanoutRun, candidates: Candidates, prompt: TargetPrompt) {
  const { messages, sharers } = prompt;
  const { tokens, room } = await roomFor(candidates[0], prompt);
  const stream = prompt.onText && createMaskedStream(services.mask, scope, prompt.onText);
  const question: ModelQuestion = {
    ...{ ...questionBase(call), candidates, messages, sharers, maxOutputTokens: room },
    // The text can't be made shorter: it fits, or another one is asked.
    promptFor: async candidate => ({ maxOutputTokens: (await roomFor(candidate, prompt)).room }),
    onText: stream?.push,
  };
  const given = await services.askModel(question);
  const answer: ModelAnswer = await continueTruncated(services.askModel, question, given, tokens);
  await stream?.end();
  return answer;
}

/** Tokens of the prompt, and of the answer's room beside it. Throws LIMIT with the numbers when the prompt does not fit. */
async function roomFor(candidate: Candidate, { messages, counted }: TargetPrompt) {
  const { window, maxOutput, id } = candidate.model;
  const factor = tokenFactor(id);
  const { answer: room } = planBudget({ window, maxOutput, reserved: 0 });
  const overhead = messages.length * tokensPerMessage;
  const free = window - room - overhead;
  const texts = messages.map(textOf);
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  // Bytes bound tokens: no need to look closer at what is short.
  if (bytes * factor <= free) return { tokens: Math.ceil(bytes * factor) + overhead, room };
  const estimated = texts.reduce((sum, text) => sum + estimateTokens(text, factor), 0);
  const tokens = estimated > free ? estimated : Math.ceil((await counted()) * factor);
  if (tokens > free) throw tooLong(candidate, tokens, { free, room });
  return { tokens: tokens + overhead, room };
}

function tooLong(candidate: Candidate, tokens: number, { free, room }: { free: number; room: number }): AppError {
  const { window, provider, id } = candidate.model;
  const message = `The text has about ${tokens} tokens; ${modelName(candidate)} has ${free} left for it with an answer of ${room}.`;
  return limitError('tokens', message, {
    provider,
    model: id,
    next: 'Shorten the text, or choose a model with a larger context window (see "listmodels").',
    data: { window, tokens, answer: room },
  });
}

export async function askTargets(run: FanoutRun, targets: readonly Target[]): Promise<TargetResponse[]> {
  const { call, text } = run;
  const [only] = targets.length === 1 ? targets : [];
  // Only one answer can be shown while it comes.
  const prompt = { ...promptForTargets(run, text), onText: only && call.request.onText };
  call.progress.stage(only ? `asking ${nameOf({ target: only })}` : `asking ${targets.length} models`);
  let sharers = targets.length;
  return askEach(run, targets, target => ({ ask: () => askTarget(run, target, { ...prompt, sharers: sharers-- }) }));
}

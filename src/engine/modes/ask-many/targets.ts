import { questionBase } from '../../../calls/ask/ask.ts';
import type { FanoutMode } from '../../../calls/tool.ts';
import { AppError, type FieldError, inputError, isAppError, limitError } from '../../../core/errors.ts';
import { safeCut } from '../../../core/text.ts';
import { estimateTokens } from '../../../core/tokens.ts';
import { findProvider, type ModelRequest } from '../../../models/routing/roster.ts';
import type { ModeServices } from '../mode.ts';
import { modelName, nameOf, resolveTarget, type Target, type TargetOutcome, type TargetResponse } from './ask-many.ts';
import { askTarget, type FanoutRun, promptForTargets } from './ask-targets.ts';
import { choosePanel, chooseSynthesizer } from './panelists.ts';

export const modelsField = 'models_prefixed_by_provider';

const maxModels = 24;

/** Characters of a name, in an error. */
const maxShownLength = 200;

/** The part of a window that a text may take at the most; the rest is the answer's. */
const textShare = 0.6;

/**
 * Who is asked, in the order of the request: the named models, else the operator's DEFAULT_MODELS, else the default model or
 * one that is chosen (several of different vendors, where a decision follows). A name that leads nowhere keeps its slot.
 */
export async function resolveTargets(run: FanoutRun, mode: FanoutMode): Promise<Target[]> {
  const { services, call, text } = run;
  const request = { category: mode.category, needs: {}, effort: call.common.effort };
  const promptTokens = estimateTokens(text);
  const chosen = {
    ...request,
    promptTokens,
    left: await services.leftToSpend(call.reqId, questionBase(call).payer),
  };
  const named = namesIn(call.args[modelsField]);
  if (named.length > maxModels) {
    throw limitError('size', `${named.length} models were named; one call asks at most ${maxModels}.`, {
      next: `Name at most ${maxModels} models.`,
    });
  }
  await assertPrefixed(services, modelsField, named, request);
  if (named.length > 0) return resolveNamed(services, named, request);
  const { defaultModels } = services.fanout;
  if (defaultModels.length > 0)
    return Promise.all(defaultModels.map(name => resolveName(services, { ...request, name })));
  const needs = { window: Math.ceil(promptTokens / textShare) };
  if (mode.decision !== undefined) return choosePanel(services, { ...chosen, needs });
  const { candidates, requested, corrected, warnings } = await services.route({ ...chosen, needs });
  const [first, ...others] = candidates;
  if (!first) throw inputError('No model can be asked.');
  return [{ model: requested, who: { candidates: [first, ...others], corrected }, warnings }];
}

/** Slots of names that a caller wrote: what stands before the colon is a provider, or the slot says that it is none. */
export function resolveNamed(
  services: ModeServices,
  names: readonly string[],
  request: Omit<ModelRequest, 'name'>,
): Promise<Target[]> {
  return Promise.all(
    names.map(async name =>
      hasProvider(services, name)
        ? resolveName(services, { ...request, name })
        : { model: name, who: { failure: noProvider(services, name) }, warnings: [] },
    ),
  );
}

async function resolveName(services: ModeServices, request: ModelRequest & { name: string }): Promise<Target> {
  const target = await resolveTarget(services, request);
  return 'failure' in target.who ? { ...target, who: { failure: withForm(target.who.failure) } } : target;
}

/** Other tools take a bare name, and so routing suggests some. */
function withForm(error: AppError): AppError {
  const { details, kind, message } = error;
  if (details.code !== 'MODEL_NOT_FOUND' || details.next === undefined) return error;
  return new AppError(kind, message, { ...details, next: `${details.next} Write it as provider:model.` });
}

function prefixOf(name: string): string | undefined {
  return /^([^:]*):/.exec(name)?.[1];
}

function hasProvider({ fanout }: ModeServices, name: string): boolean {
  const prefix = prefixOf(name);
  return prefix !== undefined && findProvider({ providers: fanout.prefixes }, prefix) !== undefined;
}

function noProvider({ fanout }: ModeServices, name: string): AppError {
  const allowed = fanout.prefixes.map(({ id, names: [short] }) => (short ? `${id} (${short})` : id));
  return new AppError('input', `"${safeCut(name, maxShownLength)}" names no provider of this installation.`, {
    code: 'PROVIDER_NOT_FOUND',
    class: 'unknown',
    next: `Before the colon may stand ${allowed.join(', ')}.`,
  });
}

/** Throws for names without a provider in front, with the names that they probably stand for. */
export async function assertPrefixed(
  services: ModeServices,
  field: string,
  names: readonly string[],
  request: Omit<ModelRequest, 'name'>,
): Promise<void> {
  const errors: FieldError[] = [];
  for (const name of names) {
    if (hasProvider(services, name)) continue;
    const meant = await meantBy(services, { ...request, name });
    // The name of no model either: before the colon stands a provider that is none of ours, and its own slot says so.
    if (prefixOf(name) !== undefined && meant === undefined) continue;
    errors.push({
      field,
      error: `"${safeCut(name, maxShownLength)}" names no provider`,
      allowed: [meant ?? 'provider:model'],
    });
  }
  if (errors.length === 0) return;
  const messages = errors.map(({ error }) => error).join(', ');
  throw inputError(`${messages}: every model is written as provider:model.`, {
    next: `Write ${errors.flatMap(({ allowed = [] }) => allowed).join(', ')}; "list_providers" and "list_models" have the names. Leave ${field} out to have the default asked.`,
    validationErrors: errors,
  });
}

async function meantBy({ route }: ModeServices, request: ModelRequest): Promise<string | undefined> {
  try {
    const { candidates, corrected } = await route(request);
    const [first] = candidates;
    return first && !corrected ? modelName(first) : undefined;
  } catch (error) {
    // Nobody knows it: then there is nothing to suggest.
    if (!isAppError(error) || error.kind === 'bug') throw error;
    return undefined;
  }
}

function namesIn(value: unknown): string[] {
  // Hosts that know no lists send "a,b".
  const list = Array.isArray(value) ? value.map(String) : [];
  return list.flatMap(item => item.split(',')).flatMap(item => item.trim() || []);
}

const field = 'ceo_model';

/** Who decides: the named model, else one that is not on the board, else the best of the board. Throws when it can't be asked. */
export async function resolveDecider(
  run: FanoutRun,
  { category }: FanoutMode,
  board: readonly Target[],
): Promise<Target> {
  const { services, call } = run;
  const request = { category, needs: {}, effort: call.common.effort };
  const name = call.args[field];
  if (typeof name === 'string') {
    await assertPrefixed(services, field, [name], request);
    const [target] = await resolveNamed(services, [name], request);
    if (target && 'candidates' in target.who) return target;
    if (target && 'failure' in target.who) throw target.who.failure;
  }
  const candidates = await chooseSynthesizer(services, undefined, board, request);
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
    const model = attribute(nameOf(response));
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
function literal(text: string): string {
  return `<![CDATA[\n${text.replaceAll(']]>', ']]]]><![CDATA[>')}\n]]>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function attribute(text: string): string {
  return escaped(text).replaceAll('"', '&quot;');
}

import { maskAnswer, withoutSecrets } from '../../../calls/ask/redaction.ts';
import type { ParsedCall } from '../../../calls/call-record.ts';
import { errorOf, isTruncated, localMetadata, nonEmpty, roundedCost, usageDocument } from '../../../calls/reply.ts';
import { inParallel } from '../../../core/concurrency.ts';
import { AppError, type ErrorDetails, inputError, isAppError, throwIfAborted } from '../../../core/errors.ts';
import type { JsonObject } from '../../../core/json.ts';
import { type Candidates, modelName } from '../../../core/model.ts';
import { addUsage, type Usage } from '../../../core/usage.ts';
import type { ModelAnswer } from '../../../models/ask-model.ts';
import type { Resolution } from '../../../models/routing/resolve.ts';
import type { ModelRequest } from '../../../models/routing/roster.ts';
import type { ModeServices } from '../mode.ts';

export interface Target {
  /** As the caller, or the operator's default, named it. */
  model: string;
  /** The model and, where others serve it too, those; or why it can't be asked. */
  who: { candidates: Candidates; corrected?: Resolution['corrected'] } | { failure: AppError };
  warnings: string[];
}

/** How one question to one model ended. `answer` has its secrets masked; `said` is what the model wrote, for files alone. */
export type TargetOutcome =
  | { status: 'success'; answer: ModelAnswer; said: string }
  | { status: 'error'; error: AppError; latencyMs: number }
  /** It was not asked: for its cost, or because no time was left. */
  | { status: 'skipped'; error: AppError; because: 'cost' | 'deadline' };

export interface TargetResponse<Asked extends Target = Target> {
  target: Asked;
  outcome: TargetOutcome;
}

/** What the questions of one call have in common. */
export interface ManyRun {
  services: ModeServices;
  /** With its secrets masked. */
  call: ParsedCall;
  /** Keys masks: the thread, or the call where there is none. */
  scope: string;
  /** Tokens and dollars of all answers so far. */
  spent: { usage: Usage; costUsd?: number };
}

const maxConcurrentModels = 5;

/** The model that answered, or that would have: as it is served, else as it was named. */
export function nameOf({ target: { who, model }, outcome }: { target: Target; outcome?: TargetOutcome }): string {
  if (outcome?.status === 'success') return modelName(outcome.answer.candidate);
  return 'candidates' in who ? modelName(who.candidates[0]) : model;
}

export type NamedRequest = ModelRequest & { name: string };

/** Finds out who a name stands for, with those who serve the same model elsewhere; or why nobody can be asked. */
export async function resolveTarget({ route }: Pick<ModeServices, 'route'>, request: NamedRequest): Promise<Target> {
  const { name: model } = request;
  try {
    const { candidates, corrected, warnings } = await route(request);
    if (request.needs.vision && !candidates[0].model.input.includes('image'))
      throw inputError(`${modelName(candidates[0])} takes no images.`, {
        next: 'Name a model that sees images ("listmodels" says which) in its place, or leave the images out.',
      });
    return { model, who: { candidates, corrected }, warnings };
  } catch (error) {
    // The others can still be asked: what is wrong with this one is told in its place.
    if (!isAppError(error) || error.kind === 'bug') throw error;
    return { model, who: { failure: error }, warnings: [] };
  }
}

/** Asks one model. Never throws for a model that fails; a call that was cancelled does. */
export async function askOneTarget(run: ManyRun, ask: () => Promise<ModelAnswer>): Promise<TargetOutcome> {
  const { services, call, scope, spent } = run;
  const { clock, mask } = services;
  const began = clock.monotonic();
  try {
    throwIfAborted(call.signal);
    const answer = await ask();
    const { usage, costUsd, latencyMs, text } = answer;
    spent.usage = addUsage(spent.usage, usage);
    if (costUsd !== undefined) spent.costUsd = (spent.costUsd ?? 0) + costUsd;
    if (text.trim() === '') return { status: 'error', error: emptyAnswer(answer), latencyMs };
    return { status: 'success', answer: await maskAnswer(mask, scope, answer), said: text.toWellFormed() };
  } catch (error) {
    throwIfAborted(call.signal);
    // One model's failure is told in its place; the others are asked all the same.
    if (!isAppError(error) || error.kind === 'bug') throw error;
    return { status: 'error', error: await withoutSecrets(mask, scope, error), latencyMs: clock.monotonic() - began };
  }
}

const emptyAnswer = ({ candidate, finish }: ModelAnswer): AppError =>
  new AppError('model', `${modelName(candidate)} answered without a text (${finish.raw ?? finish.kind}).`, {
    code: 'API_ERROR',
    class: 'bad_upstream',
    provider: candidate.model.provider,
    model: candidate.model.id,
    next: 'Retry, or choose another model in its place.',
  });

/** A question that can be asked, once. */
export interface ReadyQuestion {
  ask(): Promise<TargetOutcome>;
  /** Frees what was reserved for it, unless it was asked. */
  release?(): void;
}

/** Makes all questions ready, in their order, then asks a few at a time. Responses come in the order of the targets. */
export async function askEach<Asked extends Target>(
  { call }: Pick<ManyRun, 'call'>,
  targets: readonly Asked[],
  ready: (target: Asked) => ReadyQuestion | Promise<ReadyQuestion>,
  round = '',
): Promise<TargetResponse<Asked>[]> {
  const questions: (ReadyQuestion & { target: Asked })[] = [];
  let count = 0;
  try {
    for (const target of targets) questions.push({ ...(await ready(target)), target });
    return await inParallel(questions, maxConcurrentModels, async ({ target, ask }) => {
      const response = { target, outcome: await ask() };
      call.progress.stage(`${round}${outcomeText(response)} (${++count} of ${questions.length})`);
      return response;
    });
  } finally {
    for (const { release } of questions) release?.();
  }
}

function outcomeText(response: TargetResponse): string {
  const { outcome } = response;
  const name = nameOf(response);
  if (outcome.status === 'success') return `${name} answered in ${(outcome.answer.latencyMs / 1_000).toFixed(1)} s`;
  return outcome.status === 'error' ? `${name} failed` : `${name} was not asked (${outcome.because})`;
}

/** One error for models that all failed: of the first one's kind, and of its class where the others share that. */
export function errorOfAll(
  [first, ...others]: readonly [AppError, ...AppError[]],
  message: string,
  { next, retryable }: Pick<ErrorDetails, 'next' | 'retryable'>,
): AppError {
  const { code, class: kind } = first.details;
  const alike = others.every(error => error.details.class === kind);
  return new AppError(first.kind, message, { code, class: alike ? kind : 'exhausted_fallback_chain', next, retryable });
}

/** What an answer took, and whether it is whole. */
export function answerFacts(answer: ModelAnswer): JsonObject {
  const { latencyMs, usage, costUsd } = answer;
  return {
    partial: isTruncated(answer) ? true : undefined,
    latency_ms: Math.round(latencyMs),
    tokens: { input: usage.input, output: usage.output },
    cost_usd: roundedCost(costUsd),
  };
}

/** An entry of a reply, and the answer that stands in it under `response`. */
export interface TargetEntry {
  facts: JsonObject;
  text?: string | undefined;
}

/** A response as replies show it, without the answer's text. */
export function targetFacts(response: TargetResponse): JsonObject {
  const { target, outcome } = response;
  const corrected = 'candidates' in target.who && target.who.corrected ? { ...target.who.corrected } : undefined;
  const facts = { model: nameOf(response), requested: target.model, model_corrected: corrected };
  if ('error' in outcome) return { ...facts, warnings: nonEmpty(target.warnings), error: errorOf(outcome.error) };
  const { answer } = outcome;
  return {
    ...facts,
    ...answerFacts(answer),
    warnings: nonEmpty([...target.warnings, ...answer.warnings]),
    citations: nonEmpty(answer.citations.map(citation => ({ ...citation }))),
  };
}

/** The call as a whole: what it took, all models together. */
export function runMetadata({ services, call, spent }: ManyRun, warnings: readonly string[] = []): JsonObject {
  const all = [...new Set([...call.warnings, ...warnings])];
  return {
    ...localMetadata({ ...call, warnings: all }, services.clock.monotonic() - call.startedAt),
    usage: usageDocument(spent.usage),
    cost_usd: roundedCost(spent.costUsd),
  };
}

import { type Exchange, questionBase } from '../../../calls/ask/ask.ts';
import { maskAnswer, withoutSecrets } from '../../../calls/ask/redaction.ts';
import { askedSearch } from '../../../calls/ask/route-call.ts';
import type { PreparedCall, ThreadedCall } from '../../../calls/call-record.ts';
import { AppError, type ErrorDetails, isAppError, throwIfAborted } from '../../../core/errors.ts';
import { type Message, textOf } from '../../../core/message.ts';
import { estimateTokens, tokenFactor } from '../../../core/tokens.ts';
import { addUsage, type Usage } from '../../../core/usage.ts';
import type { ModelAnswer, ModelQuestion } from '../../../models/ask-model.ts';
import type { ReservedQuestion } from '../../../models/spend-meter.ts';
import type { ModeServices } from '../mode.ts';
import { type Candidates, modelName } from './panelists.ts';

/** How one question to one model ended. */
export type PanelOutcome =
  | { status: 'success'; answer: ModelAnswer }
  | { status: 'error'; error: AppError; latencyMs: number }
  /** It was not asked: for its cost, or because no time was left. */
  | { status: 'skipped'; because: 'cost' | 'deadline'; message: string; next?: string };

/** Tokens and dollars of all answers of a call so far. */
export interface Spending {
  usage: Usage;
  costUsd?: number;
}

/** What the questions of one call have in common. */
export interface PanelRun {
  services: ModeServices;
  call: ThreadedCall;
  spent: Spending;
  exchange: Exchange;
}

/** What one model is to be asked, or why it can't be. */
export type PanelPrompt = (PreparedCall & Pick<ModelQuestion, 'promptFor'>) | { failure: AppError };

export interface PanelQuestion extends Pick<ModelQuestion, 'promptFor'> {
  candidates: Candidates;
  messages: readonly Message[];
  /** Room for the answer in the model's window. */
  maxOutputTokens: number;
  /** How many questions of the call, this one included, still want a part of its money; absent: this one alone. */
  sharers?: number;
  /** As of a question to a model. */
  wholeOnly?: boolean;
}

export function tokensOf(messages: readonly Message[], { model }: Candidates[0]): number {
  return messages.reduce((sum, message) => sum + estimateTokens(textOf(message), tokenFactor(model.id)), 0);
}

/** A question whose cost is reserved. Asking never throws for a model that fails; for a call that was cancelled it does. */
export interface ReadyQuestion {
  ask(): Promise<PanelOutcome>;
  /** Frees what was reserved, unless it was asked. */
  release(): void;
}

export async function readyQuestion(run: PanelRun, question: PanelQuestion): Promise<ReadyQuestion> {
  const { services, call } = run;
  const [{ model: first }] = question.candidates;
  try {
    const reserved = await services.reserve({
      ...questionBase(call),
      ...question,
      payer: { owner: call.request.principal.owner, thread: call.thread.id },
      webSearch: askedSearch(services.webSearch, call.common),
      // Another provider's model takes the place at once.
      once: question.candidates.some(({ model }) => model.provider !== first.provider),
      cacheKey: call.thread.id,
    });
    return { ask: () => ask(run, reserved), release: reserved.release };
  } catch (error) {
    const outcome = await outcomeOfError(run, error, 0);
    return { ask: async () => outcome, release: () => {} };
  }
}

/** The same for a prompt that may not have been made. */
export async function readyPrompt(run: PanelRun, prompt: PanelPrompt, sharers: number): Promise<ReadyQuestion> {
  if ('failure' in prompt) {
    const { failure: error } = prompt;
    return { ask: async () => ({ status: 'error', error, latencyMs: 0 }), release: () => {} };
  }
  const { candidates, messages, budget, promptFor } = prompt;
  return readyQuestion(run, { candidates, messages, promptFor, maxOutputTokens: budget.answer, sharers });
}

async function ask(run: PanelRun, reserved: ReservedQuestion): Promise<PanelOutcome> {
  const { services, call } = run;
  const { clock, panel } = services;
  const began = clock.monotonic();
  const left = call.startedAt + panel.totalMs - began;
  if (left < 1_000) {
    reserved.release();
    const message = `The ${panel.totalMs / 1_000} s of the call as a whole were used up.`;
    return { status: 'skipped', because: 'deadline', message };
  }
  try {
    const answer = await reserved.ask({ limits: { totalMs: Math.min(panel.modelMs, left) } });
    addSpending(run.spent, answer);
    const masked = await maskAnswer(services.mask, call.thread.id, answer);
    return masked.text.trim() === ''
      ? { status: 'error', error: emptyAnswer(masked), latencyMs: masked.latencyMs }
      : { status: 'success', answer: masked };
  } catch (error) {
    return outcomeOfError(run, error, clock.monotonic() - began);
  }
}

async function outcomeOfError({ services, call }: PanelRun, error: unknown, latencyMs: number): Promise<PanelOutcome> {
  throwIfAborted(call.signal);
  if (isAppError(error) && error.kind === 'limit' && error.details.class === 'cost') {
    return { status: 'skipped', because: 'cost', message: error.message, next: error.details.next };
  }
  // One model's failure is told in its place; the others are asked all the same.
  if (!isAppError(error) || error.kind === 'bug') throw error;
  return { status: 'error', error: await withoutSecrets(services.mask, call.thread.id, error), latencyMs };
}

export function emptyAnswer({ candidate, finish }: ModelAnswer): AppError {
  return new AppError('model', `${modelName(candidate)} answered without a text (${finish.raw ?? finish.kind}).`, {
    code: 'API_ERROR',
    class: 'bad_upstream',
    provider: candidate.model.provider,
    model: candidate.model.id,
    next: 'Ask again, or name another model in its place.',
  });
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

export function addSpending(spent: Spending, { usage, costUsd }: ModelAnswer): void {
  spent.usage = addUsage(spent.usage, usage);
  if (costUsd !== undefined) spent.costUsd = (spent.costUsd ?? 0) + costUsd;
}

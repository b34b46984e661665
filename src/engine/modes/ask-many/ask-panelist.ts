import { type Exchange, questionBase } from '../../../calls/ask/ask.ts';
import { maskAnswer, withoutSecrets } from '../../../calls/ask/redaction.ts';
import { askedSearch } from '../../../calls/ask/route-call.ts';
import type { ThreadedCall } from '../../../calls/call-record.ts';
import { AppError, type ErrorDetails, isAppError, throwIfAborted } from '../../../core/errors.ts';
import { type Message, textOf } from '../../../core/message.ts';
import { estimateTokens, tokenFactor } from '../../../core/tokens.ts';
import { addUsage, type Usage } from '../../../core/usage.ts';
import type { ModelAnswer, ModelQuestion } from '../../../models/ask-model.ts';
import { type CallBudget, callLimit, createCallBudget, promptTokens } from '../../../models/budget.ts';
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
  budget: CallBudget;
  spent: Spending;
  exchange: Exchange;
}

export interface PanelQuestion extends Pick<ModelQuestion, 'promptFor'> {
  candidates: Candidates;
  messages: readonly Message[];
  /** Room for the answer in the model's window. */
  maxOutputTokens: number;
  sharers: number;
  /** As of a question to a model. */
  wholeOnly?: boolean;
}

export function tokensOf(messages: readonly Message[], { model }: Candidates[0]): number {
  return messages.reduce((sum, message) => sum + estimateTokens(textOf(message), tokenFactor(model.id)), 0);
}

/**
 * Prepares a question at once (its cost is reserved) and asks it when the result is called. Never throws for a model that
 * fails; a call that was cancelled does.
 */
export function askPanelist(run: PanelRun, question: PanelQuestion): () => Promise<PanelOutcome> {
  const { candidates, messages, sharers } = question;
  const webSearch = askedSearch(run.services.webSearch, run.call.common);
  const inputTokens = promptTokens(messages, candidates);
  const grant = run.budget.take({ candidates, inputTokens, webSearch, sharers });
  if ('refused' in grant) {
    const { refused: message, next } = grant;
    return async () => ({ status: 'skipped', because: 'cost', message, next });
  }
  return async () => {
    const outcome = await ask(run, { ...question, maxOutputTokens: room(question, grant.maxOutputTokens) });
    grant.settle(paidFor(outcome));
    if (outcome.status !== 'success') return outcome;
    addSpending(run.spent, outcome.answer);
    const { text, latencyMs } = outcome.answer;
    return text.trim() === '' ? { status: 'error', error: emptyAnswer(outcome.answer), latencyMs } : outcome;
  };
}

function room({ maxOutputTokens }: PanelQuestion, affordable: number | undefined): number {
  return Math.min(maxOutputTokens, affordable ?? maxOutputTokens);
}

async function ask({ services, call }: PanelRun, question: PanelQuestion): Promise<PanelOutcome> {
  const { clock } = services;
  const began = clock.monotonic();
  const left = call.startedAt + services.panel.totalMs - began;
  if (left < 1_000) {
    const seconds = services.panel.totalMs / 1_000;
    return { status: 'skipped', because: 'deadline', message: `The ${seconds} s of the call as a whole were used up.` };
  }
  try {
    const { candidates, messages, maxOutputTokens, promptFor, sharers, wholeOnly } = question;
    const [{ model: first }] = candidates;
    const answer = await services.askModel({
      ...questionBase(call),
      payer: { owner: call.request.principal.owner, thread: call.thread.id },
      candidates,
      webSearch: askedSearch(services.webSearch, call.common),
      messages,
      promptFor,
      sharers,
      // Another provider's model takes the place at once.
      once: candidates.some(({ model }) => model.provider !== first.provider),
      maxOutputTokens,
      wholeOnly,
      cacheKey: call.thread.id,
      limits: { totalMs: Math.min(services.panel.modelMs, left) },
    });
    return { status: 'success', answer: await maskAnswer(services.mask, call.thread.id, answer) };
  } catch (error) {
    throwIfAborted(call.signal);
    if (isAppError(error) && error.kind === 'limit' && error.details.class === 'cost') {
      return { status: 'skipped', because: 'cost', message: error.message, next: error.details.next };
    }
    // One model's failure is told in its place; the others are asked all the same.
    if (!isAppError(error) || error.kind === 'bug') throw error;
    const masked = await withoutSecrets(services.mask, call.thread.id, error);
    return { status: 'error', error: masked, latencyMs: clock.monotonic() - began };
  }
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

/** What a vendor charges for an answer that did not come in time is not told: what was reserved counts then. */
function paidFor(outcome: PanelOutcome): number | undefined {
  if (outcome.status === 'success') return outcome.answer.costUsd;
  if (outcome.status === 'error' && outcome.error.details.class === 'timeout') return undefined;
  return 0;
}

export function addSpending(spent: Spending, { usage, costUsd }: ModelAnswer): void {
  spent.usage = addUsage(spent.usage, usage);
  if (costUsd !== undefined) spent.costUsd = (spent.costUsd ?? 0) + costUsd;
}

/** The money of a call that may ask for a limit of its own. */
export function panelBudget({ panel }: ModeServices, asked: number | undefined): CallBudget {
  return createCallBudget(callLimit(panel.maxCostUsd, asked), panel.pricing);
}

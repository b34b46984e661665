import { AppError, bugError, throwIfAborted } from '../domain/error.ts';
import type { Candidate } from '../domain/model.ts';
import type { Clock, Emit, Random } from '../domain/ports.ts';
import { estimateTokens, tokenFactor } from '../domain/tokens.ts';
import { costOf, type Usage } from '../domain/usage.ts';
import type { AskModel, AttemptRecord, CallLimits, ModelAnswer, ModelQuestion } from './answer.ts';
import { type AttemptOutcome, attempt, orAbort } from './attempt.ts';
import { toModelError } from './errors.ts';
import { toPrompt } from './prompt.ts';
import type { Connection } from './provider.ts';
import { limitsFor, startClocks } from './resilience/clocks.ts';
import { maxAttempts, retryDelay } from './resilience/retry.ts';

export interface AskModelParts {
  connection(providerId: string): Promise<Connection>;
  clock: Clock;
  random: Random;
  emit: Emit;
  /** Endpoints on this machine or network get wider limits. */
  isLocal(providerId: string): boolean;
  /** The configured limits; reasoning models and local endpoints get a multiple. */
  limits: CallLimits;
  /** Environment variable of a provider's key, for the advice in errors. */
  keyName?(providerId: string): string | undefined;
}

/** Waiting longer than this for one vendor makes no sense while another candidate is left. */
const patienceWithOthersLeftMs = 10_000;
/** Callers give up after a minute or so; one that is told when to come back can do something else meanwhile. */
const patienceMs = 60_000;

/** One attempt, told in our words. */
interface Try extends Omit<AttemptOutcome, 'failure'> {
  candidate: Candidate;
  error?: AppError;
}

/** The state of one question on its way through its candidates. */
interface Run {
  parts: AskModelParts;
  question: ModelQuestion;
  /** Monotonic milliseconds. */
  started: number;
  /** The widest total limit among the candidates; the call ends then. */
  totalMs: number;
  attempts: AttemptRecord[];
  failures: AppError[];
  /** The longest text that came before a stream broke. */
  broken?: Try;
}

/**
 * Asks the candidates in order, each up to three times, and answers with the first whole answer. A vendor's text that broke
 * off is the answer (`partial`) when nothing better came. The one place where calls are retried.
 */
export function createAskModel(parts: AskModelParts): AskModel {
  return async question => {
    throwIfAborted(question.signal);
    let left = [...question.candidates];
    const totalMs = Math.max(...left.map(candidate => limitsOf(parts, question, candidate).totalMs));
    const run: Run = { parts, question, started: parts.clock.monotonic(), totalMs, attempts: [], failures: [] };
    for (let candidate = left.shift(); candidate; candidate = left.shift()) {
      const last = await askCandidate(run, candidate, left.length > 0);
      if (!last.error) return answerOf(run, last);
      run.failures.push(last.error);
      if (last.passedOn) break;
      left = othersAfter(last.error, candidate, left);
    }
    if (run.broken) return answerOf(run, run.broken);
    throw failureOf(run);
  };
}

function limitsOf(parts: AskModelParts, question: ModelQuestion, { model, effort }: Candidate): CallLimits {
  const reasoning = model.reasoning && effort !== 'none';
  return limitsFor(parts.limits, { reasoning, local: parts.isLocal(model.provider) }, question.limits);
}

async function askCandidate(run: Run, candidate: Candidate, othersLeft: boolean): Promise<Try> {
  const { parts, question } = run;
  const limits = { ...limitsOf(parts, question, candidate), totalMs: run.totalMs };
  const remaining = () => run.started + run.totalMs - parts.clock.monotonic();
  for (let count = 1; ; count++) {
    const began = parts.clock.monotonic();
    const last = await tryOnce(run, candidate, limits, remaining());
    const tell = (outcome: Told, nextInMs?: number) =>
      record(run, last, { outcome, elapsedMs: parts.clock.monotonic() - began, nextInMs });
    if (question.signal.aborted) {
      tell('cancelled');
      throwIfAborted(question.signal);
    }
    if (!last.error) {
      tell('ok');
      return last;
    }
    keepBroken(run, last);
    const patience = Math.min(remaining(), othersLeft ? patienceWithOthersLeftMs : patienceMs);
    const wait =
      count < maxAttempts && mayRetry(last, othersLeft) ? waitBefore(run, count, last.error, patience) : undefined;
    if (wait === undefined) {
      tell('failed');
      return last;
    }
    tell('retry', wait);
    await sleep(run, wait);
  }
}

/**
 * Never after text was passed on: it can't be taken back. A vendor that let a clock run out is not asked again while
 * another candidate is left, since each such attempt costs minutes.
 */
function mayRetry(last: Try, othersLeft: boolean): boolean {
  if (last.passedOn || last.error?.details.retryable !== true) return false;
  return !(othersLeft && last.error.details.class === 'timeout');
}

function waitBefore(run: Run, count: number, error: AppError, patienceMs: number): number | undefined {
  const { retryAfterSeconds } = error.details;
  return retryDelay({ attempt: count, random: run.parts.random, retryAfterSeconds, patienceMs });
}

async function sleep(run: Run, ms: number): Promise<void> {
  try {
    await run.parts.clock.sleep(ms, run.question.signal);
  } catch (error) {
    // Only the caller's signal ends the sleep; it is told as a cancelled call, whatever its reason was.
    throwIfAborted(run.question.signal);
    throw error;
  }
}

async function tryOnce(run: Run, candidate: Candidate, limits: CallLimits, remainingMs: number): Promise<Try> {
  const { parts, question } = run;
  const { model } = candidate;
  const clocks = startClocks({ clock: parts.clock, limits, remainingMs, parent: question.signal });
  const nothing = { candidate, text: '', passedOn: false, reasoningChars: 0, citations: [], warnings: [] };
  let connection: Connection;
  try {
    connection = await orAbort(parts.connection(model.provider), clocks.signal);
  } catch (error) {
    clocks.stop(true);
    return { ...nothing, error: errorOf(run, candidate, clocks.expired() ?? error) };
  }
  try {
    const { call, warnings } = callOf(question, candidate, connection);
    const input = {
      model: connection.languageModel(model),
      provider: model.provider,
      call,
      clocks,
      onText: question.onText,
      onProgress: question.onProgress,
    };
    const { failure, ...rest } = await attempt(input);
    const error = failure === undefined ? undefined : errorOf(run, candidate, failure);
    return { ...rest, candidate, warnings: [...warnings, ...rest.warnings], error };
  } finally {
    clocks.stop(false);
  }
}

function callOf(question: ModelQuestion, candidate: Candidate, connection: Connection) {
  const { model, effort, thinkingBudget } = candidate;
  const { prompt, warnings } = toPrompt(question.messages, connection, model);
  const refused = model.temperature === 'none' && question.temperature !== undefined;
  if (refused) warnings.push(`The temperature was left out: ${model.provider}:${model.id} takes none.`);
  // Always sent: what vendors assume without it ranges from 4,096 to all they have.
  const maxOutputTokens = Math.max(1, Math.min(question.maxOutputTokens, model.maxOutput));
  const { cacheKey, webSearch } = question;
  const params = { model, effort, thinkingBudget, maxOutputTokens, cacheKey, webSearch };
  const tools = connection.vendorTools?.(params) ?? [];
  return {
    call: {
      prompt,
      maxOutputTokens,
      temperature: refused ? undefined : question.temperature,
      ...(tools.length > 0 && { tools }),
      providerOptions: connection.providerOptions(params),
    },
    warnings,
  };
}

function errorOf(run: Run, { model }: Candidate, failure: unknown): AppError {
  return toModelError(failure, {
    provider: model.provider,
    model: model.id,
    attempt: run.attempts.length + 1,
    now: run.parts.clock.now(),
    keyName: run.parts.keyName?.(model.provider),
  });
}

type Told = AttemptRecord['outcome'] | 'cancelled';

function record(run: Run, last: Try, told: { outcome: Told; elapsedMs: number; nextInMs?: number }): void {
  const { outcome, elapsedMs, nextInMs } = told;
  const { provider, id: model } = last.candidate.model;
  const cancelled = outcome === 'cancelled';
  const failureClass = cancelled ? 'cancelled' : last.error?.details.class;
  run.attempts.push({ provider, model, outcome: cancelled ? 'failed' : outcome, class: failureClass, elapsedMs });
  const { reqId, tool } = run.question;
  const { status } = last.error?.details ?? {};
  const { usage } = last;
  const number = run.attempts.length;
  const event = { reqId, attempt: number, tool, provider, model, elapsedMs, outcome, class: failureClass };
  run.parts.emit({ type: 'model.attempt', ...event, status, usage, nextInMs });
  if (outcome === 'ok' || !usage) return;
  const costUsd = last.costUsd ?? costOf(usage, last.candidate.model.price);
  run.question.onWaste?.({ model: last.candidate.model, usage, costUsd });
}

function keepBroken(run: Run, last: Try): void {
  if (last.text.trim() === '') return;
  if (last.passedOn || last.text.length > (run.broken?.text.length ?? 0)) run.broken = last;
}

/**
 * Who may still be asked. Refused content is not carried from vendor to vendor; a prompt that is too long goes only to wider
 * windows; a request that one vendor calls malformed is our mistake, but for a model that it does not have (404).
 */
function othersAfter(error: AppError, failed: Candidate, left: Candidate[]): Candidate[] {
  switch (error.details.class) {
    case 'content_filter':
      return [];
    case 'context_length':
      return left.filter(candidate => candidate.model.window > failed.model.window);
    case 'timeout':
      // Not retryable is the total limit: no time is left for anyone.
      return error.details.retryable ? left : [];
    case 'bad_request':
      return error.details.status === 404 ? left : [];
    case 'auth':
    case 'balance':
    case 'quota':
      // The key is refused or spent, not the model: its provider's other models have the same one.
      return left.filter(candidate => candidate.model.provider !== failed.model.provider);
    default:
      return left;
  }
}

function answerOf(run: Run, last: Try): ModelAnswer {
  const { candidate, text, citations, error } = last;
  const { model } = candidate;
  const usage = last.usage ?? estimatedUsage(run, last);
  const warnings = new Set(last.warnings);
  if (!last.usage) warnings.add(`${model.provider} told no token counts; they are estimated.`);
  if (error) warnings.add(`The answer broke off: ${error.message}`);
  return {
    text,
    model,
    candidate,
    usage,
    // What the vendor says it charged is right, whatever the catalogue says.
    costUsd: last.costUsd ?? costOf(usage, model.price),
    finish: error ? { kind: 'other', raw: 'interrupted' } : (last.finish ?? { kind: 'other' }),
    partial: error !== undefined,
    citations,
    attempts: run.attempts,
    latencyMs: run.parts.clock.monotonic() - run.started,
    warnings: [...warnings],
  };
}

/** Better than nothing for caps and sums when a stream broke or a server does not count. */
function estimatedUsage(run: Run, last: Try): Usage {
  const factor = tokenFactor(last.candidate.model.id);
  const texts = run.question.messages.flatMap(({ parts }) =>
    parts.map(part => (part.type === 'text' ? part.text : '')),
  );
  const input = texts.reduce((sum, text) => sum + estimateTokens(text, factor), 0);
  const reasoning = Math.ceil(last.reasoningChars / 4);
  return { input, output: estimateTokens(last.text, factor) + reasoning, reasoning, cacheRead: 0, cacheWrite: 0 };
}

function failureOf(run: Run): AppError {
  const [first, ...more] = run.failures;
  if (!first) return bugError('A model was to be asked without any candidate.');
  if (more.length === 0) return first;
  const told = run.failures.map(
    ({ message, details }) => `${details.provider}:${details.model} (${details.class}): ${message}`,
  );
  const waits = run.failures.map(error => error.details.retryAfterSeconds).filter(wait => wait !== undefined);
  return new AppError('model', `All ${told.length} models that were asked failed. ${told.join(' · ')}`, {
    code: 'API_ERROR',
    class: 'exhausted_fallback_chain',
    next: `Call again in a while or name another model. About the first: ${first.details.next ?? first.message}`,
    provider: first.details.provider,
    model: first.details.model,
    retryable: run.failures.some(error => error.details.retryable === true),
    retryAfterSeconds: waits.length > 0 ? Math.min(...waits) : undefined,
    data: { attempts: run.attempts },
  });
}

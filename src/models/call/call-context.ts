import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { AppError, bugError } from '../../core/errors.ts';
import type { Candidate, ModelInfo } from '../../core/model.ts';
import type { Clock, Emit, LogExchange, Random } from '../../core/ports.ts';
import type { AttemptRecord, Citation } from '../../core/thread.ts';
import { estimateTokens, tokenFactor } from '../../core/tokens.ts';
import { costOf, type Fees, noUsage, type Usage } from '../../core/usage.ts';
import { type CallLimits, fullWindow, type ModelAnswer, type ModelQuestion, pausedTurn } from '../ask-model.ts';
import { promptTokens } from '../budget.ts';
import { type Connection, plainModel } from '../provider.ts';
import type { Resilience } from '../resilience/policy.ts';
import type { AttemptOutcome } from './attempt.ts';

export interface AskModelParts {
  connection(providerId: string): Promise<Connection>;
  clock: Clock;
  random: Random;
  emit: Emit;
  /** Gets each question as it is sent, and what came of it; absent: nobody wants to know. */
  logExchange?: LogExchange;
  /** Endpoints on this machine or network get wider limits. */
  isLocal(providerId: string): boolean;
  /** Whether a model can search the web by itself; absent: none can. */
  searches?(model: ModelInfo): boolean;
  /** The configured limits; reasoning models and local endpoints get a multiple, of `totalMs` only where it is not `exact`. */
  limits: CallLimits;
  /** A provider's own limits for a model, which nothing widens; absent: the configured ones. */
  limitsOf?(model: ModelInfo): CallLimits | undefined;
  /** Environment variable of a provider's key, for the advice in errors. */
  keyName?(providerId: string): string | undefined;
  /** The values of a provider's secret settings, which no error may repeat. */
  keysOf?(providerId: string): readonly string[];
  /** Breakers, the budget of retries and the queue. Absent: nothing stands between a call and its vendors. */
  resilience?: Resilience;
  /** When nobody answers a chat, the caller gets a text that says so instead of an error. */
  lastAnswer?: boolean;
}

/** One attempt, told in our words. `usage` and `costUsd` are what it is billed for; absent: nothing, or nobody knows the price. */
export interface AttemptContext extends Omit<AttemptOutcome, 'failure' | 'uses' | 'told' | 'accepted'> {
  candidate: Candidate;
  error?: AppError;
  /** It was not asked at all: a breaker is open, or too many are waiting. */
  skipped?: boolean;
  /** Our own side did not get as far as asking: says nothing about the vendor. */
  unasked?: boolean;
}

/** The state of one question on its way through its candidates. */
export interface CallContext {
  parts: AskModelParts;
  question: ModelQuestion;
  /** Monotonic milliseconds. */
  started: number;
  /** Milliseconds that its attempts waited for places to run in. */
  queuedMs: number;
  /** The widest total limit among the candidates; the call ends then. */
  totalMs: number;
  failed: Set<string>;
  attempts: AttemptRecord[];
  failures: AppError[];
  /** The longest text that came before a stream broke. */
  broken?: AttemptContext;
  /** Requests that may still be made; absent: no vendor has begun to answer in vain so far, and each may be asked in turn. */
  requestsLeft?: number;
}

/** Characters from which on an answer that broke off is worth more than one that is paid for a second time. */
const usefulChars = 100;

const thoughts = /<think(?:ing)?>[\s\S]*?(?:<\/think(?:ing)?>|$)/g;

/**
 * Whether what came of a broken answer is of use to who asked: text that can be read on its own. Thoughts, a call of a tool
 * that was cut, and a piece of what a program reads are not. What was passed on can't be taken back.
 */
export function isUsefulPartial(question: ModelQuestion, { text, callChars, passedOn }: AttemptContext): boolean {
  if (passedOn) return true;
  const { wholeOnly, tools = [], toolChoice } = question;
  if (wholeOnly || callChars > 0 || (tools.length > 0 && toolChoice !== 'none')) return false;
  return text.replace(thoughts, '').replace(/\s+/g, '').length >= usefulChars;
}

export function answerOf(run: CallContext, last: AttemptContext): ModelAnswer {
  const { candidate, text, said, citations, error } = last;
  const { model } = candidate;
  const usage = last.usage ?? noUsage;
  const warnings = new Set(last.warnings);
  if (usage.estimated) {
    const counts = error ? 'broke off before it told all token counts; the rest is' : 'told no token counts; they are';
    warnings.add(`${model.provider} ${counts} estimated.`);
  }
  if (error) warnings.add(`The answer broke off: ${error.message}`);
  else if (last.finish) for (const remark of remarksOn(last.finish, candidate)) warnings.add(remark);
  for (const { details, message } of run.failures) {
    if (details.provider === model.provider && details.model === model.id) continue;
    const other = `${model.provider}:${model.id}`;
    const gaveNone = `${details.provider}:${details.model} gave no answer (${details.class}); ${other} did.`;
    warnings.add(details.data?.breaker === undefined ? gaveNone : `${message} ${other} answered.`);
  }
  return {
    text,
    ...(said && !error && { said }),
    model,
    candidate,
    usage,
    costUsd: last.costUsd ?? costOf(usage, model.price),
    finish: error ? { kind: 'other', raw: 'interrupted' } : (last.finish ?? { kind: 'other' }),
    partial: error !== undefined,
    citations: shownCitations(citations, run.question),
    ...(run.question.webSearch && { couldSearch: run.parts.searches?.(model) ?? false }),
    attempts: run.attempts,
    latencyMs: run.parts.clock.monotonic() - run.started,
    queuedMs: run.queuedMs,
    warnings: [...warnings],
    ...(last.providerMetadata && { providerMetadata: last.providerMetadata }),
  };
}

/** What is to be known of an end that the answer itself does not show. */
function remarksOn({ kind, raw }: ModelAnswer['finish'], { model: { provider, id } }: Candidate): string[] {
  if (kind === 'content_filter')
    return [`${provider} stopped the answer (${raw ?? 'content filter'}); what came before is all there is.`];
  if (raw === fullWindow)
    return [`The window of ${id} is full, so the answer ends there; start a new thread, or name a wider model.`];
  if (raw === pausedTurn) return [`${provider} paused its search before the answer was whole; ask again to go on.`];
  return kind === 'other' && raw !== undefined ? [`${provider} ended the answer (${raw}); it may not be whole.`] : [];
}

/** What the model quoted comes first; of the rest as much as a search was to bring. */
function shownCitations(citations: readonly Citation[], { webSearch }: ModelQuestion): Citation[] {
  const isPlain = ({ snippet }: Citation) => Number(snippet === undefined);
  return citations.toSorted((a, b) => isPlain(a) - isPlain(b)).slice(0, webSearch?.maxResults);
}

/**
 * What an attempt is billed for: the vendor's own counts, or what it told before the stream broke with an estimate of the
 * rest. Undefined: the vendor refused, failed before it began, or was not reached, which costs nothing.
 */
export function billedUsage(
  { messages, webSearch }: Pick<ModelQuestion, 'messages' | 'webSearch'>,
  candidate: Candidate,
  { finish, text, reasoningChars, callChars, accepted, ...outcome }: AttemptOutcome,
  fees: Fees | undefined,
): Usage | undefined {
  const rounds = outcome.steps ? Number.POSITIVE_INFINITY : 1 + (webSearch?.maxRounds ?? 0);
  const usage = unlessAbsurd(outcome.usage, candidate, rounds);
  const told = unlessAbsurd(outcome.told, candidate, rounds);
  const charged = fees && { fees };
  const isSilent = text === '' && reasoningChars + callChars === 0;
  if (usage && finish && usage.input > 0 && (usage.output > 0 || isSilent)) return { ...usage, ...charged };
  const known = { ...told, ...usage };
  const begun = accepted || known.input !== undefined || finish !== undefined || !isSilent;
  if (!begun) return charged && { ...noUsage, ...charged };
  // An end that tells of the prompt alone takes nothing back.
  const reasoning = Math.max(told?.reasoning ?? 0, known.reasoning ?? 0, Math.ceil(reasoningChars / 4));
  const output = estimateTokens(text, tokenFactor(candidate.model.id)) + reasoning + Math.ceil(callChars / 4);
  return {
    ...noUsage,
    ...known,
    input: known.input || promptTokens(messages, [candidate]),
    output: Math.max(told?.output ?? 0, known.output ?? 0, output),
    reasoning,
    ...charged,
    estimated: 1,
  };
}

/** How far counts may be above what fits a model: vendors count what they cache and think in different ways. */
const countSlack = 4;

/** Undefined for counts that no answer comes to in so many rounds. A program (infinite rounds) may ask its model any number of times. */
function unlessAbsurd<Counts extends Partial<Usage>>(counts: Counts | undefined, { model }: Candidate, rounds: number) {
  const { input = 0, cacheRead = 0, cacheWrite = 0, output = 0, reasoning = 0 } = counts ?? {};
  const most = countSlack * rounds;
  const fits = Math.max(input, cacheRead, cacheWrite) <= most * model.window;
  return fits && Math.max(output, reasoning) <= most * model.maxOutput ? counts : undefined;
}

/** What is thrown when nobody answered: the one failure as it is, or all of them by name. */
export function failureOf(run: CallContext): AppError {
  const [first, ...more] = run.failures;
  if (!first) return bugError('A model was to be asked without any candidate.');
  if (more.length === 0) return first;
  const messages = run.failures.map(
    ({ message, details }) => `${details.provider}:${details.model} (${details.class}): ${message}`,
  );
  const waits = run.failures.map(error => error.details.retryAfterSeconds).filter(wait => wait !== undefined);
  return new AppError('model', `All ${messages.length} models that were asked failed. ${messages.join(' · ')}`, {
    code: 'API_ERROR',
    class: 'exhausted_fallback_chain',
    next: `Retry later, or choose another model. For the first failure: ${first.details.next ?? first.message}`,
    provider: first.details.provider,
    model: first.details.model,
    retryable: run.failures.some(error => error.details.retryable === true),
    retryAfterSeconds: waits.length > 0 ? Math.min(...waits) : undefined,
    data: { attempts: run.attempts },
  });
}

/** Stands where an answer names its provider: nobody was reached. */
export const absentModel = plainModel({
  provider: 'nobody',
  id: 'no-model',
  name: 'No model answered',
  window: 1_000_000,
  maxOutput: 1_000,
  temperature: 'none',
  price: { in: 0, out: 0 },
  score: 1,
});

/** What the caller has to mend himself is told as the error that it is. */
const callersOwn = new Set(['content_filter', 'context_length', 'bad_request', 'config', 'over_capacity']);

/**
 * The last link of the chain, a text of our own that says what happened and what can be done. It claims to be nothing else.
 * Undefined but for `chat`, where the operator wants it and vendors are at fault.
 */
export function lastAnswer({ parts, question, failures, attempts, started }: CallContext): ModelAnswer | undefined {
  const vendors = failures.every(({ details }) => !callersOwn.has(details.class));
  if (parts.lastAnswer !== true || question.tool !== 'chat' || failures.length === 0 || !vendors) return undefined;
  const waits = failures.flatMap(({ details }) => details.retryAfterSeconds ?? []);
  const when = waits.length > 0 ? `in ${Math.ceil(Math.min(...waits))} s` : 'in a while';
  const asked = failures.map(({ details }) => `- ${details.provider}:${details.model}: ${details.class}`);
  const text = [
    '[This is no answer of a model: none could be reached. Polylogue wrote it itself, without any knowledge of the matter.]',
    `Asked without success:\n${asked.join('\n')}`,
    `The question is kept in this thread. Resend it ${when} with the same continuation_id, or choose another model.`,
  ].join('\n\n');
  question.onText?.(text);
  return {
    text,
    model: absentModel,
    candidate: { model: absentModel, reason: 'the last link: no model could be reached' },
    usage: noUsage,
    costUsd: 0,
    finish: { kind: 'other', raw: 'no_model' },
    partial: true,
    citations: [],
    attempts,
    latencyMs: parts.clock.monotonic() - started,
    warnings: failures.map(({ message }) => message),
  };
}

/** Keeps one attempt for the reply and tells the observers of it. `next`: who is asked instead. */
export function recordAttempt(
  run: CallContext,
  last: AttemptContext,
  end: { outcome: AttemptRecord['outcome'] | 'cancelled'; elapsedMs: number; nextInMs?: number; next?: Candidate },
): void {
  const { outcome, elapsedMs, nextInMs, next } = end;
  const { provider, id: model } = last.candidate.model;
  const cancelled = outcome === 'cancelled';
  const failureClass = cancelled ? 'cancelled' : last.error?.details.class;
  const follows = outcome === 'retry' ? 'retry' : next ? `${next.model.provider}:${next.model.id}` : 'none';
  const facts = {
    provider,
    model,
    class: failureClass,
    elapsedMs,
    usage: last.usage,
    costUsd: last.costUsd,
    next: follows,
  };
  const kept = { ...facts, outcome: cancelled ? 'failed' : outcome, at: run.parts.clock.now() } as const;
  run.attempts.push(kept);
  run.question.onAttempt?.(kept);
  const { reqId, tool, payer } = run.question;
  const { status } = last.error?.details ?? {};
  const event = { ...facts, reqId, attempt: run.attempts.length, tool, outcome, finish: last.finish?.kind };
  run.parts.emit({ type: 'model.attempt', ...event, thread: payer?.thread, status, nextInMs });
  // The text of a broken attempt may yet be the answer.
  if (outcome !== 'ok' && last !== run.broken) reportWaste(run, last);
}

/** Tells what an attempt cost that is not the answer. */
export function reportWaste({ question }: CallContext, { candidate: { model }, usage, costUsd }: AttemptContext): void {
  if (usage) question.onWaste?.({ model, usage, costUsd });
}

/** What a vendor is asked for beside the messages, as its SDK gets it. */
type Settings = Pick<LanguageModelV4CallOptions, 'maxOutputTokens' | 'temperature' | 'tools' | 'providerOptions'>;

/**
 * Tells what one attempt asks, and gives what tells how it ended. The messages are ours, so that they can be sent again to
 * any model; what the vendor gets beside them is told in its own words.
 */
export function logRequest(run: CallContext, { model, effort, thinkingBudget }: Candidate, call: Settings) {
  const { logExchange: log, random, clock } = run.parts;
  if (!log) return undefined;
  const { reqId, tool, messages, webSearch, tools, toolChoice, topP, program } = run.question;
  const exchange = random.uuid().replaceAll('-', '').slice(0, 12);
  const about = { reqId, exchange, tool, provider: model.provider, model: model.id };
  const { maxOutputTokens, temperature, providerOptions } = call;
  const vendorTools = call.tools?.filter(each => each.type !== 'function');
  const wanted = { maxOutputTokens, temperature, topP, program, effort, thinkingBudget, webSearch, tools, toolChoice };
  const asked = { ...wanted, vendorTools, providerOptions };
  const attempt = run.attempts.length + 1;
  log({ ...about, direction: 'out', kind: 'request', payload: { attempt, ...asked, messages } });
  const began = clock.monotonic();
  return (outcome: Omit<AttemptContext, 'candidate'>, error: AppError | undefined): void => {
    const { text, said, finish, usage, costUsd, citations, warnings, reasoningChars } = outcome;
    const came = { text, said, finish, usage, costUsd, citations, warnings, reasoningChars };
    const kind = error ? 'error' : 'response';
    const { code, class: failure, status, next, cause } = error?.details ?? {};
    const failed = error && { error: { code, class: failure, message: error.message, status, next, cause } };
    const elapsedMs = clock.monotonic() - began;
    for (const step of outcome.steps ?? []) {
      log({ ...about, direction: 'in', kind: step.step === 'tool_use' ? 'tool_call' : 'tool_result', payload: step });
    }
    log({ ...about, direction: 'in', kind, payload: { attempt, elapsedMs, ...failed, ...came } });
  };
}

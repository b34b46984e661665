import { orAbort, remember } from '../../core/concurrency.ts';
import { AppError, isAppError, throwIfAborted } from '../../core/errors.ts';
import type { Candidate } from '../../core/model.ts';
import { costOf } from '../../core/usage.ts';
import type { AskModel, CallLimits, ModelQuestion } from '../ask-model.ts';
import { feesOf } from '../fees.ts';
import type { Connection } from '../provider.ts';
import type { BreakerPermit } from '../resilience/breaker-registry.ts';
import { faultOf, toModelError } from '../resilience/errors.ts';
import { limitsFor, startTimeouts } from '../resilience/limiter.ts';
import { maxAttempts, othersAfter, retryDelay } from '../resilience/policy.ts';
import { attempt, none } from './attempt.ts';
import type { AskModelParts, AttemptContext, CallContext } from './call-context.ts';
import {
  answerOf,
  billedUsage,
  failureOf,
  isUsefulPartial,
  lastAnswer,
  logRequest,
  recordAttempt,
  reportWaste,
} from './call-context.ts';
import { createReplyAccumulator, toolsOf, toPrompt } from './messages.ts';
import { fitImages, repairHistory, signerOf } from './repair-history.ts';

/** Waiting longer than this for one vendor makes no sense while another candidate is left. */
const patienceWithOthersLeftMs = 10_000;
/** Callers give up after a minute or so; one that is told when to come back can do something else meanwhile. */
const patienceMs = 60_000;

/** Attempts at one candidate while another provider's is left. */
const attemptsWithOthersLeft = 2;

/** Calls of which it is known who failed in them. */
const maxCalls = 256;

/**
 * Asks the candidates in order, each up to three times (twice where another provider is left), and answers with the first whole
 * answer. Who failed a question of a call comes last in its other questions. Once a vendor has begun an answer that broke, one
 * more request is made, and none where what came is of use: that is the answer then (`partial`), as it is when nothing better
 * came. The one place where calls are retried.
 */
export function createAskModel(parts: AskModelParts): AskModel {
  const failing = new Map<string, Set<string>>();
  return async question => {
    await question.ready;
    throwIfAborted(question.signal);
    await parts.resilience?.refresh();
    const failed = failing.get(question.reqId) ?? new Set();
    remember(failing, question.reqId, failed, maxCalls);
    let left = soundFirst([...question.candidates], failed);
    const totalMs = Math.max(...left.map(candidate => limitsOf(parts, question, candidate).totalMs));
    const started = parts.clock.monotonic();
    const run: CallContext = { parts, question, started, queuedMs: 0, totalMs, failed, attempts: [], failures: [] };
    try {
      for (let candidate = left.shift(); candidate; candidate = left.shift()) {
        const last = (await fitQuestion(run, question, candidate)) ?? (await askCandidate(run, candidate, left));
        if (!last.error) {
          if (run.broken) reportWaste(run, run.broken);
          return answerOf(run, last);
        }
        run.failures.push(last.error);
        left = soundFirst(othersLeft(run, last, left), failed);
      }
    } catch (error) {
      // The caller gave up: what came is nobody's answer, and paid for all the same.
      if (run.broken) reportWaste(run, run.broken);
      throw error;
    }
    if (run.broken) return answerOf(run, run.broken);
    const last = lastAnswer(run);
    if (last) return last;
    throw failureOf(run);
  };
}

function soundFirst(candidates: Candidate[], failed: ReadonlySet<string>): Candidate[] {
  const isFailed = ({ model }: Candidate) => Number(failed.has(model.provider));
  return candidates.toSorted((a, b) => isFailed(a) - isFailed(b));
}

/** What says nothing of a provider, but of the question or of us. */
const saysNothing = new Set(['content_filter', 'context_length', 'bad_request', 'over_capacity', 'config', 'tokens']);

/** Makes the question one that fits the candidate; the failed attempt where that can't be done. */
async function fitQuestion(run: CallContext, question: ModelQuestion, candidate: Candidate) {
  run.question = question;
  try {
    const made = await question.promptFor?.(candidate);
    const { maxOutputTokens = question.maxOutputTokens } = made ?? {};
    run.question = { ...question, ...made, maxOutputTokens: Math.min(question.maxOutputTokens, maxOutputTokens) };
    return undefined;
  } catch (error) {
    throwIfAborted(question.signal);
    if (!isAppError(error) || error.kind === 'bug') throw error;
    const { provider, id: model } = candidate.model;
    const told = new AppError(error.kind, error.message, { ...error.details, provider, model });
    const last = { ...none(), candidate, error: told, skipped: true };
    recordAttempt(run, last, { outcome: 'skipped', elapsedMs: 0 });
    return last;
  }
}

function limitsOf(parts: AskModelParts, question: ModelQuestion, { model, effort }: Candidate): CallLimits {
  const own = parts.limitsOf?.(model);
  if (own) return limitsFor(own, { reasoning: false, local: false }, question.limits);
  const reasoning = model.reasoning && effort !== 'none';
  return limitsFor(parts.limits, { reasoning, local: parts.isLocal(model.provider) }, question.limits);
}

/** The same with the total of the question as a whole, which may be another candidate's. */
function limitsIn({ parts, question, totalMs }: CallContext, candidate: Candidate): CallLimits {
  const own = limitsOf(parts, question, candidate);
  return own.totalMs === totalMs ? own : { ...own, totalMs, exact: false };
}

const othersLeft = ({ requestsLeft }: CallContext, { error, candidate }: AttemptContext, left: Candidate[]) =>
  requestsLeft === 0 || !error ? [] : othersAfter(error, candidate, left);

/** What began to come is billed, however it ended: each further request is the same answer bought once more. */
function limitRequests(run: CallContext, last: AttemptContext): void {
  if (last.skipped || last.unasked) return;
  if (run.requestsLeft !== undefined) run.requestsLeft -= 1;
  else if (last.finish || last.text.trim() !== '' || last.reasoningChars + last.callChars > 0) run.requestsLeft = 1;
  if (isUsefulPartial(run.question, last)) run.requestsLeft = 0;
}

async function askCandidate(run: CallContext, candidate: Candidate, left: Candidate[]): Promise<AttemptContext> {
  const { parts, question } = run;
  for (let count = 1; ; count++) {
    const began = parts.clock.monotonic();
    const last = await tryOnce(run, candidate, count === 1);
    const elapsedMs = parts.clock.monotonic() - began;
    if (question.signal.aborted) {
      recordAttempt(run, last, { outcome: 'cancelled', elapsedMs });
      throwIfAborted(question.signal);
    }
    const { provider } = candidate.model;
    if (!last.error) {
      run.failed.delete(provider);
      recordAttempt(run, last, { outcome: 'ok', elapsedMs });
      return last;
    }
    keepBroken(run, last);
    limitRequests(run, last);
    const most = attemptsAt(run, candidate, left);
    if (!saysNothing.has(last.error.details.class ?? '')) run.failed.add(provider);
    const others = soundFirst(othersLeft(run, last, left), run.failed);
    const wait = count < most ? retryWait(run, last, count, others.length > 0) : undefined;
    if (wait === undefined) {
      recordAttempt(run, last, { outcome: last.skipped ? 'skipped' : 'failed', elapsedMs, next: others[0] });
      return last;
    }
    recordAttempt(run, last, { outcome: 'retry', elapsedMs, nextInMs: wait });
    await parts.clock.sleep(wait, question.signal).catch(error => {
      // Only the caller's signal ends the sleep; it is told as a cancelled call, whatever its reason was.
      throwIfAborted(question.signal);
      throw error;
    });
  }
}

/** A provider that failed in this call before is not worth a second attempt while another one is left. */
function attemptsAt({ question, failed }: CallContext, { model }: Candidate, left: readonly Candidate[]): number {
  if (question.once) return 1;
  const othersLeft = left.some(other => other.model.provider !== model.provider && !failed.has(other.model.provider));
  if (!othersLeft) return maxAttempts;
  return failed.has(model.provider) ? 1 : attemptsWithOthersLeft;
}

/** Milliseconds until the same candidate is asked again; undefined when it is not. */
function retryWait(run: CallContext, last: AttemptContext, count: number, othersLeft: boolean): number | undefined {
  const { parts, started, totalMs, requestsLeft } = run;
  const { clock, random, resilience } = parts;
  if (last.skipped || requestsLeft === 0 || last.error?.details.retryable !== true) return undefined;
  // A vendor that let a clock run out is not asked again while another candidate is left, since each such attempt costs minutes;
  // nor is one whose answer broke, since the only further request must not fail for the same reason.
  if (othersLeft && (requestsLeft !== undefined || last.error.details.class === 'timeout')) return undefined;
  const patience = Math.min(started + totalMs - clock.monotonic(), othersLeft ? patienceWithOthersLeftMs : patienceMs);
  const { retryAfterSeconds } = last.error.details;
  const wait = retryDelay({ attempt: count, random, retryAfterSeconds, patienceMs: patience });
  if (wait === undefined || !resilience) return wait;
  const { model } = last.candidate;
  return resilience.blocked(model) || !resilience.mayRetry(model) ? undefined : wait;
}

/** One attempt, if the breakers let it and once there is a place to run in. */
async function tryOnce(run: CallContext, candidate: Candidate, first: boolean): Promise<AttemptContext> {
  const { parts, question, started, totalMs } = run;
  const { model } = candidate;
  const { resilience } = parts;
  if (!resilience) return askVendor(run, candidate);
  const skip = (error: AppError): AttemptContext => ({ ...none(), candidate, error, skipped: true });
  const refused = resilience.blocked(model);
  if (refused) return skip(refused);
  const remainingMs = () => started + totalMs - parts.clock.monotonic();
  const owner = question.payer?.owner ?? '';
  const { provider } = model;
  const cameAt = parts.clock.monotonic();
  let leave: () => void;
  try {
    const { exact } = limitsIn(run, candidate);
    const entry = { provider, owner, signal: question.signal, remainingMs: remainingMs(), totalMs, exact };
    leave = await resilience.limiter.enter(entry);
  } catch (error) {
    return skip(errorOf(run, candidate, error));
  } finally {
    run.queuedMs += parts.clock.monotonic() - cameAt;
  }
  try {
    const pass = await resilience.admit(model, Math.max(0, remainingMs()), question.reqId);
    if (isAppError(pass)) return skip(pass);
    if (first) resilience.called(model);
    return await askWithPass(run, candidate, pass);
  } finally {
    leave();
  }
}

/** Asks the vendor, and tells the breakers how that went. */
async function askWithPass(run: CallContext, candidate: Candidate, pass: BreakerPermit): Promise<AttemptContext> {
  const { parts, question } = run;
  const began = parts.clock.monotonic();
  const last = await askVendor(run, candidate, pass).catch(error => {
    pass.abandoned();
    throw error;
  });
  const { error, unasked, text, reasoningChars } = last;
  const elapsedMs = parts.clock.monotonic() - began;
  if (unasked || question.signal.aborted) pass.abandoned();
  else if (!error) pass.succeeded(elapsedMs);
  else {
    const limits = limitsOf(parts, question, candidate);
    const progressed = text !== '' || reasoningChars > 0;
    const fault = faultOf(error, { own: question.limits, limits, elapsedMs, progressed });
    const { class: cause, retryAfterSeconds, status } = error.details;
    const askedMs = retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1_000;
    pass.failed(fault && { ...fault, cause, askedMs }, status !== undefined || progressed);
  }
  return last;
}

async function askVendor(run: CallContext, candidate: Candidate, pass?: BreakerPermit): Promise<AttemptContext> {
  const { parts, question, started, totalMs } = run;
  const { model } = candidate;
  const limits = limitsIn(run, candidate);
  const remainingMs = started + totalMs - parts.clock.monotonic();
  const clocks = startTimeouts({ clock: parts.clock, limits, remainingMs, parent: question.signal });
  let connection: Connection;
  try {
    connection = await orAbort(parts.connection(model.provider), clocks.signal);
  } catch (error) {
    clocks.stop(true);
    return { ...none(), candidate, error: errorOf(run, candidate, clocks.expired() ?? error), unasked: true };
  }
  try {
    const { call, warnings } = callOf(question, candidate, connection, parts.searches?.(model) ?? false);
    const languageModel = connection.languageModel(model);
    const signer = signerOf(languageModel, connection);
    const { echoesThoughts } = connection;
    const echo = echoesThoughts === 'required' && model.reasoning;
    const input = {
      model: languageModel,
      provider: model.provider,
      call: { ...call, prompt: repairHistory(call.prompt, signer, { echo, owner: model.provider }) },
      clocks,
      onText: question.onText,
      onStart: (told: readonly string[]) => question.onStart?.([...warnings, ...told]),
      onProgress(delta: string) {
        if (delta !== '') pass?.works();
        question.onProgress?.(delta);
      },
      onSent: question.onSent,
      usesIn: connection.usesIn,
      ...(question.tools && { saying: createReplyAccumulator(signer, model.provider, echoesThoughts !== undefined) }),
    };
    const logOutcome = logRequest(run, candidate, call);
    const outcome = await attempt(input);
    const { failure, uses, told: _told, accepted: _accepted, ...asked } = outcome;
    const fees = uses.length > 0 ? feesOf(model, uses, asked.costUsd !== undefined) : undefined;
    const usage = billedUsage(question, candidate, outcome, fees);
    // What the vendor says it charged is right, whatever the catalogue says.
    const rest = { ...asked, usage, costUsd: asked.costUsd ?? (usage && costOf(usage, model.price)) };
    const error = failure === undefined ? undefined : errorOf(run, candidate, failure);
    logOutcome?.(rest, error);
    return { ...rest, candidate, warnings: [...warnings, ...rest.warnings], error };
  } finally {
    clocks.stop(false);
  }
}

/** A question as a vendor's package takes it, and what the caller should know of that. */
export function callOf(question: ModelQuestion, candidate: Candidate, connection: Connection, searches: boolean) {
  const { model, effort, thinkingBudget } = candidate;
  const { messages, warnings: unseen } = fitImages(question.messages, model, connection.imageLimits?.(model));
  const { prompt, warnings } = toPrompt(messages, connection, model, (question.tools ?? []).length > 0);
  if (model.input.includes('image')) warnings.push(...unseen);
  const refused = model.temperature === 'none' && question.temperature !== undefined;
  if (refused) warnings.push(`The temperature was left out: ${model.provider}:${model.id} takes none.`);
  // Always sent: what vendors assume without it ranges from 4,096 to all they have.
  const maxOutputTokens = Math.max(1, Math.min(question.maxOutputTokens, model.maxOutput));
  const { cacheKey, reqId, tool, root, cli } = question;
  const webSearch = searches ? question.webSearch : undefined;
  if (question.webSearch && !searches)
    warnings.push(`${model.provider}:${model.id} cannot search the web; it answered from what it knows.`);
  const about = { reqId, tool, root, cli };
  const params = { model, effort, thinkingBudget, maxOutputTokens, cacheKey, webSearch, about };
  const tools = [...toolsOf(question, connection.cacheMark), ...(connection.vendorTools?.(params) ?? [])];
  return {
    call: {
      prompt,
      maxOutputTokens,
      temperature: refused ? undefined : question.temperature,
      ...(question.topP !== undefined && model.temperature !== 'none' && { topP: question.topP }),
      ...question.program,
      ...(tools.length > 0 && { tools }),
      ...(question.toolChoice && tools.length > 0 && { toolChoice: { type: question.toolChoice } }),
      providerOptions: connection.providerOptions(params),
    },
    warnings,
  };
}

const errorOf = (run: CallContext, { model }: Candidate, failure: unknown): AppError =>
  toModelError(failure, {
    provider: model.provider,
    model: model.id,
    attempt: run.attempts.length + 1,
    now: run.parts.clock.now(),
    keyName: run.parts.keyName?.(model.provider),
    keys: run.parts.keysOf?.(model.provider),
  });

function keepBroken(run: CallContext, last: AttemptContext): void {
  // What was called in an answer that broke off is not called: the text alone is of use.
  if (last.text.trim() === '') return;
  if (!last.passedOn && last.text.length <= (run.broken?.text.length ?? 0)) return;
  if (run.broken) reportWaste(run, run.broken);
  run.broken = last;
}

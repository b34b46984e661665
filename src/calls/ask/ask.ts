import { isAppError, warnFrom } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import type { Message } from '../../core/message.ts';
import type { Candidate } from '../../core/model.ts';
import type { Turn } from '../../core/thread.ts';
import { estimateTokens, tokenFactor, tokensPerMessage } from '../../core/tokens.ts';
import { addUsage } from '../../core/usage.ts';
import { type AskModel, fullWindow, type ModelAnswer, type ModelQuestion } from '../../models/ask-model.ts';
import type { Addition } from '../../threads/threads.ts';
import { asMessage, turnTokens } from '../../threads/transcript.ts';
import type {
  AnsweredCall,
  LocalTurn,
  ModelTurn,
  ParsedCall,
  PendingExchange,
  PreparedCall,
  ThreadedCall,
} from '../call-record.ts';
import { truncateAnswer } from '../format-reply.ts';
import type { Reply } from '../reply.ts';
import { continuationOffer, errorReply, localMetadata, metadataOf, nonEmpty, stackOf, successReply } from '../reply.ts';
import { prepareContext, promptForCandidate, turnOf, usedTokens } from './prepare-context.ts';
import { collectImages } from './prompt.ts';
import { createMaskedStream, maskAnswer, unmaskPrompt } from './redaction.ts';
import { type ChooseModel, routeCall } from './route-call.ts';
import type { CallServices } from './services.ts';

/** Minimum room in tokens for which a truncated answer is continued. */
const leastTokens = 256;

const goOn =
  'Your answer was cut off at its limit. Go on exactly where it stopped, in the middle of the word if need be. Repeat nothing, add no preface.';

/**
 * Continues an answer that the vendor truncated, once: the model sees what it wrote. Returns one answer with the usage of
 * both calls; its `finish` shows whether it is still truncated. If the second call fails: the first answer with a warning.
 */
export async function continueTruncated(
  ask: AskModel,
  question: ModelQuestion,
  answer: ModelAnswer,
  usedTokens: number,
): Promise<ModelAnswer> {
  const { finish, partial, text } = answer;
  if (finish.kind !== 'length' || finish.raw === fullWindow || partial || text.trim() === '') return answer;
  const written = Math.ceil(estimateTokens(answer.text) * tokenFactor(answer.model.id));
  const room = answer.model.window - usedTokens - written - estimateTokens(goOn) - 2 * tokensPerMessage;
  const maxOutputTokens = Math.min(question.maxOutputTokens, room);
  if (maxOutputTokens < leastTokens) return answer;
  // The tail stays the last instruction that is no part of the conversation; what follows it is one more exchange.
  const messages: Message[] = [
    ...question.messages.map(message =>
      message.section === 'tail' ? { ...message, section: 'turn' as const } : message,
    ),
    asMessage('assistant', 'turn', answer.text),
    asMessage('user', 'turn', goOn),
  ];
  let rest: ModelAnswer;
  try {
    // The prompt is made: whoever gave the answer had room for it.
    const { promptFor: _, ...asked } = question;
    rest = await ask({ ...asked, candidates: [answer.candidate], messages, maxOutputTokens });
  } catch (error) {
    // The first part is paid for, so it is returned with a warning. Only a cancelled call throws.
    if (question.signal.aborted || !isAppError(error)) throw error;
    const warning = `The answer was cut at its limit, and going on failed: ${error.message}`;
    return { ...answer, warnings: [...answer.warnings, warning] };
  }
  return {
    ...rest,
    text: answer.text + rest.text,
    usage: addUsage(answer.usage, rest.usage),
    costUsd: answer.costUsd === undefined ? rest.costUsd : answer.costUsd + (rest.costUsd ?? 0),
    citations: [...answer.citations, ...rest.citations],
    attempts: [...answer.attempts, ...rest.attempts],
    latencyMs: answer.latencyMs + rest.latencyMs,
    queuedMs: (answer.queuedMs ?? 0) + (rest.queuedMs ?? 0),
    warnings: [
      ...new Set([...answer.warnings, ...rest.warnings, 'The answer was cut at its limit and continued once.']),
    ],
  };
}

/** Returns the fields that every model call takes from its tool call. */
export const questionBase = ({ thread, ...call }: ParsedCall & Partial<Pick<ThreadedCall, 'thread'>>) => ({
  reqId: call.reqId,
  tool: call.tool.name,
  payer: { owner: call.request.principal.owner, ...(thread && { thread: thread.id }) },
  ...(thread && { cacheKey: thread.id }),
  root: call.request.principal.root,
  temperature: call.common.temperature,
  signal: call.signal,
  onProgress: (delta: string) => call.progress.streamed(delta),
});

/** The images of a turn as they are now; none that the thread has already. */
async function newImages(services: CallServices, call: ThreadedCall, named: readonly string[]) {
  const { records, blobs, skipped } = await collectImages(services, call, named);
  call.warnings.push(...skipped.map(({ path, reason }) => `No model will see ${path}: ${reason}`));
  const known = call.thread.turns.flatMap(({ status, images }) => (status === 'done' ? images : []));
  const images = records.filter(({ blob }) => !known.some(image => image.blob === blob));
  return { images, blobs: images.map(({ blob }) => ({ sha256: blob, text: blobs.get(blob) ?? '' })) };
}

/** Stores what the caller contributed as a turn, without asking a model. Later calls on the thread read it. */
export async function recordLocalTurn(services: CallServices, call: ThreadedCall, local: LocalTurn): Promise<Reply> {
  const { threads, clock, maxTurns } = services;
  const exchange = threads.newExchange();
  const { contribution: content, images: named = [], workflow } = local;
  const { images, blobs } = named.length > 0 ? await newImages(services, call, named) : { images: [] };
  const draft = turnOf(services, call, { seq: call.thread.seq + 1, role: 'user', content, exchange, images });
  const previous = call.thread.turns.findLast(turn => turn.status === 'done');
  const turn = { ...draft, tokens: turnTokens(draft, previous, new Map()) };
  const thread = await threads.add(call.thread, exchange, { turns: [turn], status: 'done', workflow, blobs });
  return successReply({
    ...local.document,
    continuation_id: thread.id,
    continuation_offer: continuationOffer(thread, maxTurns, thread.turns.length),
    metadata: { ...local.metadata, ...localMetadata(call, clock.monotonic() - call.startedAt) },
  });
}

/** What a call has in its thread so far; nothing before its question is stored. */
export interface Exchange {
  services: CallServices;
  pending?: PendingExchange;
  /** Its answer was stored, or was to be. */
  isOver?: boolean;
  /** Goes into the reply even when the model fails: the caller's own work must not be lost. */
  local?: JsonObject | undefined;
}

/** Runs the steps of a call. Where one fails, the exchange is closed, and the reply says how to continue. */
export async function inExchange(exchange: Exchange, call: ThreadedCall, steps: () => Promise<Reply>): Promise<Reply> {
  const { services } = exchange;
  const { tool, reqId } = call;
  try {
    return await steps();
  } catch (error) {
    if (!isAppError(error)) services.emit({ type: 'warning', reqId, where: tool.name, message: stackOf(error) });
    await closeExchange(exchange, call);
    const { pending, local } = exchange;
    const offer = pending && {
      continuation_id: pending.thread.id,
      continuation_offer: continuationOffer(pending.thread, services.maxTurns, pending.sent),
    };
    return errorReply(error, { toolName: tool.name, reqId, local: { ...local, ...offer } });
  }
}

/** Marks an exchange that got no answer, where one is open. */
export async function closeExchange(
  { services, pending, isOver }: Exchange,
  { reqId, signal }: Pick<ParsedCall, 'reqId' | 'signal'>,
): Promise<void> {
  if (!pending || isOver) return;
  const { threads, emit, attempts } = services;
  const end = { status: signal.aborted ? 'interrupted' : 'failed', attempts: attempts(reqId) } as const;
  // The next use of the thread closes a pending exchange. The caller gets the first error, not this one.
  await threads.add(pending.thread, pending.turn.exchange, { turns: [], ...end }).catch(warnFrom(emit, 'store'));
}

/** What the model of a call is asked: who may answer, and with which prompt. */
export async function prepareTurn(
  services: CallServices,
  call: ThreadedCall,
  turn: ModelTurn,
  choose?: ChooseModel,
): Promise<PreparedCall> {
  const routed = await routeCall(services, call, turn, choose);
  call.progress.stage('reading files');
  const prepared = await prepareContext(services, routed);
  reportFiles(services, prepared);
  return prepared;
}

/** Tells the observers once which files a call reads. */
export function reportFiles({ emit }: CallServices, { reqId, tool, files }: PreparedCall): void {
  const skipped = files.skipped.map(({ path, code }) => ({ path, code }));
  emit({ type: 'files.read', reqId, tool: tool.name, embedded: [...files.embedded, ...files.changed], skipped });
}

/** Stores the question before a model is paid. */
export async function storeQuestion(exchange: Exchange, prepared: PreparedCall): Promise<void> {
  const { thread, turn, blobs, compaction, history, candidates, progress } = prepared;
  const { tokens, costUsd } = history.summary ?? {};
  await openExchange(exchange, { thread, turn, sent: history.sent }, { blobs, compaction, tokens, costUsd });
  const [{ model }] = candidates;
  progress.stage(`asking ${model.provider}:${model.id}`);
}

/** Adds a question to its thread, as one that waits for its answer. */
export async function openExchange(
  exchange: Exchange,
  { thread, turn, sent }: PendingExchange,
  change: Pick<Addition, 'blobs' | 'compaction' | 'tokens' | 'costUsd'> = {},
): Promise<void> {
  const { threads } = exchange.services;
  const added = await threads.add(thread, turn.exchange, { turns: [turn], status: 'pending', ...change });
  exchange.pending = { thread: added, turn, sent };
}

async function askModel(exchange: Exchange, prepared: PreparedCall, stored: Promise<void>): Promise<AnsweredCall> {
  const { services } = exchange;
  const { mask } = services;
  const { candidates, plan, request, thread } = prepared;
  const { onText } = request;
  let asked = prepared;
  let clear = await unmaskPrompt(services, asked);
  const stream = onText && !clear ? createMaskedStream(mask, thread.id, onText) : undefined;
  const question: ModelQuestion = {
    ...questionBase(asked),
    cli: plan.cli,
    wholeOnly: plan.wholeOnly,
    candidates,
    webSearch: asked.webSearch,
    messages: clear?.messages ?? asked.messages,
    ready: stored,
    promptFor: promptForCandidate(asked, async candidate => {
      asked = await askAnew(exchange, asked, candidate);
      clear = (await unmaskPrompt(services, asked)) ?? clear;
      return { ...asked, messages: clear?.messages ?? asked.messages };
    }),
    maxOutputTokens: asked.budget.answer,
    onText: stream?.push,
  };
  const given = await services.askModel(question);
  const messages = asked === prepared ? question.messages : (clear?.messages ?? asked.messages);
  const answer = await continueTruncated(services.askModel, { ...question, messages }, given, usedTokens(asked));
  await stream?.end();
  const masked = await maskAnswer(mask, thread.id, answer, clear?.shown);
  // With unmasked secrets in the prompt, masking needs the complete answer, so it is sent in one piece.
  if (clear) onText?.(masked.text);
  return { ...asked, answer: masked, said: answer.text.toWellFormed() };
}

/**
 * The call for a candidate whose window does not hold the prompt: one of its own, with less history and shorter files. It
 * becomes an exchange of its own, so that the thread keeps what the model was really shown.
 */
export async function askAnew(
  exchange: Exchange,
  { candidates: _, ...call }: PreparedCall,
  candidate: Candidate,
): Promise<PreparedCall> {
  const { services } = exchange;
  const { thread, turn } = exchange.pending ?? call;
  const made = await prepareContext(services, { ...call, thread, candidates: [candidate] });
  const closed = await services.threads.add(thread, turn.exchange, { turns: [], status: 'failed' });
  const { provider, id } = candidate.model;
  const warning = `The prompt was made shorter for ${provider}:${id}, whose window does not hold it.`;
  const prepared = { ...made, thread: closed, warnings: [...made.warnings, warning] };
  await storeQuestion(exchange, prepared);
  return prepared;
}

export type StoredAnswer = Pick<Turn, 'content' | 'modelProvider' | 'modelName' | 'modelMetadata'> &
  Partial<Pick<Turn, 'citations'>> &
  Pick<Addition, 'workflow' | 'tokens' | 'costUsd'>;

/**
 * Stores the answer, with the thread as it is then. An answer that is paid for reaches the caller even when the store fails: with
 * the warning that is returned. `expiresAt` of a thread that is gone is 0.
 */
export async function storeAnswer(
  exchange: Exchange,
  call: Pick<ParsedCall, 'reqId'> & { tool: { name: string } },
  { workflow, tokens, costUsd, ...own }: StoredAnswer,
) {
  const { pending, services } = exchange;
  if (!pending) throw new TypeError('an answer without a stored question');
  exchange.isOver = true;
  const { turn, thread, sent } = pending;
  const answer = turnOf(services, call, { seq: turn.seq + 1, role: 'assistant', exchange: turn.exchange, ...own });
  const attempts = services.attempts(call.reqId);
  const addition = { turns: [answer], status: 'done' as const, attempts, workflow, tokens, costUsd };
  try {
    return { turn: answer, thread: await services.threads.add(thread, turn.exchange, addition), sent, warnings: [] };
  } catch (error) {
    const later = services.threads.addLater(thread, turn.exchange, addition, error);
    const why = isAppError(error) ? error.message : 'the store failed';
    const warning = `not_persisted: ${why}${later ? ' The answer is stored when the store works again.' : ''}`;
    const found = later
      ? undefined
      : await services.threads.store.head(thread.id, services.clock.now()).catch(() => undefined);
    const isGone = found !== undefined && found.state !== 'live';
    return { turn: answer, thread: isGone ? { ...thread, expiresAt: 0 } : thread, sent, warnings: [warning] };
  }
}

/** What a mode makes of an answer once it is stored. */
export interface Finish {
  /** The text that the reply shows, masked. */
  text: string;
  /** The mode's own keys, with the text or as much of it as the reply holds. */
  document(text: string): JsonObject;
  /** The tool's own facts, which win over those of every reply. */
  metadata?: JsonObject;
}

/** What is stored of an answer besides the state of its tool. */
export function toStoredAnswer(answer: ModelAnswer, requested?: string): StoredAnswer {
  const { model, candidate, usage, costUsd, citations } = answer;
  return {
    content: answer.text,
    modelProvider: model.provider,
    modelName: model.id,
    modelMetadata: {
      requested,
      effort: candidate.effort,
      thinkingBudget: candidate.thinkingBudget,
      finishReason: answer.finish.raw ?? answer.finish.kind,
      usage,
      costUsd,
      latencyMs: Math.round(answer.latencyMs),
      ...(answer.couldSearch && { webSearch: true }),
      toolCalls: answer.toolCalls,
    },
    citations,
    tokens: usage.input + usage.output,
    costUsd,
  };
}

/** Stores the answer of a model, and replies with what `finish` makes of it. */
export async function finishTurn(
  exchange: Exchange,
  answered: AnsweredCall,
  finish: (answered: AnsweredCall) => Finish | Promise<Finish>,
): Promise<Reply> {
  const { services } = exchange;
  const { answer, plan, history } = answered;
  const { citations } = answer;
  const stored = { ...toStoredAnswer(answer, answered.requestedModel), workflow: plan.workflow };
  const { thread, turn, warnings } = await storeAnswer(exchange, answered, stored);
  const elapsedMs = services.clock.monotonic() - answered.startedAt;
  const told = [...answered.warnings, ...warnings];
  const facts = metadataOf(answered, { elapsedMs, warnings: told, totals: thread.totals });
  const { text, document, metadata } = await finish(answered);
  const make = (shown: string): JsonObject => ({
    ...document(shown),
    ...(plan.workflow && { continuation_id: thread.id }),
    continuation_offer: continuationOffer(thread, services.maxTurns, history.sent + 2),
    citations: nonEmpty(citations.map(citation => ({ ...citation }))),
    metadata: plan.workflow ? facts : { ...facts, conversation_ready: thread.expiresAt > 0, ...metadata },
  });
  const place = { thread: thread.id, seq: turn.seq, text, asStored: text === answer.text };
  return successReply(truncateAnswer(make, place, services.replyTokens));
}

/**
 * The usual steps: choose a model, prepare its prompt, store the question, ask, store the answer, reply. `withoutModel`: the turn
 * where no model is configured; absent: that is an error.
 */
export async function askModelTurn(
  services: CallServices,
  call: ThreadedCall,
  turn: ModelTurn,
  finish: (answered: AnsweredCall) => Finish | Promise<Finish>,
  { local, withoutModel }: Pick<Exchange, 'local'> & { withoutModel?: LocalTurn } = {},
): Promise<Reply> {
  const exchange: Exchange = { services, local };
  return inExchange(exchange, call, async () => {
    let prepared: PreparedCall;
    try {
      prepared = await prepareTurn(services, call, turn);
    } catch (error) {
      if (!withoutModel || !isAppError(error) || error.kind !== 'config') throw error;
      // No model is configured, so the caller's own work is the complete answer.
      return recordLocalTurn(services, call, withoutModel);
    }
    // What is asked is made, and its money reserved, while the question is stored. However it ends, the exchange is known by then.
    const stored = storeQuestion(exchange, prepared);
    stored.catch(() => undefined);
    return finishTurn(exchange, await askModel(exchange, prepared, stored).finally(() => stored), finish);
  });
}

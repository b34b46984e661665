import { isAppError } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import type { Message } from '../../core/message.ts';
import type { Candidate } from '../../core/model.ts';
import type { Turn } from '../../core/thread.ts';
import { estimateTokens, tokenFactor, tokensPerMessage } from '../../core/tokens.ts';
import { addUsage } from '../../core/usage.ts';
import type { AskModel, ModelAnswer, ModelQuestion } from '../../models/ask-model.ts';
import { said, turnTokens } from '../../threads/transcript.ts';
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
import { continuationOffer, errorReply, localMetadata, metadataOf, type Reply, successReply } from '../reply.ts';
import { prepareContext, promptForCandidate, usedTokens } from './prepare-context.ts';
import { createMaskedStream, maskAnswer, unmaskPrompt } from './redaction.ts';
import { routeCall } from './route-call.ts';
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
  if (answer.finish.kind !== 'length' || answer.partial || answer.text.trim() === '') return answer;
  const written = Math.ceil(estimateTokens(answer.text) * tokenFactor(answer.model.id));
  const room = answer.model.window - usedTokens - written - estimateTokens(goOn) - 2 * tokensPerMessage;
  const maxOutputTokens = Math.min(question.maxOutputTokens, room);
  if (maxOutputTokens < leastTokens) return answer;
  // The tail stays the last instruction that is no part of the conversation; what follows it is one more exchange.
  const messages: Message[] = [
    ...question.messages.map(message =>
      message.section === 'tail' ? { ...message, section: 'turn' as const } : message,
    ),
    said('assistant', 'turn', answer.text),
    said('user', 'turn', goOn),
  ];
  let rest: ModelAnswer;
  try {
    rest = await ask({ ...question, candidates: [answer.candidate], messages, maxOutputTokens });
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
export function questionBase({ reqId, tool, request, common, signal, progress }: ParsedCall) {
  return {
    reqId,
    tool: tool.name,
    payer: { owner: request.principal.owner },
    root: request.principal.root,
    temperature: common.temperature,
    signal,
    onProgress: (delta: string) => progress.streamed(delta),
  };
}

/** Stores what the caller contributed as a turn, without asking a model. Later calls on the thread read it. */
export async function recordLocalTurn(services: CallServices, call: ThreadedCall, plan: LocalTurn): Promise<Reply> {
  const { threads, clock, maxTurns } = services;
  const exchange = services.newExchange();
  const draft: Turn = {
    seq: call.thread.seq + 1,
    role: 'user',
    content: plan.contribution,
    timestamp: clock.now(),
    exchange,
    toolName: call.tool.name,
    files: [],
    images: [],
    citations: [],
    tokens: 0,
  };
  const previous = call.thread.turns.findLast(turn => turn.status === 'done');
  const turn = { ...draft, tokens: turnTokens(draft, previous, new Map()) };
  const thread = await threads.add(call.thread, exchange, { turns: [turn], status: 'done', workflow: plan.workflow });
  return successReply({
    ...plan.document,
    continuation_id: thread.id,
    continuation_offer: continuationOffer(thread, maxTurns, thread.turns.length),
    metadata: { ...plan.metadata, ...localMetadata(call, clock.monotonic() - call.startedAt) },
  });
}

/** The second half of the pipeline: route → prepare the context → store the question → ask → store the answer and reply. */
export async function askModelTurn(services: CallServices, call: ThreadedCall, plan: ModelTurn): Promise<Reply> {
  try {
    const routed = await routeCall(services, call, plan);
    call.progress.stage('reading files');
    const gathered = await prepareContext(services, routed);
    report(services, gathered);
    const standing = await remember(services, gathered);
    const asked = await answer(services, gathered, standing);
    return 'isError' in asked ? asked : await reply(services, asked);
  } catch (error) {
    if (!isAppError(error)) throw error;
    if (plan.withoutModel && error.kind === 'config') {
      // No model is configured, so the caller's own work is the complete answer.
      const { contribution, workflow, withoutModel: document } = plan;
      return recordLocalTurn(services, call, { kind: 'local', contribution, workflow, document });
    }
    return errorReply(error, { toolName: call.tool.name, reqId: call.reqId, local: plan.local });
  }
}

function report({ emit }: CallServices, { reqId, tool, files }: PreparedCall): void {
  const skipped = files.skipped.map(({ path, code }) => ({ path, code }));
  emit({
    type: 'files.read',
    reqId,
    tool: tool.name,
    embedded: [...files.embedded, ...files.changed],
    skipped,
  });
}

/** Stores the question before a model is paid. */
async function remember(
  { threads }: CallServices,
  { thread, turn, blobs, compaction, history }: PreparedCall,
): Promise<PendingExchange> {
  const { tokens, costUsd } = history.summary ?? {};
  const question = { turns: [turn], status: 'pending' as const, blobs, compaction, tokens, costUsd };
  return { thread: await threads.add(thread, turn.exchange, question), turn };
}

interface Asked {
  answered: AnsweredCall;
  standing: PendingExchange;
}

async function answer(services: CallServices, prepared: PreparedCall, stored: PendingExchange): Promise<Asked | Reply> {
  const { candidates, progress, reqId, tool, signal, plan } = prepared;
  const { model } = candidates[0];
  let [gathered, standing] = [prepared, stored];
  progress.stage(`asking ${model.provider}:${model.id}`);
  const anew = async (candidate: Candidate) => {
    ({ gathered, standing } = await askAnew(services, gathered, standing, candidate));
    return { gathered, pending: standing };
  };
  try {
    if (plan.work) {
      const made = await plan.work(gathered, standing, anew);
      return { answered: { ...gathered, answer: made, said: made.text }, standing };
    }
    const { mask } = services;
    let clear = await unmaskPrompt(services, gathered, services.runsHere);
    const { onText } = gathered.request;
    const stream = onText && !clear ? createMaskedStream(mask, gathered.thread.id, onText) : undefined;
    const question: ModelQuestion = {
      ...questionBase(gathered),
      payer: { owner: gathered.request.principal.owner, thread: gathered.thread.id },
      cli: plan.cli,
      wholeOnly: plan.wholeOnly,
      candidates,
      webSearch: gathered.webSearch,
      messages: clear?.messages ?? gathered.messages,
      promptFor: promptForCandidate(gathered, async candidate => {
        await anew(candidate);
        clear = (await unmaskPrompt(services, gathered, services.runsHere)) ?? clear;
        return { ...gathered, messages: clear?.messages ?? gathered.messages };
      }),
      maxOutputTokens: gathered.budget.answer,
      cacheKey: gathered.thread.id,
      onText: stream?.push,
    };
    const given = await services.askModel(question);
    const messages = gathered === prepared ? question.messages : (clear?.messages ?? gathered.messages);
    const used = usedTokens(gathered);
    const answer = await continueTruncated(services.askModel, { ...question, messages }, given, used);
    await stream?.end();
    const masked = await maskAnswer(mask, gathered.thread.id, answer, clear?.shown);
    // With unmasked secrets in the prompt, masking needs the complete answer, so it is sent in one piece.
    if (clear) onText?.(masked.text);
    return { answered: { ...gathered, answer: masked, said: answer.text.toWellFormed() }, standing };
  } catch (error) {
    if (!isAppError(error)) {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
      services.emit({ type: 'warning', reqId, where: tool.name, message });
    }
    const { thread } = standing;
    await closeExchange(services, standing, signal);
    const offer = continuationOffer(thread, services.maxTurns, gathered.history.sent);
    const keep = { ...plan.local, continuation_id: thread.id, continuation_offer: offer };
    return errorReply(error, { toolName: tool.name, reqId, local: keep });
  }
}

/**
 * The call for a candidate whose window does not hold the prompt: one of its own, with less history and shorter files. It
 * becomes an exchange of its own, so that the thread keeps what the model was really shown.
 */
async function askAnew(
  services: CallServices,
  { plan, candidates: _, ...call }: PreparedCall,
  { thread, turn }: PendingExchange,
  candidate: Candidate,
): Promise<{ gathered: PreparedCall; standing: PendingExchange }> {
  const made = await prepareContext(services, { ...call, plan, thread, candidates: [candidate] });
  const closed = await services.threads.add(thread, turn.exchange, { turns: [], status: 'failed' });
  const { provider, id } = candidate.model;
  const warning = `The prompt was made shorter for ${provider}:${id}, whose window does not hold it.`;
  const gathered = { ...made, thread: closed, warnings: [...made.warnings, warning] };
  return { gathered, standing: await remember(services, gathered) };
}

/** Marks an exchange that got no answer. */
export async function closeExchange(
  { threads, emit }: Pick<CallServices, 'threads' | 'emit'>,
  { thread, turn }: PendingExchange,
  signal: AbortSignal,
): Promise<void> {
  const status = signal.aborted ? 'interrupted' : 'failed';
  try {
    await threads.add(thread, turn.exchange, { turns: [], status });
  } catch (error) {
    // The next use of the thread closes a pending exchange. The caller gets the first error, not this one.
    emit({ type: 'warning', where: 'store', message: isAppError(error) ? error.message : String(error) });
  }
}

async function reply(services: CallServices, { answered, standing }: Asked): Promise<Reply> {
  const { clock, threads } = services;
  const { turn } = standing;
  const { answer, plan, history, tool } = answered;
  const assistant: Turn = {
    seq: turn.seq + 1,
    role: 'assistant',
    content: answer.text,
    timestamp: clock.now(),
    exchange: turn.exchange,
    toolName: tool.name,
    modelProvider: answer.model.provider,
    modelName: answer.model.id,
    modelMetadata: {
      requested: answered.requestedModel,
      effort: answer.candidate.effort,
      thinkingBudget: answer.candidate.thinkingBudget,
      finishReason: answer.finish.raw ?? answer.finish.kind,
      usage: answer.usage,
      costUsd: answer.costUsd,
      latencyMs: Math.round(answer.latencyMs),
      ...(answer.couldSearch && { webSearch: true }),
    },
    files: [],
    images: [],
    citations: answer.citations,
    tokens: estimateTokens(answer.text),
  };
  const warnings = [...answered.warnings];
  const tokens = answer.usage.input + answer.usage.output;
  const addition = { turns: [assistant], workflow: plan.workflow, tokens, costUsd: answer.costUsd };
  let { thread } = standing;
  try {
    thread = await threads.add(thread, turn.exchange, { ...addition, status: 'done' });
  } catch (error) {
    // The answer is paid for: the caller gets it, with a warning that it is not stored.
    warnings.push(`not_persisted: ${isAppError(error) ? error.message : 'the store failed'}`);
  }
  const elapsedMs = clock.monotonic() - answered.startedAt;
  const facts = metadataOf(answered, { elapsedMs, warnings, totals: thread.totals });
  const metadata = plan.workflow ? facts : { ...facts, conversation_ready: true, ...plan.metadata?.(answered) };
  const delivered = (await plan.deliver?.(answered)) ?? { text: answer.text, document: {} };
  const make = (text: string): JsonObject => ({
    ...plan.conclude({ ...answered, answer: { ...answer, text } }),
    ...delivered.document,
    ...(plan.workflow && { continuation_id: thread.id }),
    continuation_offer: continuationOffer(thread, services.maxTurns, history.sent + 2),
    citations: answer.citations.length > 0 ? answer.citations.map(citation => ({ ...citation })) : undefined,
    metadata,
  });
  return successReply(
    truncateAnswer(
      make,
      { thread: thread.id, seq: assistant.seq, text: delivered.text, asStored: delivered.text === answer.text },
      services.replyTokens,
    ),
  );
}

import { AppError, inputError, isAppError } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import type { Message } from '../../core/message.ts';
import { type Candidate, efforts, type ModelInfo } from '../../core/model.ts';
import type { Thread, Turn } from '../../core/thread.ts';
import { estimateTokens, tokenFactor, tokensPerMessage } from '../../core/tokens.ts';
import { addUsage } from '../../core/usage.ts';
import type { AskModel, ModelAnswer, ModelQuestion } from '../../models/ask-model.ts';
import { absentModel } from '../../models/call/call-context.ts';
import { splitSuffix } from '../../models/routing/names.ts';
import type { Resolution } from '../../models/routing/resolve.ts';
import { said, turnTokens } from '../../threads/transcript.ts';
import type {
  AnsweredCall,
  LocalTurn,
  ModelTurn,
  ParsedCall,
  PendingExchange,
  PreparedCall,
  RoutedCall,
  ThreadedCall,
} from '../call-record.ts';
import { truncateAnswer } from '../format-reply.ts';
import { continuationOffer, errorReply, localMetadata, metadataOf, type Reply, successReply } from '../reply.ts';
import { prepareContext } from './prepare-context.ts';
import { createMaskedStream, maskAnswer, unmaskPrompt } from './redaction.ts';
import { planCall, searchFor } from './route-call.ts';
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
    const routed = await resolve(services, call, plan);
    call.progress.stage('reading files');
    const gathered = await prepareContext(services, routed);
    report(services, gathered);
    const standing = await remember(services, gathered);
    const answered = await answer(services, gathered, standing);
    return 'isError' in answered ? answered : await reply(services, answered, standing);
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

async function resolve(services: CallServices, call: ThreadedCall, plan: ModelTurn): Promise<RoutedCall> {
  const { common, tool, thread } = call;
  const request = {
    category: plan.category,
    needs: { vision: (plan.images ?? []).length > 0 },
    effort: common.effort ?? services.efforts[tool.name] ?? plan.effort,
    allowFallback: common.allowFallback,
    ...(plan.provider !== undefined && { avoid: (model: ModelInfo) => model.provider !== plan.provider }),
  };
  const planned = plan.choose ?? planCall(services, call, plan);
  // The default model may belong to another provider than the plan requires, so one is chosen.
  const unnamed = plan.provider === undefined ? undefined : 'auto';
  const remembered = common.model === undefined ? modelOf(thread, tool.name) : undefined;
  let resolution: Resolution;
  const warnings = [...call.warnings];
  try {
    resolution = await planned({ ...request, name: common.model ?? remembered ?? unnamed });
  } catch (error) {
    if (remembered === undefined || !isAppError(error)) throw error;
    warnings.push(
      `This thread used ${remembered}, which can't be used now (${error.message}); another model was chosen.`,
    );
    resolution = await planned({ ...request, name: unnamed });
  }
  const lacking = remembered === undefined ? undefined : lacks(resolution, request.needs.vision, common.webSearch);
  if (lacking !== undefined) {
    const other = await planned({ ...request, name: unnamed });
    if (lacks(other, request.needs.vision, common.webSearch) === undefined) {
      warnings.push(`This thread used ${remembered}, which ${lacking}; another model was chosen.`);
      resolution = other;
    }
  }
  const [first, ...others] = saysHowHard(call)
    ? resolution.candidates
    : resolution.candidates.map(candidate => asBefore(thread, candidate));
  if (!first) throw new AppError('config', 'No model can answer this call.', { code: 'CONFIG', class: 'config' });
  if ((plan.images ?? []).length > 0 && !first.model.input.includes('image')) throw cannotSee(first);
  // A fallback with a smaller window could not take the prompt that was made for the first.
  const roomy = others.filter(other => other.model.window >= first.model.window);
  return {
    ...call,
    plan,
    warnings: [...warnings, ...resolution.warnings],
    candidates: [first, ...roomy],
    requestedModel: resolution.requested,
    corrected: resolution.corrected,
    webSearch: searchFor(services.webSearch, common, thread, resolution),
  };
}

/** What a thread's own model can't do for this call. */
function lacks({ candidates: [first], searches }: Resolution, sees: boolean, search = false): string | undefined {
  if (sees && !first?.model.input.includes('image')) return 'takes no images';
  return search && !searches ? "can't search the web" : undefined;
}

function cannotSee({ model }: Candidate): AppError {
  return inputError(`${model.provider}:${model.id} takes no images.`, {
    next: 'Name a model that sees images ("listmodels" says which), leave model out to have one chosen, or leave the images out.',
    validationErrors: [{ field: 'images', error: 'the model takes none' }],
  });
}

/** The model that last answered this tool in this thread. A change would lose the vendor's prompt cache and the style. */
function modelOf(thread: Thread, tool: string): string | undefined {
  const last = thread.turns.findLast(
    turn =>
      turn.role === 'assistant' &&
      turn.toolName === tool &&
      turn.status === 'done' &&
      turn.modelProvider !== absentModel.provider,
  );
  return last?.modelProvider && last.modelName ? `${last.modelProvider}:${last.modelName}` : undefined;
}

/** Whether the caller set the effort, by `thinking_mode` or as a suffix of the model name. */
function saysHowHard({ common }: ThreadedCall): boolean {
  return common.effort !== undefined || splitSuffix(common.model ?? '')?.ask !== undefined;
}

/** Keeps the last effort of this model in the thread if the call sets none, because vendors' caches depend on it. */
function asBefore(thread: Thread, candidate: Candidate): Candidate {
  const { provider, id } = candidate.model;
  const last = thread.turns.findLast(
    ({ status, modelProvider, modelName }) => status === 'done' && modelProvider === provider && modelName === id,
  );
  const thinkingBudget = last?.modelMetadata?.thinkingBudget;
  const effort = efforts.find(word => word === last?.modelMetadata?.effort);
  return effort === undefined && thinkingBudget === undefined ? candidate : { ...candidate, effort, thinkingBudget };
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

async function answer(
  services: CallServices,
  gathered: PreparedCall,
  standing: PendingExchange,
): Promise<AnsweredCall | Reply> {
  const { candidates, progress, reqId, tool, signal, messages, budget, plan } = gathered;
  const { model } = candidates[0];
  progress.stage(`asking ${model.provider}:${model.id}`);
  try {
    if (plan.work) {
      const made = await plan.work(gathered, standing);
      return { ...gathered, answer: made, said: made.text };
    }
    const { mask } = services;
    const clear = await unmaskPrompt(services, gathered, services.runsHere);
    const { onText } = gathered.request;
    const stream = onText && !clear ? createMaskedStream(mask, gathered.thread.id, onText) : undefined;
    const question: ModelQuestion = {
      ...questionBase(gathered),
      payer: { owner: gathered.request.principal.owner, thread: gathered.thread.id },
      cli: plan.cli,
      wholeOnly: plan.wholeOnly,
      candidates,
      webSearch: gathered.webSearch,
      messages: clear?.messages ?? messages,
      maxOutputTokens: budget.answer,
      cacheKey: gathered.thread.id,
      onText: stream?.push,
    };
    const used = budget.reserved + budget.historyUsed + budget.filesUsed;
    const answer = await continueTruncated(services.askModel, question, await services.askModel(question), used);
    await stream?.end();
    const masked = await maskAnswer(mask, gathered.thread.id, answer, clear?.shown);
    // With unmasked secrets in the prompt, masking needs the complete answer, so it is sent in one piece.
    if (clear) onText?.(masked.text);
    return { ...gathered, answer: masked, said: answer.text.toWellFormed() };
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

async function reply(services: CallServices, answered: AnsweredCall, standing: PendingExchange): Promise<Reply> {
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

import { jsonrepair } from 'jsonrepair';
import { type AppError, asError, bugError, type ErrorCode, type ErrorKind, isAppError } from '../core/errors.ts';
import type { JobReply } from '../core/job.ts';
import { isRecord, type Json, type JsonObject, jsonOf, parsedJson, textsIn } from '../core/json.ts';
import { counted, textBetween } from '../core/text.ts';
import type { AttemptRecord, Thread, ThreadTotals } from '../core/thread.ts';
import type { ToolReply } from '../core/tool-host.ts';
import { feeDocument, feeKinds, feeUnits, roundedUsd, type Usage } from '../core/usage.ts';
import { type ModelAnswer, pausedTurn } from '../models/ask-model.ts';
import type { Bill } from '../models/budget.ts';
import type { AnsweredCall, FileReport, ParsedCall, SummaryCost } from './call-record.ts';

/** Tokens and fees as replies tell them. */
export function usageDocument({ input, output, reasoning, cacheRead, cacheWrite, fees, estimated }: Usage): JsonObject {
  return {
    input,
    output,
    reasoning,
    cache_read: cacheRead,
    cache_write: cacheWrite,
    fees:
      fees &&
      Object.fromEntries(
        feeKinds.flatMap(kind => (fees[kind] ? [[kind, feeDocument({ unit: feeUnits[kind], ...fees[kind] })]] : [])),
      ),
    estimated: estimated ? true : undefined,
  };
}

export const roundedCost = (usd: number | undefined) => (usd === undefined ? undefined : roundedUsd(usd));

/** JSON-RPC's number for each of our codes. */
const rpcCodes: Record<ErrorCode, number> = {
  INVALID_INPUT_FORMAT: -32602,
  MISSING_PARAMETER: -32602,
  TOOL_NOT_FOUND: -32602,
  PROVIDER_NOT_FOUND: -32602,
  MODEL_NOT_FOUND: -32602,
  THREAD_NOT_FOUND: -32602,
  THREAD_EXPIRED: -32602,
  SECURITY: -32001,
  API_ERROR: -32603,
  LIMIT: -32603,
  CANCELLED: -32603,
  INTERRUPTED: -32603,
  STORAGE: -32000,
  CONFIG: -32000,
  INTERNAL_SERVER_ERROR: -32603,
};

export const isErrorCode = (code: unknown): code is ErrorCode =>
  typeof code === 'string' && Object.hasOwn(rpcCodes, code);

/** An error that is none of ours, for the log. */
export const stackOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : asError(error).message;

/** A reply before it is cut to size and rendered. */
export interface Reply extends JobReply, Pick<ToolReply, 'questions' | 'kept'> {
  /** Why it failed. */
  error?: AppError;
}

export const successReply = (document: JsonObject): Reply => ({ isError: false, document: pruned(document) });

/** The one translator from errors to what callers read. `local`: what the caller must not lose: its own work, the thread. */
export function errorReply(
  thrown: unknown,
  { toolName, reqId, local }: { toolName: string; reqId: string; local?: JsonObject },
): Reply {
  const error = isAppError(thrown) ? thrown : bugError(`Internal error in Polylogue (req_id ${reqId}).`, thrown);
  const { details } = error;
  return {
    isError: true,
    error,
    document: pruned({
      ...local,
      status: details.replyStatus ?? 'error',
      // An error as one text: what went wrong, and what to do about it.
      content: details.replyContent ?? `${error.message} ${error.details.next ?? nextFor(error)}`,
      content_type: 'text',
      tool_name: toolName,
      req_id: reqId,
      error: errorOf(error),
      metadata: {
        tool_name: toolName,
        req_id: reqId,
        ...(details.replyStatus && details.data && jsonOf(details.data)),
      },
    }),
  };
}

/** A failed call's reply with what vendors billed for it all the same. */
export function withBill(reply: Reply, { usage, costUsd }: Bill): Reply {
  const { metadata } = reply.document;
  const spent = { usage: usageDocument(usage), cost_usd: roundedCost(costUsd) };
  return {
    ...reply,
    document: pruned({ ...reply.document, metadata: { ...spent, ...(isRecord(metadata) && metadata) } }),
  };
}

/** An error as callers read it, wherever in a reply it stands. */
export function errorOf(error: AppError): JsonObject {
  const { details } = error;
  return {
    code: details.code,
    rpc_code: rpcCodes[details.code],
    class: details.class,
    message: error.message,
    next: details.next ?? nextFor(error),
    provider: details.provider,
    model: details.model,
    attempt: details.attempt,
    retryable: details.retryable ?? false,
    retry_after_s: details.retryAfterSeconds,
    status: details.status,
    validation_errors: details.validationErrors?.map(field => ({ ...field })),
    data: details.data && jsonOf(details.data),
  };
}

/** What to do about an error that says nothing of it itself. */
const nexts: Record<ErrorKind, string> = {
  input: 'Correct the call and resend it.',
  security: 'Use a path inside the project, or ask the operator to widen POLYLOGUE_ROOTS.',
  config: 'Ask the operator to fix the configuration; "polylogue doctor" shows what is wrong.',
  model: 'Choose another model.',
  limit: 'Send a smaller request.',
  storage: 'Check free space and permissions of the data directory, then resend the call.',
  cancelled: 'Resend the call if you still need it.',
  bug: 'Details are in the log under this req_id. Report it.',
};

const nextFor = ({ kind, details }: AppError): string =>
  kind === 'model' && details.retryable ? 'Retry in a moment, or choose another model.' : nexts[kind];

/** Everything about an answered call that a reader may want to know. */
export function metadataOf(
  call: AnsweredCall,
  { elapsedMs, warnings, totals }: { elapsedMs: number; warnings: readonly string[]; totals: ThreadTotals },
): JsonObject {
  const { answer, budget, files, history } = call;
  const { model, usage } = answer;
  return {
    tool_name: call.tool.name,
    req_id: call.reqId,
    model_requested: call.requestedModel,
    model_used: model.id,
    provider_used: model.provider,
    routing_reason: answer.candidate.reason,
    model_corrected: call.corrected,
    effort: answer.candidate.effort,
    fallbacks: nonEmpty(call.candidates.slice(1).map(next => `${next.model.provider}:${next.model.id}`)),
    attempts: answer.attempts.filter(({ outcome }) => outcome !== 'skipped').length,
    attempt_log: answer.attempts.length > 1 ? answer.attempts.map(attemptLine) : undefined,
    usage: usageDocument(usage),
    cost_usd: roundedCost(answer.costUsd),
    thread_total: { tokens: totals.tokens, cost_usd: roundedUsd(totals.costUsd) },
    latency_ms: Math.round(answer.latencyMs),
    // Nearly all calls find a place at once.
    queue_ms: Math.round(answer.queuedMs ?? 0) || undefined,
    overhead_ms: Math.max(0, Math.round(elapsedMs - answer.latencyMs)),
    finish_reason: answer.finish.raw ?? answer.finish.kind,
    files: fileFacts(files),
    history: { ...history, summary: history.summary && summaryLine(history.summary) },
    budget: {
      window: budget.window,
      files: budget.filesUsed,
      history: budget.historyUsed,
      answer: budget.answer,
      used: budget.reserved + budget.filesUsed + budget.historyUsed,
    },
    warnings: nonEmpty([...warnings, ...answer.warnings]),
  };
}

function summaryLine({ model, tokens, costUsd }: SummaryCost): JsonObject {
  return { model, tokens, cost_usd: roundedCost(costUsd) };
}

/** What was done with each file, as replies have it. */
export const fileFacts = ({ skipped, masked, ...paths }: FileReport): JsonObject => ({
  ...Object.fromEntries(Object.entries(paths).map(([what, list]) => [what, nonEmpty(list)])),
  skipped: nonEmpty(skipped.map(skip => ({ ...skip }))),
  masked: Object.keys(masked).length > 0 ? masked : undefined,
});

function attemptLine({ provider, model, outcome, class: kind, elapsedMs }: AttemptRecord): JsonObject {
  return { model: `${provider}:${model}`, outcome, class: kind, elapsed_ms: Math.round(elapsedMs) };
}

/** How to continue the thread; undefined for one that is gone. At its limit models see less, but all of it is kept. */
export function continuationOffer(thread: Thread, maxTurns: number, sentTurns: number): JsonObject | undefined {
  if (thread.expiresAt === 0) return undefined;
  const remaining = Math.max(1, maxTurns - sentTurns);
  return {
    continuation_id: thread.id,
    note: `To continue, send this continuation_id with any tool and any model; about ${counted(remaining, 'more turn')} until the conversation is summarized.`,
    remaining_turns: remaining,
    expires_at: new Date(thread.expiresAt).toISOString(),
  };
}

/** A call as every reply names it, where no model was asked. */
export const localMetadata = (call: ParsedCall, elapsedMs: number): JsonObject => ({
  tool_name: call.tool.name,
  req_id: call.reqId,
  latency_ms: Math.round(elapsedMs),
  warnings: nonEmpty(call.warnings),
});

export const nonEmpty = <Item extends Json>(items: readonly Item[]): Item[] | undefined =>
  items.length > 0 ? [...items] : undefined;

/** Leaves out keys without a value, and objects that are left empty by that. What has none is the same object. */
function pruned(document: JsonObject): JsonObject {
  const kept: [string, Json][] = [];
  let isSame = true;
  for (const [key, value] of Object.entries(document)) {
    const inner = isRecord(value) ? pruned(value) : value;
    isSame &&= inner === value && inner !== undefined;
    if (inner !== undefined && (inner === value || Object.keys(inner ?? {}).length > 0)) kept.push([key, inner]);
  }
  // Not by assignment: keys may come from callers, and one of them is `__proto__`.
  return isSame ? document : Object.fromEntries(kept);
}

/** What a model may answer instead of an answer: a request to the caller, as a JSON object with one of these statuses. */
const specialStatuses = new Set([
  'files_required_to_continue',
  'full_codereview_required',
  'focused_review_required',
  'test_sample_needed',
  'more_tests_required',
  'investigation_paused',
  'refactoring_paused',
  'no_bug_found',
]);

/** Repairing takes time by the square of the length. */
const maxRepaired = 32_768;

/** The JSON object in a model's answer: bare, fenced, or between prose; slightly broken ones are mended. */
export function objectIn(text: string): Record<string, unknown> | undefined {
  const fenced = textBetween(text, /```(?:json)?[^\S\n]*\n/, '```');
  const braces = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1);
  for (const candidate of [text.trim(), fenced?.trim(), braces]) {
    if (!candidate?.startsWith('{')) continue;
    const parsed = parsedJson(candidate) ?? mendedJson(candidate);
    if (isRecord(parsed)) return parsed;
  }
  return undefined;
}

function mendedJson(text: string): unknown {
  try {
    return text.length > maxRepaired ? undefined : JSON.parse(jsonrepair(text));
  } catch {
    // Beyond repair: the caller treats the answer as text.
    return undefined;
  }
}

/** The special status that an answer as a whole consists of. Prose that merely quotes one is an answer. */
export function readControlStatus(text: string): { status: string; object: Record<string, unknown> } | undefined {
  const trimmed = text.trim();
  if (!trimmed.startsWith('{') && !trimmed.startsWith('```')) return undefined;
  const object = objectIn(trimmed);
  const status = object?.status;
  return object && typeof status === 'string' && specialStatuses.has(status) ? { status, object } : undefined;
}

/** What such a request asks for, as keys of a reply: callers need not take its text apart. */
export const requestedInputs = ({ files_needed, mandatory_instructions }: Record<string, unknown>): JsonObject => ({
  ...(Array.isArray(files_needed) && { files_needed: textsIn(files_needed) }),
  ...(typeof mandatory_instructions === 'string' && { mandatory_instructions }),
});

/** Whether an answer ended before its model was done. */
export const isTruncated = ({ partial, finish }: Pick<ModelAnswer, 'partial' | 'finish'>): boolean =>
  partial || finish.kind === 'length' || finish.kind === 'content_filter' || finish.raw === pausedTurn;

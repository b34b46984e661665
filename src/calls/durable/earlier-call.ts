import { lstat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { inParallel } from '../../core/concurrency.ts';
import { AppError, isAppError, throwIfAborted } from '../../core/errors.ts';
import type { JobReply } from '../../core/job.ts';
import type { JsonObject } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import type { StoredTurn, Thread } from '../../core/thread.ts';
import type { ToolReply, ToolRequest } from '../../core/tool-host.ts';
import { promptFiles } from '../../threads/transcript.ts';
import { checkFile } from '../../workspace/read-file.ts';
import type { Sandbox } from '../../workspace/sandbox.ts';
import { walkDirectory } from '../../workspace/walk.ts';
import type { CallWorld } from '../call-record.ts';
import { truncateAnswer } from '../format-reply.ts';
import { continuationOffer, errorReply, successReply } from '../reply.ts';
import type { Jobs } from './jobs.ts';
import type { Execution } from './long-calls.ts';
import type { CallFingerprint, CallOperation, OperationLog } from './operation-log.ts';
import { isForgotten, replayedReply } from './operation-log.ts';
import type { ProcessLease } from './process-lease.ts';

const walkLimits = { maxEntries: 50_000 };

const maxConcurrent = 16;

/** File systems take the time from a clock that is a little behind. */
const clockLagMs = 15;

/** Undefined when the thread has other turns behind the call, or a file or `folders` that it looked at changed. */
async function inputsUnchanged(
  { threads, sandbox, maxFileBytes: maxBytes, request: { principal } }: FindOptions,
  call: CallOperation,
  { folders, edits }: CallFingerprint,
): Promise<{ thread?: Thread } | undefined> {
  for (const folder of folders) if (await changedBelow(sandbox, folder, call.startedAt)) return undefined;
  if (call.thread === undefined) return {};
  const place = { owner: principal.owner, workspace: principal.root };
  const thread = await threads.find(call.thread, place).catch((error: unknown) => {
    if (!isAppError(error) || error.kind !== 'input') throw error;
  });
  // Its first turn is stored before anybody is asked.
  if (!thread) return call.baseSeq === 0 && call.status !== 'done' ? {} : undefined;
  if (new Set(turnsOf(call, thread).map(({ exchange }) => exchange)).size > 1) return undefined;
  for (const file of edits ? [] : promptFiles({ turns: thread.turns }).values()) {
    if ((await checkFile(sandbox, file, { maxBytes })) !== 'unchanged') return undefined;
  }
  return { thread };
}

/** What an earlier call left in its thread: nothing, its question, or question and answer. */
const turnsOf = ({ baseSeq = 0 }: CallOperation, { turns }: Thread): StoredTurn[] =>
  turns.filter(({ seq }) => seq > baseSeq);

/** Whether anything below a folder was written, made or removed since; of a repository, also what is staged or checked out. */
async function changedBelow(sandbox: Sandbox, folder: string, since: number): Promise<boolean> {
  const { files, skipped } = await walkDirectory(sandbox, folder, walkLimits);
  if (skipped.some(({ code }) => code === 'too_many_files')) return true;
  const inGit = ['index', 'HEAD', 'logs/HEAD'].map(name => join(folder, '.git', name));
  const places = new Set([folder, ...inGit, ...files, ...files.map(file => dirname(file))]);
  const changed = await inParallel([...places], maxConcurrent, async path => {
    const found = await lstat(path).catch(() => undefined);
    return found !== undefined && Math.max(found.mtimeMs, found.ctimeMs) > since - clockLagMs;
  });
  return changed.includes(true);
}

export interface FindOptions extends Pick<CallWorld, 'threads' | 'sandbox' | 'maxFileBytes'> {
  lease: Pick<ProcessLease, 'holder' | 'isDead'>;
  /** The work of a call of this process. */
  workOf(id: string): Execution | undefined;
  request: ToolRequest;
  look(id: string): Promise<CallOperation | undefined>;
}

/** `ended`: with a reply, or without one; `dead`: its process died over it. */
type CallState = { call: CallOperation } & (
  | { state: 'here'; work: Execution }
  | { state: 'elsewhere' | 'ended' | 'dead' }
);

/** An earlier call that this one repeats; `thread`: absent where it works on none, or stored nothing yet. */
export type EarlierCall = CallState & { thread?: Thread };

/**
 * The newest earlier call whose reply may be had for this one. One that another client waits for is not, unless both bear the
 * caller's own name for it: two callers may well want two answers.
 */
export async function findEarlierCall(
  options: FindOptions,
  calls: readonly CallOperation[],
  identity: CallFingerprint,
): Promise<EarlierCall | undefined> {
  for (const call of calls.toReversed()) {
    const earlier = await stateOf(options, call, identity);
    if (!earlier) continue;
    const isBound = identity.named && earlier.state !== 'dead';
    const left = isBound ? {} : await inputsUnchanged(options, call, identity);
    if (left) return { ...earlier, ...left };
  }
  return undefined;
}

async function stateOf(
  { workOf, request, lease, look }: FindOptions,
  call: CallOperation,
  identity: CallFingerprint,
): Promise<CallState | undefined> {
  // The same question is a new one.
  if (call.status === 'interrupted' && isForgotten(call, identity)) return undefined;
  if (call.status !== 'running') return { state: 'ended', call };
  const work = workOf(call.id);
  const isIts = identity.named || (call.client !== undefined && call.client === identity.client);
  if (work) return isIts || work.isOpenTo(request) ? { state: 'here', call, work } : undefined;
  if (call.holder === lease.holder || (await lease.isDead(call.holder))) {
    // It may have ended in order since its record was read, and its process with it.
    const now = await look(call.id);
    return now && (now.status === 'running' ? { state: 'dead', call: now } : { state: 'ended', call: now });
  }
  return identity.named || call.lost ? { state: 'elsewhere', call } : undefined;
}

/**
 * The reply to a call whose process died: the answer, if its thread has it; that it was interrupted, if a vendor was asked and
 * nobody knows what he said. Undefined when nobody was asked, or the vendor refused: then the call may simply be made.
 */
export function recoveredReply(
  options: Pick<CallWorld, 'maxTurns' | 'replyTokens'>,
  { call, thread }: EarlierCall,
  { name: tool, paged }: ToolRequest,
): JobReply | undefined {
  if (call.thread === undefined) return interruptedReply(call, tool);
  const turns = thread ? turnsOf(call, thread) : [];
  const question = turns.find(({ role }) => role === 'user');
  if (!thread || !question || question.status === 'failed') return undefined;
  if (question.status !== 'done') return interruptedReply(call, tool);
  const answer = turns.find(({ role }) => role === 'assistant');
  if (!answer) return undefined;
  const { seq, content, toolName, modelName, modelProvider, modelMetadata } = answer;
  const make = (text: string): JsonObject => ({
    status: 'success',
    content: text,
    content_type: 'text',
    continuation_id: thread.id,
    continuation_offer: continuationOffer(thread, options.maxTurns, thread.turns.length),
    metadata: {
      tool_name: toolName,
      model_used: modelName,
      provider_used: modelProvider,
      cost_usd: modelMetadata?.costUsd,
      finish_reason: modelMetadata?.finishReason,
      warnings: ['recovered: the server died before the reply was made; this is the answer as the thread has it.'],
    },
  });
  const limit = paged ? Number.MAX_SAFE_INTEGER : options.replyTokens;
  return successReply(truncateAnswer(make, { thread: thread.id, seq, text: content, asStored: true }, limit));
}

/** Says so once; who wants another answer sends the call again. */
export function interruptedReply({ thread, id }: CallOperation, tool: string): JobReply {
  const message = `The same call of ${tool} was interrupted before its answer came. No model was asked again.`;
  const local = thread === undefined ? {} : { continuation_id: thread };
  const error = new AppError('cancelled', message, {
    code: 'INTERRUPTED',
    class: 'interrupted',
    next: `To ask again, resend the call, which may be paid for a second time.${thread === undefined ? '' : ' Its thread has what was stored until then.'}`,
    replyStatus: 'interrupted',
    data: local,
  });
  return errorReply(error, { toolName: tool, reqId: id, local });
}

/** What a call that ended left for another caller: its own reply, or how the job that it became stands. */
export async function replyOfEarlierCall(
  jobs: Pick<Jobs, 'find'>,
  call: CallOperation,
  { name, principal }: ToolRequest,
): Promise<JobReply & Pick<ToolReply, 'job'>> {
  if (call.status !== 'done' || !call.reply) return interruptedReply(call, name);
  if (call.job === undefined) return replayedReply(call.reply);
  const job = await jobs.find(call.job, principal.owner);
  if (job.status === 'running') return { ...call.reply, job };
  return job.reply ? replayedReply(job.reply) : interruptedReply(call, name);
}

/** How often the call is looked at, and how often its process is told that somebody waits. */
const pollMs = 250;

const wantedMs = 1_000;

/** For how long that is believed. */
export const wantedFreshMs = 4_000;

/** Waits for a call of another process. Resolves with its record once it ended; undefined when nobody works on it any more. */
export async function awaitElsewhere(
  { log, lease, clock }: { log: OperationLog; lease: Pick<ProcessLease, 'isDead'>; clock: Clock },
  { id }: CallOperation,
  { key }: CallFingerprint,
  signal: AbortSignal,
): Promise<CallOperation | undefined> {
  for (let wantedAt = Number.NEGATIVE_INFINITY; ; ) {
    throwIfAborted(signal);
    const call = (await log.read(key)).calls.find(each => each.id === id);
    if (call?.status !== 'running') return call;
    if (await lease.isDead(call.holder)) return undefined;
    if (clock.monotonic() - wantedAt >= wantedMs) {
      wantedAt = clock.monotonic();
      await log.change(key, id, found => ({ ...found, wantedAt: clock.storeTime() }));
    }
    await clock.sleep(pollMs, signal);
  }
}

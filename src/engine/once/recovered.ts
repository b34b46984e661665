import type { LoggedCall } from '../../calls/durable/call-log.ts';
import { continuationOffer, failure, success } from '../../calls/reply.ts';
import { AppError } from '../../core/errors.ts';
import type { JobReply } from '../../core/job.ts';
import type { JsonObject } from '../../core/json.ts';
import type { StoredTurn, Thread } from '../../core/thread.ts';
import { capAnswer } from '../answer/cap.ts';
import type { Trace } from './still-so.ts';

export interface RecoverOptions {
  /** Turns that may stand in a prompt. */
  maxTurns: number;
  /** The most tokens of one reply. */
  replyTokens: number;
}

/**
 * The reply to a call whose process died: the answer, if its thread has it; that it was interrupted, if a vendor was asked and
 * nobody knows what he said. Undefined when nobody was asked, or the vendor refused: then the call may simply be made.
 */
export function recovered(
  options: RecoverOptions,
  call: LoggedCall,
  { thread, turns }: Trace,
  tool: string,
): JobReply | undefined {
  if (call.thread === undefined) return interrupted(call, tool);
  const question = turns.find(({ role }) => role === 'user');
  if (!thread || !question || question.status === 'failed') return undefined;
  if (question.status !== 'done') return interrupted(call, tool);
  const answer = turns.find(({ role }) => role === 'assistant');
  return answer && success(answered(options, thread, answer));
}

function answered({ maxTurns, replyTokens }: RecoverOptions, thread: Thread, turn: StoredTurn): JsonObject {
  const { seq, content, toolName, modelName, modelProvider, modelMetadata } = turn;
  const make = (text: string): JsonObject => ({
    status: 'success',
    content: text,
    content_type: 'text',
    continuation_id: thread.id,
    continuation_offer: continuationOffer(thread, maxTurns, thread.turns.length),
    metadata: {
      tool_name: toolName,
      model_used: modelName,
      provider_used: modelProvider,
      cost_usd: modelMetadata?.costUsd,
      finish_reason: modelMetadata?.finishReason,
      warnings: ['recovered: the server died before the reply was made; this is the answer as the thread has it.'],
    },
  });
  return capAnswer(make, { thread: thread.id, seq, text: content, asStored: true }, replyTokens);
}

/** Says so once; who wants another answer sends the call again. */
export function interrupted({ thread, id }: LoggedCall, tool: string): JobReply {
  const message = `The same call of ${tool} was interrupted before its answer came; nobody was asked again.`;
  const error = new AppError('cancelled', message, {
    code: 'INTERRUPTED',
    class: 'interrupted',
    next: 'Send the call once more to ask anew, which may be paid for a second time; its thread has what was stored until then.',
    replyStatus: 'interrupted',
    data: { ...(thread !== undefined && { continuation_id: thread }) },
  });
  const local = thread === undefined ? {} : { continuation_id: thread };
  return failure(error, { toolName: tool, reqId: id, local });
}

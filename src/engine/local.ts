import type { ComposeOptions } from '../calls/ask/options.ts';
import type { LocalPlan, Resumed } from '../calls/call-record.ts';
import { continuationOffer, localMetadata, type Reply, success } from '../calls/reply.ts';
import type { Turn } from '../core/thread.ts';
import type { Threads } from '../threads/threads.ts';
import { turnTokens } from '../threads/transcript.ts';

export interface LocalOptions {
  threads: Threads;
  compose: ComposeOptions;
}

/** A call that no model answers: what the caller contributed becomes a turn of its own, readable by everybody after it. */
export async function rememberLocal(
  { threads, compose }: LocalOptions,
  call: Resumed,
  plan: LocalPlan,
): Promise<Reply> {
  const exchange = compose.newExchange();
  const draft: Turn = {
    seq: call.thread.seq + 1,
    role: 'user',
    content: plan.contribution,
    timestamp: compose.clock.now(),
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
  return success({
    ...plan.document,
    continuation_id: thread.id,
    continuation_offer: continuationOffer(thread, compose.maxTurns, thread.turns.length),
    metadata: { ...plan.metadata, ...localMetadata(call, compose.clock.monotonic() - call.startedAt) },
  });
}

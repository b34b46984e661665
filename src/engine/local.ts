import type { Turn } from '../domain/thread.ts';
import type { Threads } from '../memory/threads.ts';
import { turnTokens } from '../memory/transcript.ts';
import type { LocalPlan, Resumed } from './call-record.ts';
import type { ComposeOptions } from './gather/options.ts';
import { continuationOffer, localMetadata, type Reply, success } from './reply.ts';

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

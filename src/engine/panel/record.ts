import type { Gathered, Resumed } from '../../calls/call-record.ts';
import { isAppError } from '../../core/errors.ts';
import type { ModelMetadata, Thread, Turn, WorkflowState } from '../../core/thread.ts';
import { estimateTokens } from '../../core/tokens.ts';
import type { PanelOptions, Session } from '../modes/ask-many/consult.ts';
import { storedTurn } from '../modes/ask-many/panel-prompts.ts';
import { costOf } from '../modes/ask-many/voice.ts';

/** An exchange under way: the question is in the store, the answer is not yet. */
export interface Pending {
  thread: Thread;
  turn: Turn;
}

/** Makes the question durable before anybody is paid to answer it. */
export async function begin(
  { threads, compose }: PanelOptions,
  call: Resumed,
  content: string,
  prompts: readonly Gathered[],
): Promise<Pending> {
  const blank = { exchange: compose.newExchange(), timestamp: compose.clock.now() };
  const { turn, blobs } = storedTurn(call, content, prompts, blank);
  const thread = await threads.add(call.thread, turn.exchange, { turns: [turn], status: 'pending', blobs });
  return { thread, turn };
}

export interface Ending {
  content: string;
  modelProvider?: string;
  modelName?: string;
  metadata?: ModelMetadata;
  workflow?: { tool: string; state: WorkflowState | null };
}

/** Stores the answer. What was paid for reaches the caller even when the store fails, with the word that it is not kept. */
export async function end(
  session: Session,
  { thread, turn }: Pending,
  ending: Ending,
): Promise<{ thread: Thread; warnings: string[] }> {
  const { options, spent, call } = session;
  const { content, modelProvider, modelName, metadata, workflow } = ending;
  const answer: Turn = {
    seq: turn.seq + 1,
    role: 'assistant',
    content,
    timestamp: options.compose.clock.now(),
    exchange: turn.exchange,
    toolName: call.tool.name,
    ...(modelProvider !== undefined && { modelProvider }),
    ...(modelName !== undefined && { modelName }),
    modelMetadata: { usage: spent.usage, costUsd: costOf(spent.costUsd), ...metadata },
    files: [],
    images: [],
    citations: [],
    tokens: estimateTokens(content),
  };
  const tokens = spent.usage.input + spent.usage.output;
  try {
    const addition = { turns: [answer], status: 'done' as const, workflow, tokens, costUsd: spent.costUsd };
    return { thread: await options.threads.add(thread, turn.exchange, addition), warnings: [] };
  } catch (error) {
    return { thread, warnings: [`not_persisted: ${isAppError(error) ? error.message : 'the store failed'}`] };
  }
}

/** Marks an exchange that nobody answered. */
export async function abandon({ options, call }: Session, { thread, turn }: Pending): Promise<void> {
  try {
    const status = call.signal.aborted ? 'interrupted' : 'failed';
    await options.threads.add(thread, turn.exchange, { turns: [], status });
  } catch (error) {
    // Left pending, it is closed when the thread is used next; the caller needs to hear of the first failure.
    options.compose.emit({
      type: 'warning',
      where: 'store',
      message: isAppError(error) ? error.message : String(error),
    });
  }
}

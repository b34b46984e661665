import type { AgentEvent, AgentToolCall, GateVerdict, PendingCall } from '../../engine/modes/agent/agent.ts';
import type { SendRequest, SendResult } from './options.ts';

/** What happens while a message is answered, in its order; the last event is `done`. */
export type SendEvent =
  /** Text as it arrives, secrets masked. */
  | { type: 'text'; text: string }
  /** A model calls a tool, which has not run yet: `round` (from 1), `id`, `name`, `args`. */
  | Extract<AgentEvent, { type: 'tool_call' }>
  /** A call of a tool is over. */
  | { type: 'tool_result'; round: number; call: AgentToolCall }
  /** A call that changes something waits for `answer`. Without one until the next event is asked for, it is refused. */
  | { type: 'approval'; call: PendingCall; answer(verdict: GateVerdict): void }
  /** Tokens of one request to the model. */
  | ({ type: 'usage'; round: number } & Extract<AgentEvent, { type: 'response' }>['usage'])
  /** What `send` resolves with. */
  | { type: 'done'; result: SendResult };

/**
 * Sends a request when the first event is asked for, and yields what happens. Throws what `send` rejects with; whoever ends the
 * iteration early ends the request.
 */
export async function* streamEvents(
  send: (heard: { request: SendRequest; onEvent(event: AgentEvent): void }) => Promise<SendResult>,
  request: SendRequest,
): AsyncGenerator<SendEvent, void, void> {
  const events: SendEvent[] = [];
  const left = new AbortController();
  let wake = () => {};
  const push = (event: SendEvent) => {
    events.push(event);
    wake();
  };
  const ask = (call: PendingCall) =>
    call.tool.effect === 'read' && call.approval.asked === undefined
      ? { action: 'allow' as const }
      : new Promise<GateVerdict>(answer => push({ type: 'approval', call, answer }));
  const onEvent = (event: AgentEvent) => {
    if (event.type === 'tool_call') push(event);
    if (event.type === 'tool_result') push({ type: 'tool_result', round: event.round, call: event.call });
    if (event.type === 'response') push({ type: 'usage', round: event.round, ...event.usage });
  };
  const onChunk = (text: string) => {
    push({ type: 'text', text });
    request?.onChunk?.(text);
  };
  // A program without types may have given nothing at all.
  const own = request?.signal;
  const signal = own instanceof AbortSignal ? AbortSignal.any([own, left.signal]) : (own ?? left.signal);
  const hooks = { onChunk, onToolCall: request?.onToolCall ?? ask, stream: true, signal };
  let failed: { error: unknown } | undefined;
  let isOver = false;
  const sent = send({ request: { ...request, ...hooks }, onEvent }).then(
    result => push({ type: 'done', result }),
    error => {
      failed = { error };
    },
  );
  const over = sent.finally(() => {
    isOver = true;
    wake();
  });
  try {
    while (events.length > 0 || !isOver) {
      const event = events.shift();
      if (event) {
        yield event;
        if (event.type === 'approval') event.answer({ action: 'deny', reason: 'The program did not approve it.' });
      } else {
        await new Promise<void>(resolve => {
          wake = resolve;
        });
      }
    }
    if (failed) throw failed.error;
  } finally {
    left.abort();
    await over;
  }
}

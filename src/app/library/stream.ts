import { isRecord } from '../../core/json.ts';
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

/** Hears of one message beside the hooks of its request. */
export interface Watch {
  onEvent(event: AgentEvent): void;
  onText(text: string): void;
  /** Decides where neither the request nor its defaults do. */
  onToolCall(call: PendingCall): GateVerdict | Promise<GateVerdict>;
}

type Send = (request: SendRequest, watch: Watch) => Promise<SendResult>;

/**
 * Sends a request when the first event is asked for, and yields what happens. Throws what `send` rejects with; whoever ends the
 * iteration early ends the request.
 */
export function streamEvents(send: Send, request: SendRequest): AsyncGenerator<SendEvent, void, void> {
  const left = new AbortController();
  const events = eventsOf(send, request, left);
  const { return: end, throw: fail } = events;
  // By itself a generator does neither before the next event is there, and a silent model may take its time.
  events.return = value => {
    left.abort();
    return end.call(events, value);
  };
  events.throw = error => {
    left.abort();
    return fail.call(events, error);
  };
  return events;
}

async function* eventsOf(
  send: Send,
  request: SendRequest,
  left: AbortController,
): AsyncGenerator<SendEvent, void, void> {
  let controller: ReadableStreamDefaultController<SendEvent>;
  const events = new ReadableStream<SendEvent>({
    start(own) {
      controller = own;
    },
  });
  const push = (event: SendEvent) => controller.enqueue(event);
  const watch: Watch = {
    onToolCall: call =>
      call.tool.effect === 'read' && call.approval.asked === undefined
        ? { action: 'allow' }
        : new Promise(answer => push({ type: 'approval', call, answer })),
    onEvent(event) {
      if (event.type === 'tool_call') push(event);
      if (event.type === 'tool_result') push({ type: 'tool_result', round: event.round, call: event.call });
      if (event.type === 'response') push({ type: 'usage', round: event.round, ...event.usage });
    },
    onText: text => push({ type: 'text', text }),
  };
  const sent = send(withSignal(request, left.signal), watch).then(result => push({ type: 'done', result }));
  const over = Promise.allSettled([sent]).then(() => controller.close());
  try {
    // Whoever leaves early cancels nothing here: what still happens is pushed until the request has ended.
    for await (const event of events.values({ preventCancel: true })) {
      yield event;
      if (event.type === 'approval') event.answer({ action: 'deny', reason: 'The program did not approve it.' });
    }
    if (!left.signal.aborted) await sent;
  } finally {
    left.abort();
    await over;
  }
}

/** A request that ends with `over` too. What is no request, or has no signal for one, is refused where it is sent. */
export function withSignal(request: SendRequest, over: AbortSignal): SendRequest {
  const own = validSignal(request);
  if (!isRecord(request) || (own ?? request.signal) !== own) return request;
  // With what it inherits, which is refused where it is sent.
  const kept: SendRequest = Object.create(Object.getPrototypeOf(request));
  return Object.assign(kept, request, { signal: own ? AbortSignal.any([over, own]) : over });
}

/** A program without types may have given anything. */
export const validSignal = (request: unknown): AbortSignal | undefined =>
  isRecord(request) && request.signal instanceof AbortSignal ? request.signal : undefined;

import type { JSONRPCMessage, RequestId, Transport } from '@modelcontextprotocol/server';
import { SUBSCRIPTION_ID_META_KEY } from '@modelcontextprotocol/server';
import { onAbort } from '../../core/concurrency.ts';
import { recordIn } from '../../core/json.ts';
import { arrivedMethod } from './lines.ts';

/** Whether a 2026 client listens for changes of resources. Its connection answers that by itself and tells no server. */
export type Listening = ReturnType<typeof listeningOn>;

/** Sees what passes on a connection that serves already. */
export function listeningOn(transport: Transport) {
  const open = new Set<unknown>();
  const listeners = new Set<(anybody: boolean) => void>();
  const notify = () => {
    for (const listener of listeners) listener(open.size > 0);
  };
  const { onmessage } = transport;
  transport.onmessage = (message, extra) => {
    if (open.delete(endedIn(message)) && open.size === 0) notify();
    onmessage?.(message, extra);
  };
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    const begun = begunIn(message);
    if (begun !== undefined && open.size < open.add(begun).size && open.size === 1) notify();
    return send(message, options);
  };
  return {
    /** Calls `listener` with the answer, now if it is yes, and each time it changes. */
    watch(listener: (anybody: boolean) => void) {
      listeners.add(listener);
      if (open.size > 0) listener(true);
    },
  };
}

/** The subscription that the connection says it serves. */
function begunIn(message: JSONRPCMessage): unknown {
  if (!('method' in message) || message.method !== 'notifications/subscriptions/acknowledged') return undefined;
  const { notifications, _meta } = message.params ?? {};
  const isOfResources = recordIn(notifications).resourceSubscriptions !== undefined;
  return isOfResources ? recordIn(_meta)[SUBSCRIPTION_ID_META_KEY] : undefined;
}

/** The request that the client takes back. */
const endedIn = (message: JSONRPCMessage): unknown =>
  'method' in message && message.method === 'notifications/cancelled' ? message.params?.requestId : undefined;

/** What a connection knows of its client, and of what reached him. */
export interface Connection {
  /** Aborted when the client is gone, before the requests that are under way hear of it. */
  gone: AbortSignal;
  /** Aborted when the client can send nothing more: nobody knows whether it still reads what is written then. */
  inputEnded?: AbortSignal;
  /** Calls `then` once the answer to a request was written, unless the request is cancelled before. */
  onAnswered(id: RequestId, cancelled: AbortSignal, then: () => void): void;
  /** Aborted when the stream for the answer to a request broke. Absent: an answer takes the way that all others take. */
  cutOf?(id: RequestId): AbortSignal | undefined;
  /** As `CallSession` has it. */
  resumedAt?(): number;
}

/** Sees what passes on a connection that serves already. `confirms`: its client tells by messages what arrived. */
export function watchConnection(
  transport: Transport,
  { inputEnded, confirms = false }: Pick<Connection, 'inputEnded'> & { confirms?: boolean } = {},
): Connection {
  const gone = new AbortController();
  const awaited = new Map<unknown, () => void>();
  const send = transport.send.bind(transport);
  transport.send = async (message, options) => {
    await send(message, options);
    // A pipe that nobody reads is found out right after the write.
    if (!confirms && !('method' in message)) setImmediate(() => arrived(message.id));
  };
  function arrived(id: unknown): void {
    const then = awaited.get(id);
    awaited.delete(id);
    if (!gone.signal.aborted && !inputEnded?.aborted) then?.();
  }
  const { onclose, onmessage } = transport;
  transport.onmessage = (message, extra) => {
    if ('method' in message && message.method === arrivedMethod) arrived(message.params?.requestId);
    else onmessage?.(message, extra);
  };
  transport.onclose = () => {
    gone.abort();
    onclose?.();
  };
  return { ...awaiting(awaited, gone.signal), inputEnded };
}

/** A connection that puts down in `awaited` whose answers are waited for. */
export const awaiting = (awaited: Map<unknown, () => void>, gone: AbortSignal): Connection => ({
  gone,
  onAnswered(id, cancelled, then) {
    if (cancelled.aborted || gone.aborted) return;
    awaited.set(id, then);
    cancelled.addEventListener('abort', () => awaited.delete(id), { once: true });
  },
});

/** A request's own signal, but for the end of the connection, which cancels nothing. */
export function cancelOf(signal: AbortSignal, { gone }: Connection): AbortSignal {
  const cancel = new AbortController();
  onAbort(signal, () => {
    if (!gone.aborted) cancel.abort(signal.reason);
  });
  return cancel.signal;
}

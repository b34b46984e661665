import type { JSONRPCMessage, RequestId, Transport } from '@modelcontextprotocol/server';
import { SUBSCRIPTION_ID_META_KEY } from '@modelcontextprotocol/server';
import { onAbort } from '../../core/concurrency.ts';
import { recordIn } from '../../core/json.ts';
import { arrivedMethod } from './lines.ts';

/** The subscription that the connection says it serves. */
function begunIn(message: JSONRPCMessage): unknown {
  if (!('method' in message) || message.method !== 'notifications/subscriptions/acknowledged') return undefined;
  const { notifications, _meta } = message.params ?? {};
  const isOfResources = recordIn(notifications).resourceSubscriptions !== undefined;
  return isOfResources ? recordIn(_meta)[SUBSCRIPTION_ID_META_KEY] : undefined;
}

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
  /** Tells `listener` whether a 2026 client listens for changes of resources: now if it does, and each time that changes. */
  watch?(listener: (anybody: boolean) => void): void;
}

/** Sees what passes on a connection that serves already. `confirms`: its client tells by messages what arrived. */
export function watchConnection(
  transport: Transport,
  { inputEnded, confirms = false }: Pick<Connection, 'inputEnded'> & { confirms?: boolean } = {},
): Connection {
  const gone = new AbortController();
  const answers = createAnswers(gone.signal);
  const listening = new Set<unknown>();
  const listeners = new Set<(anybody: boolean) => void>();
  const notify = () => {
    for (const listener of listeners) listener(listening.size > 0);
  };
  const send = transport.send.bind(transport);
  transport.send = async (message, options) => {
    const begun = begunIn(message);
    if (begun !== undefined && listening.size < listening.add(begun).size && listening.size === 1) notify();
    await send(message, options);
    // A pipe that nobody reads is found out right after the write.
    if (!confirms && !('method' in message)) setImmediate(() => arrived(message.id));
  };
  const arrived = (id: unknown) => void (inputEnded?.aborted || answers.arrived(id));
  const { onclose, onmessage } = transport;
  transport.onmessage = (message, extra) => {
    const { method, params } = 'method' in message ? message : {};
    if (method === 'notifications/cancelled' && listening.delete(params?.requestId) && listening.size === 0) notify();
    if (method === arrivedMethod) arrived(params?.requestId);
    else onmessage?.(message, extra);
  };
  transport.onclose = () => {
    gone.abort();
    onclose?.();
  };
  return {
    gone: gone.signal,
    onAnswered: answers.onAnswered,
    inputEnded,
    watch(listener) {
      listeners.add(listener);
      if (listening.size > 0) listener(true);
    },
  };
}

/** The requests whose answers are waited for, until the client is gone. */
export function createAnswers(gone: AbortSignal) {
  const awaited = new Map<unknown, () => void>();
  return {
    onAnswered(id: RequestId, cancelled: AbortSignal, then: () => void) {
      if (cancelled.aborted || gone.aborted) return;
      awaited.set(id, then);
      cancelled.addEventListener('abort', () => awaited.delete(id), { once: true });
    },
    /** The answer to this request was written. */
    arrived(id: unknown) {
      if (!gone.aborted) awaited.get(id)?.();
      awaited.delete(id);
    },
  };
}

/** A request's own signal, but for the end of the connection, which cancels nothing. */
export function cancelOf(signal: AbortSignal, { gone }: Connection): AbortSignal {
  const cancel = new AbortController();
  onAbort(signal, () => {
    if (!gone.aborted) cancel.abort(signal.reason);
  });
  return cancel.signal;
}

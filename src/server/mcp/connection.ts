import type { JSONRPCMessage, RequestId, Transport } from '@modelcontextprotocol/server';

/** What a connection knows of its client, and of what reached him. */
export interface Connection {
  /** Aborted when the client is gone, before the requests that are under way hear of it. */
  gone: AbortSignal;
  /** Calls `then` once the answer to a request was written, unless the request is cancelled before. */
  onAnswered(id: RequestId, cancelled: AbortSignal, then: () => void): void;
}

export interface WatchedConnection extends Connection {
  /** Tells that the client is gone. */
  lose(): void;
}

/** Sees what is written to a connection that serves already. */
export function watchConnection(transport: Transport): WatchedConnection {
  const gone = new AbortController();
  const awaited = new Map<RequestId, () => void>();
  const send = transport.send.bind(transport);
  transport.send = async (message, options) => {
    const answered = idOfAnswer(message);
    const then = answered === undefined ? undefined : awaited.get(answered);
    if (answered !== undefined) awaited.delete(answered);
    await send(message, options);
    // A pipe that nobody reads is found out right after the write.
    if (then) setImmediate(() => !gone.signal.aborted && then());
  };
  const { onclose } = transport;
  transport.onclose = () => {
    gone.abort();
    onclose?.();
  };
  return {
    gone: gone.signal,
    lose: () => gone.abort(),
    onAnswered(id, cancelled, then) {
      if (cancelled.aborted || gone.signal.aborted) return;
      awaited.set(id, then);
      cancelled.addEventListener('abort', () => awaited.delete(id), { once: true });
    },
  };
}

function idOfAnswer(message: JSONRPCMessage): RequestId | undefined {
  return 'method' in message ? undefined : message.id;
}

/** A request's own signal, but for the end of the connection, which cancels nothing. */
export function cancelOf(signal: AbortSignal, { gone }: Connection): AbortSignal {
  const cancel = new AbortController();
  const onAbort = () => {
    if (!gone.aborted) cancel.abort(signal.reason);
  };
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  return cancel.signal;
}

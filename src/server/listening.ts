import { type JSONRPCMessage, SUBSCRIPTION_ID_META_KEY, type Transport } from '@modelcontextprotocol/server';
import { isRecord } from '../core/json.ts';

/** Whether a 2026 client listens for changes of resources. Its connection answers that by itself and tells no server. */
export interface Listening {
  /** Calls `listener` with the answer, now if it is yes, and each time it changes. */
  watch(listener: (anybody: boolean) => void): void;
}

/** Sees what passes on a connection that serves already. */
export function listeningOn(transport: Transport): Listening {
  const open = new Set<unknown>();
  const listeners = new Set<(anybody: boolean) => void>();
  const tell = () => {
    for (const listener of listeners) listener(open.size > 0);
  };
  const { onmessage } = transport;
  transport.onmessage = (message, extra) => {
    if (open.delete(endedIn(message)) && open.size === 0) tell();
    onmessage?.(message, extra);
  };
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    const begun = begunIn(message);
    if (begun !== undefined && open.size < open.add(begun).size && open.size === 1) tell();
    return send(message, options);
  };
  return {
    watch(listener) {
      listeners.add(listener);
      if (open.size > 0) listener(true);
    },
  };
}

/** The subscription that the connection says it serves. */
function begunIn(message: JSONRPCMessage): unknown {
  if (!('method' in message) || message.method !== 'notifications/subscriptions/acknowledged') return undefined;
  const { notifications, _meta } = message.params ?? {};
  const resources = isRecord(notifications) && notifications.resourceSubscriptions !== undefined;
  return resources && isRecord(_meta) ? _meta[SUBSCRIPTION_ID_META_KEY] : undefined;
}

/** The request that the client takes back. */
function endedIn(message: JSONRPCMessage): unknown {
  return 'method' in message && message.method === 'notifications/cancelled' ? message.params?.requestId : undefined;
}

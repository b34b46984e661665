import type { MessageId, Seen } from '../proxy/messages.ts';

/** A request that a new connection is told again although the client has its answer. */
export interface Repeated {
  id: MessageId;
  line: string;
}

/** What a client said of itself that lasts for as long as it is there: a new connection has to hear it again. */
export interface Greeting {
  /** Sees what the client says. */
  said(message: Seen, line: string): void;
  /** Sees that a request of the client's succeeded. */
  succeeded(request: Repeated & { method: string; uri: unknown }): void;
  /** How a 2025 client began, once it has got its answer. */
  initialize(): Repeated | undefined;
  /** Its word that it is ready. */
  initialized(): string | undefined;
  /** What it subscribed to. */
  subscriptions(): Repeated[];
}

export function createGreeting(): Greeting {
  let first: Repeated | undefined;
  let ready: string | undefined;
  const watched = new Map<unknown, Repeated>();
  return {
    said(message, line) {
      if (message.kind === 'notification' && message.method === 'notifications/initialized') ready = line;
    },
    succeeded({ id, line, method, uri }) {
      if (method === 'resources/subscribe') watched.set(uri, { id, line });
      if (method === 'resources/unsubscribe') watched.delete(uri);
      if (method !== 'initialize') return;
      first = { id, line };
      ready = undefined;
      watched.clear();
    },
    initialize: () => first,
    initialized: () => ready,
    subscriptions: () => [...watched.values()],
  };
}

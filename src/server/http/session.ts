import { type RequestId, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import { isRecord } from '../../domain/json.ts';
import type { Connection } from '../connection.ts';
import { createMcpServer, type McpOptions } from '../mcp.ts';
import { createEventLog } from './event-log.ts';
import type { Exchange } from './exchange.ts';

/** A 2025 client's session: it lasts over many requests, and over lost streams. */
export interface Session {
  id: string;
  /** Name of the token whose session it is. */
  caller: string;
  handle(request: Request, body: unknown): Promise<Exchange>;
  /** Ends it: calls that run go on without their client, as after any loss. */
  close(): Promise<void>;
}

export interface SessionOptions {
  id: string;
  caller: string;
  mcp: Omit<McpOptions, 'connection' | 'listening'>;
  onClosed(): void;
  onError(error: Error): void;
}

export async function openSession({ id, caller, mcp, onClosed, onError }: SessionOptions): Promise<Session> {
  const log = createEventLog();
  const { connection, arrived, lose } = sessionConnection();
  const server = createMcpServer({ ...mcp, connection }, 'legacy');
  const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => id, eventStore: log });
  transport.onerror = onError;
  await server.connect(transport);
  const { onclose } = transport;
  transport.onclose = () => {
    // Before the transport ends all requests: a client that is gone has not cancelled them.
    lose();
    onclose?.();
    onClosed();
  };
  return {
    id,
    caller,
    async handle(request, body) {
      const last = request.method === 'GET' ? request.headers.get('last-event-id') : null;
      const asked = requestIds(body);
      const response = await transport.handleRequest(request, { parsedBody: body });
      return {
        response,
        onWritten: whole => whole && arrived(last === null ? asked : log.answersAfter(last)),
      };
    },
    close: () => transport.close(),
  };
}

/** Knows which answers reached a client: those whose streams were written to their ends. */
function sessionConnection(): { connection: Connection; arrived(ids: readonly RequestId[]): void; lose(): void } {
  const gone = new AbortController();
  const awaited = new Map<RequestId, () => void>();
  return {
    connection: {
      gone: gone.signal,
      onAnswered(id, cancelled, then) {
        if (cancelled.aborted || gone.signal.aborted) return;
        awaited.set(id, then);
        cancelled.addEventListener('abort', () => awaited.delete(id), { once: true });
      },
    },
    arrived(ids) {
      if (gone.signal.aborted) return;
      for (const id of ids) {
        awaited.get(id)?.();
        awaited.delete(id);
      }
    },
    lose() {
      gone.abort();
      awaited.clear();
    },
  };
}

function requestIds(body: unknown): RequestId[] {
  const messages: unknown[] = Array.isArray(body) ? body : [body];
  return messages.flatMap(message => {
    if (!isRecord(message) || typeof message.method !== 'string') return [];
    return typeof message.id === 'string' || typeof message.id === 'number' ? [message.id] : [];
  });
}

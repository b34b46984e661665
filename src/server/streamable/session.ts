import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import type { Clock } from '../../core/ports.ts';
import type { Exchange } from '../http/exchange.ts';
import { createMcpServer, type McpOptions } from '../mcp/mcp.ts';
import { createEventLog } from '../mcp-http/event-log.ts';
import type { ServerOf } from '../mcp-http/requests.ts';
import type { ResultStore } from '../websocket/kept-results.ts';
import { createArrivals, requestIds } from './arrivals.ts';

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
  serverOf: ServerOf | undefined;
  clock: Pick<Clock, 'after'>;
  /** What all sessions may keep of what was sent. */
  room: ResultStore;
  onClosed(): void;
  onError(error: Error): void;
}

/** What was written may still have been lost on its way: for this long a client can come back for it. */
const resumeMs = 60_000;

/** What the transport calls the stream of messages that belong to no request. */
const ownStream = '_GET_stream';

export async function openSession(options: SessionOptions): Promise<Session> {
  const { id, caller, mcp, serverOf = createMcpServer, clock, room, onClosed, onError } = options;
  const log = createEventLog(room);
  const { connection, arrived, lose } = createArrivals();
  const server = serverOf({ ...mcp, connection }, 'legacy');
  const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => id, eventStore: log });
  transport.onerror = onError;
  await server.connect(transport);
  const { onclose } = transport;
  transport.onclose = () => {
    // Before the transport ends all requests: a client that is gone has not cancelled them.
    lose();
    onclose?.();
    log.close();
    onClosed();
  };
  return {
    id,
    caller,
    async handle(request, body) {
      const last = request.method === 'GET' ? request.headers.get('last-event-id') : null;
      const asked = requestIds(body);
      // The one stream that answers nothing lasts for as long as the client likes, and so does what it is taken up by.
      const listens =
        request.method === 'GET' && (last === null || (await log.getStreamIdForEventId(last)) === ownStream);
      const response = await transport.handleRequest(request, { parsedBody: body });
      return {
        response,
        listens,
        onWritten(whole) {
          if (!whole) return;
          const answered = last === null ? asked : log.answersAfter(last);
          arrived(answered);
          clock.after(resumeMs, () => log.forget(answered));
        },
      };
    },
    close: () => transport.close(),
  };
}

import { createMcpHandler } from '@modelcontextprotocol/server';
import { isRecord } from '../../domain/json.ts';
import type { Exchange } from '../http/exchange.ts';
import { createMcpServer, type McpOptions } from '../mcp.ts';
import { type Arrivals, createArrivals, requestIds } from './arrivals.ts';
import { createOwnerChanges } from './owner-changes.ts';

/** How 2026 clients of one caller are served: request by request. */
export interface ModernLeg {
  handle(request: Request, body: unknown): Promise<Exchange>;
  /** Requests under way, and streams that listen. */
  open(): number;
  close(): Promise<void>;
}

export function createModernLeg(mcp: McpOptions, onError: (error: Error) => void): ModernLeg {
  const changes = createOwnerChanges(mcp.host.resources, mcp.principal.owner);
  const arrivals = new Map<Request, Arrivals>();
  let listening = 0;
  const handler = createMcpHandler(
    ({ requestInfo }) => {
      const connection = requestInfo && arrivals.get(requestInfo)?.connection;
      return createMcpServer({ ...mcp, ...(connection && { connection }) }, 'modern');
    },
    {
      legacy: 'reject',
      // A call that says nothing for minutes would look dead to its client otherwise.
      responseMode: 'sse',
      bus: changes,
      onerror: onError,
    },
  );

  async function listen(request: Request, body: unknown): Promise<Exchange> {
    const end = await changes.begin();
    listening += 1;
    const onWritten = () => {
      listening -= 1;
      end();
    };
    try {
      return { response: await handler.fetch(request, { parsedBody: body }), listens: true, onWritten };
    } catch (error) {
      onWritten();
      throw error;
    }
  }

  return {
    open: () => arrivals.size + listening,
    async handle(request, body) {
      if (isRecord(body) && body.method === 'subscriptions/listen') return listen(request, body);
      const arrival = createArrivals();
      arrivals.set(request, arrival);
      const onWritten = (whole: boolean) => {
        arrivals.delete(request);
        if (whole) arrival.arrived(requestIds(body));
      };
      try {
        return { response: await handler.fetch(request, { parsedBody: body }), onWritten };
      } catch (error) {
        onWritten(false);
        throw error;
      }
    },
    async close() {
      // Before their requests are aborted: it is not their clients who cancel them.
      for (const arrival of arrivals.values()) arrival.lose();
      await handler.close();
    },
  };
}

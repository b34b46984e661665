import { createMcpHandler, type McpServer, type Server } from '@modelcontextprotocol/server';
import { isRecord } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import type { Era } from '../era.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Connection } from '../mcp/connection.ts';
import { createMcpServer, type McpOptions } from '../mcp/mcp.ts';
import { createOwnerChanges } from '../streamable/owner-changes.ts';
import { patientResponse } from '../streamable/patient-response.ts';
import { noShare } from '../streamable/rpc-errors.ts';

/** How 2026 clients of one caller are served: request by request. */
export interface ModernLeg {
  handle(request: Request, body: unknown): Promise<Exchange>;
  /** Requests under way, and streams that listen. */
  open(): number;
  close(): Promise<void>;
}

/** Makes the protocol server of one connection or request. */
export type ServerOf = (mcp: McpOptions, era: Era) => Server | McpServer;

export interface ModernLegOptions {
  mcp: McpOptions;
  clock: Pick<Clock, 'after'>;
  serverOf: ServerOf | undefined;
  /** Takes a place for a stream that listens; undefined: the caller has all of his. */
  mayListen(): (() => void) | undefined;
  onError(error: Error): void;
}

export function createModernLeg(options: ModernLegOptions): ModernLeg {
  const { mcp, clock, serverOf = createMcpServer, mayListen, onError } = options;
  const changes = createOwnerChanges(mcp.host.resources, mcp.principal.owner);
  const gone = new AbortController();
  const open = new Map<Request, Connection>();
  let listening = 0;
  const handler = createMcpHandler(
    ({ requestInfo }) => {
      const connection = requestInfo && open.get(requestInfo);
      return serverOf({ ...mcp, ...(connection && { connection }) }, 'modern');
    },
    {
      legacy: 'reject',
      bus: changes,
      onerror: onError,
    },
  );

  async function listen(request: Request, body: unknown): Promise<Exchange> {
    const giveBack = mayListen();
    if (!giveBack) return { response: noShare('streams') };
    listening += 1;
    let end = () => {};
    const onWritten = () => {
      listening -= 1;
      end();
      giveBack();
    };
    try {
      end = await changes.begin();
      return { response: await handler.fetch(request, { parsedBody: body }), listens: true, onWritten };
    } catch (error) {
      onWritten();
      throw error;
    }
  }

  return {
    open: () => open.size + listening,
    async handle(request, body) {
      if (isRecord(body) && body.method === 'subscriptions/listen') return listen(request, body);
      const arrivals: (() => void)[] = [];
      // Once its answer is written the server ends the exchange, which is no cancelling: what counts is whether it was.
      open.set(request, { gone: gone.signal, onAnswered: (_id, _cancelled, then) => void arrivals.push(then) });
      const onWritten = (whole: boolean) => {
        open.delete(request);
        if (whole && !gone.signal.aborted) for (const arrived of arrivals) arrived();
      };
      try {
        return { response: await patientResponse(handler.fetch(request, { parsedBody: body }), clock), onWritten };
      } catch (error) {
        onWritten(false);
        throw error;
      }
    },
    async close() {
      // Before their requests are aborted: it is not their clients who cancel them.
      gone.abort();
      await handler.close();
    },
  };
}

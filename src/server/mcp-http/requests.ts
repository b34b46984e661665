import { createMcpHandler, InMemoryServerEventBus, type McpServer, type Server } from '@modelcontextprotocol/server';
import { isRecord } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import type { HostResources } from '../../core/tool-host.ts';
import { eventStream } from '../http/responses.ts';
import type { Exchange, GuardedRequest } from '../http/routes.ts';
import type { Connection } from '../mcp/connection.ts';
import { createMcpServer, type Era, type McpOptions } from '../mcp/mcp.ts';

/** Changes of one owner's threads and jobs, for 2026 clients that listen; looked for only while somebody does. */
function createOwnerChanges(resources: Pick<HostResources, 'watch'>, owner: string) {
  const bus = new InMemoryServerEventBus();
  let listeners = 0;
  let stop = new AbortController();
  let watching: Promise<void> | undefined;
  return {
    bus,
    /** Resolves once nothing is missed any more. Called before a client begins to listen; the result lets it go again, once. */
    async begin() {
      listeners += 1;
      watching ??= resources.watch(owner, uri => bus.publish({ kind: 'resource_updated', uri }), stop.signal);
      await watching;
      return () => {
        listeners -= 1;
        if (listeners > 0) return;
        stop.abort();
        stop = new AbortController();
        watching = undefined;
      };
    },
  };
}

/** An answer that is there by then has a status of its own. */
const atOnceMs = 5_000;

/** An answer as it is, or, where it takes long, a stream that says at once that somebody works on it. */
export async function patientResponse(answer: Promise<Response>, clock: Pick<Clock, 'after'>): Promise<Response> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const stop = clock.after(atOnceMs, () => resolve(undefined));
  try {
    return (await Promise.race([answer, late])) ?? streamed(answer, clock);
  } finally {
    stop();
  }
}

const streamed = (answer: Promise<Response>, clock: Pick<Clock, 'after'>): Response =>
  eventStream(clock, async write => {
    write(': keepalive\n\n');
    const response = await answer;
    if (response.headers.get('content-type')?.startsWith('text/event-stream') && response.body) {
      for await (const piece of response.body) if (!write(piece)) return;
      return;
    }
    const text = await response.text();
    if (text !== '') write(`event: message\ndata: ${text}\n\n`);
  });

const rpcError = (status: number, code: number, message: string, headers = {}): Response =>
  Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status, headers });

const later = { 'Retry-After': '5' };

export const noSession = (): Response =>
  rpcError(400, -32_000, 'Begin with "initialize", or send the Mcp-Session-Id header of the session.');

export const unknownSession = (): Response =>
  rpcError(404, -32_001, 'There is no such session. Begin a new one with "initialize".');

export const overCapacity = (): Response =>
  rpcError(503, -32_000, 'There are too many sessions. Try again later.', later);

export function quotaExceeded(what: 'sessions' | 'streams'): Response {
  const message = `Your token has as many ${what} as one token may have at a time. End one, or ask the operator for more (POLYLOGUE_SESSIONS_PER_TOKEN).`;
  return rpcError(429, -32_000, message, later);
}

/** How 2026 clients of one caller are served: request by request. */
export type StatelessHandler = ReturnType<typeof createStatelessHandler>;

/** Makes the protocol server of one connection or request. */
export type ServerOf = (mcp: McpOptions, era: Era) => Server | McpServer;

export interface StatelessHandlerOptions {
  mcp: McpOptions;
  clock: Pick<Clock, 'after'>;
  serverOf: ServerOf | undefined;
  /** Takes a place for a stream that listens; undefined: the caller has all of his. */
  mayListen(): (() => void) | undefined;
  onError(error: Error): void;
}

export function createStatelessHandler(options: StatelessHandlerOptions) {
  const { mcp, clock, serverOf = createMcpServer, mayListen, onError } = options;
  const changes = createOwnerChanges(mcp.host.resources, mcp.principal.owner);
  const gone = new AbortController();
  const open = new Map<Request, Connection>();
  const handler = createMcpHandler(
    ({ requestInfo }) => {
      const connection = requestInfo && open.get(requestInfo);
      return serverOf({ ...mcp, ...(connection && { connection }) }, 'modern');
    },
    { legacy: 'reject', bus: changes.bus, onerror: onError },
  );

  async function listen(request: Request, body: unknown): Promise<Exchange> {
    const giveBack = mayListen();
    if (!giveBack) return { response: quotaExceeded('streams') };
    let end = () => {};
    const onWritten = () => {
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
    async handle(request: Request, body: unknown) {
      if (isRecord(body) && body.method === 'subscriptions/listen') return listen(request, body);
      const arrivals: (() => void)[] = [];
      // To close the stream is to cancel, unless the client named its call: then it comes again for the answer.
      const left = isNamed(body) ? [request.signal] : [];
      // Once its answer is written the server ends the exchange, which is no cancelling: what counts is whether it was.
      open.set(request, {
        gone: AbortSignal.any([gone.signal, ...left]),
        onAnswered: (_id, _cancelled, then) => void arrivals.push(then),
      });
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

function isNamed(body: unknown): boolean {
  const { _meta: meta } = isRecord(body) && isRecord(body.params) ? body.params : {};
  return isRecord(meta) && typeof meta.idempotencyKey === 'string';
}

/** Who asks, and for which project. */
export type From = Pick<GuardedRequest, 'caller' | 'root'>;

import { createMcpHandler, isInitializeRequest, isLegacyRequest } from '@modelcontextprotocol/server';
import { isRecord } from '../../domain/json.ts';
import { createMcpServer, type McpOptions } from '../mcp.ts';
import type { DoorParts } from './door-parts.ts';
import type { Exchange, GuardedRequest } from './exchange.ts';
import { createOwnerChanges } from './owner-changes.ts';
import { openSession } from './session.ts';
import type { Sessions } from './sessions.ts';

export interface McpDoorOptions extends Pick<DoorParts, 'version' | 'random' | 'gate' | 'productOf' | 'onError'> {
  sessions: Sessions;
}

export interface McpDoor {
  handle(request: GuardedRequest): Promise<Exchange>;
  close(): Promise<void>;
}

/** Streamable HTTP: 2026 clients request by request, 2025 clients in sessions. */
export function createMcpDoor(options: McpDoorOptions): McpDoor {
  const { sessions, random, gate, version, onError } = options;
  const modern = new Map<string, Promise<ModernLeg>>();

  async function optionsFor(caller: GuardedRequest['caller'], client: string): Promise<McpOptions> {
    const { host, root, instructions } = await options.productOf(caller);
    return { host: gate.before(host, client), version, instructions, principal: { owner: caller.owner, root } };
  }

  async function legOf(caller: GuardedRequest['caller']): Promise<ModernLeg> {
    const known = modern.get(caller.name);
    if (known) return known;
    const made = optionsFor(caller, caller.name).then(mcp => modernLeg(mcp, onError));
    modern.set(caller.name, made);
    // A product that can't be made now may be made for the next request.
    made.catch(() => modern.delete(caller.name));
    return made;
  }

  async function inSession({ request, body, caller }: GuardedRequest): Promise<Exchange> {
    const id = request.headers.get('mcp-session-id');
    if (id === null && !(request.method === 'POST' && isInitializeRequest(body))) return { response: noSession() };
    const session = id === null ? await opened(caller) : sessions.find(id, caller.name);
    if (!session) return { response: id === null ? noRoom() : unknownSession() };
    const release = sessions.use(session);
    try {
      const { response, onWritten } = await session.handle(request, body);
      const over = (whole: boolean) => {
        onWritten?.(whole);
        release();
      };
      return { response, onWritten: over };
    } catch (error) {
      release();
      throw error;
    }
  }

  async function opened(caller: GuardedRequest['caller']) {
    const id = random.uuid();
    const mcp = await optionsFor(caller, `session ${id}`);
    return sessions.add(caller.name, onClosed => openSession({ id, caller: caller.name, mcp, onClosed, onError }));
  }

  return {
    async handle(guarded) {
      const { request, body, caller } = guarded;
      if (await isLegacyRequest(request, body)) return inSession(guarded);
      return (await legOf(caller)).handle(request, body);
    },
    async close() {
      await sessions.close();
      await Promise.all([...modern.values()].map(async leg => (await leg).close()));
    },
  };
}

interface ModernLeg {
  handle(request: Request, body: unknown): Promise<Exchange>;
  close(): Promise<void>;
}

function modernLeg(mcp: McpOptions, onError: (error: Error) => void): ModernLeg {
  const changes = createOwnerChanges(mcp.host.resources, mcp.principal.owner);
  const handler = createMcpHandler(() => createMcpServer(mcp, 'modern'), {
    legacy: 'reject',
    // A call that says nothing for minutes would look dead to its client otherwise.
    responseMode: 'sse',
    bus: changes,
    onerror: onError,
  });
  return {
    close: handler.close,
    async handle(request, body) {
      if (!isRecord(body) || body.method !== 'subscriptions/listen') {
        return { response: await handler.fetch(request, { parsedBody: body }) };
      }
      const end = await changes.begin();
      return { response: await handler.fetch(request, { parsedBody: body }), listens: true, onWritten: end };
    },
  };
}

function rpcError(status: number, code: number, message: string): Response {
  return Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status });
}

function noSession(): Response {
  return rpcError(400, -32_000, 'Begin with "initialize", or send the Mcp-Session-Id header of the session.');
}

function unknownSession(): Response {
  return rpcError(404, -32_001, 'There is no such session. Begin a new one with "initialize".');
}

function noRoom(): Response {
  return rpcError(503, -32_000, 'There are too many sessions. Try again later.');
}

import { isInitializeRequest, isLegacyRequest } from '@modelcontextprotocol/server';
import type { ToolHost } from '../../domain/request.ts';
import type { DoorParts } from '../http/door-parts.ts';
import type { Exchange, GuardedRequest } from '../http/exchange.ts';
import { listedOf, through } from '../http/listed-of.ts';
import type { McpOptions } from '../mcp.ts';
import { createResultStore } from '../ws/frames/kept-results.ts';
import { mostLogged } from './event-log.ts';
import { createModernLeg, type ModernLeg, type ServerOf } from './modern-leg.ts';
import { openSession, type Session } from './session.ts';
import type { Sessions } from './sessions.ts';

export interface McpDoorOptions
  extends Pick<DoorParts, 'version' | 'random' | 'clock' | 'gate' | 'productOf' | 'onError'> {
  sessions: Sessions;
  /** Makes the protocol server of a connection or request; the product's own unless told. */
  serverOf?: ServerOf;
}

export interface McpDoor {
  handle(request: GuardedRequest): Promise<Exchange>;
  close(): Promise<void>;
}

type From = Pick<GuardedRequest, 'caller' | 'root'>;

/** Callers and projects that are remembered while nobody of them asks for anything. */
const mostLegs = 256;

/** Streamable HTTP: 2026 clients request by request, 2025 clients in sessions. */
export function createMcpDoor(options: McpDoorOptions): McpDoor {
  const { sessions, random, clock, gate, version, serverOf, onError } = options;
  // The one that was used longest ago stands first.
  const modern = new Map<string, Promise<ModernLeg>>();
  const room = createResultStore(mostLogged);

  async function optionsFor({ caller, root: declared }: From, client: string): Promise<McpOptions> {
    const { host, root, instructions } = await options.productOf(caller, declared);
    const before = (product: ToolHost) => gate.before(product, client);
    const listed = declared === undefined ? listedOf(options, { caller }, before) : undefined;
    return { host: before(host), version, instructions, principal: { owner: caller.owner, root }, listed };
  }

  async function legOf(from: From): Promise<ModernLeg> {
    const { caller, root } = from;
    const key = JSON.stringify([caller.name, root ?? null]);
    const made =
      modern.get(key) ?? optionsFor(from, caller.name).then(mcp => createModernLeg({ mcp, clock, serverOf, onError }));
    modern.delete(key);
    modern.set(key, made);
    // A product that can't be made now may be made for the next request.
    made.catch(() => modern.delete(key));
    await forgetIdle();
    return made;
  }

  async function forgetIdle(): Promise<void> {
    if (modern.size <= mostLegs) return;
    for (const [key, made] of [...modern].slice(0, -1)) {
      const leg = await made.catch(() => undefined);
      if (leg && leg.open() > 0) continue;
      modern.delete(key);
      return;
    }
  }

  async function inSession({ request, body, caller, root }: GuardedRequest): Promise<Exchange> {
    const id = request.headers.get('mcp-session-id');
    if (id === null && !(request.method === 'POST' && isInitializeRequest(body))) return { response: noSession() };
    const session = id === null ? await opened({ caller, root }) : sessions.find(id, caller.name);
    if (!session) return { response: id === null ? noRoom() : unknownSession() };
    const release = sessions.use(session);
    try {
      const { response, listens = false, onWritten } = await session.handle(request, body);
      // Nobody will ever come back to a session that did not begin.
      if (id === null && !response.ok) await session.close();
      const over = (whole: boolean) => {
        onWritten?.(whole);
        release();
      };
      return { response, listens, onWritten: over };
    } catch (error) {
      release();
      if (id === null) await session.close();
      throw error;
    }
  }

  async function opened(from: From): Promise<Session | undefined> {
    const id = random.uuid();
    const caller = from.caller.name;
    const { host, listed, ...mcp } = await optionsFor(from, `session ${id}`);
    const used = (product: ToolHost) => ({
      ...product,
      call: inUse(product.call, () => sessions.find(id, caller)),
    });
    const own = { ...mcp, host: used(host), listed: listed && through(listed, used) };
    return sessions.add(caller, onClosed =>
      openSession({ id, caller, mcp: own, serverOf, clock, room, onClosed, onError }),
    );
  }

  /** A call keeps its session, even where the stream that waited for it is lost. */
  function inUse(call: ToolHost['call'], session: () => Session | undefined): ToolHost['call'] {
    return async (request, signal) => {
      const found = session();
      const release = found ? sessions.use(found) : () => {};
      try {
        return await call(request, signal);
      } finally {
        release();
      }
    };
  }

  return {
    async handle(guarded) {
      const { request, body } = guarded;
      if (await isLegacyRequest(request, body)) return inSession(guarded);
      return (await legOf(guarded)).handle(request, body);
    },
    async close() {
      await sessions.close();
      const legs = await Promise.allSettled(modern.values());
      await Promise.all(legs.map(leg => (leg.status === 'fulfilled' ? leg.value.close() : undefined)));
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
  const response = rpcError(503, -32_000, 'There are too many sessions. Try again later.');
  response.headers.set('Retry-After', '5');
  return response;
}

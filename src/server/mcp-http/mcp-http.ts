import { isInitializeRequest, isLegacyRequest } from '@modelcontextprotocol/server';
import type { ToolHost } from '../../core/tool-host.ts';
import { createIdleSessions, type HeldSession } from '../access/idle-sessions.ts';
import { createQuotas } from '../access/limits.ts';
import type { Exchange, GuardedRequest, RouteServices } from '../http/routes.ts';
import { heldUntilWritten, mcpOptionsOf } from '../http/routes.ts';
import { createResultStore } from '../websocket/kept-results.ts';
import {
  createStatelessHandler,
  type From,
  noSession,
  overCapacity,
  quotaExceeded,
  type ServerOf,
  type StatelessHandler,
  unknownSession,
} from './requests.ts';
import { maxLogged, openSession, type Sessions } from './sessions.ts';

export interface McpHttpEndpointOptions
  extends Pick<RouteServices, 'version' | 'random' | 'clock' | 'gate' | 'tokens' | 'productOf' | 'onError'> {
  sessions: Sessions;
  /** Makes the protocol server of a connection or request; the product's own unless told. */
  serverOf?: ServerOf;
}

/** Handlers of callers and projects, and how long one is kept that nobody asks for anything. */
const handlerRules = { idleMs: 600_000, max: 4_096 };

/** Streamable HTTP: 2026 clients request by request, 2025 clients in sessions. */
export function createMcpHttpEndpoint(options: McpHttpEndpointOptions) {
  const { sessions, random, clock, gate, serverOf, onError } = options;
  const room = createResultStore(maxLogged);
  const listens = createQuotas(sessions.limits);
  const handlers = createIdleSessions(handlerRules, clock, (made: Promise<StatelessHandler>) =>
    // One that could not be made leaves nothing to close.
    made.then(
      handler => handler.close(),
      () => undefined,
    ),
  );

  async function optionsFor({ caller, root }: From, client: string, used = (host: ToolHost) => host) {
    const product = await options.productOf(caller, root);
    const wrap = (host: ToolHost) => used(gate.before(host, client));
    return mcpOptionsOf(options, product, { caller, follows: root === undefined }, wrap);
  }

  async function inSession({ request, body, caller, root }: GuardedRequest): Promise<Exchange> {
    const id = request.headers.get('mcp-session-id');
    if (id === null && !(request.method === 'POST' && isInitializeRequest(body))) return { response: noSession() };
    const held = id === null ? await opened({ caller, root }) : sessions.use(id, caller.name);
    if (!held) return { response: unknownSession() };
    if (typeof held === 'string') return { response: held === 'full' ? overCapacity() : quotaExceeded('sessions') };
    const { session: opening, release } = held;
    return heldUntilWritten(release, async () => {
      const session = await opening;
      try {
        const exchange = await session.handle(request, body);
        // Nobody will ever come back to a session that did not begin.
        if (id === null && !exchange.response.ok) await session.close();
        return exchange;
      } catch (error) {
        if (id === null) await session.close();
        throw error;
      }
    });
  }

  async function opened(from: From) {
    const id = random.uuid();
    const caller = from.caller.name;
    const used = (host: ToolHost) => inUse(host, () => sessions.use(id, caller));
    const mcp = await optionsFor(from, `session ${id}`, used);
    const onClosed = () => sessions.remove(id);
    const held = sessions.add(id, caller, () => openSession({ id, mcp, serverOf, clock, room, onClosed, onError }));
    if (typeof held !== 'string') held.session.catch(onClosed);
    return held;
  }

  /** Serves a 2026 client by the handler of its caller and project. */
  async function stateless({ request, body, caller, root }: GuardedRequest): Promise<Exchange> {
    // The owner, too: a request that was let in before its token became another owner's must leave him nothing.
    const key = JSON.stringify([caller.name, caller.owner, root ?? null]);
    const held = handlers.use(key, caller.name) ?? handlers.add(key, caller.name, () => made(key, { caller, root }));
    if (typeof held === 'string') return { response: overCapacity() };
    return heldUntilWritten(held.release, async () => (await held.session).handle(request, body));
  }

  async function made(key: string, from: From): Promise<StatelessHandler> {
    try {
      const mcp = await optionsFor(from, from.caller.name);
      const mayListen = () => listens(from.caller.name);
      return createStatelessHandler({ mcp, clock, serverOf, mayListen, onError });
    } catch (error) {
      // A product that can't be made now may be made for the next request.
      handlers.remove(key);
      throw error;
    }
  }

  // Their requests are ended by whoever has their connections.
  options.tokens.onChange(({ ended }) => {
    sessions.end(ended).catch(onError);
    handlers.end(ended).catch(onError);
  });

  return {
    async handle(guarded: GuardedRequest): Promise<Exchange> {
      const { request, body } = guarded;
      return (await isLegacyRequest(request, body)) ? inSession(guarded) : stateless(guarded);
    },
    async close() {
      await sessions.endAll();
      await handlers.endAll();
    },
  };
}

/** A call keeps its session, even where the stream that waited for it is lost. */
function inUse(host: ToolHost, use: () => HeldSession<unknown> | undefined): ToolHost {
  const call: ToolHost['call'] = async (request, signal) => {
    const held = use();
    try {
      return await host.call(request, signal);
    } finally {
      held?.release();
    }
  };
  return { ...host, call };
}

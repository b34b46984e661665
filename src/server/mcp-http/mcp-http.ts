import { isInitializeRequest, isLegacyRequest } from '@modelcontextprotocol/server';
import type { ToolHost } from '../../core/tool-host.ts';
import type { HeldSession } from '../access/idle-sessions.ts';
import { createQuotas } from '../access/limits.ts';
import type { Exchange, GuardedRequest, RouteServices } from '../http/routes.ts';
import { mcpOptionsOf } from '../http/routes.ts';
import { createResultStore } from '../websocket/kept-results.ts';
import {
  createStatelessHandler,
  createStatelessHandlers,
  type From,
  noSession,
  overCapacity,
  quotaExceeded,
  type ServerOf,
  unknownSession,
} from './requests.ts';
import { maxLogged, openSession, type Sessions } from './sessions.ts';

export interface McpHttpEndpointOptions
  extends Pick<RouteServices, 'version' | 'random' | 'clock' | 'gate' | 'tokens' | 'productOf' | 'onError'> {
  sessions: Sessions;
  /** Makes the protocol server of a connection or request; the product's own unless told. */
  serverOf?: ServerOf;
}

/** Streamable HTTP: 2026 clients request by request, 2025 clients in sessions. */
export function createMcpHttpEndpoint(options: McpHttpEndpointOptions) {
  const { sessions, random, clock, gate, serverOf, onError } = options;
  const room = createResultStore(maxLogged);
  const listens = createQuotas(sessions.limits);
  const modern = createStatelessHandlers(async from => {
    const mcp = await optionsFor(from, from.caller.name);
    const mayListen = () => listens(from.caller.name);
    return createStatelessHandler({ mcp, clock, serverOf, mayListen, onError });
  });

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
    const session = await held.session;
    try {
      const { response, listens = false, onWritten } = await session.handle(request, body);
      // Nobody will ever come back to a session that did not begin.
      if (id === null && !response.ok) await session.close();
      const over = (whole: boolean) => {
        onWritten?.(whole);
        held.release();
      };
      return { response, listens, onWritten: over };
    } catch (error) {
      held.release();
      if (id === null) await session.close();
      throw error;
    }
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

  // Their requests are ended by whoever has their connections.
  options.tokens.onChange(({ ended }) => {
    sessions.end(ended).catch(onError);
    modern.end(ended);
  });

  return {
    async handle(guarded: GuardedRequest): Promise<Exchange> {
      const { request, body } = guarded;
      if (await isLegacyRequest(request, body)) return inSession(guarded);
      return (await modern.of(guarded)).handle(request, body);
    },
    async close() {
      await sessions.endAll();
      await modern.close();
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

import { isInitializeRequest, isLegacyRequest } from '@modelcontextprotocol/server';
import type { ToolHost } from '../../domain/request.ts';
import { createShares } from '../guards/shares.ts';
import type { DoorParts } from '../http/door-parts.ts';
import type { Exchange, GuardedRequest } from '../http/exchange.ts';
import type { McpOptions } from '../mcp.ts';
import { listedOf, through } from '../roots/listed-of.ts';
import { createResultStore } from '../ws/frames/kept-results.ts';
import { mostLogged } from './event-log.ts';
import { createModernLeg, type ModernLeg, type ServerOf } from './modern-leg.ts';
import { noRoom, noSession, noShare, unknownSession } from './rpc-errors.ts';
import { openSession, type Session } from './session.ts';
import type { Sessions } from './sessions.ts';

export interface McpDoorOptions
  extends Pick<DoorParts, 'version' | 'random' | 'clock' | 'gate' | 'tokens' | 'productOf' | 'onError'> {
  sessions: Sessions;
  /** Makes the protocol server of a connection or request; the product's own unless told. */
  serverOf?: ServerOf;
}

export interface McpDoor {
  handle(request: GuardedRequest): Promise<Exchange>;
  close(): Promise<void>;
}

/** What 2026 requests of one caller and project have in common. */
interface Leg {
  caller: string;
  made: Promise<ModernLeg>;
}

type From = Pick<GuardedRequest, 'caller' | 'root'>;

/** Callers and projects that are remembered while nobody of them asks for anything. */
const mostLegs = 256;

/** Streamable HTTP: 2026 clients request by request, 2025 clients in sessions. */
export function createMcpDoor(options: McpDoorOptions): McpDoor {
  const { sessions, random, clock, gate, version, serverOf, onError } = options;
  // The one that was used longest ago stands first.
  const modern = new Map<string, Leg>();
  const room = createResultStore(mostLogged);
  const listens = createShares(sessions.limits);

  async function optionsFor({ caller, root: declared }: From, client: string): Promise<McpOptions> {
    const { host, root, instructions } = await options.productOf(caller, declared);
    const before = (product: ToolHost) => gate.before(product, client);
    const listed = declared === undefined ? listedOf(options, { caller }, before) : undefined;
    return { host: before(host), version, instructions, principal: { owner: caller.owner, root }, listed };
  }

  async function made(from: From): Promise<ModernLeg> {
    const mcp = await optionsFor(from, from.caller.name);
    const mayListen = () => listens(from.caller.name);
    return createModernLeg({ mcp, clock, serverOf, mayListen, onError });
  }

  async function legOf(from: From): Promise<ModernLeg> {
    const { caller, root } = from;
    // The owner, too: a request that was let in before its token became another owner's must leave him nothing.
    const key = JSON.stringify([caller.name, caller.owner, root ?? null]);
    const leg = modern.get(key) ?? { caller: caller.name, made: made(from) };
    modern.delete(key);
    modern.set(key, leg);
    // A product that can't be made now may be made for the next request.
    leg.made.catch(() => modern.get(key) === leg && modern.delete(key));
    await forgetIdle();
    return leg.made;
  }

  async function forgetIdle(): Promise<void> {
    if (modern.size <= mostLegs) return;
    for (const [key, each] of [...modern].slice(0, -1)) {
      const leg = await each.made.catch(() => undefined);
      if (leg && leg.open() > 0) continue;
      modern.delete(key);
      return;
    }
  }

  async function inSession({ request, body, caller, root }: GuardedRequest): Promise<Exchange> {
    const id = request.headers.get('mcp-session-id');
    if (id === null && !(request.method === 'POST' && isInitializeRequest(body))) return { response: noSession() };
    const session = id === null ? await opened({ caller, root }) : sessions.find(id, caller.name);
    if (!session) return { response: unknownSession() };
    if (typeof session === 'string') return { response: session === 'full' ? noRoom() : noShare('sessions') };
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

  async function opened(from: From): Promise<Session | 'full' | 'share'> {
    const id = random.uuid();
    const caller = from.caller.name;
    const { host, listed, ...mcp } = await optionsFor(from, `session ${id}`);
    const find = () => sessions.find(id, caller);
    const used = (product: ToolHost) => ({ ...product, call: inUse(sessions, product.call, find) });
    const own = { ...mcp, host: used(host), listed: listed && through(listed, used) };
    return sessions.add(caller, onClosed =>
      openSession({ id, caller, mcp: own, serverOf, clock, room, onClosed, onError }),
    );
  }

  // Their requests are ended by whoever has their connections.
  options.tokens.onChange(({ ended }) => {
    sessions.end(ended).catch(onError);
    for (const [key, { caller, made: leg }] of modern) {
      if (!ended.has(caller)) continue;
      modern.delete(key);
      leg.then(each => each.close()).catch(() => undefined);
    }
  });

  return {
    async handle(guarded) {
      const { request, body } = guarded;
      if (await isLegacyRequest(request, body)) return inSession(guarded);
      return (await legOf(guarded)).handle(request, body);
    },
    async close() {
      await sessions.close();
      const legs = await Promise.allSettled([...modern.values()].map(({ made: leg }) => leg));
      await Promise.all(legs.map(leg => (leg.status === 'fulfilled' ? leg.value.close() : undefined)));
    },
  };
}

/** A call keeps its session, even where the stream that waited for it is lost. */
function inUse(sessions: Sessions, call: ToolHost['call'], session: () => Session | undefined): ToolHost['call'] {
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

import {
  createMcpHandler,
  InMemoryServerEventBus,
  isInitializeRequest,
  isLegacyRequest,
  specTypeSchemas,
} from '@modelcontextprotocol/server';
import { withTimeout } from '../../core/concurrency.ts';
import { recordIn } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import type { ToolHost } from '../../core/tool-host.ts';
import { holdingInCalls } from '../access/admission.ts';
import { createIdleSessions } from '../access/idle-sessions.ts';
import { createQuotas } from '../access/limits.ts';
import { eventStream } from '../http/responses.ts';
import type { Exchange, GuardedRequest, RouteServices } from '../http/routes.ts';
import { heldUntilWritten, mcpOptionsOf } from '../http/routes.ts';
import type { Connection } from '../mcp/connection.ts';
import { isId, refusedMessage } from '../mcp/lines.ts';
import { changesOf, createMcpServer, issuesInWords, type McpOptions } from '../mcp/mcp.ts';
import { withoutNulls } from '../mcp/messages.ts';
import { type createSessions, maxLogged, openSession, type ServerOf, type SessionOptions } from './sessions.ts';

export interface McpHttpEndpointOptions extends RouteServices {
  sessions: ReturnType<typeof createSessions>;
  /** Makes the protocol server of a connection or request; the product's own unless told. */
  serverOf?: ServerOf;
}

/** Handlers of callers and projects, and how long one is kept that nobody asks for anything. */
const handlerRules = { idleMs: 600_000, max: 4_096 };

/** Streamable HTTP: 2026 clients request by request, 2025 clients in sessions. */
export function createMcpHttpEndpoint(options: McpHttpEndpointOptions) {
  const { sessions, random, clock, admission, serverOf = createMcpServer, onError } = options;
  const room = { left: maxLogged };
  const listens = createQuotas(sessions.limits);
  const handlers = createIdleSessions(handlerRules, clock, async (made: Promise<StatelessHandler>) =>
    // One that could not be made leaves nothing to close.
    (await made.catch(() => undefined))?.close(),
  );

  async function optionsFor({ caller, root }: From, client: string, used = (host: ToolHost) => host) {
    const product = await options.productOf(caller, root);
    const wrap = (host: ToolHost) => used(admission.before(host, client));
    return mcpOptionsOf(options, product, { caller, follows: root === undefined }, wrap);
  }

  async function inSession({ request, body, caller, root }: GuardedRequest): Promise<Exchange> {
    const id = request.headers.get('mcp-session-id');
    if (id === null && !(request.method === 'POST' && isInitializeRequest(body))) return { response: notBegun(body) };
    const held = id === null ? await opened({ caller, root }) : sessions.use(id, caller.name);
    if (!held)
      return { response: rpcError(404, -32_001, 'There is no such session. Begin a new one with "initialize".') };
    if (typeof held === 'string') return { response: held === 'full' ? overCapacity() : quotaExceeded('sessions') };
    const { session: opening, release } = held;
    return heldUntilWritten(release, async () => {
      const session = await opening;
      let hasBegun = id !== null;
      try {
        const exchange = await session.handle(request, body);
        hasBegun ||= exchange.response.ok;
        return exchange;
      } finally {
        // Nobody will ever come back to a session that did not begin.
        if (!hasBegun) await session.close();
      }
    });
  }

  async function opened(from: From) {
    const id = random.uuid();
    const caller = from.caller.name;
    // A call keeps its session, even where the stream that waited for it is lost.
    const used = (host: ToolHost) => holdingInCalls(host, () => sessions.use(id, caller)?.release);
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
    const held = handlers.use(key, caller.name) ?? handlers.add(key, caller.name, () => made({ caller, root }));
    if (typeof held === 'string') return { response: overCapacity() };
    // A product that can't be made now may be made for the next request.
    held.session.catch(() => handlers.remove(key));
    return heldUntilWritten(held.release, async () => (await held.session).handle(request, body));
  }

  async function made(from: From): Promise<StatelessHandler> {
    const mcp = await optionsFor(from, from.caller.name);
    return createStatelessHandler(mcp, () => listens(from.caller.name), { clock, serverOf, onError });
  }

  // Their requests are ended by whoever has their connections.
  options.tokens.onChange(({ ended }) => {
    sessions.end(ended).catch(onError);
    handlers.end(ended).catch(onError);
  });

  return {
    async handle(sent: GuardedRequest): Promise<Exchange> {
      const guarded = { ...sent, body: withoutNulls(sent.body) };
      return (await isLegacyRequest(sent.request, guarded.body)) ? inSession(guarded) : stateless(guarded);
    },
    async close() {
      await sessions.endAll();
      await handlers.endAll();
    },
  };
}

/** An answer that is there by then has a status of its own. */
const atOnceMs = 5_000;

/** An answer as it is, or, where it takes long, a stream that says at once that somebody works on it. */
export const patientResponse = async (answer: Promise<Response>, clock: Pick<Clock, 'after'>): Promise<Response> =>
  (await withTimeout(clock, atOnceMs, answer)) ?? streamed(answer, clock);

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

const rpcError = (status: number, code: number, message: string, headers = {}, id: unknown = null): Response =>
  Response.json(refusedMessage(isId(id) ? id : null, code, message), { status, headers });

const later = { 'Retry-After': '5' };

/** The answer to a message without a session that begins none. */
function notBegun(body: unknown): Response {
  const { id, method } = recordIn(body);
  if (method !== 'initialize') {
    const begin = 'Begin with "initialize", or send the Mcp-Session-Id header of the session.';
    // Clients of the transport of 2024 begin with a GET.
    const isOld = body === undefined ? ' A client set to "sse" has to be set to Streamable HTTP ("http").' : '';
    return rpcError(400, -32_000, begin + isOld);
  }
  const { issues } = specTypeSchemas.InitializeRequest['~standard'].validate(body);
  return rpcError(400, -32_602, `Invalid params: ${issuesInWords(issues)}`, {}, id);
}

const overCapacity = (): Response => rpcError(503, -32_000, 'There are too many sessions. Try again later.', later);

function quotaExceeded(what: 'sessions' | 'streams'): Response {
  const message = `Your token has as many ${what} as one token may have at a time. End one, or ask the operator for more (POLYLOGUE_SESSIONS_PER_TOKEN).`;
  return rpcError(429, -32_000, message, later);
}

/** How 2026 clients of one caller are served: request by request. */
type StatelessHandler = ReturnType<typeof createStatelessHandler>;

/** `mayListen` takes a place for a stream that listens; undefined: the caller has all of his. */
function createStatelessHandler(
  mcp: McpOptions,
  mayListen: () => (() => void) | undefined,
  { clock, serverOf, onError }: Pick<SessionOptions, 'clock' | 'serverOf' | 'onError'>,
) {
  const bus = new InMemoryServerEventBus();
  const publish = (uri: string) => bus.publish({ kind: 'resource_updated', uri });
  const changes = changesOf(mcp.host.resources, mcp.principal.owner, publish);
  let listeners = 0;
  const gone = new AbortController();
  const open = new Map<Request, Connection>();
  const handler = createMcpHandler(
    ({ requestInfo }) => {
      const connection = requestInfo && open.get(requestInfo);
      return serverOf({ ...mcp, ...(connection && { connection }) }, 'modern');
    },
    { legacy: 'reject', bus, onerror: onError },
  );

  async function listen(request: Request, body: unknown): Promise<Exchange> {
    const giveBack = mayListen();
    if (!giveBack) return { response: quotaExceeded('streams') };
    listeners += 1;
    const release = () => {
      giveBack();
      listeners -= 1;
      if (listeners === 0) changes.unwatch();
    };
    return heldUntilWritten(release, async () => {
      // Before it begins to listen: from then on it misses nothing.
      await changes.watch();
      return { response: await handler.fetch(request, { parsedBody: body }), listens: true };
    });
  }

  return {
    async handle(request: Request, body: unknown) {
      if (recordIn(body).method === 'subscriptions/listen') return listen(request, body);
      const arrivals: (() => void)[] = [];
      // To close the stream is to cancel, unless the client named its call: then it comes again for the answer.
      const { idempotencyKey } = recordIn(recordIn(recordIn(body).params)._meta);
      const left = typeof idempotencyKey === 'string' ? [request.signal] : [];
      // Once its answer is written the server ends the exchange, which is no cancelling: what counts is whether it was.
      open.set(request, {
        gone: AbortSignal.any([gone.signal, ...left]),
        onAnswered: (_id, _cancelled, then) => void arrivals.push(then),
      });
      const onWritten = (whole: boolean) => {
        if (whole && !gone.signal.aborted) for (const arrived of arrivals) arrived();
      };
      const answer = () => patientResponse(handler.fetch(request, { parsedBody: body }), clock);
      const forget = () => open.delete(request);
      return heldUntilWritten(forget, async () => ({ response: await answer(), onWritten }));
    },
    async close() {
      // Before their requests are aborted: it is not their clients who cancel them.
      gone.abort();
      await handler.close();
    },
  };
}

type From = Pick<GuardedRequest, 'caller' | 'root'>;

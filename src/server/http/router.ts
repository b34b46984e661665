import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { onAbort } from '../../core/concurrency.ts';
import { type ErrorKind, isAppError } from '../../core/errors.ts';
import { decoded } from '../../core/text.ts';
import { originOf } from '../access/addresses.ts';
import { type Caller, type Refusal, refusalFor, refusalResponse } from '../access/caller.ts';
import { readJson } from '../mcp/lines.ts';
import { addressOf, bringsBody, readBody, toRequest } from './requests.ts';
import type { Exchange, GuardedRequest, Route, RouteServices, UpgradeHandler } from './routes.ts';
import { heldUntilWritten } from './routes.ts';

const preflight = {
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, DELETE',
  'Access-Control-Allow-Headers':
    'Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Polylogue-Root, traceparent, tracestate',
  'Access-Control-Max-Age': '600',
};

/**
 * Lets a page that may call read the answer; a response where its browser only asks first. `origins`: the pages that the operator
 * named. Those of this machine are told nothing: any program's page could read what anybody may ask without a token.
 */
export function createCors(origins: readonly string[]) {
  const pages = new Set(origins.map(originOf).filter(page => page !== undefined));
  return ({ method, headers }: IncomingMessage, outgoing: ServerResponse): Response | undefined => {
    const { origin } = headers;
    const page = originOf(origin ?? '');
    if (pages.size > 0) outgoing.setHeader('Vary', 'Origin');
    if (origin === undefined || page === undefined || !pages.has(page)) return undefined;
    outgoing.setHeader('Access-Control-Allow-Origin', origin);
    outgoing.setHeader('Access-Control-Expose-Headers', 'Mcp-Session-Id, Retry-After, WWW-Authenticate');
    const isAsking = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
    return isAsking ? new Response(null, { status: 204, headers: preflight }) : undefined;
  };
}

const notFound = refusalFor(404, 'path', 'Not found.', { next: 'MCP is at /mcp, single tools at /api/tools/NAME.' });

const unsupportedMediaType = refusalFor(415, 'type', 'The body is not declared as JSON.', {
  next: 'Send it with "Content-Type: application/json".',
});

const unsupportedEncoding = refusalFor(415, 'coding', 'The body is compressed.', {
  next: 'Send it as it is, without "Content-Encoding".',
  headers: { 'Accept-Encoding': 'identity' },
});

/** At the path of an endpoint that takes connections of another protocol alone; a proxy on the way may have taken that out. */
const upgradeRequired = refusalFor(426, 'upgrade', 'This path takes WebSockets only.', {
  next: 'Connect with a WebSocket client; a proxy on the way has to pass the "Upgrade" and "Connection" headers on.',
  headers: { Upgrade: 'websocket', Connection: 'Upgrade' },
});

const clientDisconnected = refusalFor(400, 'body', 'The body ended too soon.', { next: 'Send the request again.' });

const methodNotAllowed = (allowed: readonly string[]): Refusal =>
  refusalFor(405, 'method', 'Method not allowed.', {
    next: `It takes ${allowed.join(', ')}.`,
    headers: { Allow: allowed.join(', ') },
  });

/** What became of a request that failed before its tool was called. */
export function refusalOf(error: unknown): Refusal {
  if (!isAppError(error)) return failed;
  const { class: kind, next = failed.next, retryAfterSeconds } = error.details;
  return refusalFor(statuses[error.kind] ?? 500, kind, error.message, { next, retryAfterSeconds });
}

const statuses: Partial<Record<ErrorKind, Refusal['status']>> = { input: 400, security: 403, limit: 503, storage: 503 };

const failed = refusalFor(500, 'bug', 'The server failed at this request.', {
  next: 'Retry; if it fails again, see the server log.',
});

export interface RouterParts extends RouteServices {
  /** Refuses by Host and Origin, before anything else is looked at. */
  checkAddress(incoming: IncomingMessage): Refusal | undefined;
  mcp(guarded: GuardedRequest): Promise<Exchange>;
  tool(guarded: GuardedRequest, name: string | undefined): Promise<Exchange>;
  /** Answers browsers that ask whether a page may call. */
  cors: ReturnType<typeof createCors>;
  routes: readonly Route[];
  upgrades: readonly UpgradeHandler[];
  /** Told whose answer this is, once that is known. */
  onCaller(caller: Caller, outgoing: ServerResponse): void;
  /** Why it can't work now, as one sentence; undefined: it can. */
  notReady(): Promise<string | undefined>;
}

const formBytes = 65_536;

const readOnly = ['GET', 'HEAD'];

/** One of the daemon's own endpoints, which take JSON. */
function endpointAt(parts: RouterParts, path: string) {
  if (path === '/mcp' || path === '/mcp/') return { methods: ['GET', 'POST', 'DELETE'], open: parts.mcp };
  const [, tool] = /^\/api\/tools(?:\/([A-Za-z0-9_.-]{1,128}))?$/.exec(path) ?? [undefined, false as const];
  if (tool === false) return undefined;
  const open: RouterParts['mcp'] = guarded => parts.tool(guarded, tool);
  return { methods: tool === undefined ? readOnly : ['POST'], open };
}

/** From a request to its answer, past the guards: host and origin, path, token, rate, method, body. */
export function createRouter(parts: RouterParts) {
  const routes = parts.routes.toSorted((a, b) => b.path.length - a.path.length);
  const probes = new Map<string, () => Response | Promise<Response>>([
    ['/healthz', () => Response.json({ status: 'ok', version: parts.version })],
    ['/readyz', () => readiness(parts)],
  ]);

  async function callEndpoint(open: RouterParts['mcp'], url: URL, call: Call, caller: Caller): Promise<Exchange> {
    const { incoming, outgoing } = call;
    let value: unknown;
    if (incoming.method === 'POST') {
      if (!/^application\/json\s*(;|$)/i.test(incoming.headers['content-type'] ?? ''))
        return refused(unsupportedMediaType);
      if (!/^(identity)?$/i.test(incoming.headers['content-encoding'] ?? '')) return refused(unsupportedEncoding);
      const body = await bodyOf(parts, call, caller, parts.maxBodyBytes);
      if (!('bytes' in body)) return refused(body);
      const read = readJson(body.bytes.toString('utf8'));
      if ('refusal' in read) return refused(read.refusal);
      value = read.value;
      // The request itself was counted before it was read.
      const more = Array.isArray(value) ? value.length - 1 : 0;
      const tooMany = more > 0 ? parts.admit(caller, more) : undefined;
      if (tooMany) return refused(tooMany);
    }
    const root = rootOf(incoming);
    const request = toRequest(incoming, outgoing, url);
    // Nothing is held when everybody has what he asked for. Who only listens does not count.
    const release = parts.admission.hold();
    return heldUntilWritten(release, async () => {
      const exchange = await open({ request, body: value, caller, root });
      if (exchange.listens) release();
      return exchange;
    });
  }

  async function answer(call: Call): Promise<Exchange> {
    const { incoming } = call;
    const refusal = parts.checkAddress(incoming);
    if (refusal) return refused(refusal);
    const url = addressOf(incoming);
    if (!url) return refused(notFound);
    const { pathname } = url;
    const probe = probes.get(pathname);
    if (probe) return isIn(readOnly, incoming) ? { response: await probe() } : refused(methodNotAllowed(readOnly));
    if (parts.upgrades.some(({ path }) => path === pathname)) return refused(upgradeRequired);
    const endpoint = endpointAt(parts, pathname);
    const preflight = endpoint && parts.cors(incoming, call.outgoing);
    if (preflight) return { response: preflight };
    const route = endpoint
      ? undefined
      : routes.find(({ path }) => (path.endsWith('/') ? pathname.startsWith(path) : pathname === path));
    const caller = callerOf(parts, incoming, route?.access === 'anybody');
    if (caller && 'status' in caller) return refused(caller);
    if (caller) parts.onCaller(caller, call.outgoing);
    const tooMany = caller && parts.admit(caller);
    if (tooMany) return refused(tooMany);
    const way = endpoint ?? route;
    if (!way) return refused(notFound);
    if (!isIn(way.methods, incoming)) return refused(methodNotAllowed(way.methods));
    const isPost = incoming.method === 'POST';
    if (endpoint && caller && isPost) return callEndpoint(endpoint.open, url, call, caller);
    // Also a body without a use: an answer that lasts must not be what keeps the connection of its sender open.
    const form = bringsBody(incoming) ? await bodyOf(parts, call, caller, formBytes) : undefined;
    if (form && !('bytes' in form)) return refused(form);
    const body = isPost ? form?.bytes : undefined;
    if (route) return callRoute(parts, route, toRequest(incoming, call.outgoing, url, body), call, caller);
    return endpoint && caller ? callEndpoint(endpoint.open, url, call, caller) : refused(notFound);
  }

  return async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<Exchange> => {
    try {
      return await answer({ incoming, outgoing });
    } catch (error) {
      if (incoming.destroyed && !incoming.complete) return refused(clientDisconnected);
      const refusal = refusalOf(error);
      if (refusal.class === 'bug') throw error;
      return refused(refusal);
    }
  };
}

async function callRoute({ tokens }: RouterParts, route: Route, request: Request, call: Call, caller?: Caller) {
  const { incoming, outgoing } = call;
  const end = () => outgoing.destroy();
  const cutBy = (signal: AbortSignal) => void outgoing.once('close', onAbort(signal, end));
  const response = await route.handle({ request, caller, address: incoming.socket.remoteAddress, cutBy });
  if (response) return { response };
  // What is not there is not told to strangers.
  const known = caller ?? tokens.identify(undefined);
  return refused('status' in known ? known : notFound);
}

function bodyOf(parts: RouterParts, { incoming, outgoing }: Call, caller: Caller | undefined, limit: number) {
  const memory = parts.admission.reserveInput(caller, incoming.socket.remoteAddress);
  return readBody(incoming, outgoing, limit, { clock: parts.clock, memory });
}

/** Hands a connection over to the handler at its path, past the guards of all requests; else answers why not. */
export function routeUpgrade(parts: RouterParts, incoming: IncomingMessage, socket: Duplex, head: Buffer) {
  const refusal = parts.checkAddress(incoming);
  if (refusal) return refusal;
  const caller = callerOf(parts, incoming, true);
  if (caller && 'status' in caller) return caller;
  const pathname = addressOf(incoming)?.pathname;
  // Clients of other servers name no path.
  const handler = parts.upgrades.find(({ path }) => path === pathname || pathname === '/');
  if (!handler) return notFound;
  const tooMany = caller && parts.admit(caller);
  if (tooMany) return tooMany;
  handler.accept({ incoming, socket, head, caller });
  return undefined;
}

interface Call {
  incoming: IncomingMessage;
  outgoing: ServerResponse;
}

/** Who asks; undefined where he did not say so, and `mayBeAnybody`. */
function callerOf({ tokens, identify }: RouterParts, { headers, socket }: IncomingMessage, mayBeAnybody: boolean) {
  // What a browser sends along for the password of a proxy is none of our tokens.
  const isStranger = mayBeAnybody && !/^bearer\b/i.test(headers.authorization ?? '') && tokens.count() > 0;
  return isStranger ? undefined : identify(headers.authorization, socket.remoteAddress);
}

const isIn = (methods: readonly string[], { method = '' }: IncomingMessage): boolean => methods.includes(method);

/** The header in which a client names its project. */
export function rootOf({ headers }: IncomingMessage): string | undefined {
  const header = headers['polylogue-root'];
  return typeof header !== 'string' || header === '' ? undefined : decoded(header);
}

const refused = (refusal: Refusal): Exchange => ({ response: refusalResponse(refusal) });

async function readiness({ admission, notReady }: RouterParts): Promise<Response> {
  if (admission.isShut()) return Response.json({ status: 'draining' }, { status: 503 });
  const reason = await notReady();
  return reason === undefined
    ? Response.json({ status: 'ready' })
    : Response.json({ status: 'not_ready', reason }, { status: 503 });
}

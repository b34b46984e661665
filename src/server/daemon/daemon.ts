import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { withTimeout } from '../../core/concurrency.ts';
import { asError, configError, errorCode, isAppError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { type AddressRules, checkBind, createAddressGuard, isLoopback, localUrl } from '../access/addresses.ts';
import { type Admission, createAdmission } from '../access/admission.ts';
import { operator, refusalFor, refusalResponse, refuseUpgrade } from '../access/caller.ts';
import type { SessionRules } from '../access/idle-sessions.ts';
import { type CapacityRules, createCapacity, createRates, type RateRules } from '../access/limits.ts';
import { createIdentify } from '../access/tokens.ts';
import { addressOf } from '../http/requests.ts';
import { writeResponse } from '../http/responses.ts';
import { createCors, createRouter, type RouterParts, refusalOf, routeUpgrade } from '../http/router.ts';
import type { Route, RouteServices, UpgradeHandler } from '../http/routes.ts';
import { createMcpHttpEndpoint, type McpHttpEndpointOptions } from '../mcp-http/mcp-http.ts';
import { createSessions } from '../mcp-http/sessions.ts';
import { type DaemonHealth, keepHealthFile } from './health-file.ts';
import { followTokens, type LiveTokens } from './live-tokens.ts';
import { createToolApi } from './tool-api.ts';

/** Requests that one connection may send before the first of them is answered; the usual clients send one. */
const maxPipelined = 32;

/** Counts those of each connection, and ends a connection with too many: they all would be answered at once, for nobody who reads. */
function createPipelineGuard(): (incoming: IncomingMessage, outgoing: ServerResponse) => boolean {
  const open = new WeakMap<Socket, number>();
  return ({ socket }, outgoing) => {
    const count = (open.get(socket) ?? 0) + 1;
    if (socket.destroyed || count > maxPipelined) {
      socket.destroy();
      return false;
    }
    open.set(socket, count);
    outgoing.once('close', () => open.set(socket, (open.get(socket) ?? 1) - 1));
    return true;
  };
}

export interface DaemonOptions
  extends Pick<RouteServices, 'version' | 'clock' | 'random' | 'productOf' | 'maxBodyBytes' | 'onError'>,
    Pick<McpHttpEndpointOptions, 'serverOf'>,
    Pick<RouterParts, 'notReady'>,
    Pick<AddressRules, 'hosts' | 'origins'> {
  /** Port 0: any that is free. */
  bind: { host: string; port: number };
  /** They are closed with it. */
  live: LiveTokens;
  sessions: SessionRules;
  rates: RateRules;
  capacity: CapacityRules;
  /** Calls that go on without their clients; absent: none do. */
  jobsRunning?(): number;
  /** Where it tells of itself; absent: nowhere. */
  healthFolder?: string;
  /** The file with the operator's token, where it was not given. */
  tokenFile?: string | undefined;
  /** What is at paths of its own beside MCP and the tools. */
  routes: readonly ((parts: RouteServices) => Route)[];
  /** What connections may become. */
  upgrades: readonly ((parts: RouteServices) => UpgradeHandler)[];
  /** Milliseconds that a client has for the head of a request, for all of it, and to take a byte; the usual ones unless told. */
  patience?: Partial<typeof usualPatience>;
}

/** The product behind a port, for many clients at once. */
export type Daemon = Awaited<ReturnType<typeof openDaemon>>;

const usualPatience = { headMs: 10_000, requestMs: 600_000, stallMs: 30_000 };

/** Listens; rejects where it may not, or can't. */
export async function openDaemon(options: DaemonOptions) {
  const { bind, clock, live } = options;
  const { tokens } = live;
  checkBind({ host: bind.host, tokens: tokens.count() });
  const admission = createAdmission(createCapacity(options.capacity), clock);
  const patience = { ...usualPatience, ...options.patience };
  const services = servicesOf(options, admission, patience);
  const sessions = createSessions(options.sessions, clock);
  const routes = options.routes.map(make => make(services));
  const upgrades = options.upgrades.map(make => make(services));
  const mcp = createMcpHttpEndpoint({ ...services, serverOf: options.serverOf, sessions });
  // Which pages are its own is known once it listens; nothing comes before.
  let checkOrigin: ReturnType<typeof createAddressGuard>;
  const parts: RouterParts = {
    ...services,
    checkAddress: ({ headersDistinct }) => checkOrigin(headersDistinct),
    cors: createCors(options.origins),
    mcp: mcp.handle,
    tool: createToolApi(services),
    routes,
    upgrades,
    onCaller: createOpenAnswers(tokens),
    notReady: options.notReady,
  };

  /** Sends a browser that came by `localhost`, which another program may serve too, to the address that is its own. */
  function ownPageFor(incoming: IncomingMessage): Response | undefined {
    const { method, headers } = incoming;
    const { host = '', 'sec-fetch-mode': mode } = headers;
    const path = addressOf(incoming);
    const isNear = host.endsWith(`:${port}`) && isLoopback(host.slice(0, host.lastIndexOf(':')));
    if (method !== 'GET' || mode !== 'navigate' || !isNear || !path) return undefined;
    if (!checkOrigin({ host: [host], origin: [`http://${host}`] })) return undefined;
    const Location = `${url}${path.pathname}${path.search}`;
    return new Response(null, { status: 307, headers: { Location, 'Cache-Control': 'no-store' } });
  }

  const server = createRequestServer(parts, ownPageFor, patience);
  server.maxConnections = options.sessions.max * 2 + 256;
  await once(server.listen(bind.port, bind.host), 'listening').catch(error => {
    throw cannotListen(bind.host, bind.port, asError(error));
  });
  const own = server.address();
  const { address, port } = typeof own === 'object' && own ? own : { address: bind.host, port: bind.port };
  checkOrigin = createAddressGuard({ ...options, bind: bind.host, address, port });
  const url = localUrl(isLoopback(bind.host) ? address : bind.host, port);
  /** What runs now. `sessions`: of 2025 clients, and connections of other protocols. */
  const load = () => {
    const { running: callsRunning, waiting: callsWaiting } = admission.load();
    const connections = upgrades.reduce((sum, endpoint) => sum + endpoint.connections(), sessions.count());
    return { sessions: connections, callsRunning, callsWaiting };
  };
  const started_at = clock.now() / 1_000;
  const report = async (): Promise<DaemonHealth> => {
    const { sessions, callsRunning: calls_running, callsWaiting: calls_waiting } = load();
    const reason = await options.notReady();
    return {
      ...{ url, port, started_at, sessions, calls_running, calls_waiting, reason },
      ...{ t: clock.now() / 1_000, pid: process.pid, host: bind.host, version: options.version },
      status: admission.isShut() ? 'draining' : reason === undefined ? 'ready' : 'not_ready',
      jobs_running: options.jobsRunning?.() ?? 0,
      ...{ token_file: options.tokenFile, tokens_problem: live.problem() },
    };
  };
  const { healthFolder: folder, onError } = options;
  const file = folder === undefined ? undefined : await keepHealthFile({ folder, port, clock, report, onError });
  return {
    url,
    port,
    tokens,
    load,
    /** Reads the file of tokens again, and tells at once how it is. Never rejects. */
    async reload() {
      await live.reload();
      await file?.write();
    },
    /** Takes no more calls; resolves when none runs. Those that still run after `ms` are ended, and their clients told. */
    drain: (ms: number) => admission.shut(ms),
    /** Ends all streams and sessions at once; calls of lost sessions go on as after any loss. */
    async close() {
      live.close();
      const closed = new Promise<void>(resolve => server.close(() => resolve()));
      await Promise.all([mcp.close(), ...upgrades.map(endpoint => endpoint.close())]);
      server.closeAllConnections();
      await closed;
      await file?.remove();
    },
  };
}

function servicesOf(options: DaemonOptions, admission: Admission, patience: typeof usualPatience): RouteServices {
  const { version, clock, random, maxBodyBytes, onError } = options;
  const { tokens } = options.live;
  const checkRate = createRates(options.rates, clock);
  const identify = createIdentify(tokens, clock);
  const productOf = followTokens(tokens, options.productOf);
  const admit: RouteServices['admit'] = (caller, count) => checkRate(caller.name, count);
  return { ...patience, version, clock, random, tokens, identify, admission, productOf, admit, maxBodyBytes, onError };
}

/** Ends answers that are under way, in the midst of whatever they say, once whose they are has another token or none. */
function createOpenAnswers(tokens: RouteServices['tokens']): RouterParts['onCaller'] {
  const open = new Map<ServerResponse, string>();
  tokens.onChange(({ ended, rotated }) => {
    // Whoever else has the old token must not go on listening by it.
    const isOver = (name: string) => ended.has(name) || name === rotated?.caller.name;
    for (const [outgoing, name] of open) if (isOver(name)) outgoing.destroy();
  });
  return ({ name }, outgoing) => {
    open.set(outgoing, name);
    outgoing.once('close', () => open.delete(outgoing));
  };
}

function createRequestServer(
  parts: RouterParts,
  movedTo: (incoming: IncomingMessage) => Response | undefined,
  { headMs, requestMs }: typeof usualPatience,
): Server {
  const answer = createRouter(parts);

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const moved = movedTo(incoming);
    const { response, onWritten } = moved ? { response: moved } : await answer(incoming, outgoing);
    let whole = false;
    try {
      whole = await writeResponse(response, outgoing, parts);
    } finally {
      onWritten?.(whole);
    }
  }

  const mayServe = createPipelineGuard();
  const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    if (!mayServe(incoming, outgoing)) return;
    serve(incoming, outgoing).catch(error => {
      parts.onError(asError(error));
      if (outgoing.headersSent) outgoing.destroy();
      else void writeResponse(refusalResponse(refusalOf(error)), outgoing, parts).catch(() => outgoing.destroy());
    });
  };
  const server = createServer({
    // Who offers another protocol in passing, as some programs do with HTTP/2, gets this one.
    shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
    maxHeaderSize: 16_384,
    headersTimeout: headMs,
    requestTimeout: requestMs,
    connectionsCheckingInterval: Math.min(1_000, headMs / 2),
    // An idle connection outlasts the pauses of the usual proxies.
    keepAliveTimeout: 65_000,
  });
  server.on('request', onRequest).on('checkContinue', onRequest);
  server.on('upgrade', (incoming, socket, head) => {
    // Whoever takes it over listens for himself; until then a connection that breaks must not end the process.
    socket.on('error', () => socket.destroy());
    const refusal = routeUpgrade(parts, incoming, socket, head);
    if (refusal) void refuseUpgrade(socket, refusal, 'Refused');
  });
  return server;
}

function cannotListen(host: string, port: number, error: Error) {
  const taken = errorCode(error) === 'EADDRINUSE';
  return configError(`Cannot listen on ${host}:${port}: ${taken ? 'the address is already in use' : error.message}.`, {
    next: taken
      ? 'Run "polylogue status" to see whether a daemon is already running, or choose another --port.'
      : 'Choose another --host or --port.',
    cause: error,
  });
}

/** Numbers of the whole process in Prometheus' text format: they tell of everybody's calls, so the operator alone gets them. */
export const metricsRoute = (text: () => string): Route => ({
  path: '/metrics',
  methods: ['GET', 'HEAD'],
  access: 'token',
  async handle({ caller }) {
    if (caller?.owner !== operator.owner) return refusalResponse(notYours);
    const headers = { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8', 'Cache-Control': 'no-store' };
    return new Response(text(), { headers });
  },
});

const notYours = refusalFor(
  403,
  'owner',
  'The metrics tell of the calls of all owners; only tokens of the operator may read them.',
  { next: `Give the collector a token of the owner "${operator.owner}", which may be read-only and without tools.` },
);

/** A store that takes longer than this is not there, for a client. */
const storeMs = 2_000;

/** Whoever asks more often gets what was found a moment ago. */
const lookMs = 3_000;

/** Why nothing can be done now, as one sentence: a small write to the store succeeds in time, or not. Undefined: all is well. */
export function createReadiness(writeToStore: () => Promise<unknown>, clock: Pick<Clock, 'after' | 'monotonic'>) {
  let last: { at: number; found: Promise<string | undefined> } | undefined;

  async function look(): Promise<string | undefined> {
    try {
      const looking = writeToStore().then(() => true);
      return (await withTimeout(clock, storeMs, looking)) ? undefined : 'The store does not answer.';
    } catch (error) {
      return isAppError(error) ? error.message : 'The store failed.';
    }
  }

  return () => {
    const now = clock.monotonic();
    if (!last || now - last.at >= lookMs) last = { at: now, found: look() };
    return last.found;
  };
}

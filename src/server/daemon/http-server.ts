import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { configError } from '../../core/errors.ts';
import { checkBind, createAddressGuard, hostOf, isLoopback } from '../access/addresses.ts';
import { type Refusal, refusalResponse, refuseUpgrade } from '../access/caller.ts';
import { createCors } from '../http/cors.ts';
import { addressOf, writeResponse } from '../http/responses.ts';
import { createRouter, notFound, type RouterParts, refusalOf } from '../http/router.ts';
import type { Route, RouteServices, UpgradeHandler } from '../http/routes.ts';
import { createMcpHttpEndpoint, type McpHttpEndpointOptions } from '../mcp-http/mcp-http.ts';
import { createSessions, type SessionRules } from '../mcp-http/sessions.ts';
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

/** Answers that are under way, by the names of those whose they are. */
function createOpenAnswers() {
  const open = new Map<string, Set<ServerResponse>>();
  return {
    add(name: string, outgoing: ServerResponse) {
      const own = open.get(name) ?? new Set();
      open.set(name, own.add(outgoing));
      outgoing.once('close', () => {
        own.delete(outgoing);
        if (own.size === 0 && open.get(name) === own) open.delete(name);
      });
    },
    /** Ends those of these callers, in the midst of whatever they say. */
    end(names: ReadonlySet<string>) {
      for (const name of names) for (const outgoing of [...(open.get(name) ?? [])]) outgoing.destroy();
    },
  };
}

export interface HttpOptions extends RouteServices, Pick<McpHttpEndpointOptions, 'serverOf'> {
  /** Port 0: any that is free. */
  bind: { host: string; port: number };
  /** Names and web pages beside those of this machine; see `AddressRules`. */
  hosts: readonly string[];
  origins: readonly string[];
  sessions: SessionRules;
  routes: readonly Route[];
  upgrades: readonly UpgradeHandler[];
  /** Milliseconds that a client has for the head of a request, and for all of it. */
  patience: { headMs: number; requestMs: number };
  /** Why it can't work now, as one sentence; undefined: it can. */
  notReady(): Promise<string | undefined>;
}

export interface HttpListener {
  /** Where programs of this machine reach it, without a path. */
  url: string;
  port: number;
  /** Sessions of 2025 clients, and connections of other protocols. */
  sessions(): number;
  /** Takes no more calls; resolves when none runs, or after `ms`. */
  drain(ms: number): Promise<void>;
  /** Ends all streams and sessions at once; calls of lost sessions go on as after any loss. */
  close(): Promise<void>;
}

/** An idle connection outlasts the pauses of the usual proxies. */
const keepAliveMs = 65_000;

const maxHeaderBytes = 16_384;

/** Listens; rejects where it may not, or can't. */
export async function openHttp(options: HttpOptions): Promise<HttpListener> {
  const { bind, gate, tokens, identify, upgrades, onError, clock, patience } = options;
  checkBind({ host: bind.host, tokens: tokens.count() });
  const sessions = createSessions(options.sessions, clock);
  const mcp = createMcpHttpEndpoint({ ...options, sessions });
  const cors = createCors(options.origins);
  const answers = createOpenAnswers();
  tokens.onChange(({ ended }) => answers.end(ended));
  // Whoever else has the old token must not go on listening by it.
  tokens.onRotation(name => answers.end(new Set([name])));
  const onCaller: RouterParts['onCaller'] = ({ name }, outgoing) => answers.add(name, outgoing);
  const tool = createToolApi(options);
  // Which pages are its own is known once it listens; nothing comes before.
  let checkOrigin: ReturnType<typeof createAddressGuard>;
  const checkAddress = ({ headersDistinct }: IncomingMessage) => checkOrigin(headersDistinct);
  const route = createRouter({ ...options, checkAddress, cors, mcp: mcp.handle, tool, onCaller });

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const moved = ownPageFor(incoming);
    const { response, onWritten } = moved ? { response: moved } : await route(incoming, outgoing);
    let whole = false;
    try {
      whole = await writeResponse(response, outgoing, options);
    } finally {
      onWritten?.(whole);
    }
  }

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

  const mayServe = createPipelineGuard();
  const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    if (!mayServe(incoming, outgoing)) return;
    serve(incoming, outgoing).catch(error => {
      onError(error instanceof Error ? error : new Error(String(error)));
      if (outgoing.headersSent) outgoing.destroy();
      else void writeResponse(refusalResponse(refusalOf(error)), outgoing, options).catch(() => outgoing.destroy());
    });
  };
  const server = createServer(
    {
      // Who offers another protocol in passing, as some programs do with HTTP/2, gets this one.
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: patience.headMs,
      requestTimeout: patience.requestMs,
      connectionsCheckingInterval: Math.min(1_000, patience.headMs / 2),
      keepAliveTimeout: keepAliveMs,
    },
    onRequest,
  );
  server.on('checkContinue', onRequest);
  server.on('upgrade', (incoming, socket, head) => {
    // Whoever takes it over listens for himself; until then a connection that breaks must not end the process.
    socket.on('error', () => socket.destroy());
    const refusal = upgradeThrough(
      { tokens, identify, upgrades, checkAddress, admit: options.admit },
      incoming,
      socket,
      head,
    );
    if (refusal) refuseUpgrade(socket, refusal, 'Refused');
  });
  server.maxConnections = options.sessions.max * 2 + 256;
  const { address, port } = await listening(server, bind);
  checkOrigin = createAddressGuard({ ...options, bind: bind.host, address, port });
  const url = `http://${nameOf(isLoopback(bind.host) ? address : bind.host)}:${port}`;
  return {
    url,
    port,
    sessions: () => upgrades.reduce((sum, endpoint) => sum + endpoint.connections(), sessions.count()),
    drain: ms => gate.shut(ms),
    async close() {
      const closed = new Promise<void>(resolve => server.close(() => resolve()));
      await Promise.all([mcp.close(), ...upgrades.map(endpoint => endpoint.close())]);
      server.closeAllConnections();
      await closed;
    },
  };
}

function cannotListen(host: string, port: number, error: Error & { code?: string }) {
  const taken = error.code === 'EADDRINUSE';
  return configError(`Nothing can listen on ${host}:${port}: ${taken ? 'it is taken' : error.message}.`, {
    next: taken
      ? 'See with "polylogue status" whether a daemon runs already, or choose another --port.'
      : 'Choose another --host or --port.',
    cause: error,
  });
}

/** What a program of this machine calls the address; one that means all of them has this machine's own. */
function nameOf(host: string): string {
  if (host === '' || host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return hostOf(host);
}

type UpgradeGuards = Pick<HttpOptions, 'tokens' | 'identify' | 'upgrades' | 'admit'> & {
  checkAddress(incoming: IncomingMessage): Refusal | undefined;
};

/** Hands a connection over to the handler at its path, past the same guards as any request. */
function upgradeThrough(
  { tokens, identify, upgrades, admit, checkAddress }: UpgradeGuards,
  incoming: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Refusal | undefined {
  const refusal = checkAddress(incoming);
  if (refusal) return refusal;
  const { authorization } = incoming.headers;
  const isAuthenticatedLater = authorization === undefined && tokens.count() > 0;
  const caller = isAuthenticatedLater ? undefined : identify(authorization, incoming.socket.remoteAddress);
  if (caller && 'status' in caller) return caller;
  const path = addressOf(incoming)?.pathname;
  const endpoint = upgrades.find(each => each.path === path);
  if (!endpoint) return notFound;
  const tooMany = caller && admit(caller);
  if (tooMany) return tooMany;
  endpoint.accept({ incoming, socket, head, caller });
  return undefined;
}

function listening(server: Server, { host, port }: HttpOptions['bind']): Promise<{ address: string; port: number }> {
  return new Promise((resolve, reject) => {
    server.once('error', error => reject(cannotListen(host, port, error)));
    server.listen(port, host, () => {
      server.removeAllListeners('error');
      const address = server.address();
      resolve(typeof address === 'object' && address ? address : { address: host, port });
    });
  });
}

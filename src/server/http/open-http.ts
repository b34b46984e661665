import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Clock, Random } from '../../domain/ports.ts';
import { createAddressGuard } from '../guards/addresses.ts';
import { checkBind } from '../guards/bind.ts';
import { type CapacityRules, createCapacity } from '../guards/capacity.ts';
import { readJson } from '../guards/json-body.ts';
import { createRates, type RateRules } from '../guards/rates.ts';
import { type Refusal, refusalResponse } from '../guards/refusal.ts';
import type { Tokens } from '../guards/tokens.ts';
import type { Exchange } from './exchange.ts';
import { createGate } from './gate.ts';
import { createMcpDoor, type McpDoorOptions } from './mcp-door.ts';
import { readBody } from './read-body.ts';
import { createSessions, type SessionRules } from './sessions.ts';
import { createToolApi } from './tool-api.ts';
import { writeResponse } from './write-response.ts';

export interface HttpOptions extends Pick<McpDoorOptions, 'version' | 'productOf' | 'onError'> {
  /** Port 0: any that is free. */
  bind: { host: string; port: number };
  /** Names and web pages beside those of this machine; see `AddressRules`. */
  hosts: readonly string[];
  origins: readonly string[];
  tokens: Tokens;
  rates: RateRules;
  capacity: CapacityRules;
  sessions: SessionRules;
  /** Bytes of one body. */
  maxBodyBytes: number;
  /** Milliseconds without one byte taken, after which a client is sent away. */
  stallMs: number;
  clock: Clock;
  random: Random;
}

export interface HttpDoor {
  /** Where it listens, without a path. */
  url: string;
  sessions(): number;
  /** Takes no more calls; resolves when none runs, or after `ms`. */
  drain(ms: number): Promise<void>;
  /** Ends all streams and sessions at once; calls of lost sessions go on as after any loss. */
  close(): Promise<void>;
}

const headerLimits = { maxHeaderSize: 16_384, headersTimeout: 10_000, requestTimeout: 60_000 };

/** Listens; rejects where it may not, or can't. */
export async function openHttp(options: HttpOptions): Promise<HttpDoor> {
  const { bind, clock, onError, version, tokens } = options;
  checkBind({ host: bind.host, tokens: tokens.count() });
  const gate = createGate(createCapacity(options.capacity), clock);
  const sessions = createSessions(options.sessions, clock);
  const mcp = createMcpDoor({ ...options, gate, sessions });
  const api = createToolApi({ ...options, gate });
  const guard = guardOf(options);

  async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<Exchange> {
    const refusal = guard.address(incoming);
    if (refusal) return refused(refusal, outgoing);
    const path = (incoming.url ?? '').split('?')[0] ?? '';
    if (path === '/healthz') return { response: Response.json({ status: 'ok', version }) };
    if (path === '/readyz') return { response: readiness(gate.isShut()) };
    const caller = tokens.identify(incoming.headers.authorization);
    if ('status' in caller) return refused(caller, outgoing);
    const tool = /^\/api\/tools(?:\/([A-Za-z0-9_.-]{1,128}))?$/.exec(path);
    if (path !== '/mcp' && !tool) return refused(nowhere, outgoing);
    const method = incoming.method ?? '';
    if (!(tool ? [tool[1] ? 'POST' : 'GET'] : ['GET', 'POST', 'DELETE']).includes(method))
      return refused(wrongMethod, outgoing);
    const read = method === 'POST' ? await guard.body(incoming, outgoing) : { value: undefined };
    if ('refusal' in read) return refused(read.refusal, outgoing);
    const request = requestOf(incoming, outgoing, path);
    const guarded = { request, body: read.value, caller };
    return tool ? api(guarded, tool[1]) : mcp.handle(guarded);
  }

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const exchange = await answer(incoming, outgoing);
    // What a client asked for is written to its end before the gate counts as empty; streams that only listen don't count.
    const release = incoming.method === 'POST' && !exchange.listens ? gate.hold() : () => {};
    let whole = false;
    try {
      whole = await writeResponse(exchange.response, outgoing, options);
    } finally {
      release();
      exchange.onWritten?.(whole);
    }
  }

  const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    serve(incoming, outgoing).catch(error => {
      onError(error instanceof Error ? error : new Error(String(error)));
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(500, { 'Content-Type': 'application/json' }).end('{"status":"error"}');
    });
  };
  const server = createServer({ ...headerLimits, connectionsCheckingInterval: 1_000 }, onRequest);
  server.on('checkContinue', onRequest);
  server.maxConnections = options.sessions.most * 2 + 256;
  const port = await listening(server, bind);
  const name = bind.host.includes(':') ? `[${bind.host}]` : bind.host;
  return {
    url: `http://${name}:${port}`,
    sessions: sessions.count,
    drain: ms => gate.shut(ms),
    async close() {
      const closed = new Promise<void>(resolve => server.close(() => resolve()));
      await mcp.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The guards in front of everything, before anything is parsed. */
function guardOf({ bind, hosts, origins, rates, clock, maxBodyBytes }: HttpOptions) {
  const checkAddress = createAddressGuard({ bind: bind.host, hosts, origins });
  const checkRate = createRates(rates, clock);
  return {
    address({ headersDistinct, socket }: IncomingMessage): Refusal | undefined {
      const { host = [], origin = [] } = headersDistinct;
      return checkAddress({ host, origin }) ?? checkRate(socket.remoteAddress ?? '');
    },
    async body(
      incoming: IncomingMessage,
      outgoing: ServerResponse,
    ): Promise<{ value: unknown } | { refusal: Refusal }> {
      if (!/^application\/json\s*(;|$)/i.test(incoming.headers['content-type'] ?? '')) return { refusal: wrongType };
      if (incoming.headers.expect !== undefined && Number(incoming.headers['content-length'] ?? 0) <= maxBodyBytes)
        outgoing.writeContinue();
      const body = await readBody(incoming, maxBodyBytes);
      return 'text' in body ? readJson(body.text) : { refusal: body };
    },
  };
}

function refused(refusal: Refusal, outgoing: ServerResponse): Exchange {
  // What was not read of the body stays unread.
  outgoing.setHeader('Connection', 'close');
  return { response: refusalResponse(refusal) };
}

function requestOf(incoming: IncomingMessage, outgoing: ServerResponse, path: string): Request {
  const gone = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) gone.abort();
  });
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (typeof value === 'string') headers.set(name, value);
  }
  const { method } = incoming;
  return new Request(`http://localhost${path}`, {
    method,
    headers,
    signal: gone.signal,
    // The body was read by the guards; this one only says that there is one.
    ...(method === 'POST' && { body: '{}' }),
  });
}

function readiness(isShut: boolean): Response {
  return Response.json({ status: isShut ? 'draining' : 'ready' }, { status: isShut ? 503 : 200 });
}

function listening(server: ReturnType<typeof createServer>, { host, port }: HttpOptions['bind']): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : port);
    });
  });
}

const nowhere: Refusal = {
  status: 404,
  class: 'path',
  message: 'There is nothing at this path.',
  next: 'MCP is at /mcp, single tools at /api/tools/NAME.',
};

const wrongMethod: Refusal = {
  status: 405,
  class: 'method',
  message: 'This path does not take this method.',
  next: 'Send POST with a JSON body; GET lists /api/tools.',
};

const wrongType: Refusal = {
  status: 415,
  class: 'type',
  message: 'The body is not declared as JSON.',
  next: 'Send it with "Content-Type: application/json".',
};

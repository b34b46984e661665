import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { isAppError } from '../../domain/error.ts';
import type { Caller } from '../guards/caller.ts';
import { type Refusal, refusalResponse } from '../guards/refusal.ts';
import type { CallerProduct, DoorParts, UpgradeDoor, UpgradeRequest } from '../http/door-parts.ts';
import { closeCodes } from './frames/frames.ts';
import { type FrameDoorOptions, type FrameRules, serveFrames } from './frames/serve-frames.ts';
import { createFrameSessions } from './frames/sessions.ts';
import { type LiveSocket, openLiveSocket } from './live-socket.ts';
import { serveMcp } from './serve-mcp.ts';

export interface WsRules {
  frames: FrameRules;
  /** Milliseconds between pings, and without a sign of life after which a client counts as gone. */
  pingMs: number;
  silenceMs: number;
  /** Bytes that may wait for one client. */
  mostBuffered: number;
  /** Connections, and sessions of the frame protocol. */
  mostConnections: number;
}

export interface WsOptions extends DoorParts, Pick<FrameDoorOptions, 'ceilings' | 'kindOf'> {
  rules: WsRules;
}

export interface WsDoor extends UpgradeDoor {
  /** Sessions of the frame protocol, with a client or waiting for one. */
  sessions(): number;
}

interface Open {
  live: LiveSocket;
  caller: Caller | undefined;
}

/** Connections that have not said who they are: so many, and so much of each. */
const mostUnknown = 64;
const mostUnknownBytes = 65_536;

/** MCP (subprotocol `mcp`) and the frame protocol (none) over WebSockets. */
export function openWs(options: WsOptions): WsDoor {
  const { rules, clock, onError, stallMs, maxBodyBytes } = options;
  const open = new Set<Open>();
  const sessions = createFrameSessions({ awayMs: rules.frames.resultMs, most: rules.mostConnections }, clock);
  const frameOptions = { ...options, rules: rules.frames, sessions, connections: () => open.size };
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    autoPong: false,
    maxPayload: maxBodyBytes,
    handleProtocols: offered => (offered.has('mcp') ? 'mcp' : false),
  });
  // Its own answers to bad handshakes would say less.
  server.on('wsClientError', (_error, socket) => refuse(socket, badHandshake));
  let pending = 0;

  async function accept({ incoming, socket, head, caller }: UpgradeRequest): Promise<void> {
    const isMcp = subprotocols(incoming).includes('mcp');
    const refusal = refusalOf(isMcp, caller);
    if (refusal) return refuse(socket, refusal);
    pending += 1;
    try {
      const product = isMcp && caller ? await options.productOf(caller, rootIn(incoming)) : undefined;
      if (socket.destroyed) return;
      server.handleUpgrade(incoming, socket, head, upgraded => {
        const entry = { live: live(upgraded), caller };
        open.add(entry);
        entry.live.onClose(() => open.delete(entry));
        if (product && caller) speakMcp(entry.live, { caller, product, incoming });
        else speakFrames(entry, socket, incoming);
      });
    } finally {
      pending -= 1;
    }
  }

  function refusalOf(isMcp: boolean, caller: Caller | undefined): Refusal | undefined {
    if (isMcp && !caller) return tokenFirst;
    const unknown = [...open].filter(each => each.caller === undefined).length;
    const isFull = open.size + pending >= rules.mostConnections || (!caller && unknown >= mostUnknown);
    return isFull ? tooMany : undefined;
  }

  function live(socket: WebSocket): LiveSocket {
    const { pingMs, silenceMs, mostBuffered } = rules;
    return openLiveSocket(socket, { pingMs, silenceMs, mostBytes: mostBuffered, stallMs }, clock);
  }

  function speakMcp(socket: LiveSocket, opened: { caller: Caller; product: CallerProduct; incoming: IncomingMessage }) {
    const { caller, product } = opened;
    const { host, root, instructions } = product;
    const client = `mcp ${options.random.uuid()}`;
    const principal = { owner: caller.owner, root };
    socket.slowDown(() => secondsOf(options.admit(caller)));
    serveMcp(
      { host: options.gate.before(host, client), version: options.version, instructions, principal },
      socket,
      onError,
    );
  }

  function speakFrames(entry: Open, socket: Duplex, incoming: IncomingMessage): void {
    const stopCounting = countUnknown(socket, () => entry.live.refuse(1009, 'a hello is shorter'));
    serveFrames(frameOptions, {
      socket: entry.live,
      caller: entry.caller,
      name: (incoming.headers['user-agent'] ?? 'websocket').slice(0, 100),
      onKnown(caller) {
        entry.caller = caller;
        stopCounting();
      },
      onRotated(caller) {
        const others = [...open].filter(each => each !== entry && each.caller?.name === caller.name);
        for (const { live: other } of others) void other.close(closeCodes.unauthorized, 'the token was replaced');
      },
    });
  }

  return {
    path: '/ws',
    accept(request) {
      // Until it is taken over, nobody else hears of its failures.
      request.socket.on('error', () => request.socket.destroy());
      accept(request).catch(error => {
        if (!isAppError(error)) onError(error instanceof Error ? error : new Error(String(error)));
        refuse(request.socket, isAppError(error) ? notAllowed(error.message) : failed);
      });
    },
    connections: () => open.size,
    sessions: sessions.count,
    async close() {
      await Promise.all([...open].map(({ live: each }) => each.close(1001, 'the server is going away')));
      server.close();
    },
  };
}

function secondsOf(refusal: Refusal | undefined): number | undefined {
  return refusal && (refusal.retryAfterSeconds ?? 1);
}

function subprotocols({ headers }: IncomingMessage): string[] {
  return (headers['sec-websocket-protocol'] ?? '').split(',').map(each => each.trim());
}

/** The project that an MCP client declares: `/ws?root=%2Fhome%2Fme%2Fproject`. */
function rootIn({ url = '' }: IncomingMessage): string | undefined {
  const at = url.indexOf('?');
  const root = at < 0 ? null : new URLSearchParams(url.slice(at)).get('root');
  return root === null || root === '' ? undefined : root;
}

/** Calls `onTooMuch` once more came than a hello can be; the result stops that. */
function countUnknown(socket: Duplex, onTooMuch: () => void): () => void {
  let bytes = 0;
  const onData = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= mostUnknownBytes) return;
    stop();
    onTooMuch();
  };
  const stop = () => void socket.off('data', onData);
  socket.prependListener('data', onData);
  return stop;
}

/** Answers what asked to become a WebSocket, and may not, in plain HTTP. */
function refuse(socket: Duplex, refusal: Refusal): void {
  const response = refusalResponse(refusal);
  response.text().then(
    body => {
      const lines = [...response.headers].map(([name, value]) => `${name}: ${value}\r\n`);
      const length = Buffer.byteLength(body);
      socket.once('finish', () => socket.destroy());
      const start = `HTTP/1.1 ${refusal.status} ${refusal.class}\r\n`;
      socket.end(`${start}${lines.join('')}Connection: close\r\nContent-Length: ${length}\r\n\r\n${body}`);
    },
    () => socket.destroy(),
  );
}

const tokenFirst: Refusal = {
  status: 401,
  class: 'token_missing',
  message: 'MCP over a WebSocket takes the token before anything else.',
  next: 'Send it as "Authorization: Bearer TOKEN" with the request for the connection.',
};

const tooMany: Refusal = {
  status: 503,
  class: 'connections',
  message: 'There are too many connections.',
  next: 'Try again later.',
  retryAfterSeconds: 5,
};

const badHandshake: Refusal = {
  status: 400,
  class: 'handshake',
  message: 'This is no request for a WebSocket.',
  next: 'Connect with a WebSocket client of version 13.',
};

const failed: Refusal = {
  status: 500,
  class: 'internal',
  message: 'Something went wrong in this server itself.',
  next: 'Try again, and tell the operator.',
};

function notAllowed(message: string): Refusal {
  return { status: 403, class: 'root', message, next: 'Ask the operator which folders the token may read.' };
}

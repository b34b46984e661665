import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Transport } from '@modelcontextprotocol/server';
import { type WebSocket, WebSocketServer } from 'ws';
import { asError, isAppError } from '../../core/errors.ts';
import type { ToolHost } from '../../core/tool-host.ts';
import { type Caller, type Refusal, refusalFor, refuseUpgrade } from '../access/caller.ts';
import { createIdleSessions } from '../access/idle-sessions.ts';
import type { ShareLimits } from '../access/limits.ts';
import { watchUploadRate } from '../http/requests.ts';
import { rootOf } from '../http/router.ts';
import { type CallerProduct, mcpOptionsOf, type RouteServices, type UpgradeRequest } from '../http/routes.ts';
import { batchVersion } from '../mcp/lines.ts';
import { serveConnection } from '../mcp/mcp.ts';
import { readMessages } from '../mcp/messages.ts';
import { type FrameClient, type FrameServerOptions, secondsFor, serveFrames } from './frame-server.ts';
import { type LiveSocket, openLiveSocket, type SocketRules } from './live-socket.ts';
import { closeCodes, type FrameRules } from './protocol.ts';
import type { FrameSession } from './session.ts';

/** JSON-RPC, one message a text frame. */
function createSocketTransport(socket: LiveSocket): Transport {
  let takesBatches = false;
  const transport: Transport = {
    async start() {
      socket.onClose(() => transport.onclose?.());
      socket.onText(text => {
        const { read, refused } = readMessages(text, takesBatches);
        for (const each of refused) void socket.send(JSON.stringify(each));
        for (const each of read) transport.onmessage?.(each);
      });
    },
    setProtocolVersion(version) {
      takesBatches = version === batchVersion;
    },
    async send(message) {
      if (!(await socket.send(JSON.stringify(message)))) throw new Error('The connection is closed.');
    },
    close: () => socket.close(1000, ''),
  };
  return transport;
}

export interface WebSocketRules extends Omit<SocketRules, 'stallMs'> {
  frames: FrameRules;
  /** Characters of the results of all sessions. */
  maxKept: number;
  /** Connections, and sessions of the frame protocol. */
  maxConnections: number;
}

export interface WebSocketOptions extends RouteServices, Pick<FrameServerOptions, 'ceilings' | 'kindOf'> {
  rules: WebSocketRules;
  /** Connections, and sessions of the frame protocol, that one token may have at the moment; absent: all of them. */
  perCaller?(): number;
}

/** MCP (subprotocol `mcp`) and the frame protocol (none) over WebSockets. */
export function openWebSockets(options: WebSocketOptions) {
  const { rules, clock, stallMs, onError, maxBodyBytes } = options;
  const { perCaller = () => rules.maxConnections } = options;
  const open = createOpenSockets({ inAll: rules.maxConnections, perCaller });
  const sessionRules = { idleMs: rules.frames.resultMs, max: rules.maxConnections, perCaller };
  const sessions = createIdleSessions(sessionRules, clock, (session: FrameSession) => session.forget());
  const room = { left: rules.maxKept };
  const frameOptions = { ...options, rules: rules.frames, sessions, room, connections: open.count };
  const server = webSocketServer(maxBodyBytes);
  let pending = 0;
  let rotations = 0;
  options.tokens.onChange(({ ended, gone, others }) => {
    rotations += ended.size + others.size;
    sessions.end(gone).catch(onError);
    open.close(({ caller }) => caller !== undefined && ended.has(caller.name), 'the token was taken back or replaced');
  });

  async function accept({ incoming, socket, head, caller }: UpgradeRequest): Promise<void> {
    const isMcp = /(?:^|,)\s*mcp\s*(?:,|$)/.test(incoming.headers['sec-websocket-protocol'] ?? '');
    const refusal = isMcp && !caller ? refusals.tokenRequired : open.refusal(caller, pending);
    if (refusal) return refuseUpgrade(socket, refusal);
    pending += 1;
    const known = rotations;
    try {
      const product = isMcp && caller ? await options.productOf(caller, rootOf(incoming)) : undefined;
      if (socket.destroyed) return;
      // Whose token was replaced meanwhile is not known here: all of these few come again.
      if (known !== rotations) return refuseUpgrade(socket, refusals.tokenReplaced);
      server.handleUpgrade(incoming, socket, head, upgraded => {
        const live = openLiveSocket(upgraded, { ...rules, stallMs }, { clock, onError });
        const entry = { socket: live, caller, address: incoming.socket.remoteAddress ?? '' };
        open.add(entry);
        watchMessages(options, upgraded, socket, entry);
        if (product && caller) speakMcp(live, caller, product, incoming);
        else speakFrames(entry, socket, incoming);
      });
    } finally {
      pending -= 1;
    }
  }

  /** Serves one MCP client, in whichever era it speaks, as over standard input and output. */
  function speakMcp(socket: LiveSocket, caller: Caller, product: CallerProduct, incoming: IncomingMessage): void {
    const client = `mcp ${options.random.uuid()}`;
    // Names the bridge that he comes by, which tells what arrived.
    const clientId = incoming.headers['polylogue-bridge']?.slice(0, 100).toString();
    const guessed = rootOf(incoming);
    // Nobody named his project, or whoever named it did so for want of anything better.
    const follows = guessed === undefined || incoming.headers['polylogue-root-guessed'] === 'true';
    const admitted = (host: ToolHost) => options.admission.before(host, client);
    const mcp = { ...mcpOptionsOf(options, product, { caller, guessed, follows }, admitted), clientId };
    socket.slowDown(() => secondsFor(options, caller));
    serveConnection(createSocketTransport(socket), mcp, onError, { confirms: clientId !== undefined });
  }

  function speakFrames(entry: OpenSocket, socket: Duplex, incoming: IncomingMessage): void {
    const stopCounting = limitUnknown(socket, entry.socket);
    serveFrames(frameOptions, {
      ...entry,
      root: rootOf(incoming),
      name: (incoming.headers['user-agent'] ?? 'websocket').slice(0, 100),
      onKnown(caller) {
        stopCounting();
        return open.know(entry, caller);
      },
      onRotated(caller) {
        rotations += 1;
        open.close(each => each !== entry && each.caller?.name === caller.name, 'the token was replaced');
      },
    });
  }

  return {
    path: '/ws',
    accept(request: UpgradeRequest) {
      // Until it is taken over, nobody else hears of its failures.
      request.socket.on('error', () => request.socket.destroy());
      accept(request).catch(error => {
        if (isAppError(error)) return refuseUpgrade(request.socket, refusals.notAllowed(error.message));
        onError(asError(error));
        return refuseUpgrade(request.socket, refusals.internalFailure);
      });
    },
    connections: open.count,
    /** Sessions of the frame protocol, with a client or waiting for one. */
    sessions: sessions.count,
    async close() {
      await open.closeAll();
      server.close();
    },
  };
}

/** Bytes of a connection that has not said who it is. */
const maxUnknownBytes = 65_536;

/** Sends a connection away that brings more than these; the result stops that. */
function limitUnknown(socket: Duplex, { refuse }: LiveSocket): () => void {
  let bytes = 0;
  const count = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= maxUnknownBytes) return;
    stop();
    refuse(1009, 'a hello is shorter');
  };
  const stop = () => void socket.off('data', count);
  socket.prependListener('data', count);
  return stop;
}

function webSocketServer(maxPayload: number): WebSocketServer {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    autoPong: false,
    maxPayload,
    handleProtocols: offered => (offered.has('mcp') ? 'mcp' : false),
  });
  // Its own answers to bad handshakes would say less.
  return server.on('wsClientError', (_error, socket, { headers }) => {
    const isKnown = headers['sec-websocket-version'] === '13';
    void refuseUpgrade(socket, isKnown ? refusals.badHandshake : refusals.unsupportedVersion);
  });
}

/** Refuses a message that comes slower than a body may, whatever pings come between its parts, or that the memory does not bear. */
function watchMessages(
  { clock, admission, requestMs }: RouteServices,
  upgraded: WebSocket,
  socket: Duplex,
  entry: OpenSocket,
): void {
  let begun = 0;
  let current: ReturnType<typeof begin> | undefined;
  const { refuse } = entry.socket;

  function begin() {
    const memory = admission.reserveInput(entry.caller, entry.address);
    const late = (how: string) => () => refuse(1008, `the message ${how}`);
    const pace = watchUploadRate(clock, late('comes slower than 1,024 bytes a second'), () => socket.isPaused());
    const stopLate = clock.after(requestMs, late('takes too long'));
    return {
      came(bytes: number) {
        pace.came(bytes);
        memory.more(bytes);
      },
      stop() {
        memory.release();
        pace.stop();
        stopLate();
      },
    };
  }

  const ended = (bytes: number) => {
    begun = Math.max(0, begun - bytes);
    if (begun > 0) return;
    current?.stop();
    current = undefined;
  };
  const onControl = (data: Buffer) => ended(controlBytes + data.length);
  // Before the call in it begins, which takes its own part of the memory.
  upgraded
    .prependListener('message', () => ended(begun))
    .on('ping', onControl)
    .on('pong', onControl);
  upgraded.on('close', () => ended(begun));
  // Before the messages in it are told.
  socket.prependListener('data', (chunk: Buffer) => {
    begun += chunk.length;
    current ??= begin();
    try {
      current.came(chunk.length);
    } catch (error) {
      refuse(1013, asError(error).message);
    }
  });
}

/** Of a ping or pong of a client, besides its data. */
const controlBytes = 6;

const badHandshake = refusalFor(400, 'handshake', 'This is no request for a WebSocket.', {
  next: 'Connect with a WebSocket client of version 13.',
});

const full = (status: 429 | 503, message: string, next: string): Refusal =>
  refusalFor(status, 'connections', message, { next, retryAfterSeconds: 5 });

export const refusals = {
  tokenRequired: refusalFor(401, 'token_missing', 'MCP over a WebSocket takes the token before anything else.', {
    next: 'Send it as "Authorization: Bearer TOKEN" with the request for the connection.',
  }),
  tokenReplaced: refusalFor(401, 'token_replaced', 'A token was replaced while this connection began.', {
    next: 'Reconnect with a valid token.',
  }),
  tooMany: full(503, 'There are too many connections.', 'Try again later.'),
  tooManyOfYours: full(
    429,
    'Your token has as many connections as one token may have at a time.',
    'Close one that is not needed any more, or ask the operator for more (POLYLOGUE_SESSIONS_PER_TOKEN).',
  ),
  badHandshake,
  /** RFC 6455 wants to be told what would be taken. */
  unsupportedVersion: {
    ...badHandshake,
    status: 426,
    headers: { Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
  } satisfies Refusal,
  internalFailure: refusalFor(500, 'internal', 'Internal error in this server.', {
    next: 'Try again, and tell the operator.',
  }),
  notAllowed: (message: string) =>
    refusalFor(403, 'root', message, { next: 'Ask the operator which directories the token may read.' }),
};

interface OpenSocket extends Pick<FrameClient, 'socket' | 'caller' | 'address'> {
  /** It was sent away, and is not gone yet. */
  leaving?: true;
}

/** Connections that have not said hello: so many in all, and from one address. The oldest goes when there is another. */
const maxSilent = { inAll: 64, fromOne: 16 };

/** Of these, the ones that were sent away and take their time. */
const maxLeaving = 64;

/** The connections of all callers. Who takes many places finds his own taken away, and nobody else's. */
function createOpenSockets({ inAll: max, perCaller }: ShareLimits) {
  // In the order in which they came.
  const open = new Set<OpenSocket>();
  const ofCaller = (name: string) => [...open].filter(({ caller }) => caller?.name === name).length;

  function makeRoom(address: string): void {
    const silent = [...open].filter(({ caller, leaving }) => !caller && !leaving);
    const byAddress = Map.groupBy(silent, each => each.address);
    const own = byAddress.get(address) ?? [];
    const isOwnFull = own.length >= maxSilent.fromOne;
    if (!isOwnFull && silent.length < maxSilent.inAll) return;
    const [largest = []] = [...byAddress.values()].sort((a, b) => b.length - a.length);
    const [oldest] = isOwnFull ? own : largest;
    if (!oldest) return;
    oldest.leaving = true;
    oldest.socket.refuse(1013, 'others came, and this one said no hello');
  }

  return {
    /** Why there is no room for another one of this caller; undefined: there is. `pending`: connections that are about to be added. */
    refusal(caller: Caller | undefined, pending: number): Refusal | undefined {
      if (open.size + pending >= max) return refusals.tooMany;
      if (caller) return ofCaller(caller.name) >= perCaller() ? refusals.tooManyOfYours : undefined;
      return [...open].filter(({ leaving }) => leaving).length >= maxLeaving ? refusals.tooMany : undefined;
    },
    add(entry: OpenSocket) {
      if (!entry.caller) makeRoom(entry.address);
      open.add(entry);
      entry.socket.onClose(() => open.delete(entry));
    },
    /** Whose it is turned out; false: he has too many. */
    know(entry: OpenSocket, caller: Caller) {
      if (!entry.caller && ofCaller(caller.name) >= perCaller()) return false;
      entry.caller = caller;
      return true;
    },
    count: () => open.size,
    /** For the connections whose tokens hold no more. */
    close(isMeant: (each: OpenSocket) => boolean, reason: string) {
      for (const each of [...open].filter(isMeant)) void each.socket.close(closeCodes.unauthorized, reason);
    },
    closeAll: () => Promise.all([...open].map(({ socket }) => socket.close(1001, 'the server is going away'))),
  };
}

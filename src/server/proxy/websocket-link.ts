import { type ClientOptions, WebSocket } from 'ws';
import { configError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { keepAlive } from '../access/keep-alive.ts';
import { isToken, shortestToken } from '../access/tokens.ts';
import { refusedBy, unreachable } from './start-daemon.ts';

/** An open connection to a daemon, one JSON-RPC message a text. */
export type Link = ReturnType<typeof linkOf>;

export interface LinkListener {
  onText(text: string): void;
  /** The link is over, by whomever; called once, and nothing comes after it. */
  onLost(loss: Loss): void;
}

export interface Loss {
  /** What happened, for a person. */
  why: string;
  /** The daemon refuses something that was sent; sent again, it would end the same way. */
  refused: boolean;
}

/** Opens a link to a daemon, waited for or started; rejects with an `AppError`. `again`: the one before may be about to come back. */
export type OpenLink = (listener: LinkListener, again: boolean, signal: AbortSignal) => Promise<Link>;

export interface DaemonAddress {
  /** As `http://127.0.0.1:8765`. */
  url: string;
  /** Sent as a bearer token; absent: the daemon asks for none. */
  token: string | undefined;
  /** The project of the client, an absolute path; absent: he is in none. */
  root: string | undefined;
  /** Roots that the client lists come before that project. */
  isGuess: boolean;
  /** Names the bridge, over all its connections. */
  bridge: string;
}

/** How long a daemon may take for the end of a connection. */
const closingMs = 1_000;

const heartbeat = { pingMs: 30_000, silenceMs: 90_000 };

/** Close codes that say that a message was refused for what it is. */
const refusals = new Set([1003, 1007, 1008, 1009]);

export async function openWebSocketLink(
  address: DaemonAddress,
  listener: LinkListener,
  clock: Pick<Clock, 'after' | 'monotonic'>,
) {
  const { url, token, root, isGuess, bridge } = address;
  if (token !== undefined && !isToken(token))
    throw configError('POLYLOGUE_TOKEN is no token that a daemon would take.', {
      next: `Give it at least ${shortestToken} printable characters without spaces and commas.`,
    });
  const { promise, resolve, reject } = Promise.withResolvers<Link>();
  const options: ClientOptions = {
    handshakeTimeout: 10_000,
    perMessageDeflate: false,
    maxPayload: 268_435_456,
    headers: {
      'polylogue-bridge': bridge,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(root !== undefined && { 'polylogue-root': encodeURIComponent(root) }),
      ...(root !== undefined && isGuess && { 'polylogue-root-guessed': 'true' }),
    },
  };
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/ws`, 'mcp', options);
  let trouble: string | undefined;
  socket.once('unexpected-response', (request, response) => {
    refusedBy(url, response)
      .then(reject)
      .finally(() => request.destroy());
  });
  socket.on('error', error => {
    trouble = error.message;
    reject(unreachable(url, error));
  });
  socket.once('open', () => {
    // A paused socket hears no answer.
    socket.once('close', keepAlive(socket, heartbeat, { clock, isRead: () => !socket.isPaused }));
    resolve(linkOf(socket, clock));
  });
  socket.on('message', (data, isBinary) => {
    if (!isBinary) listener.onText(data.toString());
  });
  socket.once('close', (code, reason) => {
    reject(unreachable(url));
    const said = reason.toString() || trouble;
    listener.onLost({ why: `it was closed with ${code}${said ? ` (${said})` : ''}`, refused: refusals.has(code) });
  });
  return promise;
}

const linkOf = (socket: WebSocket, clock: Pick<Clock, 'after'>) => ({
  send(text: string) {
    // What a closed socket no longer takes is sent again over the next one.
    if (socket.readyState === WebSocket.OPEN) socket.send(text);
  },
  /** Bytes that were sent and not yet taken by the system. */
  unsent: () => socket.bufferedAmount,
  /** Reads nothing until `resume`: the client takes nothing now. */
  pause: () => socket.pause(),
  resume: () => socket.resume(),
  close() {
    socket.close(1000);
    clock.after(closingMs, () => socket.terminate());
  },
});

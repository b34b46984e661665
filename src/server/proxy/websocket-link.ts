import type { IncomingMessage } from 'node:http';
import { type ClientOptions, WebSocket } from 'ws';
import { z } from 'zod';
import { type AppError, configError, securityError, storageError } from '../../core/errors.ts';
import { parsedJson } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import { keepAlive } from '../access/keep-alive.ts';
import { bytesWithin } from '../access/limits.ts';
import { isToken, shortestToken } from '../access/tokens.ts';

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

/**
 * Opens a link, to a daemon that it may have to wait for or to start. `again`: there was one before, which may be about to come
 * back by itself. Rejects with an `AppError` where none is to be had.
 */
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

const maxRefusalBytes = 16_384;

const refusalSchema = z.object({ error: z.object({ message: z.string(), next: z.string() }) });

type Refused = z.infer<typeof refusalSchema>['error'];

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
    refusalIn(response)
      .then(refusal => reject(refusedBy(url, response.statusCode ?? 0, refusal)))
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

/** What a daemon says of its refusal; undefined where it is none of a daemon. */
async function refusalIn(response: IncomingMessage): Promise<Refused | undefined> {
  const bytes = await bytesWithin(response, maxRefusalBytes).catch(() => undefined);
  return refusalSchema.safeParse(parsedJson(bytes?.toString('utf8') ?? '')).data?.error;
}

function refusedBy(url: string, status: number, refusal: Refused | undefined): AppError {
  if (!refusal)
    return configError(`What answers at ${url} is no Polylogue daemon (HTTP ${status}).`, {
      next: 'Set POLYLOGUE_PORT to a free port, or name the daemon with --url.',
    });
  const { message, next } = refusal;
  if (status === 401)
    return securityError(`The daemon at ${url} does not let this client in: ${message}`, {
      next: 'Set POLYLOGUE_TOKEN to a token that it knows; of a daemon of another user, choose another POLYLOGUE_PORT.',
    });
  if (status === 403) return securityError(`The daemon at ${url} refuses: ${message}`, { next });
  const now = `The daemon at ${url} takes no client now: ${message}`;
  return storageError('unavailable', now, { retryable: true, next });
}

const unreachable = (url: string, cause?: Error): AppError =>
  storageError('unavailable', `The daemon at ${url} cannot be reached${cause ? `: ${cause.message}` : ''}.`, {
    retryable: true,
    next: 'See whether it runs: polylogue status',
    cause,
  });

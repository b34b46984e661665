import { type Caller, type Refusal, refusalFor } from '../access/caller.ts';
import type { ShareLimits } from '../access/limits.ts';
import type { LiveSocket } from './live-socket.ts';
import { closeCodes } from './protocol.ts';

const badHandshake = refusalFor(400, 'handshake', 'This is no request for a WebSocket.', {
  next: 'Connect with a WebSocket client of version 13.',
});

/** Why no connection is made. */
export const refusals = {
  tokenRequired: refusalFor(401, 'token_missing', 'MCP over a WebSocket takes the token before anything else.', {
    next: 'Send it as "Authorization: Bearer TOKEN" with the request for the connection.',
  }),
  tokenReplaced: refusalFor(401, 'token_replaced', 'A token was replaced while this connection began.', {
    next: 'Reconnect with a valid token.',
  }),
  tooMany: refusalFor(503, 'connections', 'There are too many connections.', {
    next: 'Try again later.',
    retryAfterSeconds: 5,
  }),
  tooManyOfYours: refusalFor(
    429,
    'connections',
    'Your token has as many connections as one token may have at a time.',
    {
      next: 'Close one that is not needed any more, or ask the operator for more (POLYLOGUE_SESSIONS_PER_TOKEN).',
      retryAfterSeconds: 5,
    },
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

export interface OpenSocket {
  live: LiveSocket;
  /** Absent: it has not said hello. */
  caller: Caller | undefined;
  /** Where it comes from. */
  address: string;
  /** It was sent away, and is not gone yet. */
  leaving?: true;
}

/** Connections that have not said hello: so many in all, and from one address. The oldest goes when there is another. */
const maxSilent = { inAll: 64, fromOne: 16 };

/** Of these, the ones that were sent away and take their time. */
const maxLeaving = 64;

/** The connections of all callers. Who takes many places finds his own taken away, and nobody else's. */
export function createOpenSockets({ inAll: max, perCaller }: ShareLimits) {
  // In the order in which they came.
  const open = new Set<OpenSocket>();
  const ofCaller = (name: string) => [...open].filter(({ caller }) => caller?.name === name).length;

  function makeRoom(address: string): void {
    const silent = [...open].filter(({ caller, leaving }) => !caller && !leaving);
    const ofAddress = (wanted: string) => silent.filter(each => each.address === wanted);
    const own = ofAddress(address);
    const addresses = [...new Set(silent.map(each => each.address))].map(ofAddress);
    const largest = addresses.reduce((biggest, each) => (each.length > biggest.length ? each : biggest), []);
    const isFull = own.length >= maxSilent.fromOne || silent.length >= maxSilent.inAll;
    const [oldest] = own.length >= maxSilent.fromOne ? own : largest;
    if (!isFull || !oldest) return;
    oldest.leaving = true;
    oldest.live.refuse(1013, 'others came, and this one said no hello');
  }

  return {
    /** Why there is no room for another one of this caller; undefined: there is. `pending`: connections that are about to be added. */
    refusal(caller: Caller | undefined, pending: number): Refusal | undefined {
      if (open.size + pending >= max) return refusals.tooMany;
      if (caller) return ofCaller(caller.name) >= perCaller() ? refusals.tooManyOfYours : undefined;
      return [...open].filter(({ leaving }) => leaving).length >= maxLeaving ? refusals.tooMany : undefined;
    },
    add(socket: OpenSocket) {
      if (!socket.caller) makeRoom(socket.address);
      open.add(socket);
      socket.live.onClose(() => open.delete(socket));
    },
    /** Whose it is turned out; false: he has too many. */
    know(socket: OpenSocket, caller: Caller) {
      if (!socket.caller && ofCaller(caller.name) >= perCaller()) return false;
      socket.caller = caller;
      return true;
    },
    count: () => open.size,
    /** For the connections whose tokens hold no more. */
    close(isMeant: (each: OpenSocket) => boolean, reason: string) {
      for (const each of [...open].filter(isMeant)) void each.live.close(closeCodes.unauthorized, reason);
    },
    /** For the end of the server. */
    async closeAll() {
      await Promise.all([...open].map(({ live }) => live.close(1001, 'the server is going away')));
    },
  };
}

import type { Duplex } from 'node:stream';
import { type Caller, type Refusal, refusalResponse } from '../access/caller.ts';
import type { LiveSocket } from './live-socket.ts';
import { closeCodes } from './protocol.ts';

/** Answers what asked to become a WebSocket, and may not, in plain HTTP. */
export function refuseUpgrade(socket: Duplex, refusal: Refusal): void {
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

export const tokenRequired: Refusal = {
  status: 401,
  class: 'token_missing',
  message: 'MCP over a WebSocket takes the token before anything else.',
  next: 'Send it as "Authorization: Bearer TOKEN" with the request for the connection.',
};

export const tokenReplaced: Refusal = {
  status: 401,
  class: 'token_replaced',
  message: 'A token was replaced while this connection began.',
  next: 'Connect again, with the token that holds now.',
};

export const tooManyConnections: Refusal = {
  status: 503,
  class: 'connections',
  message: 'There are too many connections.',
  next: 'Try again later.',
  retryAfterSeconds: 5,
};

export const callerQuotaExceeded: Refusal = {
  status: 429,
  class: 'connections',
  message: 'Your token has as many connections as one token may have at a time.',
  next: 'Close one that is not needed any more, or ask the operator for more (POLYLOGUE_SESSIONS_PER_TOKEN).',
  retryAfterSeconds: 5,
};

export const badHandshake: Refusal = {
  status: 400,
  class: 'handshake',
  message: 'This is no request for a WebSocket.',
  next: 'Connect with a WebSocket client of version 13.',
};

/** RFC 6455 wants to be told what would be taken. */
export const unsupportedVersion: Refusal = {
  ...badHandshake,
  status: 426,
  headers: { Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
};

export const internalFailure: Refusal = {
  status: 500,
  class: 'internal',
  message: 'Something went wrong in this server itself.',
  next: 'Try again, and tell the operator.',
};

export function notAllowed(message: string): Refusal {
  return { status: 403, class: 'root', message, next: 'Ask the operator which folders the token may read.' };
}

export interface OpenSocket {
  live: LiveSocket;
  /** Absent: it has not said hello. */
  caller: Caller | undefined;
  /** Where it comes from. */
  address: string;
  /** It was sent away, and is not gone yet. */
  leaving?: true;
}

export interface OpenSocketsRules {
  /** Connections in all. */
  max: number;
  /** Of these, the ones that one token may have at the moment. */
  perCaller(): number;
}

export interface OpenSockets {
  /** Why there is no room for another one of this caller; undefined: there is. `pending`: connections that are about to be added. */
  refusal(caller: Caller | undefined, pending: number): Refusal | undefined;
  add(socket: OpenSocket): void;
  /** Whose it is turned out; false: he has too many. */
  know(socket: OpenSocket, caller: Caller): boolean;
  count(): number;
  /** For the connections whose tokens hold no more. */
  close(isMeant: (each: OpenSocket) => boolean, reason: string): void;
  /** For the end of the server. */
  closeAll(): Promise<void>;
}

/** Connections that have not said hello: so many in all, and from one address. The oldest goes when there is another. */
const maxSilent = { inAll: 64, fromOne: 16 };

/** Of these, the ones that were sent away and take their time. */
const maxLeaving = 64;

/** The connections of all callers. Who takes many places finds his own taken away, and nobody else's. */
export function createOpenSockets({ max, perCaller }: OpenSocketsRules): OpenSockets {
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
    refusal(caller, pending) {
      if (open.size + pending >= max) return tooManyConnections;
      if (caller) return ofCaller(caller.name) >= perCaller() ? callerQuotaExceeded : undefined;
      return [...open].filter(({ leaving }) => leaving).length >= maxLeaving ? tooManyConnections : undefined;
    },
    add(socket) {
      if (!socket.caller) makeRoom(socket.address);
      open.add(socket);
      socket.live.onClose(() => open.delete(socket));
    },
    know(socket, caller) {
      if (!socket.caller && ofCaller(caller.name) >= perCaller()) return false;
      socket.caller = caller;
      return true;
    },
    count: () => open.size,
    close(isMeant, reason) {
      for (const each of [...open].filter(isMeant)) void each.live.close(closeCodes.unauthorized, reason);
    },
    async closeAll() {
      await Promise.all([...open].map(({ live }) => live.close(1001, 'the server is going away')));
    },
  };
}

import type { Duplex } from 'node:stream';
import { type Refusal, refusalResponse } from '../guards/refusal.ts';

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

export const tokenFirst: Refusal = {
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

export const tooMany: Refusal = {
  status: 503,
  class: 'connections',
  message: 'There are too many connections.',
  next: 'Try again later.',
  retryAfterSeconds: 5,
};

export const tooManyOfYours: Refusal = {
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
export const wrongVersion: Refusal = {
  ...badHandshake,
  status: 426,
  headers: { Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
};

export const failed: Refusal = {
  status: 500,
  class: 'internal',
  message: 'Something went wrong in this server itself.',
  next: 'Try again, and tell the operator.',
};

export function notAllowed(message: string): Refusal {
  return { status: 403, class: 'root', message, next: 'Ask the operator which folders the token may read.' };
}

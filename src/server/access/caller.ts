import type { Duplex } from 'node:stream';
import type { Permissions } from '../../core/tool-host.ts';

export interface Caller {
  /** Names the token, for logs; not the token itself. */
  name: string;
  /** Whose threads and jobs these are. Several tokens may share one owner. */
  owner: string;
  permissions: Permissions;
  /** The project that he declares may be any of this machine, as long as the operator set no roots: who he is was shown. */
  isAtHome?: boolean;
}

/** Everybody on this machine, where no token is set. */
export const operator: Caller = { name: 'operator', owner: 'local', permissions: { readOnly: false } };

/** Why a request is refused before it is handled. */
export interface Refusal {
  /** HTTP status. */
  status: 400 | 401 | 403 | 404 | 405 | 406 | 408 | 413 | 415 | 421 | 426 | 429 | 431 | 500 | 503;
  /** One word a program can switch on. */
  class: string;
  /** What was wrong, and what is allowed. */
  message: string;
  /** What to do now, as one sentence. */
  next: string;
  retryAfterSeconds?: number | undefined;
  /** What the status asks for beside, such as `Allow`. */
  headers?: Readonly<Record<string, string>>;
}

export const refusalFor = (
  status: Refusal['status'],
  kind: string,
  message: string,
  details: Pick<Refusal, 'next' | 'retryAfterSeconds' | 'headers'>,
): Refusal => ({ status, class: kind, message, ...details });

/** A refusal as every endpoint writes it, with the headers that go along. */
export function refusalResponse(refusal: Refusal): Response {
  const { status, message, next, retryAfterSeconds } = refusal;
  const error = { class: refusal.class, message, next, retry_after_s: retryAfterSeconds };
  const headers: Record<string, string> = {
    ...(status === 401 && { 'WWW-Authenticate': 'Bearer realm="polylogue"' }),
    ...(retryAfterSeconds !== undefined && { 'Retry-After': String(retryAfterSeconds) }),
    'Cache-Control': 'no-store',
    ...refusal.headers,
  };
  return Response.json({ status: 'error', error }, { status, headers });
}

/** Answers a connection that asked to become one of another protocol, and may not: by hand, for nobody else has it. */
export async function refuseUpgrade(socket: Duplex, refusal: Refusal, phrase = refusal.class): Promise<void> {
  const response = refusalResponse(refusal);
  const body = await response.text();
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const start = `HTTP/1.1 ${refusal.status} ${phrase}\r\n`;
  socket.once('finish', () => socket.destroy());
  socket.end(`${start}${headers}Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`);
}

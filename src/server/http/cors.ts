import type { IncomingMessage, ServerResponse } from 'node:http';
import { originOf } from '../access/addresses.ts';

/** Lets a page that may call read the answer; a response where its browser only asks first whether it may. */
export type Cors = (incoming: IncomingMessage, outgoing: ServerResponse) => Response | undefined;

const preflight = {
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, DELETE',
  'Access-Control-Allow-Headers':
    'Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Polylogue-Root',
  'Access-Control-Max-Age': '600',
};

/**
 * `origins`: the pages that the operator named. Those of this machine pass the guard of origins and are told nothing here: any
 * program's page could read what anybody may ask of a daemon without a token.
 */
export function createCors(origins: readonly string[]): Cors {
  const pages = new Set(origins.map(originOf).filter(page => page !== undefined));
  return ({ method, headers }, outgoing) => {
    const { origin } = headers;
    const page = originOf(origin ?? '');
    if (pages.size > 0) outgoing.setHeader('Vary', 'Origin');
    if (origin === undefined || page === undefined || !pages.has(page)) return undefined;
    outgoing.setHeader('Access-Control-Allow-Origin', origin);
    outgoing.setHeader('Access-Control-Expose-Headers', 'Mcp-Session-Id, Retry-After, WWW-Authenticate');
    const isAsking = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
    return isAsking ? new Response(null, { status: 204, headers: preflight }) : undefined;
  };
}

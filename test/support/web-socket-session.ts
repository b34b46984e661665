import { Client } from '@modelcontextprotocol/client';
import { documentOf, type Era, eraVersions, type SessionCall } from './mcp-session.ts';
import type { Document } from './product.ts';
import { webSocketTransport } from './web-socket-transport.ts';

export interface WebSocketSession {
  client: Client;
  /** The reply's document with `isError`. */
  call(name: string, args?: Record<string, unknown>, options?: SessionCall): Promise<Document>;
  close(): Promise<void>;
}

/** The official client at `/ws` of a daemon, as `ws://…/ws`. */
export async function connectWebSocket(url: string, era: Era): Promise<WebSocketSession> {
  const mode = era === 'modern' ? { pin: eraVersions.modern } : era;
  const client = new Client({ name: 'polylogue-test', version: '1.0.0' }, { versionNegotiation: { mode } });
  const transport = webSocketTransport(url);
  /** What the official client reports as closed, with the code and the reason that the server gave. */
  const withEnding = (error: unknown): never => {
    throw transport.ending ? new Error(`The connection was closed with ${transport.ending}.`, { cause: error }) : error;
  };
  await client.connect(transport).catch(withEnding);
  return {
    client,
    async call(name, args = {}, options = {}) {
      const params = { name, arguments: args };
      return documentOf(await client.callTool(params, { timeout: 110_000, ...options }).catch(withEnding));
    },
    close: () => client.close(),
  };
}

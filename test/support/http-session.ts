import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { documentOf, type Era, eraVersions, type SessionCall } from './mcp-session.ts';
import type { Document } from './product.ts';

export interface HttpSession {
  client: Client;
  /** Of the 2025 era. */
  sessionId(): string | undefined;
  /** The reply's document with `isError`. */
  call(name: string, args?: Record<string, unknown>, options?: SessionCall): Promise<Document>;
  close(): Promise<void>;
}

export interface HttpSessionOptions {
  token?: string;
  /** The project that the client says it is in. */
  root?: string;
  /** The directories that the client lists, as addresses; absent: it knows no roots. */
  lists?: () => readonly string[];
  /** In the place of the platform's own. */
  fetch?: typeof fetch;
}

/** The official client at a daemon. */
export async function connectHttp(url: string, era: Era, options: HttpSessionOptions = {}): Promise<HttpSession> {
  const { token, root, lists, fetch } = options;
  const headers = {
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    ...(root !== undefined && { 'Polylogue-Root': encodeURIComponent(root) }),
  };
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers },
    reconnectionOptions: {
      initialReconnectionDelay: 20,
      maxReconnectionDelay: 100,
      reconnectionDelayGrowFactor: 1.5,
      maxRetries: 20,
    },
    ...(fetch && { fetch }),
  });
  const mode = era === 'modern' ? { pin: eraVersions.modern } : era;
  const capabilities = lists ? { roots: { listChanged: true } } : {};
  const client = new Client(
    { name: 'polylogue-test', version: '1.0.0' },
    { capabilities, versionNegotiation: { mode } },
  );
  if (lists) client.setRequestHandler('roots/list', () => ({ roots: lists().map(uri => ({ uri })) }));
  await client.connect(transport);
  return {
    client,
    sessionId: () => transport.sessionId,
    async call(name, args = {}, callOptions = {}) {
      return documentOf(await client.callTool({ name, arguments: args }, { timeout: 110_000, ...callOptions }));
    },
    close: () => client.close(),
  };
}

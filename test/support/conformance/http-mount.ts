import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMcpHandler } from '@modelcontextprotocol/server';
import type { ToolHost } from '../../../src/core/tool-host.ts';
import { createMcpServer } from '../../../src/server/mcp/mcp.ts';
import { realClock } from '../clock.ts';

export interface HttpMount {
  url: string;
  close(): Promise<void>;
}

/** The product's protocol server behind HTTP, as the conformance suite wants it. For tests alone: it has no guards. */
export async function httpMount(host: ToolHost, root = '/'): Promise<HttpMount> {
  const principal = { owner: 'local', root };
  const options = { host, version: '0.0.0', instructions: 'Fixtures.', principal, clock: realClock() };
  const handler = createMcpHandler(({ era }) => createMcpServer(options, era));
  const server = createServer((incoming, outgoing) => {
    answer(handler.fetch, incoming, outgoing).catch(error => outgoing.destroy(error));
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async close() {
      await handler.close();
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
}

async function answer(
  serve: (request: Request) => Promise<Response>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers))
    if (value !== undefined) headers.set(name, String(value));
  const body = chunks.length > 0 ? Buffer.concat(chunks) : undefined;
  const gone = new AbortController();
  outgoing.once('close', () => gone.abort());
  const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
    method: incoming.method,
    headers,
    body,
    signal: gone.signal,
  });
  const response = await serve(request);
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body) for await (const chunk of response.body) outgoing.write(chunk);
  outgoing.end();
}

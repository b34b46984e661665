import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { type Listening, listeningOn } from '../listening.ts';
import { type WatchedConnection, watchConnection } from '../mcp/connection.ts';
import { createMcpServer, type McpOptions } from '../mcp/mcp.ts';
import type { LiveSocket } from '../websocket/live-socket.ts';
import { createSocketTransport } from './socket-transport.ts';

/** Serves one MCP client over a WebSocket, in whichever era it speaks, as over standard input and output. */
export function serveMcp(options: McpOptions, socket: LiveSocket, onError: (error: Error) => void): void {
  const transport = createSocketTransport(socket);
  // Assigned below, before a client can have sent anything.
  let listening: Listening | undefined;
  let connection: WatchedConnection | undefined;
  serveStdio(({ era }) => createMcpServer({ ...options, listening, connection }, era), {
    transport,
    onerror: onError,
  });
  listening = listeningOn(transport);
  connection = watchConnection(transport);
}

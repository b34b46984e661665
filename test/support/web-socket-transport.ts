import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { WebSocket } from 'ws';

export interface WebSocketTransport extends Transport {
  drop(): void;
  /** How the connection ended, as `1013 reason`. Absent: it has not. */
  ending?: string;
}

/** JSON-RPC over a WebSocket with the subprotocol `mcp`, for the official client. */
export function webSocketTransport(url: string, headers: Record<string, string> = {}): WebSocketTransport {
  const socket = new WebSocket(url, 'mcp', { headers });
  const opened = new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  opened.catch(() => {});
  const transport: WebSocketTransport = {
    async start() {
      await opened;
      socket.on('error', error => transport.onerror?.(error));
      socket.on('close', (code, reason) => {
        transport.ending = `${code} ${reason}`;
        transport.onclose?.();
      });
      socket.on('message', data => {
        const message: JSONRPCMessage = JSON.parse(data.toString());
        transport.onmessage?.(message);
      });
    },
    async send(message) {
      socket.send(JSON.stringify(message));
    },
    async close() {
      socket.close();
    },
    drop: () => socket.terminate(),
  };
  return transport;
}

import type { Transport } from '@modelcontextprotocol/server';
import { readMessages } from '../mcp/messages.ts';
import { batchVersion } from '../messages/refused-message.ts';
import type { LiveSocket } from '../websocket/live-socket.ts';

/** JSON-RPC, one message a text frame. */
export function createSocketTransport(socket: LiveSocket): Transport {
  let takesBatches = false;
  const transport: Transport = {
    async start() {
      socket.onClose(() => transport.onclose?.());
      socket.onText(text => {
        const { read, refused } = readMessages(text, takesBatches);
        for (const each of refused) void socket.send(JSON.stringify(each));
        for (const each of read) transport.onmessage?.(each);
      });
    },
    setProtocolVersion(version) {
      takesBatches = version === batchVersion;
    },
    async send(message) {
      if (!(await socket.send(JSON.stringify(message)))) throw new Error('The connection is closed.');
    },
    close: () => socket.close(1000, ''),
  };
  return transport;
}

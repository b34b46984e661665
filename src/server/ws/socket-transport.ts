import { type JSONRPCMessage, parseJSONRPCMessage, type Transport } from '@modelcontextprotocol/server';
import { readJson } from '../guards/json-body.ts';
import type { LiveSocket } from './live-socket.ts';

/** JSON-RPC, one message a text frame. */
export function createSocketTransport(socket: LiveSocket): Transport {
  const transport: Transport = {
    async start() {
      socket.onClose(() => transport.onclose?.());
      socket.onText(text => {
        const message = messageIn(text);
        if ('refused' in message) void socket.send(JSON.stringify(message.refused));
        else transport.onmessage?.(message.read);
      });
    },
    async send(message) {
      if (!(await socket.send(JSON.stringify(message)))) throw new Error('The connection is closed.');
    },
    close: () => socket.close(1000, ''),
  };
  return transport;
}

function messageIn(text: string): { read: JSONRPCMessage } | { refused: object } {
  const json = readJson(text);
  if ('refusal' in json) return rpcError(-32_700, json.refusal.message);
  try {
    return { read: parseJSONRPCMessage(json.value) };
  } catch {
    // What the schema says of it quotes all of it.
    return rpcError(-32_600, 'This is no JSON-RPC message.');
  }
}

function rpcError(code: number, message: string) {
  return { refused: { jsonrpc: '2.0', error: { code, message }, id: null } };
}

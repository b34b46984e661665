import type { TestDaemon } from './daemon.ts';
import { helloFrames } from './frame-client.ts';
import { eraVersions } from './mcp-session.ts';
import type { Document } from './product.ts';
import { webSocketTransport } from './web-socket-transport.ts';

/** One client of a door. */
export interface Client {
  /** Sends the call; the reply fails once it is cut. */
  send(args: object, key?: string): { reply: Promise<Document>; cut(): void };
}

export type Open = (at: TestDaemon, owner?: string) => Promise<Client>;

let ids = 0;

export const tokenOf = (name: string) => `${name}-${'t'.repeat(32)}`;

export const documentOf = ({ content, isError = false }: Document): Document => ({
  ...JSON.parse(content[0].text),
  isError,
});

/** The answer of a POST to `/mcp`: one JSON document, or the last message of a stream. */
export async function answerIn(response: Response): Promise<Document> {
  const text = await response.text();
  const messages = text.startsWith('{') ? [text] : [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => data);
  const answer = messages.map(each => JSON.parse(each)).find(message => message.id !== undefined && !message.method);
  if (!answer?.result) throw new Error(`no result in ${text.slice(0, 500)}`);
  return answer.result;
}

export function posting(at: TestDaemon, path: string, owner: string) {
  return (body: object, headers: Record<string, string> = {}) => {
    const stop = new AbortController();
    const accept = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const init = {
      method: 'POST',
      body: JSON.stringify(body),
      signal: stop.signal,
      headers: { ...accept, ...headers },
    };
    return { response: at.ask(path, { ...init, token: tokenOf(owner) }), cut: () => stop.abort() };
  };
}

export const call = (args: object, meta?: object) => ({
  jsonrpc: '2.0',
  id: ++ids,
  method: 'tools/call',
  params: { name: 'chat', arguments: args, ...(meta && { _meta: meta }) },
});

const initialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'one', version: '1' } },
};

export const http2025: Open = async (at, owner = 'ann') => {
  const post = posting(at, '/mcp', owner);
  const opened = await post(initialize).response;
  await opened.text();
  const headers = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, headers).response;
  return {
    send(args, key) {
      const { response, cut } = post(call(args, key === undefined ? undefined : { idempotencyKey: key }), headers);
      return { reply: response.then(answerIn).then(documentOf), cut };
    },
  };
};

export const capabilities = (extensions: object) => ({
  'io.modelcontextprotocol/protocolVersion': eraVersions.modern,
  'io.modelcontextprotocol/clientInfo': { name: 'one', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': { extensions },
});

export const http2026: Open = async (at, owner = 'ann') => {
  const post = posting(at, '/mcp', owner);
  const headers = { 'mcp-protocol-version': eraVersions.modern, 'mcp-method': 'tools/call', 'mcp-name': 'chat' };
  return {
    send(args, key) {
      const meta = { ...capabilities({}), ...(key !== undefined && { idempotencyKey: key }) };
      const { response, cut } = post(call(args, meta), headers);
      return { reply: response.then(answerIn).then(documentOf), cut };
    },
  };
};

export const api: Open = async (at, owner = 'ann') => {
  const post = posting(at, '/api/tools/chat', owner);
  return {
    send(args, key) {
      const { response, cut } = post(args, { accept: 'application/json', ...(key && { 'idempotency-key': key }) });
      return { reply: response.then(async each => ({ ...JSON.parse(await each.text()), isError: !each.ok })), cut };
    },
  };
};

/** MCP over a WebSocket, as the bridge speaks it. */
export const webSocket: Open = async (at, owner = 'ann') => {
  const transport = webSocketTransport(`${at.url.replace('http', 'ws')}/ws`, {
    authorization: `Bearer ${tokenOf(owner)}`,
  });
  const waiting = new Map<unknown, (result: Document) => void>();
  transport.onmessage = message => 'result' in message && waiting.get(message.id)?.(message.result);
  await transport.start();
  const ask = (message: Document) =>
    new Promise<Document>(resolve => {
      waiting.set(message.id, resolve);
      void transport.send(message);
    });
  await ask(initialize);
  await transport.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  return {
    send: (args, key) => ({
      reply: ask(call(args, key === undefined ? undefined : { idempotencyKey: key })).then(documentOf),
      cut: () => void transport.close(),
    }),
  };
};

export const frames: Open = async (at, owner = 'ann') => {
  const url = `${at.url.replace('http', 'ws')}/ws`;
  let client = await helloFrames(url, { token: tokenOf(owner) });
  const session = client.ack.session_id;
  return {
    send: (args, key = `r${++ids}`) => {
      const asked = async () => {
        if (client.socket.readyState !== client.socket.OPEN)
          client = await helloFrames(url, { token: tokenOf(owner), ...(session && { session }) });
        client.call(key, 'chat', { ...args });
        return (await client.result(key)).document;
      };
      return { reply: asked(), cut: () => client.socket.terminate() };
    },
  };
};

import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { type Listening, listeningOn } from '../listening.ts';
import { createStdioTransport, type StdioStreams } from '../stdio/stdio-transport.ts';
import { type WatchedConnection, watchConnection } from './connection.ts';
import { createMcpServer, type McpOptions } from './mcp.ts';

export interface StdioDoor {
  /** Resolves when the connection is over: the client ended it or no longer reads. */
  closed: Promise<void>;
  close(): Promise<void>;
}

/** Serves one client over standard input and output, in whichever era it speaks. */
export function openStdio(options: McpOptions, streams: StdioStreams, onError: (error: Error) => void): StdioDoor {
  const { input } = streams;
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const transport = createStdioTransport(streams);
  // Assigned below, before a client can have sent anything.
  let listening: Listening | undefined;
  let connection: WatchedConnection | undefined;
  // Before the transport, which ends all requests then: a client that is gone has not cancelled them.
  const onEnd = () => {
    connection?.lose();
    resolve();
  };
  input.once('end', onEnd);
  input.once('close', onEnd);
  const handle = serveStdio(({ era }) => createMcpServer({ ...options, listening, connection }, era), {
    transport,
    onerror: onError,
  });
  listening = listeningOn(transport);
  connection = watchConnection(transport);
  // A client that reads no more is noticed by the transport alone: its end of our input may stay open.
  const { onclose } = transport;
  transport.onclose = () => {
    onclose?.();
    resolve();
  };
  return {
    closed,
    close() {
      connection.lose();
      return handle.close();
    },
  };
}

import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { createMcpServer, type McpOptions } from './mcp.ts';

export interface StdioDoor {
  /** Resolves when the connection is over: the client ended it or no longer reads, or sent what can't be taken. */
  closed: Promise<void>;
  close(): Promise<void>;
}

/** Serves one client over standard input and output, in whichever era it speaks. */
export function openStdio(
  options: McpOptions,
  input: NodeJS.ReadableStream,
  onError: (error: Error) => void,
): StdioDoor {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  input.once('end', resolve);
  input.once('close', resolve);
  const transport = new StdioServerTransport();
  const handle = serveStdio(({ era }) => createMcpServer(options, era), { transport, onerror: onError });
  // A client that reads no more is noticed by the transport alone: its end of our input may stay open.
  const { onclose } = transport;
  transport.onclose = () => {
    onclose?.();
    resolve();
  };
  return { closed, close: () => handle.close() };
}

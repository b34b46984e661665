import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { createMcpServer, type McpOptions } from './mcp.ts';

export interface StdioDoor {
  /** Resolves when the client closed the connection. */
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
  const handle = serveStdio(() => createMcpServer(options), { onerror: onError });
  return { closed, close: () => handle.close() };
}

import { CLIENT_INFO_META_KEY, Server, type ServerContext } from '@modelcontextprotocol/server';
import { isRecord } from '../domain/json.ts';
import type { ToolHost, ToolReply } from '../domain/request.ts';

export interface McpOptions {
  host: ToolHost;
  version: string;
  /** At most 2 KB: what a model should know of the tools as a whole. */
  instructions: string;
  /** Whose calls these are, and which project they come from. */
  principal: { owner: string; root: string };
}

/** A protocol server over the host. Made once a connection, and once more for a probe, so making it does nothing else. */
export function createMcpServer({ host, version, instructions, principal }: McpOptions): Server {
  const server = new Server(
    { name: 'polylogue', title: 'Polylogue', version },
    {
      capabilities: { tools: {} },
      instructions,
      cacheHints: { 'tools/list': { ttlMs: 300_000, cacheScope: 'public' } },
    },
  );
  const tools = host.list().map(tool => ({ ...tool }));
  server.setRequestHandler('tools/list', () => ({ tools }));
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const client = clientOf(server, context);
    const onProgress = progressOf(context);
    const request = {
      name: params.name,
      arguments: params.arguments ?? {},
      principal: { ...principal, client },
      onProgress,
    };
    return resultOf(await host.call(request, context.mcpReq.signal));
  });
  return server;
}

function resultOf({ text, structured, isError }: ToolReply) {
  return { content: [{ type: 'text' as const, text }], isError, ...(structured && { structuredContent: structured }) };
}

/** 2026 clients say who they are with each request, 2025 ones when they connect. */
function clientOf(server: Server, { mcpReq }: ServerContext): string | undefined {
  const envelope: unknown = mcpReq.envelope;
  const told = isRecord(envelope) ? envelope[CLIENT_INFO_META_KEY] : undefined;
  return isRecord(told) && typeof told.name === 'string' ? told.name : server.getClientVersion()?.name;
}

function progressOf({ mcpReq }: ServerContext) {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  return ({ progress, message }: { progress: number; message: string }) => {
    // A client that is gone needs no progress; the call's own signal ends the work.
    mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, message } }).catch(() => {});
  };
}

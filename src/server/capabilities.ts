import { CLIENT_CAPABILITIES_META_KEY, type Server, type ServerContext } from '@modelcontextprotocol/server';
import { isRecord } from '../core/json.ts';

/** What the client of this very request can do: 2026 clients say so with each request. */
export function declaredCapabilities({ mcpReq }: ServerContext): unknown {
  const envelope: unknown = mcpReq.envelope;
  return isRecord(envelope) ? envelope[CLIENT_CAPABILITIES_META_KEY] : undefined;
}

/** Whether the client shows forms to its user; 2025 clients said so when they connected. */
export function canBeAsked(server: Server, context: ServerContext): boolean {
  const told = declaredCapabilities(context) ?? server.getClientCapabilities();
  if (!isRecord(told) || !isRecord(told.elicitation)) return false;
  // Before there were addresses to visit, forms were all there was.
  return told.elicitation.form !== undefined || told.elicitation.url === undefined;
}

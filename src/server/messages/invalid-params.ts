import type { JSONRPCMessage, Server } from '@modelcontextprotocol/server';
import { isRecord } from '../../core/json.ts';

const internalError = -32_603;
const invalidParams = -32_602;
const mostIssues = 3;

/**
 * A request that does not fit its schema is the client's mistake, and is answered as one; the protocol's own library calls it
 * an internal error and sends the schema's findings as they are.
 */
export function tellInvalidParams(server: Server): Server {
  const connect = server.connect.bind(server);
  server.connect = transport => {
    const send = transport.send.bind(transport);
    transport.send = (message, options) => send(corrected(message), options);
    return connect(transport);
  };
  return server;
}

function corrected(message: JSONRPCMessage): JSONRPCMessage {
  if (!('error' in message) || message.error.code !== internalError) return message;
  const found = issuesIn(message.error.message);
  if (!found) return message;
  return { ...message, error: { code: invalidParams, message: `Invalid params: ${found}` } };
}

/** What a schema found, in words: `params.clientInfo: expected object, …`. */
function issuesIn(text: string): string | undefined {
  if (!text.startsWith('[')) return undefined;
  try {
    const issues: unknown = JSON.parse(text);
    if (!Array.isArray(issues)) return undefined;
    const told = issues.slice(0, mostIssues).flatMap(issue => {
      if (!isRecord(issue) || !Array.isArray(issue.path) || typeof issue.message !== 'string') return [];
      return [`${issue.path.join('.').slice(0, 100)}: ${issue.message.slice(0, 200)}`];
    });
    return told.length > 0 ? told.join('; ') : undefined;
  } catch {
    // A message that only begins like one.
    return undefined;
  }
}

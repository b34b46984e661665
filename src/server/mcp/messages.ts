import { type JSONRPCMessage, parseJSONRPCMessage, type RequestId } from '@modelcontextprotocol/server';
import { isRecord } from '../../core/json.ts';
import { readJson } from '../guards/json-body.ts';
import { type RefusedMessage, refusedMessage } from '../messages/refused-message.ts';

export interface ReadMessages {
  read: JSONRPCMessage[];
  refused: RefusedMessage[];
}

/** The messages of one line or frame: one, or the members of an array where `takesBatches`. */
export function readMessages(text: string, takesBatches: boolean): ReadMessages {
  const json = readJson(text);
  if ('refusal' in json) return { read: [], refused: [refusedMessage(null, -32_700, json.refusal.message)] };
  const { value } = json;
  if (!Array.isArray(value)) return judged([value]);
  if (takesBatches && value.length > 0) return judged(value);
  const why = value.length === 0 ? 'An empty array is no message.' : 'This revision takes no arrays of messages.';
  return { read: [], refused: [refusedMessage(null, -32_600, `${why} Send one message at a time.`)] };
}

function judged(values: readonly unknown[]): ReadMessages {
  const found: ReadMessages = { read: [], refused: [] };
  for (const value of values) {
    try {
      found.read.push(parseJSONRPCMessage(value));
    } catch {
      // What the schema says of it quotes all of it.
      found.refused.push(refusedMessage(idOfRequest(value), -32_600, 'This is no JSON-RPC message of MCP.'));
    }
  }
  return found;
}

/** What is no request has an id of ours, or none. */
function idOfRequest(value: unknown): RequestId | null {
  if (!isRecord(value) || typeof value.method !== 'string') return null;
  const { id } = value;
  return typeof id === 'string' || (typeof id === 'number' && Number.isSafeInteger(id)) ? id : null;
}

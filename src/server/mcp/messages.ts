import { type JSONRPCMessage, parseJSONRPCMessage } from '@modelcontextprotocol/server';
import { isRecord } from '../../core/json.ts';
import type { CallerTrace } from '../../core/tool-host.ts';
import { isId, type RefusedMessage, readJson, refusedMessage } from './lines.ts';

/** The messages of one line or frame: one, or the members of an array where `takesBatches`. */
export function readMessages(text: string, takesBatches: boolean) {
  const json = readJson(text);
  if ('refusal' in json) return { read: [], refused: [refusedMessage(null, -32_700, json.refusal.message)] };
  const { value } = json;
  if (!Array.isArray(value)) return judged([value]);
  if (takesBatches && value.length > 0) return judged(value);
  const why = value.length === 0 ? 'An empty array is no message.' : 'This revision takes no arrays of messages.';
  return { read: [], refused: [refusedMessage(null, -32_600, `${why} Send one message at a time.`)] };
}

function judged(values: readonly unknown[]) {
  const found: { read: JSONRPCMessage[]; refused: RefusedMessage[] } = { read: [], refused: [] };
  for (const value of values) {
    try {
      found.read.push(parseJSONRPCMessage(withoutNulls(value)));
    } catch {
      // A notification has no answer, however wrong it is.
      if (isRecord(value) && typeof value.method === 'string' && !('id' in value)) continue;
      // What is no request has an id of ours, or none.
      const id = isRecord(value) && typeof value.method === 'string' && isId(value.id) ? value.id : null;
      const isLarge = isRecord(value) && typeof value.id === 'number' && !isId(value.id);
      const next = isLarge ? ' An id is a text, or a whole number below 2^53.' : '';
      // What the schema says of it quotes all of it.
      found.refused.push(refusedMessage(id, -32_600, `This is no JSON-RPC message of MCP.${next}`));
    }
  }
  return found;
}

/** A message as its schema has it: clients in some languages write null for what they leave out, at any depth. */
export function withoutNulls(value: unknown, name?: unknown): unknown {
  if (Array.isArray(value)) return value.map(each => withoutNulls(each));
  if (!isRecord(value)) return value;
  // A request with an id of null is none, and no notification either. What an argument holds is for its tool to judge.
  const given = Object.entries(value).filter(([key, each]) => each !== null || key === 'id');
  return Object.fromEntries(name === 'arguments' ? given : given.map(([key, each]) => [key, withoutNulls(each, key)]));
}

/** Longer ones are not passed on, as the recommendation allows. */
const maxStateLength = 512;

type Meta = Readonly<Record<string, unknown>>;

/** The caller's trace, by the call's own `_meta` (SEP-414), else by the headers of its request. What is malformed is passed over. */
export function callerTrace(meta: Meta | undefined, headers: Headers | undefined): { trace?: CallerTrace } {
  const own = parentIn(meta?.traceparent);
  const transport = parentIn(headers?.get('traceparent'));
  const parent = own ?? transport;
  if (parent === undefined) return {};
  const state = own === undefined ? headers?.get('tracestate') : meta?.tracestate;
  const isState = typeof state === 'string' && state.length <= maxStateLength && /^[\x20-\x7e]+$/.test(state);
  const link = own === undefined || transport === own ? undefined : transport;
  return { trace: { parent, ...(isState && { state }), ...(link !== undefined && { link }) } };
}

/** As version 00 writes it; later versions begin the same way. */
function parentIn(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > maxStateLength) return undefined;
  const [, version, trace, span, flags, more] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(value.trim()) ?? [];
  if (trace === undefined || span === undefined || flags === undefined || version === 'ff') return undefined;
  if (/^0+$/.test(trace) || /^0+$/.test(span) || (version === '00' && more !== undefined)) return undefined;
  return `00-${trace}-${span}-${flags}`;
}

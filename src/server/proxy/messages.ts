import { isRecord, parsedJson, recordIn } from '../../core/json.ts';
import { isId, type RefusedMessage, readJson, refusedMessage, textSplitter } from '../mcp/lines.ts';

/** The lines of a stream of UTF-8, without their ends, and what the sender of one that nobody takes is answered; empty ones are left out. */
export async function* linesOf(input: AsyncIterable<Buffer | string>, maxBytes: number) {
  const found: (string | { refused: RefusedMessage })[] = [];
  const split = textSplitter(maxBytes, {
    onText: text => void found.push(text),
    onRefused: refused => void found.push({ refused }),
  });
  for await (const piece of input) {
    split(typeof piece === 'string' ? Buffer.from(piece) : piece);
    yield* found.splice(0);
  }
  // Scripts often leave out the end of their last line.
  split(Buffer.from('\n'));
  yield* found;
}

export type MessageId = string | number;

/** What has to be known of a message to pass it on. */
export type Seen =
  | { kind: 'request'; id: MessageId; method: string; params: Readonly<Record<string, unknown>> }
  | { kind: 'notification'; method: string; params: Readonly<Record<string, unknown>> }
  /** `null` where nobody could tell what it answers. */
  | { kind: 'answer'; id: MessageId | null; ok: boolean };

/** Undefined for what is no single JSON-RPC message with an id that can be answered. */
export function seen(text: string): Seen | undefined {
  const message = parsedJson(text);
  if (!isRecord(message)) return undefined;
  const { id, method } = message;
  const params = recordIn(message.params);
  if (typeof method === 'string' && !Object.hasOwn(message, 'id')) return { kind: 'notification', method, params };
  if (typeof method === 'string') return isId(id) ? { kind: 'request', id, method, params } : undefined;
  const ok = Object.hasOwn(message, 'result');
  if (!ok && !Object.hasOwn(message, 'error')) return undefined;
  return isId(id) || id === null ? { kind: 'answer', id, ok } : undefined;
}

export function membersOf(text: string): string[] {
  const json = readJson(text);
  return 'value' in json && Array.isArray(json.value) ? json.value.map(each => JSON.stringify(each)) : [];
}

/** What is answered to a text that is no message. */
export function refusalOf(text: string): string {
  if (parsedJson(text) === undefined) return failureAnswer(null, -32_700, 'The line is no JSON.');
  return failureAnswer(null, -32_600, 'This is no JSON-RPC message of MCP. Send one message at a time.');
}

/** A message as one line, for whoever reads lines; undefined where it can't be one. */
export function lineOf(text: string): string | undefined {
  if (!/[\r\n]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    // It is nested too deep to be written again.
    return undefined;
  }
}

export const notification = (method: string, params: object): string =>
  JSON.stringify({ jsonrpc: '2.0', method, params });

export const failureAnswer = (id: MessageId | null, code: number, message: string): string =>
  JSON.stringify(refusedMessage(id, code, message));

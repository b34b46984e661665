import { isRecord } from '../../domain/json.ts';

export type MessageId = string | number;

/** What has to be known of a message to pass it on. */
export type Seen =
  | { kind: 'request'; id: MessageId; method: string; params: Readonly<Record<string, unknown>> }
  | { kind: 'notification'; method: string; params: Readonly<Record<string, unknown>> }
  | { kind: 'answer'; id: MessageId; ok: boolean };

/** Undefined for what is no single JSON-RPC message with an id that can be answered. */
export function seen(text: string): Seen | undefined {
  const message = parsed(text);
  if (!isRecord(message)) return undefined;
  const { id, method } = message;
  const params = isRecord(message.params) ? message.params : {};
  if (typeof method === 'string' && !Object.hasOwn(message, 'id')) return { kind: 'notification', method, params };
  if (!isId(id)) return undefined;
  if (typeof method === 'string') return { kind: 'request', id, method, params };
  return { kind: 'answer', id, ok: Object.hasOwn(message, 'result') };
}

export function isId(value: unknown): value is MessageId {
  return typeof value === 'string' || typeof value === 'number';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // No JSON is no message.
    return undefined;
  }
}

export function cancellation(requestId: MessageId, reason: string): string {
  return JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId, reason } });
}

export function failureAnswer(id: MessageId | null, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } });
}

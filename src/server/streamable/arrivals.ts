import type { RequestId } from '@modelcontextprotocol/server';
import { isRecord } from '../../core/json.ts';
import type { Connection } from '../mcp/connection.ts';

/** Knows which answers reached a client: those whose streams were written to their ends. */
export interface Arrivals {
  connection: Connection;
  /** The answers to these requests were written. */
  arrived(ids: readonly RequestId[]): void;
  /** The client is gone. */
  lose(): void;
}

export function createArrivals(): Arrivals {
  const gone = new AbortController();
  const awaited = new Map<RequestId, () => void>();
  return {
    connection: {
      gone: gone.signal,
      onAnswered(id, cancelled, then) {
        if (cancelled.aborted || gone.signal.aborted) return;
        awaited.set(id, then);
        cancelled.addEventListener('abort', () => awaited.delete(id), { once: true });
      },
    },
    arrived(ids) {
      if (gone.signal.aborted) return;
      for (const id of ids) {
        awaited.get(id)?.();
        awaited.delete(id);
      }
    },
    lose() {
      gone.abort();
      awaited.clear();
    },
  };
}

/** The ids of what a body asks for. */
export function requestIds(body: unknown): RequestId[] {
  const messages: unknown[] = Array.isArray(body) ? body : [body];
  return messages.flatMap(message => {
    if (!isRecord(message) || typeof message.method !== 'string') return [];
    return typeof message.id === 'string' || typeof message.id === 'number' ? [message.id] : [];
  });
}

import type { RequestId } from '@modelcontextprotocol/server';

/** The one revision in which several messages may come as an array. */
export const batchVersion = '2025-03-26';

/** The answer to what can't be taken. */
export interface RefusedMessage {
  jsonrpc: '2.0';
  /** Null where nobody could tell what it answers. */
  id: RequestId | null;
  error: { code: number; message: string };
}

export function refusedMessage(id: RequestId | null, code: -32_700 | -32_600, message: string): RefusedMessage {
  return { jsonrpc: '2.0', id, error: { code, message } };
}

const id = String.raw`"id"\s*:\s*(-?\d{1,15}|"(?:[^"\\]|\\.){0,200}")`;
const version = String.raw`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?`;
const idFirst = new RegExp(`${version}${id}\\s*,\\s*"method"\\s*:`);
const methodFirst = new RegExp(`${version}"method"\\s*:`);
const idLast = new RegExp(`,\\s*${id}\\s*\\}\\s*$`);

/** The id of a request of which only the beginning and the end are known. */
export function idAtEdges(head: string, tail: string): RequestId | null {
  const found = idFirst.exec(head)?.[1] ?? (methodFirst.test(head) ? idLast.exec(tail)?.[1] : undefined);
  if (found === undefined) return null;
  try {
    const told: unknown = JSON.parse(found);
    return typeof told === 'string' || typeof told === 'number' ? told : null;
  } catch {
    // An escape that is none.
    return null;
  }
}

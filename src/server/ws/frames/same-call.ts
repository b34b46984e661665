import { createHash } from 'node:crypto';
import { isRecord } from '../../../core/json.ts';
import type { CallFrame } from '../../websocket/protocol.ts';

/** Hosts put the server's name behind that of a tool. */
const serverName = /[_-](?:exai[_-]ws|polylogue)$/i;

export function toolNameOf(name: string): string {
  return name.replace(serverName, '') || name;
}

/** The same for two frames that ask for the same, whatever the order of their keys. */
export function sameCall({ name, arguments: args, stream }: CallFrame): string {
  const text = JSON.stringify([toolNameOf(name), args ?? {}, stream === true], (_key, value: unknown) =>
    isRecord(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
  return hashOf(text);
}

/** What the host knows a call by, so that it is not made again when it is sent again. */
export function nameOfCall(parts: readonly string[]): string {
  return `ws ${hashOf(JSON.stringify(parts))}`;
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

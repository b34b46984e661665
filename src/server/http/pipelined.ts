import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests that one connection may send before the first of them is answered; the usual clients send one. */
const most = 32;

/** Counts those of each connection, and ends a connection with too many: they all would be answered at once, for nobody who reads. */
export function createPipelineGuard(): (incoming: IncomingMessage, outgoing: ServerResponse) => boolean {
  const open = new WeakMap<Socket, number>();
  return ({ socket }, outgoing) => {
    const count = (open.get(socket) ?? 0) + 1;
    if (socket.destroyed || count > most) {
      socket.destroy();
      return false;
    }
    open.set(socket, count);
    outgoing.once('close', () => open.set(socket, (open.get(socket) ?? 1) - 1));
    return true;
  };
}

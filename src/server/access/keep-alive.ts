import type { Clock } from '../../core/ports.ts';

export interface LifeRules {
  /** Milliseconds between pings; 0: none, and nobody is ended for his silence. */
  pingMs: number;
  /** Milliseconds without a sign of life, after which the other side counts as gone. */
  silenceMs: number;
}

/** A WebSocket. */
interface LiveConnection extends Record<'readyState' | 'OPEN', number>, Record<'ping' | 'terminate', () => void> {
  on(event: string, listener: () => void): this;
}

/** Ends a connection whose other end gives no sign of life any more; the result stops that. */
export function keepAlive(
  socket: LiveConnection,
  { pingMs, silenceMs }: LifeRules,
  { clock, isRead }: { clock: Pick<Clock, 'after' | 'monotonic'>; isRead(): boolean },
): () => void {
  if (pingMs === 0) return () => undefined;
  let heardAt = clock.monotonic();
  const hear = () => {
    heardAt = clock.monotonic();
  };
  socket.on('message', hear).on('ping', hear).on('pong', hear);
  let stop = () => {};
  const wait = () => {
    const left = silenceMs - (clock.monotonic() - heardAt);
    stop = clock.after(Math.min(pingMs, left), () => {
      // Nobody looks for signs of life there; a client who takes nothing is ended for that.
      if (!isRead()) hear();
      if (clock.monotonic() - heardAt >= silenceMs) return socket.terminate();
      // A connection that is closing already needs none.
      if (socket.readyState === socket.OPEN) socket.ping();
      wait();
    });
  };
  wait();
  return () => stop();
}

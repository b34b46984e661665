import type { ServerResponse } from 'node:http';
import type { Clock } from '../../domain/ports.ts';

export interface WriteOptions {
  clock: Pick<Clock, 'after'>;
  /** Milliseconds without one byte taken, after which a client is sent away. */
  stallMs: number;
}

/**
 * Writes a response as fast as its client reads, and no faster. Answers whether all of it was handed to the system; what is
 * left of the response is cancelled when the client is gone, or takes nothing for too long.
 */
export async function writeResponse(
  response: Response,
  outgoing: ServerResponse,
  options: WriteOptions,
): Promise<boolean> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  const { body } = response;
  if (!body) return ended(outgoing, options);
  outgoing.flushHeaders();
  const reader = body.getReader();
  const onClose = () => {
    // Of a stream that is over already there is nothing to cancel.
    reader.cancel().catch(() => {});
  };
  outgoing.once('close', onClose);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (outgoing.destroyed) return false;
      if (done) break;
      if (!outgoing.write(value) && !(await taken(outgoing, options, 'drain'))) return false;
    }
  } finally {
    outgoing.off('close', onClose);
  }
  return ended(outgoing, options);
}

function ended(outgoing: ServerResponse, options: WriteOptions): Promise<boolean> {
  const over = taken(outgoing, options, 'finish');
  outgoing.end();
  return over;
}

/** Waits until the client took what was written; evicts one that takes nothing. */
function taken(outgoing: ServerResponse, options: WriteOptions, event: 'drain' | 'finish'): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const { clock, stallMs } = options;
  let stop = () => {};
  const watch = (before: number | undefined) => {
    stop = clock.after(stallMs, () => {
      const now = outgoing.socket?.bytesWritten;
      if (now !== undefined && now !== before) watch(now);
      else outgoing.destroy();
    });
  };
  const onTaken = () => resolve(true);
  const onClose = () => resolve(event === 'finish' && outgoing.writableFinished);
  outgoing.once(event, onTaken).once('close', onClose);
  watch(outgoing.socket?.bytesWritten);
  return promise.finally(() => {
    stop();
    outgoing.off(event, onTaken).off('close', onClose);
  });
}

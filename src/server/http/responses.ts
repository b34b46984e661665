import type { ServerResponse } from 'node:http';
import { every, onAbort } from '../../core/concurrency.ts';
import type { Clock } from '../../core/ports.ts';
import { bringsBody } from './requests.ts';
import type { RouteServices } from './routes.ts';

type WriteOptions = Pick<RouteServices, 'clock' | 'stallMs'>;

/** Bytes of a live stream that may wait for the piece that is written; a client that falls further behind is sent away. */
const maxWaiting = 2_097_152;

/** Small enough that a slow client takes one now and then. */
const sliceBytes = 65_536;

/**
 * Writes a response as fast as its client reads. Answers whether all of it was handed to the system; what is left of it is
 * cancelled when the client is gone, takes nothing for too long, or falls behind a live stream, which can't wait.
 */
export async function writeResponse(response: Response, outgoing: ServerResponse, options: WriteOptions) {
  const { body } = response;
  if (isGone(outgoing)) {
    await body?.cancel();
    return false;
  }
  const headers: Record<string, string> = Object.fromEntries(response.headers);
  // What was not read of the request stays unread.
  if (bringsBody(outgoing.req) && !outgoing.req.complete)
    headers.connection = headers.connection ? `${headers.connection}, close` : 'close';
  outgoing.writeHead(response.status, headers);
  if (!body) return ended(outgoing, options);
  outgoing.flushHeaders();
  const reader = body.getReader();
  const onClose = () => {
    // Of a stream that is over already there is nothing to cancel.
    reader.cancel().catch(() => {});
  };
  outgoing.once('close', onClose);
  const isLive = headers['content-type']?.startsWith('text/event-stream');
  let waiting = 0;
  let written = Promise.resolve(true);
  const write = (piece: Uint8Array) => (goesOn: boolean) => {
    waiting -= piece.length;
    return goesOn && writePiece(piece, outgoing, options);
  };
  try {
    // What there is of a live stream is read at once: it is known how much waits.
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      waiting += next.value.length;
      written = written.then(write(next.value));
      if (!isLive) await written;
      else if (waiting - next.value.length > maxWaiting) {
        outgoing.destroy();
        onClose();
      }
    }
  } finally {
    // A failure is told once what came before is written.
    await written;
  }
  outgoing.off('close', onClose);
  return (await written) && ended(outgoing, options);
}

const isGone = (outgoing: ServerResponse) => outgoing.destroyed || outgoing.closed;

async function writePiece(piece: Uint8Array, outgoing: ServerResponse, options: WriteOptions): Promise<boolean> {
  for (let at = 0; at < piece.length; at += sliceBytes) {
    if (isGone(outgoing)) return false;
    const isTaken = outgoing.write(piece.subarray(at, at + sliceBytes));
    if (!isTaken && !(await taken(outgoing, 'drain', options))) return false;
  }
  return true;
}

async function ended(outgoing: ServerResponse, options: WriteOptions): Promise<boolean> {
  const over = taken(outgoing, 'finish', options);
  outgoing.end();
  return over;
}

/** Waits until the client took what was written; sends one away that takes nothing. */
async function taken(outgoing: ServerResponse, event: 'drain' | 'finish', { clock, stallMs }: WriteOptions) {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const onTaken = () => resolve(true);
  const onClose = () => resolve(outgoing.writableFinished);
  outgoing.once(event, onTaken).once('close', onClose);
  const stop = clock.after(stallMs, () => outgoing.destroy());
  if (isGone(outgoing)) onClose();
  const isTaken = await promise;
  stop();
  outgoing.off(event, onTaken).off('close', onClose);
  return isTaken;
}

/** Shorter than what proxies and clients wait for a word: models may think for minutes without one. */
const keepAliveMs = 15_000;

/** Server-sent events and signs of life while `work` runs. It outlives its reader: `write` and `over` tell that there is none. */
export function eventStream(
  clock: Pick<Clock, 'after'>,
  work: (write: (piece: string | Uint8Array) => boolean, over: AbortSignal) => Promise<void>,
): Response {
  const encoder = new TextEncoder();
  const over = new AbortController();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (piece: string | Uint8Array) => {
        if (!over.signal.aborted) controller.enqueue(typeof piece === 'string' ? encoder.encode(piece) : piece);
        return !over.signal.aborted;
      };
      const end = (close: () => void) => {
        if (!over.signal.aborted) close();
        over.abort();
      };
      const beat = () => write(': keepalive\n\n');
      onAbort(over.signal, every(clock, keepAliveMs, beat));
      // Not awaited: the stream is there for its reader while the work goes on.
      work(write, over.signal).then(
        () => end(() => controller.close()),
        error => end(() => controller.error(error)),
      );
    },
    cancel: () => over.abort(),
  });
  const headers = { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache, no-transform' };
  return new Response(body, { headers: { ...headers, 'X-Accel-Buffering': 'no' } });
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import type { Clock } from '../../core/ports.ts';
import { type Refusal, refusalFor } from '../access/caller.ts';

/** Bytes of a body that have to come in each so many milliseconds, or in the next: 1 KiB a second. */
const pace = { ms: 2_500, bytes: 2_560 };

/** Calls `onSlow` once what is counted by `came` is slower than that, unless `isPaused` says that nobody reads it now. */
export function watchPace(clock: Pick<Clock, 'after'>, onSlow: () => void, isPaused = () => false) {
  let came = 0;
  let slowTimes = 0;
  const look = () => {
    slowTimes = came < pace.bytes && !isPaused() ? slowTimes + 1 : 0;
    came = 0;
    // Once may be the fault of this process, which had no time to read.
    if (slowTimes > 1) onSlow();
    else stop = clock.after(pace.ms, look);
  };
  let stop = clock.after(pace.ms, look);
  return {
    came(bytes: number) {
      came += bytes;
    },
    stop: () => stop(),
  };
}

/** Where there are too many bodies at the same time, the oldest makes room for another once it came for so long. */
const leastMs = 1_000;

export type ReadBody = (
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  limit: number,
) => Promise<{ bytes: Buffer } | Refusal>;

/** Reads whole bodies, about `max` at a time; refuses one that is larger than `limit` bytes, or slow, before the rest is read. */
export function createBodyReader(clock: Pick<Clock, 'after' | 'monotonic'>, max: number): ReadBody {
  // In the order in which they began.
  const open = new Set<{ since: number; giveUp(): void }>();
  return async (incoming, outgoing, limit) => {
    const declared = Number(incoming.headers['content-length'] ?? 0);
    if (declared > limit) return tooLarge(limit);
    if (incoming.headers.expect !== undefined) outgoing.writeContinue();
    const { promise: late, resolve } = Promise.withResolvers<Refusal>();
    const body = { since: clock.monotonic(), giveUp: () => resolve(tooSlow) };
    const [oldest] = open;
    if (oldest && open.size >= max && body.since - oldest.since >= leastMs) oldest.giveUp();
    open.add(body);
    const chunks: Buffer[] = [];
    let size = 0;
    const watch = watchPace(clock, body.giveUp);
    const read = async () => {
      for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
        watch.came(chunk.length);
        size += chunk.length;
        if (size > limit) return tooLarge(limit);
        chunks.push(chunk);
      }
      return { bytes: Buffer.concat(chunks) };
    };
    try {
      return await Promise.race([read(), late]);
    } finally {
      watch.stop();
      open.delete(body);
    }
  };
}

const tooSlow = refusalFor(408, 'slow', 'The body comes slower than 1,024 bytes a second.', {
  next: 'Send the request again, all of it at once.',
});

const tooLarge = (limit: number): Refusal =>
  refusalFor(413, 'size', `The body is larger than ${limit} bytes.`, {
    next: 'Send less in one request, or name files by their paths.',
  });

/** Whether a request has a body, as far as its head tells. */
export const bringsBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || !/^0*$/.test(headers['content-length'] ?? '');

export interface WriteOptions {
  clock: Pick<Clock, 'after'>;
  /** Milliseconds in which a client takes nothing, after which it is sent away. */
  stallMs: number;
}

/** Bytes of a live stream that may wait to be taken over, and as many to be written; a client that falls further behind is sent away. */
const maxWaiting = 1_048_576;

/** Small enough that a slow client takes one now and then. */
const sliceBytes = 65_536;

/**
 * Writes a response as fast as its client reads. Answers whether all of it was handed to the system; what is left of it is
 * cancelled when the client is gone, takes nothing for too long, or falls behind a live stream, which can't wait.
 */
export async function writeResponse(
  response: Response,
  outgoing: ServerResponse,
  options: WriteOptions,
): Promise<boolean> {
  const { body } = response;
  if (isGone(outgoing)) {
    await body?.cancel();
    return false;
  }
  // What was not read of the request stays unread.
  const headers = new Headers(response.headers);
  if (bringsBody(outgoing.req) && !outgoing.req.complete) headers.append('Connection', 'close');
  outgoing.writeHead(response.status, Object.fromEntries(headers));
  if (!body) return ended(outgoing, options);
  outgoing.flushHeaders();
  const reader = body.getReader();
  const onClose = () => {
    // Of a stream that is over already there is nothing to cancel.
    reader.cancel().catch(() => {});
  };
  outgoing.once('close', onClose);
  const isLive = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
  for await (const piece of isLive ? readAhead(reader, () => outgoing.destroy()) : piecesOf(reader)) {
    for (let at = 0; at < piece.length; at += sliceBytes) {
      if (isGone(outgoing)) return false;
      const isTaken = outgoing.write(piece.subarray(at, at + sliceBytes));
      if (!isTaken && !(await taken(outgoing, 'drain', options))) return false;
    }
  }
  outgoing.off('close', onClose);
  return ended(outgoing, options);
}

const isGone = (outgoing: ServerResponse) => outgoing.destroyed || outgoing.closed;

type Reader = ReadableStreamDefaultReader<Uint8Array>;

async function* piecesOf(reader: Reader): AsyncGenerator<Uint8Array> {
  for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
}

/** Takes what there is at once, so that it is known how much waits. */
async function* readAhead(reader: Reader, onTooMuch: () => void): AsyncGenerator<Uint8Array> {
  const waiting = new PassThrough({ highWaterMark: maxWaiting });
  const reading = (async () => {
    for await (const piece of piecesOf(reader)) {
      if (waiting.writableNeedDrain) return onTooMuch();
      waiting.write(piece);
    }
  })().finally(() => waiting.end());
  // What it fails with is told below, once what came before is written.
  reading.catch(() => {});
  yield* waiting;
  await reading;
}

async function ended(outgoing: ServerResponse, options: WriteOptions): Promise<boolean> {
  const over = taken(outgoing, 'finish', options);
  outgoing.end();
  return over;
}

/** Waits until the client took what was written; sends one away that takes nothing. */
async function taken(
  outgoing: ServerResponse,
  event: 'drain' | 'finish',
  { clock, stallMs }: WriteOptions,
): Promise<boolean> {
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

/**
 * Server-sent events that are written while `work` runs, with signs of life between them. The work goes on without a reader;
 * `write` answers whether there still is one.
 */
export function eventStream(
  clock: Pick<Clock, 'after'>,
  work: (write: (piece: string | Uint8Array) => boolean) => Promise<void>,
): Response {
  const encoder = new TextEncoder();
  let isOver = false;
  let stop = () => {};
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (piece: string | Uint8Array) => {
        if (!isOver) controller.enqueue(typeof piece === 'string' ? encoder.encode(piece) : piece);
        return !isOver;
      };
      const beat = () => {
        stop = clock.after(keepAliveMs, () => void (write(': keepalive\n\n') && beat()));
      };
      const end = (close: () => void) => {
        stop();
        if (!isOver) close();
        isOver = true;
      };
      beat();
      // Not awaited: the stream is there for its reader while the work goes on.
      work(write).then(
        () => end(() => controller.close()),
        error => end(() => controller.error(error)),
      );
    },
    cancel() {
      isOver = true;
      stop();
    },
  });
  const headers = { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache, no-transform' };
  return new Response(body, { headers: { ...headers, 'X-Accel-Buffering': 'no' } });
}

/** The address that a request names; undefined for one that is no path, as proxies are asked. */
export function addressOf({ url }: IncomingMessage): URL | undefined {
  if (!url?.startsWith('/')) return undefined;
  return URL.parse(`http://localhost${url}`) ?? undefined;
}

/** A request in the web's form; `body` is what the guards let in. Its signal is aborted when the client is gone. */
export function toRequest(incoming: IncomingMessage, outgoing: ServerResponse, url: URL, body?: Uint8Array): Request {
  const gone = new AbortController();
  const onClose = () => {
    if (!outgoing.writableFinished) gone.abort();
  };
  if (outgoing.closed || outgoing.destroyed) onClose();
  else outgoing.once('close', onClose);
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (typeof value === 'string') headers.set(name, value);
  }
  const { method } = incoming;
  return new Request(url, { method, headers, signal: gone.signal, ...(body && { body: new Uint8Array(body) }) });
}

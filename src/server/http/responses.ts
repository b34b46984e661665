import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../core/ports.ts';
import { type Refusal, refusalFor } from '../access/caller.ts';
import { bytesWithin } from '../access/limits.ts';

/** The whole body; a refusal once it is larger than `limit` bytes, before the rest is read. */
export async function readBody(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  limit: number,
): Promise<{ bytes: Buffer } | Refusal> {
  const declared = Number(incoming.headers['content-length'] ?? 0);
  if (declared > limit) return tooLarge(limit);
  if (incoming.headers.expect !== undefined) outgoing.writeContinue();
  const bytes = await bytesWithin(incoming.iterator({ destroyOnReturn: false }), limit);
  return bytes ? { bytes } : tooLarge(limit);
}

function tooLarge(limit: number): Refusal {
  return refusalFor(413, 'size', `The body is larger than ${limit} bytes.`, {
    next: 'Send less in one request, or name files by their paths.',
  });
}

export interface WriteOptions {
  clock: Pick<Clock, 'after'>;
  /** Milliseconds in which a client takes nothing, after which it is sent away. */
  stallMs: number;
}

/** Bytes of a live stream that may wait for a client; one that falls further behind is sent away. */
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
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
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
  const waiting: Uint8Array[] = [];
  let size = 0;
  let isOver = false;
  let wake = () => {};
  const reading = (async () => {
    for await (const piece of piecesOf(reader)) {
      if (size > maxWaiting) return onTooMuch();
      waiting.push(piece);
      size += piece.length;
      wake();
    }
  })().finally(() => {
    isOver = true;
    wake();
  });
  // What it fails with is told below, once what came before is written.
  reading.catch(() => {});
  for (;;) {
    const piece = waiting.shift();
    if (piece) {
      yield piece;
      size -= piece.length;
    } else if (isOver) return await reading;
    else
      await new Promise<void>(resolve => {
        wake = resolve;
      });
  }
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

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../core/ports.ts';
import { type Refusal, refusalFor } from '../access/caller.ts';
import { bytesWithin, type Capacity } from '../access/limits.ts';

/** Bytes of a body that have to come in each so many milliseconds, or in the next: 1 KiB a second. */
const pace = { ms: 2_500, bytes: 2_560 };

/** Calls `onSlow` once what is counted by `came` is slower than that, unless `isPaused` says that nobody reads it now. */
export function watchUploadRate(clock: Pick<Clock, 'after'>, onSlow: () => void, isPaused = () => false) {
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

/** Refuses a body of over `limit` bytes, or a slow one, before the rest is read; rejects with OVER_CAPACITY where memory is short. */
export async function readBody(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  limit: number,
  { clock, memory }: { clock: Pick<Clock, 'after'>; memory: ReturnType<Capacity['reserve']> },
): Promise<{ bytes: Buffer } | Refusal> {
  let announced = Number(incoming.headers['content-length'] ?? 0);
  if (announced > limit) return tooLarge(limit);
  memory.more(announced);
  if (incoming.headers.expect !== undefined) outgoing.writeContinue();
  const { promise: slow, resolve } = Promise.withResolvers<Refusal>();
  const watch = watchUploadRate(clock, () => resolve(tooSlow));
  const came = (size: number) => {
    watch.came(size);
    announced -= size;
    if (announced < 0) memory.more(size);
  };
  const read = bytesWithin(incoming.iterator({ destroyOnReturn: false }), limit, came);
  try {
    return await Promise.race([read.then(bytes => (bytes ? { bytes } : tooLarge(limit))), slow]);
  } finally {
    // What still comes is not kept.
    announced = Number.POSITIVE_INFINITY;
    memory.release();
    watch.stop();
  }
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

/** The address that a request names; undefined for one that is no path, as proxies are asked. */
export const addressOf = ({ url }: IncomingMessage): URL | undefined =>
  (url?.startsWith('/') && URL.parse(`http://localhost${url}`)) || undefined;

/** A request in the web's form; `body` is what the guards let in. Its signal is aborted when the client is gone. */
export function toRequest(incoming: IncomingMessage, outgoing: ServerResponse, url: URL, body?: Uint8Array): Request {
  const gone = new AbortController();
  const onClose = () => {
    if (!outgoing.writableFinished) gone.abort();
  };
  if (outgoing.closed || outgoing.destroyed) onClose();
  else outgoing.once('close', onClose);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming.headers)) if (typeof value === 'string') headers[name] = value;
  const { method } = incoming;
  const request = new Request(url, { method, headers, ...(body && { body: new Uint8Array(body) }) });
  // The one that Node would make is aborted only while its request is in memory, and many who wait hold the signal alone.
  return Object.defineProperty(request, 'signal', { value: gone.signal });
}

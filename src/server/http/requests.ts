import type { IncomingMessage, ServerResponse } from 'node:http';
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

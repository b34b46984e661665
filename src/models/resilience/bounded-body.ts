import { setImmediate } from 'node:timers/promises';
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { badUpstream } from './errors.ts';

/** The most bytes of a body: an extracted book fits. A token of a stream may have an event of its own; an error begins with its cause. */
export const bodyLimits = { body: 64 * 1024 * 1024, stream: 256 * 1024 * 1024, error: 1024 * 1024 };

/** Handed on at once. */
const pieceBytes = 16_384;

/** Bodies of which a piece is handed on in one turn of the event loop: other calls have theirs between. */
const bodiesPerTurn = 4;

/** The first words do not wait for the later ones of other answers, where this is what comes before them. */
const early = { reads: 8, bytes: 4_096 };

/** The last turn that a body waits for, and how many do. Turns follow each other. */
const turns: { last?: Promise<void> | undefined; bodies: number } = { bodies: 0 };

function nextTurn(): Promise<void> {
  if (turns.last && turns.bodies++ < bodiesPerTurn) return turns.last;
  const turn = (turns.last ?? Promise.resolve()).then(async () => {
    await setImmediate();
    if (turns.last === turn) turns.last = undefined;
  });
  Object.assign(turns, { last: turn, bodies: 1 });
  return turn;
}

/** Once a stream tells a text, what comes within so many milliseconds is handed on together: whoever reads it sees no sooner. */
const gatherMs = 40;

/** What is handed on of the bytes that came; may hold some back until more come. */
interface Reading {
  read(bytes: Buffer, isLast: boolean): Buffer;
  /** Whether a text has begun, the next pieces of which may wait for each other. */
  tells(): boolean;
}

/** What feeds a body. */
export interface Feed {
  /** It may go on after a `push` that answered false. */
  resume(): void;
  cancel(reason?: unknown): void;
}

export type Feeding = Pick<BodyInTurns, 'push' | 'end'>;

/** How a body ended. `failure`: why it broke; with `drops`, what came before is not wanted either. */
export interface Ending {
  failure?: unknown;
  drops?: true;
}

/**
 * The answer with a body that is read no faster than it is used and in turns with all others; pieces and events that came
 * together are one. A body that is longer than any real one ends as bad upstream, a long error is cut, and the connection is closed.
 */
export function bounded({ status, statusText, headers, hasBody }: BoundedHead, feed: Feed): Bounded {
  const ok = status >= 200 && status < 300;
  const packing = headers.get('content-encoding')?.toLowerCase().replace(/^x-/, '') ?? '';
  const unpack = hasBody ? unpackers.get(packing)?.() : undefined;
  // They describe the bytes that came, and those are read.
  for (const name of ['content-length', 'transfer-encoding']) headers.delete(name);
  if (unpack) headers.delete('content-encoding');
  const [isStream, isEvents] = /(event-stream)|ndjson/i.exec(headers.get('content-type') ?? '') ?? [];
  const limit = ok ? (isStream ? bodyLimits.stream : bodyLimits.body) : bodyLimits.error;
  const reading: Reading = ok && isStream ? new JoinedEvents(isEvents ? 'events' : 'lines') : asTheyCome;
  const options = { limit, cuts: !ok, reading };
  const plain = new BodyInTurns(unpack ? unpackingFeed(unpack, feed) : feed, options);
  const feeding = unpack ? unpacked(unpack, feed, plain) : plain;
  const body = hasBody ? plain : undefined;
  // No Response may have the higher ones that servers invent.
  const head = { status: Math.min(status, 599), statusText, headers };
  const response = () => new Response(hasBody ? new ReadableStream(plain, { highWaterMark: 0 }) : null, head);
  return { answer: { ...head, body, response }, feeding };
}

const asTheyCome: Reading = { read: bytes => bytes, tells: () => false };

/** An answer whose body is read either by itself or as the Response that it is. */
export interface BoundedAnswer {
  status: number;
  statusText: string;
  headers: Headers;
  body: Pick<BodyInTurns, 'read' | 'cancel'> | undefined;
  response(): Response;
}

type Bounded = { answer: BoundedAnswer; feeding: Feeding };

interface BoundedHead extends Pick<BoundedAnswer, 'status' | 'statusText' | 'headers'> {
  hasBody: boolean;
}

interface BodyOptions {
  limit: number;
  cuts: boolean;
  reading: Reading;
}

const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = constants;

/** What came is unpacked as it comes, and may end early. Asked for is gzip; some send others all the same. */
const unpackers = new Map<string, () => ReturnType<typeof createGunzip>>([
  ['gzip', () => createGunzip({ flush: Z_SYNC_FLUSH, finishFlush: Z_SYNC_FLUSH })],
  ['deflate', () => createInflate({ flush: Z_SYNC_FLUSH, finishFlush: Z_SYNC_FLUSH })],
  ['br', () => createBrotliDecompress({ flush: BROTLI_OPERATION_FLUSH, finishFlush: BROTLI_OPERATION_FLUSH })],
]);

const unpackingFeed = (unpack: ReturnType<typeof createGunzip>, feed: Feed): Feed => ({
  resume: () => void unpack.resume(),
  cancel(reason) {
    unpack.destroy();
    feed.cancel(reason);
  },
});

/** The limit counts packed bytes. Node ends the process where a `DecompressionStream` is cancelled while it gives out a piece. */
function unpacked(unpack: ReturnType<typeof createGunzip>, feed: Feed, body: BodyInTurns): Feeding {
  let left = bodyLimits.stream;
  const fail = (failure: Error) => {
    body.end({ failure });
    body.cancel(failure);
  };
  unpack.on('data', (bytes: Buffer) => void (body.push(bytes) || unpack.pause()));
  unpack.on('drain', () => feed.resume());
  unpack.on('end', () => body.end({}));
  unpack.on('error', cause => fail(new TypeError('terminated', { cause })));
  function push(bytes: Uint8Array): boolean {
    left -= bytes.length;
    // There is packing in which nothing is packed.
    if (left < 0) fail(badUpstream(`The answer did not end after ${bodyLimits.stream} bytes.`, false));
    return unpack.destroyed || unpack.write(bytes);
  }
  function end(how: Ending): void {
    if (!('failure' in how)) {
      unpack.end();
      return;
    }
    unpack.destroy();
    body.end(how);
  }
  return { push, end };
}

const nothing = Buffer.alloc(0);

class BodyInTurns {
  readonly #feed: Feed;
  readonly #options: BodyOptions;
  /** What came and was not asked for yet, `#ahead` bytes of it; of what was, the rest. */
  #pieces: Uint8Array[] = [];
  #ahead = 0;
  #rest: Buffer = nothing;
  #left: number;
  #came = Promise.withResolvers<void>();
  /** What comes waits for more until then. */
  #pause: PromiseWithResolvers<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ending: Ending | undefined;
  #reads = 0;
  #isOver = false;

  constructor(feed: Feed, options: BodyOptions) {
    this.#feed = feed;
    this.#options = options;
    this.#left = options.limit;
  }

  end(how: Ending): void {
    if (!this.#ending && how.drops) [this.#pieces, this.#rest] = [[], nothing];
    this.#ending ??= how;
    this.#came.resolve();
    this.#enough();
  }

  /** Whether more may come before it is resumed. */
  push(bytes: Uint8Array): boolean {
    if (this.#ending) return true;
    const { length } = bytes;
    const { limit, cuts } = this.#options;
    const isTooLong = length > this.#left;
    this.#pieces.push(isTooLong ? bytes.subarray(0, this.#left) : bytes);
    this.#ahead += length;
    this.#left -= Math.min(this.#left, length);
    this.#came.resolve();
    if (isTooLong && !cuts) this.#stop({ failure: badUpstream(`The answer did not end after ${limit} bytes.`, false) });
    else if (this.#left === 0 && cuts) this.#stop({});
    if (this.#ahead >= pieceBytes) this.#enough();
    return this.#ahead < pieceBytes;
  }

  /** The next piece; undefined at the end. */
  async read(): Promise<Uint8Array | undefined> {
    const { reading } = this.#options;
    try {
      while (!this.#isOver) {
        if (this.#rest.length === 0) {
          await this.#came.promise;
          await this.#pause?.promise;
        }
        const isEarly = this.#reads++ < early.reads && this.#rest.length + this.#ahead < early.bytes;
        await (isEarly && !reading.tells() ? setImmediate() : nextTurn());
        if (this.#rest.length === 0) this.#take();
        const isLast = this.#ending !== undefined && this.#rest.length === 0;
        if (isLast && this.#ending && 'failure' in this.#ending) throw this.#ending.failure;
        this.#isOver = isLast;
        const out = reading.read(this.#rest.subarray(0, pieceBytes), isLast);
        this.#rest = this.#rest.subarray(pieceBytes);
        if (out.length === 0) continue;
        this.#gather();
        return out;
      }
      return undefined;
    } catch (error) {
      this.#feed.cancel(error);
      throw error;
    }
  }

  /** As the source of a stream. */
  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const piece = await this.read();
    if (piece) controller.enqueue(piece);
    else controller.close();
  }

  cancel(reason?: unknown): void {
    this.#feed.cancel(reason);
  }

  #take(): void {
    [this.#rest, this.#pieces, this.#ahead] = [Buffer.concat(this.#pieces), [], 0];
    if (this.#ending) return;
    this.#came = Promise.withResolvers();
    this.#feed.resume();
  }

  #stop(how: Ending): void {
    this.end(how);
    this.#feed.cancel(how.failure);
  }

  /** Lets what comes next wait for more, unless it is much or the last. */
  #gather(): void {
    if (!this.#options.reading.tells() || this.#ending || this.#rest.length > 0 || this.#ahead >= pieceBytes) return;
    this.#pause = Promise.withResolvers();
    this.#timer = setTimeout(this.#pause.resolve, gatherMs);
  }

  #enough(): void {
    clearTimeout(this.#timer);
    this.#pause?.resolve();
  }
}

/** No event is longer; nor is what keeps a connection alive between two of them. */
const maxEventBytes = 8 * 1024 * 1024;

/** Far more than a long answer has of them; each takes a package's time. */
const maxEventsWithoutText = 250_000;

/** In any dialect, an event that tells a piece of a text: what is before the piece, the piece, and what is behind it. */
const piece =
  /^((?:(?:event:.*\r?\n)?data: ?)?\{.*"(?:content|text|delta|thinking|reasoning|reasoning_content|partial_json|arguments)": ?")((?:[^"\\]|\\.)*)(".*\})$/;

/** Differs from event to event, and does not make a piece one of another text. */
const counts =
  /"(?:sequence_number|created|created_at|\w+TokenCount|\w+_tokens)": ?(?:\d+|"[^"]*")|"obfuscation": ?"[^"]*"/g;

/** What may be beside a piece: an event with another text is left alone. */
const beside =
  /"(?:id|item_id|type|object|model|modelVersion|responseId|provider|role|system_fingerprint|service_tier|finish_reason|native_finish_reason|severity)": ?"[^"\\]*"/g;

/** How events follow each other: what ends one, and what goes between two. */
const framings = { events: [/\r?\n\r?\n/, '\n\n'], lines: [/\r?\n/, '\n'] } as const;

/**
 * The same events, without comments, and with pieces of one text that came together as one: time goes by events. Holds back nothing
 * but the event under way.
 */
class JoinedEvents implements Reading {
  readonly #framing: (typeof framings)[keyof typeof framings];
  #held: string[] = [];
  #tail = '';
  /** Bytes since the last event, and events without a text. */
  #silent = 0;
  #bare = 0;
  #tells = false;

  constructor(framing: keyof typeof framings) {
    this.#framing = framings[framing];
  }

  tells(): boolean {
    return this.#tells;
  }

  read(bytes: Buffer, isLast: boolean): Buffer {
    const [end, glue] = this.#framing;
    // Each byte is one character.
    const text = bytes.toString('latin1');
    const near = this.#tail + text;
    this.#tail = near.slice(-2);
    this.#held.push(text);
    this.#silent += text.length;
    if (this.#silent > maxEventBytes) throw badUpstream(`No event came in ${this.#silent} bytes of the answer.`, false);
    if (!isLast && !end.test(near)) return nothing;
    const given = this.#held.join('').split(end);
    const rest = given.pop() ?? '';
    this.#held = [rest];
    if (isLast) given.push(rest);
    const events = this.#join(given);
    if (events.length === 0) return nothing;
    this.#silent = 0;
    return Buffer.from(events.join(glue) + (isLast && rest.trim() !== '' ? '' : glue), 'latin1');
  }

  #join(given: readonly string[]): string[] {
    const events: string[] = [];
    let [last, said]: [string | undefined, string] = [undefined, ''];
    for (const event of given) {
      const isShort = event.length <= 2_000;
      if (!/^[^:\s]/m.test(event)) continue;
      const [, before, words = '', behind] = (isShort && piece.exec(event)) || [];
      if (words === '' && ++this.#bare > maxEventsWithoutText)
        throw badUpstream(`The answer has more than ${maxEventsWithoutText} events without text.`, false);
      const same = before && `${before}\n${behind}`.replace(counts, '');
      this.#tells ||= words !== '';
      const goesOn: boolean = same !== undefined && same === last;
      said = goesOn ? said + words : words;
      if (goesOn) events[events.length - 1] = before + said + behind;
      else events.push(event);
      last = goesOn || (same && !/": ?"[^"\n]/.test(same.replace(beside, ''))) ? same : undefined;
    }
    return events;
  }
}

import { setImmediate } from 'node:timers/promises';
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { badUpstream } from './errors.ts';

/** The most bytes of a body: an extracted book fits. A token of a stream may have an event of its own; an error begins with its cause. */
export const most = { body: 64 * 1024 * 1024, stream: 256 * 1024 * 1024, error: 1024 * 1024 };

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

export type Feeding = ReturnType<typeof inTurns>['feeding'];

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
  const limit = ok ? (isStream ? most.stream : most.body) : most.error;
  const asTheyCome = { read: (bytes: Buffer) => bytes, tells: () => false };
  const reading: Reading = ok && isStream ? joinedEvents(isEvents ? 'events' : 'lines') : asTheyCome;
  const options = { limit, cuts: !ok, reading };
  const { feeding, ...pieces } = unpack ? unpacked(unpack, feed, options) : inTurns(feed, options);
  const body = hasBody ? pieces : undefined;
  // No Response may have the higher ones that servers invent.
  const head = { status: Math.min(status, 599), statusText, headers };
  return { answer: { ...head, body, response: () => new Response(body ? streamOf(body) : null, head) }, feeding };
}

/** An answer whose body is read either by itself or as the Response that it is. */
export interface BoundedAnswer {
  status: number;
  statusText: string;
  headers: Headers;
  body: Pick<ReturnType<typeof inTurns>, 'read' | 'cancel'> | undefined;
  response(): Response;
}

type Bounded = { answer: BoundedAnswer; feeding: Feeding };

function streamOf({ read, cancel }: Pick<ReturnType<typeof inTurns>, 'read' | 'cancel'>) {
  async function pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const piece = await read();
    if (piece) controller.enqueue(piece);
    else controller.close();
  }
  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 });
}

interface BoundedHead {
  status: number;
  statusText: string;
  headers: Headers;
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

/**
 * The limit counts the bytes that were packed. Not by a `DecompressionStream`: where one is given up while it gives out a piece, Node
 * ends the process.
 */
function unpacked(unpack: ReturnType<typeof createGunzip>, feed: Feed, options: BodyOptions) {
  let left = most.stream;
  const cancel = (reason?: unknown) => {
    unpack.destroy();
    feed.cancel(reason);
  };
  const { feeding, ...body } = inTurns({ resume: () => void unpack.resume(), cancel }, options);
  const fail = (failure: Error) => {
    feeding.end({ failure });
    cancel(failure);
  };
  unpack.on('data', (bytes: Buffer) => void (feeding.push(bytes) || unpack.pause()));
  unpack.on('drain', () => feed.resume());
  unpack.on('end', () => feeding.end({}));
  unpack.on('error', cause => fail(new TypeError('terminated', { cause })));
  function push(bytes: Uint8Array): boolean {
    left -= bytes.length;
    // There is packing in which nothing is packed.
    if (left < 0) fail(badUpstream(`The answer did not end after ${most.stream} bytes.`, false));
    return unpack.destroyed || unpack.write(bytes);
  }
  function end(how: Ending): void {
    if (!('failure' in how)) {
      unpack.end();
      return;
    }
    unpack.destroy();
    feeding.end(how);
  }
  return { ...body, feeding: { push, end } };
}

function inTurns(feed: Feed, { limit, cuts, reading }: BodyOptions) {
  let [pieces, rest, left, ahead]: [Uint8Array[], Buffer, number, number] = [[], Buffer.alloc(0), limit, 0];
  let came = Promise.withResolvers<void>();
  let [pause, enough]: [Promise<void> | undefined, () => void] = [undefined, () => {}];
  let ending: Ending | undefined;
  let [reads, isOver] = [0, false];

  function end(how: Ending): void {
    if (!ending && how.drops) [pieces, rest] = [[], Buffer.alloc(0)];
    ending ??= how;
    came.resolve();
    enough();
  }

  function stop(how: Ending): void {
    end(how);
    feed.cancel(how.failure);
  }

  /** Whether more may come before it is resumed. */
  function push(bytes: Uint8Array): boolean {
    if (ending) return true;
    const { length } = bytes;
    const isTooLong = length > left;
    pieces.push(isTooLong ? bytes.subarray(0, left) : bytes);
    ahead += length;
    left -= Math.min(left, length);
    came.resolve();
    if (isTooLong && !cuts) stop({ failure: badUpstream(`The answer did not end after ${limit} bytes.`, false) });
    else if (left === 0 && cuts) stop({});
    if (ahead >= pieceBytes) enough();
    return ahead < pieceBytes;
  }

  /** Lets what comes next wait for more, unless it is much or the last. */
  function gather(): void {
    if (!reading.tells() || ending || rest.length > 0 || ahead >= pieceBytes) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, gatherMs);
    pause = promise;
    enough = () => {
      clearTimeout(timer);
      resolve();
    };
  }

  /** The next piece; undefined at the end. */
  async function read(): Promise<Uint8Array | undefined> {
    try {
      while (!isOver) {
        if (rest.length === 0) {
          await came.promise;
          await pause;
        }
        const isEarly = reads++ < early.reads && rest.length + ahead < early.bytes && !reading.tells();
        await (isEarly ? setImmediate() : nextTurn());
        if (rest.length === 0) {
          [rest, pieces, ahead] = [Buffer.concat(pieces), [], 0];
          if (!ending) {
            came = Promise.withResolvers();
            feed.resume();
          }
        }
        const isLast = ending !== undefined && rest.length === 0;
        if (isLast && ending && 'failure' in ending) throw ending.failure;
        isOver = isLast;
        const out = reading.read(rest.subarray(0, pieceBytes), isLast);
        rest = rest.subarray(pieceBytes);
        if (out.length === 0) continue;
        gather();
        return out;
      }
      return undefined;
    } catch (error) {
      feed.cancel(error);
      throw error;
    }
  }

  return { read, cancel: (reason?: unknown) => feed.cancel(reason), feeding: { push, end } };
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
function joinedEvents(framing: keyof typeof framings): Reading {
  const [end, glue] = framings[framing];
  let [held, tail, silent, bare]: [string[], string, number, number] = [[], '', 0, 0];
  let tells = false;

  function join(given: readonly string[]): string[] {
    const events: string[] = [];
    let [last, said]: [string | undefined, string] = [undefined, ''];
    for (const event of given) {
      const isShort = event.length <= 2_000;
      if (!/^[^:\s]/m.test(event)) continue;
      const [, before, words = '', behind] = (isShort && piece.exec(event)) || [];
      if (words === '' && ++bare > maxEventsWithoutText)
        throw badUpstream(`The answer has more than ${maxEventsWithoutText} events without text.`, false);
      const same = before && `${before}\n${behind}`.replace(counts, '');
      tells ||= words !== '';
      const goesOn: boolean = same !== undefined && same === last;
      said = goesOn ? said + words : words;
      if (goesOn) events[events.length - 1] = before + said + behind;
      else events.push(event);
      last = goesOn || (same && !/": ?"[^"\n]/.test(same.replace(beside, ''))) ? same : undefined;
    }
    return events;
  }

  function read(bytes: Buffer, isLast: boolean): Buffer {
    // Each byte is one character.
    const text = bytes.toString('latin1');
    const near = tail + text;
    tail = near.slice(-2);
    held.push(text);
    silent += text.length;
    if (silent > maxEventBytes) throw badUpstream(`No event came in ${silent} bytes of the answer.`, false);
    if (!isLast && !end.test(near)) return Buffer.alloc(0);
    const all = held.join('');
    const given = all.split(end);
    const rest = given.pop() ?? '';
    held = [rest];
    const events = join(isLast ? [...given, rest] : given);
    if (events.length === 0) return Buffer.alloc(0);
    silent = 0;
    return Buffer.from(events.join(glue) + (isLast && rest.trim() !== '' ? '' : glue), 'latin1');
  }
  return { read, tells: () => tells };
}

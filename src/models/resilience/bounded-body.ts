import { setImmediate } from 'node:timers/promises';
import { isRecord } from '../../core/json.ts';
import { badUpstream } from './errors.ts';

/** The most bytes of a body: an extracted book fits. A token of a stream may have an event of its own; an error begins with its cause. */
const most = { body: 64 * 1024 * 1024, stream: 256 * 1024 * 1024, error: 1024 * 1024 };

/**
 * Where Node's fetch keeps what carries its requests: the proxy that was configured, else direct connections. Newer versions
 * put it under the first name.
 */
const dispatcherNames = [Symbol.for('undici.globalDispatcher.2'), Symbol.for('undici.globalDispatcher.1')] as const;

/** What Node's fetch gives a dispatcher to tell it of an answer. */
interface Handler {
  onHeaders?(status: number, headers: readonly unknown[], resume: () => void, ...more: unknown[]): unknown;
  /** False: no more for now. Absent since Node 26, whose parser bears an end in such a pause. */
  onData?(bytes: Uint8Array): unknown;
}

type Dispatch = (options: object, handler: Handler) => boolean;

const isDispatcher = (value: unknown): value is { dispatch: Dispatch } =>
  isRecord(value) && typeof value.dispatch === 'function';

const currentDispatcher = () =>
  dispatcherNames.map((name): unknown => Reflect.get(globalThis, name)).find(isDispatcher);

/**
 * Node 22 and 24 end the process where a connection ends while its answer has to wait, unless it was to stay open (nodejs/undici#5360).
 * So only an answer waits that says that it does. What comes of others unasked is kept, up to the most that a body may have.
 */
function unpaused(handler: Handler): Handler {
  if (!handler.onData) return handler;
  let [waits, ahead] = [false, 0];
  return {
    ...handler,
    onHeaders(status, headers, resume, ...more) {
      const [connection, ...length] = ['connection', 'transfer-encoding', 'content-length'].map(name =>
        headers.filter((_, index) => index % 2 === 1 && `${headers[index - 1]}`.toLowerCase() === name).join(),
      );
      waits = /^keep-alive$/i.test(`${connection}`) && /^(?:chunked,|,\d+)$/i.test(`${length}`);
      const read = () => {
        ahead = 0;
        resume();
      };
      return handler.onHeaders?.call(this, status, headers, read, ...more);
    },
    onData(bytes) {
      const takesMore = handler.onData?.call(this, bytes) !== false;
      if (takesMore || waits) return takesMore;
      ahead += bytes.length;
      if (ahead > most.body) throw badUpstream(`${ahead} bytes of the answer came before they could be read.`, false);
      return true;
    },
  };
}

/**
 * Node's fetch, whose answer is `bounded`. Node gives up on an answer without headers after 300 s and on one that rests for as long;
 * here the caller's signal decides, once it is connected: models that think and machines at home take longer. A proxy counts
 * whenever it was set up.
 */
export const boundedFetch: typeof fetch = async (input, init) => {
  // Only the first use of fetch makes the dispatcher; without one there is nothing to be patient with.
  if (!currentDispatcher()) void new Response();
  const carrier = currentDispatcher();
  const dispatch: Dispatch = (options, handler) =>
    carrier?.dispatch({ ...options, headersTimeout: 0, bodyTimeout: 0 }, unpaused(handler)) ?? true;
  return bounded(await fetch(input, Object.assign({ ...init }, carrier && { dispatcher: { dispatch } })));
};

/** Handed on at once. */
const pieceBytes = 16_384;

/** Bodies of which a piece is handed on in one turn of the event loop: other calls have theirs between. */
const bodiesPerTurn = 4;

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

/** What is handed on of the bytes that came; may hold some back until more come. */
type ReadBytes = (bytes: Buffer, isLast: boolean) => Buffer;

/**
 * The answer with a body that is read no faster than it is used and in turns with all others; pieces and events that came
 * together are one. A body that is longer than any real one ends as bad upstream, a long error is cut, and the connection is closed.
 */
function bounded(response: Response): Response {
  const { body, ok, status, statusText } = response;
  if (!body) return response;
  const headers = new Headers(response.headers);
  // They describe the bytes that came, and those are read.
  for (const name of ['content-length', 'content-encoding', 'transfer-encoding']) headers.delete(name);
  const [isStream, isEvents] = /(event-stream)|ndjson/i.exec(headers.get('content-type') ?? '') ?? [];
  const limit = ok ? (isStream ? most.stream : most.body) : most.error;
  const readBytes: ReadBytes = ok && isStream ? joinedEvents(isEvents ? 'events' : 'lines') : bytes => bytes;
  const source = inTurns(body.getReader(), { limit, cuts: !ok, readBytes });
  // No Response may have the higher ones that servers invent.
  return new Response(source, { status: Math.min(status, 599), statusText, headers });
}

function inTurns(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  { limit, cuts, readBytes }: { limit: number; cuts: boolean; readBytes: ReadBytes },
): ReadableStream<Uint8Array> {
  let [pieces, rest, left]: [Uint8Array[], Buffer, number] = [[], Buffer.alloc(0), limit];
  let [came, taken] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let end: { failure?: unknown } | undefined;

  async function readAhead(): Promise<void> {
    for (let ahead = 0, next = await reader.read(); !next.done; next = await reader.read()) {
      const { length } = next.value;
      if (length > left && !cuts) throw badUpstream(`The answer did not end after ${limit} bytes.`, false);
      ahead = pieces.push(next.value.subarray(0, left)) === 1 ? length : ahead + length;
      left -= Math.min(left, length);
      came.resolve();
      if (left === 0 && cuts) return reader.cancel();
      if (ahead >= pieceBytes) await taken.promise;
    }
  }

  async function pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    for (let [isLast, out] = [false, rest.subarray(0, 0)]; out.length === 0 && !isLast; ) {
      if (rest.length === 0) await came.promise;
      await nextTurn();
      if (rest.length === 0) {
        [rest, pieces] = [Buffer.concat(pieces), []];
        taken.resolve();
        [taken, came] = [Promise.withResolvers(), end ? came : Promise.withResolvers()];
      }
      isLast = end !== undefined && rest.length === 0;
      if (isLast && end && 'failure' in end) throw end.failure;
      out = readBytes(rest.subarray(0, pieceBytes), isLast);
      rest = rest.subarray(pieceBytes);
      if (out.length > 0) controller.enqueue(out);
      if (isLast) controller.close();
    }
  }

  const close = (error: unknown) => reader.cancel(error).catch(() => undefined);
  const ended = (how: { failure?: unknown }) => {
    end = how;
    came.resolve();
  };
  void readAhead().then(
    () => ended({}),
    failure => ended({ failure }),
  );
  return new ReadableStream(
    {
      pull: controller =>
        pull(controller).catch(error => {
          void close(error);
          throw error;
        }),
      cancel: close,
    },
    { highWaterMark: 0 },
  );
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
function joinedEvents(framing: keyof typeof framings): ReadBytes {
  const [end, glue] = framings[framing];
  let [held, tail, silent, bare]: [string[], string, number, number] = [[], '', 0, 0];

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
      const goesOn: boolean = same !== undefined && same === last;
      said = goesOn ? said + words : words;
      if (goesOn) events[events.length - 1] = before + said + behind;
      else events.push(event);
      last = goesOn || (same && !/": ?"[^"\n]/.test(same.replace(beside, ''))) ? same : undefined;
    }
    return events;
  }

  return (bytes, isLast) => {
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
  };
}

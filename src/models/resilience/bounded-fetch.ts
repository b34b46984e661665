import { isRecord } from '../../core/json.ts';
import { type BoundedAnswer, bounded, type Ending, type Feed, type Feeding, most } from './bounded-body.ts';
import { badUpstream } from './errors.ts';

/**
 * Where Node's fetch keeps what carries its requests: the proxy that was configured, else direct connections. Newer versions
 * put it under the first name.
 */
const dispatcherNames = [Symbol.for('undici.globalDispatcher.2'), Symbol.for('undici.globalDispatcher.1')] as const;

type Abort = (reason: unknown) => void;

interface Controller {
  abort: Abort;
  pause(): void;
  resume(): void;
}

interface Dispatcher {
  dispatch(options: object, handler: ReturnType<typeof handlerFor>): boolean;
}

const isDispatcher = (value: unknown): value is Dispatcher => isRecord(value) && typeof value.dispatch === 'function';

function currentDispatcher(): Dispatcher {
  const find = () => dispatcherNames.map((name): unknown => Reflect.get(globalThis, name)).find(isDispatcher);
  const found = find();
  if (found) return found;
  // Only the first use of fetch makes it.
  void new Response();
  const made = find();
  if (made) return made;
  throw new Error('this Node has no dispatcher for fetch');
}

/** What a piece of a body takes in addition to its bytes, in bytes. */
const pieceCost = 128;

const emptyStatuses: readonly number[] = [204, 205, 304];

type PlainRequest = Awaited<ReturnType<typeof plainRequest>>;

/** A request as it goes to the dispatcher; a form is packed, a stream read whole. */
async function plainRequest(url: string, init: RequestInit) {
  const { method = 'GET', headers: given = {}, body = null, signal } = init;
  const isPlain = typeof body === 'string' || body === null;
  const packed = isPlain ? undefined : new Response(body);
  const type = packed?.headers.get('content-type');
  const entries = given instanceof Headers || Array.isArray(given) ? given : Object.entries(given);
  const named = new Map<string, string>(type ? [['content-type', type]] : []);
  for (const [name, value] of entries)
    named.set(name.toLowerCase(), `${value}`.replace(/^[\t\r\n ]+|[\t\r\n ]+$/g, ''));
  const usual = { accept: '*/*', 'accept-encoding': 'gzip', 'user-agent': 'node' };
  const headers: Record<string, string> = { ...usual, ...Object.fromEntries(named) };
  const bytes = packed ? new Uint8Array(await packed.arrayBuffer()) : null;
  return { url: new URL(url), method: method.toUpperCase(), headers, body: isPlain ? body : bytes, signal };
}

/** Of the headers of a request, what another host may have that it was redirected to. */
const carried =
  /^(?:accept|accept-encoding|content-type|if-none-match|last-event-id|user-agent|mcp-(?:protocol-version|session-id))$/;

const maxRedirections = 20;

function redirected(request: PlainRequest, status: number, url: URL): PlainRequest {
  const isSame = url.origin === request.url.origin;
  const isRead = request.method !== 'HEAD' && (status === 303 || (status < 303 && request.method === 'POST'));
  const goes = (name: string) => (isSame || carried.test(name)) && !(isRead && name === 'content-type');
  const headers = Object.entries(request.headers).filter(([name]) => goes(name));
  const read = isRead && { method: 'GET', body: null };
  return { ...request, url, headers: Object.fromEntries(headers), ...read };
}

/**
 * fetch without the queues and promises that Node's has around each piece of a body, and with an answer that is `bounded`. Node gives
 * up on an answer without headers after 300 s and on one that rests for as long; here the caller's signal decides, once it is
 * connected: models that think and machines at home take longer. A proxy counts whenever it was set up. To another host, a
 * redirection takes no header along that could be a secret.
 */
export const boundedFetch: typeof fetch = async (input, init) => (await boundedAnswer(input, init)).response();

/** The same before it is made a Response, for who reads it at once. */
export async function boundedAnswer(...[input, init]: Parameters<typeof fetch>): Promise<BoundedAnswer> {
  const whole = input instanceof Request ? new Request(input, init) : undefined;
  let request = await plainRequest(whole?.url ?? String(input), whole ?? init ?? {});
  const { redirect } = init?.redirect ? init : (whole ?? {});
  for (let hops = 0; ; hops++) {
    const answer = await sent(request);
    const { status, headers, body } = answer;
    const isMoved = redirect !== 'manual' && [301, 302, 303, 307, 308].includes(status);
    const target = isMoved ? headers.get('location') : null;
    if (target === null) return answer;
    body?.cancel();
    const url = URL.parse(target, request.url.href);
    if (redirect === 'error' || hops === maxRedirections || !url || !/^https?:$/.test(url.protocol))
      throw new TypeError('fetch failed', { cause: new Error(`it was redirected to ${target.slice(0, 200)}`) });
    request = redirected(request, status, url);
  }
}

/** A stream with an event that says nothing, for a question that goes nowhere. */
export function rehearsedAnswer(): BoundedAnswer {
  const headers = new Headers({ 'content-type': 'text/event-stream' });
  const head = { status: 200, statusText: 'OK', headers, hasBody: true };
  const { answer, feeding } = bounded(head, { resume() {}, cancel() {} });
  feeding.push(Buffer.from('data: {}\n\n'));
  feeding.end({});
  return answer;
}

/** One request and its answer, whatever that is. Rejects with the signal's reason, or as fetch does where there is no answer. */
function sent({ url, method, headers, body, signal }: PlainRequest): Promise<BoundedAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<BoundedAnswer>();
  let feeding: Feeding | undefined;
  let abort: Abort | undefined;
  let over = false;
  let [waits, ahead] = [false, 0];

  const ended = (how: Ending = {}) => {
    over = true;
    signal?.removeEventListener('abort', giveUp);
    if (!feeding) reject(how.failure);
    feeding?.end(how);
  };
  const stop = (reason: unknown) => {
    ended({ failure: reason, drops: true });
    abort?.(reason);
  };
  const giveUp = () => stop(signal?.reason);
  const begin = (given: Abort) => {
    abort = given;
    if (over) given(signal?.reason ?? new Error('it is not wanted any more'));
  };
  const start: Answer['start'] = ({ status, statusText, entries }, goOn) => {
    if (status < 200) return;
    const answered = new Headers();
    for (const [name, value] of entries) answered.append(name, value);
    // Node 22 and 24 end the process where a connection ends while its answer has to wait, unless it was to stay open
    // (nodejs/undici#5360). So only an answer waits that says that it does. What comes of others unasked is kept, up to a limit.
    // By the texts as they came, which is how the parser reads them; it takes `proxy-connection` for the same as `connection`.
    const raw = (wanted: string) => entries.filter(([name]) => name.toLowerCase() === wanted).map(([, text]) => text);
    const [connection, ...length] = ['connection', 'transfer-encoding', 'content-length'].map(raw);
    const isKept = /^keep-alive$/i.test(`${connection}`) && raw('proxy-connection').length === 0;
    waits = isKept && /^(?:chunked,|,\d+)$/i.test(length.join());
    const feed: Feed = {
      resume: () => {
        ahead = 0;
        goOn();
      },
      cancel: reason => {
        if (!over) stop(reason ?? new Error('the rest is not wanted'));
      },
    };
    const hasBody = method !== 'HEAD' && !emptyStatuses.includes(status);
    const made = bounded({ status, statusText, headers: answered, hasBody }, feed);
    feeding = made.feeding;
    resolve(made.answer);
  };
  /** Whether more may come. */
  const take = (bytes: Uint8Array): boolean => {
    if (!feeding || feeding.push(bytes)) return true;
    ahead += bytes.length + pieceCost;
    if (waits || ahead <= most.body) return !waits;
    stop(badUpstream(`${ahead} bytes of the answer came before they could be read.`, false));
    return true;
  };
  const broken = (error: unknown) => {
    if (over) return;
    ended({ failure: new TypeError(feeding ? 'terminated' : 'fetch failed', { cause: error }) });
  };

  if (signal?.aborted) {
    giveUp();
    return promise;
  }
  signal?.addEventListener('abort', giveUp, { once: true });
  const { origin, pathname, search } = url;
  const options = { origin, path: pathname + search, method, headers, body, headersTimeout: 0, bodyTimeout: 0 };
  currentDispatcher().dispatch(options, handlerFor({ begin, start, take, ended, broken }));
  return promise;
}

type Entry = readonly [name: string, value: string];

/** What is done with an answer; `take` says whether more may come. */
interface Answer {
  begin(abort: Abort): void;
  /** `entries`: its headers as they came. */
  start(head: { status: number; statusText: string; entries: readonly Entry[] }, goOn: () => void): void;
  take(bytes: Uint8Array): boolean;
  ended(): void;
  broken(error: unknown): void;
}

/** What a dispatcher tells of an answer: in the names that undici has had since 7, and in those of 6 and before. */
const handlerFor = ({ begin, start, take, ended, broken }: Answer) => ({
  onRequestStart: (controller: Controller) => begin(reason => controller.abort(reason)),
  onResponseStart: (
    controller: Controller,
    status: number,
    headers: Record<string, string | string[]>,
    statusText = '',
  ) => {
    const all = Object.entries(headers).flatMap(([name, value]) => [value].flat().map(each => [name, each] as const));
    start({ status, statusText, entries: all }, () => controller.resume());
  },
  onResponseData: (controller: Controller, bytes: Uint8Array) => void (take(bytes) || controller.pause()),
  onResponseEnd: () => ended(),
  onResponseError: (_controller: unknown, error: unknown) => broken(error),
  onConnect: begin,
  onHeaders: (status: number, raw: readonly unknown[], goOn: () => void, statusText = '') => {
    const texts = raw.map(String);
    const all = texts.flatMap((name, at) => (at % 2 === 0 ? [[name, texts[at + 1] ?? ''] as const] : []));
    start({ status, statusText, entries: all }, goOn);
    return true;
  },
  onData: take,
  onComplete: () => ended(),
  onError: broken,
});

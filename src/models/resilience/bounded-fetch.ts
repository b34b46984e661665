import { hasSubscribers } from 'node:diagnostics_channel';
import { type Duplex, duplexPair } from 'node:stream';
import { isRecord } from '../../core/json.ts';
import { type BoundedAnswer, bodyLimits, bounded, type Ending, type Feeding } from './bounded-body.ts';
import { badUpstream } from './errors.ts';

/** Where Node's fetch keeps what carries its requests; newer versions use the first name. */
const dispatcherNames = [Symbol.for('undici.globalDispatcher.2'), Symbol.for('undici.globalDispatcher.1')] as const;

type Abort = (reason: unknown) => void;

interface Controller {
  abort: Abort;
  pause(): void;
  resume(): void;
}

interface Dispatcher {
  dispatch(options: object, handler: Handler): boolean;
}

const isDispatcher = (value: unknown): value is Dispatcher => isRecord(value) && typeof value.dispatch === 'function';

function currentDispatcher(): Dispatcher {
  const find = () => dispatcherNames.map((name): unknown => Reflect.get(globalThis, name)).find(isDispatcher);
  // Only the first use of fetch makes it.
  if (!find()) void new Response();
  const found = find();
  if (found) return found;
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

/**
 * An event that says nothing, as if a server had sent it, by a connection that leads nowhere: the first request to a vendor finds all of
 * its way run once. Where a proxy is used, or somebody watches the requests of this process, the event comes without a connection.
 */
export async function rehearsedAnswer(...[input, init]: Parameters<typeof fetch>): Promise<BoundedAnswer> {
  const request = await plainRequest(String(input), { ...init, signal: null });
  const { constructor: made } = currentDispatcher();
  if (made.name !== 'Agent' || hasSubscribers('undici:request:create')) {
    const handler = new Handler(request);
    handler.onHeaders(200, ['content-type', 'text/event-stream'], () => undefined);
    handler.onData(Buffer.from(silentEvent));
    handler.onComplete();
    return handler.answer.promise;
  }
  const connect = (_where: unknown, done: (failure: null, connection: Duplex) => void) => {
    const [here, there] = duplexPair();
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n';
    there.once('data', () => there.end(head + silentEvent));
    queueMicrotask(() => done(null, here));
  };
  const apart: Dispatcher = Reflect.construct(made, [{ connect }]);
  return sent(request, apart);
}

const silentEvent = 'data: {}\n\n';

/** One request and its answer, whatever that is. Rejects with the signal's reason, or as fetch does where there is no answer. */
function sent(request: PlainRequest, dispatcher = currentDispatcher()): Promise<BoundedAnswer> {
  const handler = new Handler(request);
  if (!request.signal?.aborted) {
    const { url, method, headers, body } = request;
    const options = { origin: url.origin, path: url.pathname + url.search, method, headers, body, ...patience };
    dispatcher.dispatch(options, handler);
  }
  return handler.answer.promise;
}

const patience = { headersTimeout: 0, bodyTimeout: 0 };

type Entry = readonly [name: string, value: string];

/** What a dispatcher tells of an answer: in the names that undici has had since 7, and in those of 6 and before. */
class Handler {
  readonly answer = Promise.withResolvers<BoundedAnswer>();
  readonly #method: string;
  readonly #signal: AbortSignal | null | undefined;
  readonly #giveUp = (): void => this.#stop(this.#signal?.reason);
  #feeding: Feeding | undefined;
  #abort: Abort | undefined;
  #goOn: (() => void) | undefined;
  #isOver = false;
  #waits = false;
  #ahead = 0;

  constructor({ method, signal }: PlainRequest) {
    this.#method = method;
    this.#signal = signal;
    if (signal?.aborted) this.#giveUp();
    else signal?.addEventListener('abort', this.#giveUp, { once: true });
  }

  onRequestStart(controller: Controller): void {
    this.onConnect(reason => controller.abort(reason));
  }

  onConnect(abort: Abort): void {
    this.#abort = abort;
    if (this.#isOver) abort(this.#signal?.reason ?? new Error('it is not wanted any more'));
  }

  onResponseStart(
    controller: Controller,
    status: number,
    headers: Record<string, string | string[]>,
    statusText = '',
  ): void {
    const entries: Entry[] = [];
    for (const [name, value] of Object.entries(headers))
      for (const each of typeof value === 'string' ? [value] : value) entries.push([name, each]);
    this.#start(status, statusText, entries, () => controller.resume());
  }

  onHeaders(status: number, raw: readonly unknown[], goOn: () => void, statusText = ''): true {
    const entries: Entry[] = [];
    for (let at = 0; at < raw.length; at += 2) entries.push([String(raw[at]), String(raw[at + 1] ?? '')]);
    this.#start(status, statusText, entries, goOn);
    return true;
  }

  onResponseData(controller: Controller, bytes: Uint8Array): void {
    if (!this.onData(bytes)) controller.pause();
  }

  /** Whether more may come. */
  onData(bytes: Uint8Array): boolean {
    if (!this.#feeding || this.#feeding.push(bytes)) return true;
    this.#ahead += bytes.length + pieceCost;
    if (this.#waits || this.#ahead <= bodyLimits.body) return !this.#waits;
    this.#stop(badUpstream(`${this.#ahead} bytes of the answer came before they could be read.`, false));
    return true;
  }

  onResponseEnd(): void {
    this.#end({});
  }

  onComplete(): void {
    this.onResponseEnd();
  }

  onResponseError(_controller: unknown, error: unknown): void {
    this.onError(error);
  }

  onError(error: unknown): void {
    if (this.#isOver) return;
    this.#end({ failure: new TypeError(this.#feeding ? 'terminated' : 'fetch failed', { cause: error }) });
  }

  /** The reader of the body goes on. */
  resume(): void {
    this.#ahead = 0;
    this.#goOn?.();
  }

  /** The reader of the body has enough. */
  cancel(reason?: unknown): void {
    if (!this.#isOver) this.#stop(reason ?? new Error('the rest is not wanted'));
  }

  #start(status: number, statusText: string, entries: readonly Entry[], goOn: () => void): void {
    if (status < 200) return;
    const headers = new Headers();
    for (const [name, value] of entries) headers.append(name, value);
    this.#goOn = goOn;
    this.#waits = saysItWaits(entries);
    const hasBody = this.#method !== 'HEAD' && !emptyStatuses.includes(status);
    const made = bounded({ status, statusText, headers, hasBody }, this);
    this.#feeding = made.feeding;
    this.answer.resolve(made.answer);
  }

  #stop(failure: unknown): void {
    this.#end({ failure, drops: true });
    this.#abort?.(failure);
  }

  #end(how: Ending): void {
    this.#isOver = true;
    this.#signal?.removeEventListener('abort', this.#giveUp);
    if (!this.#feeding) this.answer.reject(how.failure);
    this.#feeding?.end(how);
  }
}

/**
 * Node 22 and 24 end the process where a connection ends while its answer has to wait, unless it was to stay open
 * (nodejs/undici#5360). So only an answer waits that says that it does. What comes of others unasked is kept, up to a limit.
 * By the texts as they came, which is how the parser reads them; it takes `proxy-connection` for the same as `connection`.
 */
function saysItWaits(entries: readonly Entry[]): boolean {
  if (!/^keep-alive$/i.test(textsOf(entries, 'connection') ?? '')) return false;
  if (textsOf(entries, 'proxy-connection') !== undefined) return false;
  const length = `${textsOf(entries, 'transfer-encoding') ?? ''},${textsOf(entries, 'content-length') ?? ''}`;
  return /^(?:chunked,|,\d+)$/i.test(length);
}

/** Of several headers of one name, all texts with a comma between. */
function textsOf(entries: readonly Entry[], wanted: string): string | undefined {
  const texts = entries.flatMap(([name, text]) => (name.toLowerCase() === wanted ? [text] : []));
  return texts.length > 0 ? texts.join(',') : undefined;
}

import { asError, type ErrorDetails, interruptedError, isAppError } from '../../core/errors.ts';
import { isRecord, parsedJson, recordIn } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import { arrivedMethod, batchVersion, isId, readJson, refusedMessage } from '../mcp/lines.ts';
import type { Link, Loss, OpenLink } from './websocket-link.ts';

type MessageId = string | number;

/** What has to be known of a message to pass it on. */
type Seen =
  | { kind: 'request'; id: MessageId; method: string; params: Readonly<Record<string, unknown>> }
  | { kind: 'notification'; method: string; params: Readonly<Record<string, unknown>> }
  /** `null` where nobody could tell what it answers. */
  | { kind: 'answer'; id: MessageId | null; ok: boolean };

/** A request that a new connection is told again although the client has its answer. */
interface Repeated {
  id: MessageId;
  line: string;
}

export interface MessageForwarderOptions {
  open: OpenLink;
  /** Hands one message to the client, without a line end; `onTaken` is called once it was written. */
  toClient(line: string, onTaken?: () => void): void;
  /** One sentence for whoever reads the log of the host. */
  onRemark(text: string): void;
  clock: Pick<Clock, 'sleep' | 'monotonic'>;
}

/** After so many lost connections a request is not sent again: it may be what ends them. */
const maxLosses = 3;

/** A connection that lasted for less counts as one that failed. */
const steadyMs = 5_000;

const maxPauseMs = 5_000;

interface Request {
  line: string;
  method: string;
  uri: unknown;
  /** Connections that ended before its answer came. */
  losses: number;
}

/** Carries messages between one client and a daemon as they are, over as many connections as it takes. */
export class MessageForwarder {
  readonly #options: MessageForwarderOptions;
  readonly #end = new AbortController();
  /** How a 2025 client began, once it has got its answer, and its word that it is ready: a new connection has to hear it again. */
  #initialize: Repeated | undefined;
  #initialized: string | undefined;
  /** What the client subscribed to, by URI. */
  readonly #subscriptions = new Map<unknown, Repeated>();
  /** A connection that knows all that it has to. */
  #link: Link | undefined;
  #openedAt = 0;
  /** Connections that did not last, in a row. */
  #failures = 0;
  #connecting = false;
  #paused = false;
  #takesBatches = false;
  /** Pending after the end of the client's input, until all its requests are answered. */
  #answered: PromiseWithResolvers<void> | undefined;
  /** What the client was told of messages of his that are none. */
  readonly #remarked = new Set<string>();
  /** Requests of the client without an answer, in the order in which they came. */
  readonly #waiting = new Map<MessageId, Request>();
  /** Requests of the daemon that the client has not answered. */
  readonly #asked = new Set<MessageId>();
  /** Requests that were said to a new connection again although the client has their answers. */
  readonly #repeated = new Map<MessageId, (ok: boolean) => void>();

  constructor(options: MessageForwarderOptions) {
    this.#options = options;
  }

  /** Opens the first connection; rejects where no daemon can be had. */
  start(): Promise<void> {
    this.#connecting = true;
    return this.#establish(false).finally(() => {
      this.#connecting = false;
    });
  }

  /** Bytes that the daemon has not taken yet. */
  unsent(): number {
    return this.#link?.unsent() ?? 0;
  }

  /** The client takes nothing now. */
  pause(): void {
    this.#paused = true;
    this.#link?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#link?.resume();
  }

  /** The client is gone: what is under way goes on in the daemon as after any loss. */
  close(): void {
    this.#end.abort();
    this.#link?.close();
    this.#link = undefined;
  }

  /** The client sends nothing more. Resolves when its requests are answered. */
  endInput(): Promise<void> {
    this.#answered = Promise.withResolvers();
    for (const id of this.#asked) this.#failAsked(id);
    this.#settle();
    return this.#answered.promise;
  }

  #failAsked(id: MessageId): void {
    this.#asked.delete(id);
    this.#link?.send(failureAnswer(id, -32_000, 'The client closed its input before it answered.'));
  }

  /** A subscription is answered when its client ends it, and that is the end of its input. */
  #settle(): void {
    const open = [...this.#waiting.values()].some(({ method }) => method !== 'subscriptions/listen');
    if (!open) this.#answered?.resolve();
  }

  /** Takes a message of the client's. */
  take(line: string): void {
    const message = seen(line);
    const several = this.#takesBatches && !message ? membersOf(line) : [];
    if (several.length > 0) for (const each of several) this.take(each);
    else if (!message) this.#refuse(line);
    else this.#forward(message, line);
  }

  #forward(message: Seen, line: string): void {
    if (message.kind === 'request') {
      const { id, method, params } = message;
      this.#waiting.set(id, { line, method, uri: params.uri, losses: 0 });
      // What waits goes first over the next connection.
      if (!this.#link) void this.#connect();
    }
    if (message.kind === 'notification' && message.method === 'notifications/cancelled') {
      const { requestId } = message.params;
      // Nobody answers what is cancelled, and it is not asked for again.
      if (isId(requestId)) this.#waiting.delete(requestId);
    }
    if (message.kind === 'notification' && message.method === 'notifications/initialized') this.#initialized = line;
    // The question was one of an earlier connection; this one has not asked.
    if (message.kind === 'answer' && (message.id === null || !this.#asked.delete(message.id))) return;
    this.#link?.send(line);
  }

  #refuse(line: string): void {
    const { toClient, onRemark } = this.#options;
    const refused =
      parsedJson(line) === undefined
        ? failureAnswer(null, -32_700, 'The line is no JSON.')
        : failureAnswer(null, -32_600, 'This is no JSON-RPC message of MCP. Send one message at a time.');
    if (!this.#remarked.has(refused)) onRemark(`What the client sent could not be taken: ${refused}`);
    this.#remarked.add(refused);
    toClient(refused);
  }

  #fromDaemon(text: string) {
    const message = seen(text);
    let onTaken: (() => void) | undefined;
    if (message?.kind === 'request') {
      this.#asked.add(message.id);
      if (this.#answered) return this.#failAsked(message.id);
    }
    if (message?.kind === 'answer' && message.id !== null) {
      const { id, ok } = message;
      const settle = this.#repeated.get(id);
      this.#repeated.delete(id);
      if (settle) return settle(ok);
      const request = this.#waiting.get(id);
      // It was cancelled, or its answer came over an earlier connection.
      if (!request) return;
      this.#waiting.delete(id);
      if (ok) this.#remember(id, request, text);
      if (request.method === 'tools/call')
        onTaken = () => this.#link?.send(notification(arrivedMethod, { requestId: id }));
    }
    const line = message ? lineOf(text) : undefined;
    if (line === undefined) this.#options.onRemark('What the daemon sent is no JSON-RPC message and was left out.');
    else this.#options.toClient(line, onTaken);
    this.#settle();
  }

  /** Keeps what a request that succeeded says of the client for as long as he is there. */
  #remember(id: MessageId, { method, uri, line }: Request, answer: string): void {
    if (method === 'resources/subscribe') this.#subscriptions.set(uri, { id, line });
    if (method === 'resources/unsubscribe') this.#subscriptions.delete(uri);
    if (method !== 'initialize') return;
    this.#takesBatches = answer.includes(`"${batchVersion}"`);
    this.#initialize = { id, line };
    this.#initialized = undefined;
    this.#subscriptions.clear();
  }

  /** Opens a connection that knows what the one before knew, and sends it what has no answer yet. */
  async #establish(again: boolean): Promise<void> {
    const { open, clock } = this.#options;
    const gone = Promise.withResolvers<Loss>();
    const listener = { onText: (text: string) => this.#fromDaemon(text), onLost: gone.resolve };
    const link = await open(listener, again, this.#end.signal);
    if (this.#end.signal.aborted) return link.close();
    if (this.#paused) link.pause();
    const failed = gone.promise.then(loss => Promise.reject(linkLost(loss)));
    // It is heard of below, if it is anybody's business.
    failed.catch(() => {});
    try {
      await Promise.race([this.#introduce(link), failed]);
    } catch (error) {
      // Whatever still came over it would reach the client beside what comes over the next one.
      link.close();
      throw error;
    }
    for (const { line } of this.#waiting.values()) link.send(line);
    this.#link = link;
    this.#openedAt = clock.monotonic();
    gone.promise.then(loss => this.#lost(link, loss));
  }

  async #introduce(link: Link): Promise<void> {
    if (!this.#initialize) return;
    if (!(await this.#repeat(link, this.#initialize))) throw linkLost({ why: 'it refuses the client', refused: true });
    if (this.#initialized !== undefined) link.send(this.#initialized);
    await Promise.all([...this.#subscriptions.values()].map(each => this.#repeat(link, each)));
  }

  #repeat(link: Link, { id, line }: Repeated): Promise<boolean> {
    return new Promise(resolve => {
      this.#repeated.set(id, resolve);
      link.send(line);
    });
  }

  async #connect(): Promise<void> {
    if (this.#connecting) return;
    this.#connecting = true;
    const { clock } = this.#options;
    const { signal } = this.#end;
    try {
      do {
        if (this.#failures > 0) await clock.sleep(Math.min(100 * 2 ** this.#failures, maxPauseMs), signal);
        await this.#establish(true).catch(error => this.#notEstablished(error));
      } while (!this.#link && this.#waiting.size > 0 && !signal.aborted);
    } catch (error) {
      // The pause ends with the client.
      if (!signal.aborted) throw error;
    } finally {
      this.#connecting = false;
    }
  }

  #notEstablished(error: unknown): void {
    this.#repeated.clear();
    if (this.#end.signal.aborted) return;
    this.#failures += 1;
    const { class: what, retryable, next = '' }: Partial<ErrorDetails> = isAppError(error) ? error.details : {};
    const mayPass = what === 'lost' && retryable && this.#failures < maxLosses;
    if (!mayPass) this.#fail(`${asError(error).message} ${next}`.trim(), () => true);
  }

  #lost(link: Link, { why, refused }: Loss): void {
    if (this.#link !== link) return;
    this.#link = undefined;
    const { clock, toClient, onRemark } = this.#options;
    onRemark(`The connection to the daemon is lost: ${why}.`);
    const isShort = clock.monotonic() - this.#openedAt < steadyMs;
    this.#failures = isShort ? this.#failures + 1 : 0;
    const reason = 'the connection to the daemon was lost';
    for (const requestId of this.#asked) toClient(notification('notifications/cancelled', { requestId, reason }));
    this.#asked.clear();
    for (const request of this.#waiting.values()) {
      // What listens for as long as its client is there has seen many daemons end that it did nothing to.
      if (isShort || request.method !== 'subscriptions/listen') request.losses += 1;
    }
    const isHopeless = ({ losses }: Request) => refused || losses >= maxLosses;
    this.#fail(`The connection to the daemon was lost: ${why}. See the log of the daemon.`, isHopeless);
    if (this.#waiting.size > 0 || this.#subscriptions.size > 0) void this.#connect();
  }

  /** Answers requests that nobody else will. */
  #fail(why: string, isMeant: (request: Request) => boolean): void {
    const failed = [...this.#waiting].filter(([, request]) => isMeant(request));
    if (failed.length > 0) this.#options.onRemark(why);
    for (const [id] of failed) {
      this.#waiting.delete(id);
      this.#options.toClient(failureAnswer(id, -32_000, why));
    }
    this.#settle();
  }
}

/** A connection was lost before it could be used. */
const linkLost = ({ why, refused }: Loss) =>
  interruptedError(`The connection to the daemon was lost: ${why}.`, { class: 'lost', retryable: !refused });

/** Undefined for what is no single JSON-RPC message with an id that can be answered. */
function seen(text: string): Seen | undefined {
  const message = parsedJson(text);
  if (!isRecord(message)) return undefined;
  const { id, method } = message;
  const params = recordIn(message.params);
  if (typeof method === 'string' && !Object.hasOwn(message, 'id')) return { kind: 'notification', method, params };
  if (typeof method === 'string') return isId(id) ? { kind: 'request', id, method, params } : undefined;
  const ok = Object.hasOwn(message, 'result');
  if (!ok && !Object.hasOwn(message, 'error')) return undefined;
  return isId(id) || id === null ? { kind: 'answer', id, ok } : undefined;
}

function membersOf(text: string): string[] {
  const json = readJson(text);
  return 'value' in json && Array.isArray(json.value) ? json.value.map(each => JSON.stringify(each)) : [];
}

/** A message as one line, for whoever reads lines; undefined where it can't be one. */
function lineOf(text: string): string | undefined {
  if (!/[\r\n]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    // It is nested too deep to be written again.
    return undefined;
  }
}

const notification = (method: string, params: object): string => JSON.stringify({ jsonrpc: '2.0', method, params });

const failureAnswer = (id: MessageId | null, code: number, message: string): string =>
  JSON.stringify(refusedMessage(id, code, message));

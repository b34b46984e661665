import type { JSONRPCMessage, RequestId, Transport } from '@modelcontextprotocol/server';
import { asError } from '../../core/errors.ts';
import { recordIn } from '../../core/json.ts';
import type { AnswerEarly } from './early-answers.ts';
import type { RefusedMessage, stillRunning } from './lines.ts';
import { batchVersion, isId, lineOf, probeReader, readJson, refusedMessage, textSplitter } from './lines.ts';
import type { McpOptions } from './mcp.ts';
import type { readMessages } from './messages.ts';

export interface StdioStreams {
  input: NodeJS.ReadableStream;
  output: NodeJS.WritableStream;
  /** Bytes of the longest message. */
  maxBytes: number;
  /** What it does not answer is kept until `serve`. */
  early?: AnswerEarly | undefined;
  /** Called with the first message that is kept and wants an answer. */
  onWanted?(line: string): void;
  /** Called after an answer with which clients often content themselves. */
  onIdle?(): void;
}

/** Characters of answers that may wait for a client who does not read, before it is no longer listened to. */
const maxWaiting = 16_777_216;

/**
 * JSON-RPC, one message a line; what is none is answered, and told once a kind. It is over when the client reads no more, or when its
 * input has ended and all requests that were accepted are answered.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport['onmessage'];
  readonly #streams: StdioStreams;
  readonly #reported = new Set<string>();
  readonly #split: (piece: Buffer) => void;
  /** Requests of the client without an answer. */
  readonly #accepted = new Set<RequestId>();
  /** Requests to the client without an answer. */
  readonly #asked = new Set<RequestId>();
  /** What came before there is somebody to serve it; undefined from then on. */
  #kept: string[] | undefined = [];
  #read: typeof readMessages | undefined;
  #isWanted = false;
  /** A request whose answer was written before the server gives it. */
  #answeredEarly: RequestId | undefined;
  #started = false;
  #takesBatches = false;
  readonly #inputEnded = new AbortController();
  #stopProbes: (() => void) | undefined;
  #closed = false;
  /** Pending while the output takes nothing. */
  #blocked: PromiseWithResolvers<void> | undefined;
  /** Characters written since then. */
  #waiting = 0;

  constructor(streams: StdioStreams) {
    this.#streams = streams;
    this.#split = textSplitter(streams.maxBytes, {
      onText: text => this.#take(text),
      onRefused: refused => this.#refuse(refused),
      onLong: why => this.#reportOnce(why),
    });
  }

  /** Hands over what was kept, and from now on each message as it comes. */
  serve(read: typeof readMessages): void {
    const kept = this.#kept ?? [];
    this.#read = read;
    this.#kept = undefined;
    for (const text of kept) this.#pass(text, read);
    this.#closeWhenAnswered();
  }

  /** Answers all requests with this error: nobody is going to serve them. */
  fail(message: string): void {
    this.serve(line => {
      const json = readJson(line);
      for (const each of 'value' in json ? [json.value].flat() : []) {
        const { id, method } = recordIn(each);
        if (typeof method === 'string' && isId(id) && !this.#closed && id !== this.#answeredEarly)
          this.#write(refusedMessage(id, -32_603, message)).catch(() => undefined);
      }
      return { read: [], refused: [] };
    });
  }

  async start(): Promise<void> {
    if (this.#started) return;
    this.#started = true;
    const { input, output } = this.#streams;
    input.on('data', this.#onData).on('error', this.#onInputError);
    input.on('end', this.#onEnd).on('close', this.#onEnd);
    output.on('error', this.#onOutputError).on('drain', this.#onDrain);
    // What ended before tells nobody any more.
    if ('readableEnded' in input && input.readableEnded) setImmediate(this.#onEnd);
  }

  setProtocolVersion = (version: string): void => {
    this.#takesBatches = version === batchVersion;
  };

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#closed) throw new Error('The connection is closed.');
    if (!('method' in message) && message.id !== undefined && message.id === this.#answeredEarly) {
      this.#answeredEarly = undefined;
      return this.#done(message.id);
    }
    const isRequest = 'method' in message && 'id' in message;
    if (isRequest) this.#asked.add(message.id);
    if (isRequest && this.inputEnded.aborted) return void setImmediate(() => this.#failAsked());
    const written = this.#write(message);
    // Not when it is read: a client that reads nothing must not keep the connection.
    if (!('method' in message) && message.id !== undefined) this.#done(message.id);
    await written;
  }

  /** Aborted when the client can send nothing more. */
  readonly inputEnded: AbortSignal = this.#inputEnded.signal;

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#kept = [];
    this.#stopProbes?.();
    const { input, output } = this.#streams;
    input.off('data', this.#onData).off('error', this.#onInputError);
    input.off('end', this.#onEnd).off('close', this.#onEnd);
    output.off('drain', this.#onDrain);
    // The listener of the output's errors stays: what was written before may still fail, and that must end nobody.
    if (input.listenerCount('data') === 0) input.pause();
    this.#blocked?.reject(new Error('The connection is closed.'));
    this.onclose?.();
  }

  readonly #onData = (piece: Buffer | string): void => {
    this.#split(typeof piece === 'string' ? Buffer.from(piece) : piece);
  };

  readonly #onEnd = (): void => {
    if (this.inputEnded.aborted || this.#closed) return;
    // Scripts often leave out the end of their last line.
    this.#split(Buffer.from('\n'));
    this.#inputEnded.abort();
    this.#failAsked();
    this.#stopProbes = probeReader(message => void this.#write(message).catch(() => undefined));
    this.#closeWhenAnswered();
  };

  /** What the client was asked has no answer any more. */
  #failAsked(): void {
    const error = { code: -32_000, message: 'The client closed its input before it answered.' };
    const ids = [...this.#asked];
    this.#asked.clear();
    for (const id of ids) this.onmessage?.({ jsonrpc: '2.0', id, error });
  }

  #done(id: RequestId): void {
    this.#accepted.delete(id);
    this.#closeWhenAnswered();
  }

  #closeWhenAnswered(): void {
    const isAnswered = () => this.inputEnded.aborted && this.#accepted.size === 0 && !(this.#kept && this.#isWanted);
    // Answers of one moment are written together; the last one is on its way then.
    if (isAnswered()) setImmediate(() => isAnswered() && void this.close());
  }

  readonly #onInputError = (error: Error): void => this.onerror?.(error);

  readonly #onOutputError = (error: Error): void => {
    if (this.#closed) return;
    this.onerror?.(error);
    void this.close();
  };

  readonly #onDrain = (): void => {
    this.#blocked?.resolve();
    this.#blocked = undefined;
    if (this.#waiting > maxWaiting) this.#streams.input.resume();
    this.#waiting = 0;
  };

  #take(line: string): void {
    if (this.#closed) return;
    if (this.#read) this.#pass(line, this.#read);
    else this.#takeEarly(line);
  }

  #takeEarly(line: string): void {
    const { early, onWanted, onIdle } = this.#streams;
    const found = early?.(line);
    if (!found || found.isKept) this.#kept?.push(line);
    this.#isWanted ||= !found;
    if (found?.revision !== undefined) this.setProtocolVersion(found.revision);
    this.#answeredEarly ??= found?.repeats;
    if (found?.text !== undefined) this.#writeLine(found.text).catch(() => undefined);
    if (!found) onWanted?.(line);
    else if (!found.isKept) onIdle?.();
  }

  #pass(text: string, readWith: typeof readMessages): void {
    const { read, refused } = readWith(text, this.#takesBatches);
    for (const each of refused) this.#refuse(each);
    for (const each of read) {
      this.#see(each);
      this.onmessage?.(each);
    }
  }

  #see(message: JSONRPCMessage): void {
    if (!('method' in message)) {
      if (message.id !== undefined) this.#asked.delete(message.id);
    } else if ('id' in message) {
      // A subscription is answered when its client ends it, and that is now.
      if (message.method !== 'subscriptions/listen') this.#accepted.add(message.id);
    } else if (message.method === 'notifications/cancelled') {
      const id = message.params?.requestId;
      if (isId(id)) this.#done(id);
    }
  }

  #refuse(refused: RefusedMessage): void {
    if (this.#closed) return;
    this.#reportOnce(refused.error.message);
    // Whoever sends what is none and reads nothing must not fill the memory with answers.
    if (this.#blocked && refused.id === null) return;
    // Whether it arrives makes no difference.
    this.#write(refused).catch(() => undefined);
  }

  #reportOnce(what: string): void {
    if (this.#reported.has(what)) return;
    this.#reported.add(what);
    this.onerror?.(new Error(`What the client sent could not be taken: ${what}`));
  }

  #write(message: JSONRPCMessage | RefusedMessage | typeof stillRunning): Promise<void> {
    return this.#writeLine(JSON.stringify(message));
  }

  #writeLine(json: string): Promise<void> {
    const line = lineOf(json);
    const { input, output } = this.#streams;
    if (output.write(line)) return Promise.resolve();
    this.#waiting += line.length;
    // Little enough that a client which sends much before it reads is not waited for while it waits for us.
    if (this.#waiting > maxWaiting) input.pause();
    if (!this.#blocked) {
      this.#blocked = Promise.withResolvers();
      // Nobody may be waiting for it.
      this.#blocked.promise.catch(() => undefined);
    }
    return this.#blocked.promise;
  }
}

/** An idle client is expected to call before long: what calls need is loaded after this many milliseconds. */
const idleMs = 100;

/**
 * Serves one client over standard input and output, in whichever era. `open` makes what answers all that `early` leaves: with the first
 * such message (told when it calls a tool) or while the client is idle; then `warm` loads what the first call needs.
 */
export function openStdio(
  open: (isCalled: boolean) => Promise<McpOptions>,
  { warm, ...streams }: StdioStreams & { warm?(): Promise<void> },
  onError: (error: Error) => void,
) {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  let opening: ReturnType<typeof serveOver> | undefined;
  const serve = (line = '') => {
    opening ??= serveOver(transport, () => open(line.includes('"tools/call"')), onError);
    // Whoever opens hears of it too.
    opening.catch((error: unknown) => transport.fail(asError(error).message));
    return opening;
  };
  // A call that is there before loads what it needs by itself.
  const load = () =>
    opening ??
    serve()
      .then(warm)
      .catch(() => undefined);
  const onIdle = () => void setTimeout(load, idleMs).unref();
  const transport = new StdioTransport({ ...streams, onWanted: serve, onIdle });
  transport.onclose = resolve;
  transport.onerror = onError;
  void transport.start();
  return {
    /** Resolves when the connection is over: the client ended it or no longer reads. */
    closed,
    async close() {
      await transport.close();
      await (await opening?.catch(() => undefined))?.close();
    },
  };
}

async function serveOver(transport: StdioTransport, open: () => Promise<McpOptions>, onError: (error: Error) => void) {
  const options = await open();
  const { serveConnection } = await import('./mcp.ts');
  const { readMessages } = await import('./messages.ts');
  const { onclose } = transport;
  const handle = serveConnection(transport, options, onError, transport);
  const { onclose: onEnd } = transport;
  transport.onclose = () => {
    onEnd?.();
    onclose?.();
  };
  transport.serve(readMessages);
  return handle;
}

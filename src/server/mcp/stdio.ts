import { isUtf8 } from 'node:buffer';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { type Listening, listeningOn, type WatchedConnection, watchConnection } from './connection.ts';
import { createMcpServer, type McpOptions } from './mcp.ts';
import {
  batchVersion,
  idAtEdges,
  lineSplitter,
  type RefusedMessage,
  readMessages,
  refusedMessage,
} from './messages.ts';

export interface StdioStreams {
  input: NodeJS.ReadableStream;
  output: NodeJS.WritableStream;
  /** Bytes of the longest message. */
  maxBytes: number;
}

/** Characters of answers that may wait for a client who does not read, before it is no longer listened to. */
const maxWaiting = 16_777_216;

/**
 * JSON-RPC, one message a line. What is none is answered, as the protocol has it, and told once a kind; the connection goes on.
 * It is over with the client's end of it, or when he reads no more.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport['onmessage'];
  readonly #streams: StdioStreams;
  readonly #reported = new Set<string>();
  readonly #split: (piece: Buffer) => void;
  #takesBatches = false;
  #closed = false;
  /** Pending while the output takes nothing. */
  #blocked: PromiseWithResolvers<void> | undefined;
  /** Characters written since then. */
  #waiting = 0;

  constructor(streams: StdioStreams) {
    this.#streams = streams;
    const { maxBytes } = streams;
    const tooLong = `A message may have ${maxBytes} bytes; name files by their paths instead of sending their text.`;
    this.#split = lineSplitter(maxBytes, {
      onLine: line => this.#take(line),
      onLong: () => this.#reportOnce(tooLong),
      onLongEnd: ({ head, tail }) => this.#refuse(refusedMessage(idAtEdges(head, tail), -32_600, tooLong)),
    });
  }

  async start(): Promise<void> {
    const { input, output } = this.#streams;
    input.on('data', this.#onData);
    input.on('error', this.#onInputError);
    input.on('end', this.#onEnd);
    input.on('close', this.#onEnd);
    output.on('error', this.#onOutputError);
    output.on('drain', this.#onDrain);
    // What ended before tells nobody any more.
    if ('readableEnded' in input && input.readableEnded) setImmediate(this.#onEnd);
  }

  setProtocolVersion = (version: string): void => {
    this.#takesBatches = version === batchVersion;
  };

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#closed) throw new Error('The connection is closed.');
    await this.#write(message);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const { input, output } = this.#streams;
    input.off('data', this.#onData);
    input.off('error', this.#onInputError);
    input.off('end', this.#onEnd);
    input.off('close', this.#onEnd);
    output.off('drain', this.#onDrain);
    // The listener of the output's errors stays: what was written before may still fail, and that must end nobody.
    if (input.listenerCount('data') === 0) input.pause();
    this.#blocked?.reject(new Error('The connection is closed.'));
    this.onclose?.();
  }

  readonly #onData = (piece: Buffer | string): void => {
    this.#split(typeof piece === 'string' ? Buffer.from(piece) : piece);
  };

  readonly #onEnd = (): void => void this.close();

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

  #take(line: Buffer): void {
    if (this.#closed) return;
    // Some write a mark before their first letter.
    const text = line.toString('utf8').replace(/^\uFEFF/, '');
    if (text.trim() === '') return;
    const noText = { read: [], refused: [refusedMessage(null, -32_700, 'The line is no UTF-8.')] };
    const { read, refused } = isUtf8(line) ? readMessages(text, this.#takesBatches) : noText;
    for (const each of refused) this.#refuse(each);
    for (const each of read) this.onmessage?.(each);
  }

  #refuse(refused: RefusedMessage): void {
    this.#reportOnce(refused.error.message);
    // Whoever sends what is none and reads nothing must not fill the memory with answers.
    if (this.#blocked && refused.id === null) return;
    // Whether it arrives makes no difference.
    if (!this.#closed) this.#write(refused).catch(() => undefined);
  }

  #reportOnce(what: string): void {
    if (this.#reported.has(what)) return;
    this.#reported.add(what);
    this.onerror?.(new Error(`What the client sent could not be taken: ${what}`));
  }

  #write(message: JSONRPCMessage | RefusedMessage): Promise<void> {
    const { input, output } = this.#streams;
    const line = `${JSON.stringify(message)}\n`;
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

/** Serves one client over standard input and output, in whichever era it speaks. */
export function openStdio(options: McpOptions, streams: StdioStreams, onError: (error: Error) => void) {
  const { input } = streams;
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const transport = new StdioTransport(streams);
  // Assigned below, before a client can have sent anything.
  let listening: Listening | undefined;
  let connection: WatchedConnection | undefined;
  // Before the transport, which ends all requests then: a client that is gone has not cancelled them.
  const onEnd = () => {
    connection?.lose();
    resolve();
  };
  input.once('end', onEnd);
  input.once('close', onEnd);
  const handle = serveStdio(({ era }) => createMcpServer({ ...options, listening, connection }, era), {
    transport,
    onerror: onError,
  });
  listening = listeningOn(transport);
  connection = watchConnection(transport);
  // A client that reads no more is noticed by the transport alone: its end of our input may stay open.
  const { onclose } = transport;
  transport.onclose = () => {
    onclose?.();
    resolve();
  };
  return {
    /** Resolves when the connection is over: the client ended it or no longer reads. */
    closed,
    close() {
      connection.lose();
      return handle.close();
    },
  };
}

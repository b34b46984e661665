import type { Transformer } from 'node:stream/web';
import { createParser } from 'eventsource-parser';

/** What a transformer reads. */
type Source<Piece> = { getReader(): Pick<ReadableStreamDefaultReader<Piece>, 'read' | 'cancel'> };

/**
 * Stands for `stream.pipeThrough(new TransformStream(transformer))` in the vendors' packages as they are built into this one. A
 * pipe has a queue on both sides and several promises a piece; this reads a piece when one is wanted.
 */
export const transformed = <In, Out>(stream: ReadableStream<In> | Source<In>, transformer: Transformer<In, Out>) =>
  new ReadableStream<Out>(new Pass(stream.getReader(), transformer), { highWaterMark: 0 });

/** What the new stream takes its pieces from, and what the transformer writes to. */
class Pass<In, Out> implements TransformStreamDefaultController<Out> {
  /** Nothing is made ahead. V8 keeps a getter, and all that it can reach, until it collects the old generation. */
  readonly desiredSize = 0;
  readonly #reader: ReturnType<Source<In>['getReader']>;
  readonly #transformer: Transformer<In, Out>;
  #controller: ReadableStreamDefaultController<Out> | undefined;
  #count = 0;
  #isOver = false;

  constructor(reader: ReturnType<Source<In>['getReader']>, transformer: Transformer<In, Out>) {
    this.#reader = reader;
    this.#transformer = transformer;
  }

  start(controller: ReadableStreamDefaultController<Out>): void | PromiseLike<void> {
    this.#controller = controller;
    return this.#transformer.start?.(this);
  }

  async pull(): Promise<void> {
    try {
      for (const before = this.#count; this.#count === before && !this.#isOver; ) {
        const { done, value } = await this.#reader.read();
        if (this.#isOver) return;
        if (!done) await this.#transformer.transform?.(value, this);
        else {
          await this.#transformer.flush?.(this);
          this.terminate();
        }
      }
    } catch (error) {
      this.error(error);
    }
  }

  cancel(reason?: unknown): Promise<void> {
    this.#isOver = true;
    return this.#close(reason);
  }

  enqueue(piece: Out): void {
    this.#count++;
    this.#controller?.enqueue(piece);
  }

  error(reason?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#controller?.error(reason);
    void this.#close(reason);
  }

  terminate(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#controller?.close();
    void this.#close();
  }

  #close(reason?: unknown): Promise<void> {
    return this.#reader.cancel(reason).catch(() => undefined);
  }
}

/** The same for the events in a stream, as `TextDecoderStream` and `EventSourceParserStream` of `eventsource-parser` tell them. */
export const transformedEvents = <Out>(stream: ReadableStream<Uint8Array>, inner: Transformer<{ data: string }, Out>) =>
  transformed<Uint8Array, Out>(stream, new Events(inner));

class Events<Out> implements Transformer<Uint8Array, Out> {
  readonly #decoder = new TextDecoder();
  readonly #inner: Transformer<{ data: string }, Out>;
  readonly #events: { data: string }[] = [];
  readonly #parser = createParser({ onEvent: event => void this.#events.push(event) });

  constructor(inner: Transformer<{ data: string }, Out>) {
    this.#inner = inner;
  }

  async transform(bytes: Uint8Array, sink: TransformStreamDefaultController<Out>): Promise<void> {
    this.#parser.feed(this.#decoder.decode(bytes, { stream: true }));
    for (const event of this.#events.splice(0)) await this.#inner.transform?.(event, sink);
  }
}

/** Stands for `stream.tee()` where one copy looks ahead and is given up; the other one has all pieces. */
export function teed<Piece>(stream: ReadableStream<Piece>) {
  const reader = stream.getReader();
  const seen: ReturnType<typeof reader.read>[] = [];
  const look = () => {
    const next = reader.read();
    seen.push(next);
    return next;
  };
  const read = () => seen.shift() ?? reader.read();
  const ahead = { read: look, cancel: () => Promise.resolve(), releaseLock: () => undefined };
  const all = { ...ahead, read, cancel: (reason?: unknown) => reader.cancel(reason) };
  return [{ getReader: () => ahead }, { getReader: () => all }] as const;
}

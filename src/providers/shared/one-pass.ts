import type { Transformer } from 'node:stream/web';
import { createParser } from 'eventsource-parser';

/** What a transformer reads. */
type Source<Piece> = { getReader(): Pick<ReadableStreamDefaultReader<Piece>, 'read' | 'cancel'> };

/**
 * Stands for `stream.pipeThrough(new TransformStream(transformer))` in the vendors' packages as they are built into this one. A
 * pipe has a queue on both sides and several promises a piece; this reads a piece when one is wanted.
 */
export function transformed<In, Out>(stream: ReadableStream<In> | Source<In>, transformer: Transformer<In, Out>) {
  const reader: ReturnType<Source<In>['getReader']> = stream.getReader();
  let [count, isOver] = [0, false];
  const close = (reason?: unknown) => reader.cancel(reason).catch(() => undefined);
  /** What a transformer writes to. */
  function sinkFor(controller: ReadableStreamDefaultController<Out>): TransformStreamDefaultController<Out> {
    const over = (end: () => void, reason?: unknown) => {
      if (isOver) return;
      isOver = true;
      end();
      void close(reason);
    };
    return {
      // Nothing is made ahead. V8 keeps a getter, and all that it can reach, until it collects the old generation.
      desiredSize: 0,
      enqueue(piece) {
        count++;
        controller.enqueue(piece);
      },
      error: reason => over(() => controller.error(reason), reason),
      terminate: () => over(() => controller.close()),
    };
  }
  let sink: TransformStreamDefaultController<Out>;
  return new ReadableStream<Out>(
    {
      start(controller) {
        sink = sinkFor(controller);
        return transformer.start?.(sink);
      },
      async pull() {
        try {
          for (const before = count; count === before && !isOver; ) {
            const { done, value } = await reader.read();
            if (isOver) return;
            if (!done) await transformer.transform?.(value, sink);
            else {
              await transformer.flush?.(sink);
              sink.terminate();
            }
          }
        } catch (error) {
          sink.error(error);
        }
      },
      cancel(reason) {
        isOver = true;
        return close(reason);
      },
    },
    { highWaterMark: 0 },
  );
}

/** The same for the events in a stream, as `TextDecoderStream` and `EventSourceParserStream` of `eventsource-parser` tell them. */
export function transformedEvents<Out>(stream: ReadableStream<Uint8Array>, inner: Transformer<{ data: string }, Out>) {
  const decoder = new TextDecoder();
  const events: { data: string }[] = [];
  const { feed } = createParser({ onEvent: event => void events.push(event) });
  return transformed<Uint8Array, Out>(stream, {
    async transform(bytes, sink) {
      feed(decoder.decode(bytes, { stream: true }));
      for (const event of events.splice(0)) await inner.transform?.(event, sink);
    },
  });
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

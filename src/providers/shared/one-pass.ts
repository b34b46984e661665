import type { Transformer } from 'node:stream/web';
import { createParser } from 'eventsource-parser';

/**
 * Stands for `stream.pipeThrough(new TransformStream(transformer))` in the vendors' packages as they are built into this one. A
 * pipe has a queue on both sides and several promises a piece; this reads a piece when one is wanted.
 */
export function transformed<In, Out>(stream: ReadableStream<In>, transformer: Transformer<In, Out>) {
  const reader = stream.getReader();
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
      get desiredSize() {
        return controller.desiredSize;
      },
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

/** The events of a stream of them, as `TextDecoderStream` and `EventSourceParserStream` of the package `eventsource-parser` tell them. */
export function serverSentEvents(stream: ReadableStream<Uint8Array>): ReadableStream<{ data: string }> {
  const decoder = new TextDecoder();
  let feed: (text: string) => void;
  return transformed<Uint8Array, { data: string }>(stream, {
    start: sink => {
      ({ feed } = createParser({ onEvent: event => sink.enqueue(event) }));
    },
    transform: bytes => feed(decoder.decode(bytes, { stream: true })),
  });
}

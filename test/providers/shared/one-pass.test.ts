import { EventSourceParserStream } from 'eventsource-parser/stream';
import { describe, expect, it } from 'vitest';
import { teed, transformed, transformedEvents } from '../../../src/providers/shared/one-pass.ts';

/** A stream of these, and what became of it: how many were taken, and why it was given up. */
function streamOf<Piece>(pieces: readonly Piece[], failure?: Error) {
  const seen: { taken: number; cancelled?: unknown } = { taken: 0 };
  const stream = new ReadableStream<Piece>(
    {
      pull(controller) {
        const piece = pieces[seen.taken];
        if (piece !== undefined) {
          seen.taken++;
          controller.enqueue(piece);
        } else if (failure) controller.error(failure);
        else controller.close();
      },
      cancel: reason => void Object.assign(seen, { cancelled: reason ?? 'no reason' }),
    },
    { highWaterMark: 0 },
  );
  return { stream, seen };
}

const pass = <Piece>(piece: Piece, sink: TransformStreamDefaultController<Piece>) => sink.enqueue(piece);

async function all<Piece>(stream: ReadableStream<Piece>): Promise<Piece[]> {
  const pieces: Piece[] = [];
  for await (const piece of stream) pieces.push(piece);
  return pieces;
}

describe('transformed', () => {
  it('wants nothing ahead, and makes no getter for that: V8 keeps one, and what it can reach, for long', async () => {
    const told: unknown[] = [];
    const start = (sink: TransformStreamDefaultController<number>) =>
      void told.push(Object.getOwnPropertyDescriptor(sink, 'desiredSize'));
    await all(transformed<number, number>(streamOf([1]).stream, { start }));
    expect(told).toEqual([expect.objectContaining({ value: 0 })]);
  });

  it('does what a pipe through the same transformer does', async () => {
    const transformer = () => ({
      start: (sink: TransformStreamDefaultController<string>) => sink.enqueue('start'),
      async transform(piece: number, sink: TransformStreamDefaultController<string>) {
        await Promise.resolve();
        // None, one or several.
        for (let at = 0; at < piece % 3; at++) sink.enqueue(`${piece}.${at}`);
      },
      flush: (sink: TransformStreamDefaultController<string>) => sink.enqueue('end'),
    });
    const pieces = [1, 2, 3, 4, 5, 6, 9, 12, 14];
    const piped = streamOf(pieces).stream.pipeThrough(new TransformStream(transformer()));
    const found = await all(transformed(streamOf(pieces).stream, transformer()));
    expect(found).toEqual(await all(piped));
    expect(found).toContain('14.1');
  });

  it('passes a failure on: of the source, of the transformer, and one that this tells', async () => {
    const failing = streamOf(['a'], new Error('source'));
    await expect(all(transformed(failing.stream, {}))).rejects.toThrow('source');
    const thrown = streamOf(['a', 'b']);
    const throwing = () => {
      throw new Error('transformer');
    };
    await expect(all(transformed(thrown.stream, { transform: throwing }))).rejects.toThrow('transformer');
    expect(String(thrown.seen.cancelled)).toContain('transformer');
    const told = streamOf(['a', 'b']);
    const telling = (_: string, sink: TransformStreamDefaultController<string>) => sink.error(new Error('told'));
    await expect(all(transformed(told.stream, { transform: telling }))).rejects.toThrow('told');
    expect(told.seen).toMatchObject({ taken: 1, cancelled: new Error('told') });
  });

  it('takes no piece before one is wanted, and gives the source up with its reader', async () => {
    const { stream, seen } = streamOf(['a', 'b', 'c']);
    const reader = transformed(stream, { transform: pass }).getReader();
    await Promise.resolve();
    expect(seen.taken).toBe(0);
    expect(await reader.read()).toEqual({ done: false, value: 'a' });
    expect(seen.taken).toBe(1);
    await reader.cancel('enough');
    expect(seen).toEqual({ taken: 1, cancelled: 'enough' });
  });

  it('flushes nothing once it was given up while it waited', async () => {
    let flushed = 0;
    const never = new ReadableStream<string>({}, { highWaterMark: 0 });
    const reader = transformed(never, { flush: () => void flushed++ }).getReader();
    const reading = reader.read();
    await reader.cancel();
    expect([await reading, flushed]).toEqual([{ done: true, value: undefined }, 0]);
  });

  it('ends where the transformer ends it', async () => {
    const { stream, seen } = streamOf(['a', 'b', 'c']);
    const once = (piece: string, sink: TransformStreamDefaultController<string>) => {
      sink.enqueue(piece);
      sink.terminate();
    };
    expect(await all(transformed(stream, { transform: once }))).toEqual(['a']);
    expect(seen.cancelled).toBeDefined();
  });
});

describe('transformedEvents', () => {
  const text =
    'data: {"a":"é€😀"}\n\nevent: x\r\nid: 7\r\ndata: one\r\ndata: two\r\n\r\n: a comment\n\ndata: [DONE]\n\ndata: cut';
  const bytes = new TextEncoder().encode(text);

  it.each([1, 2, 3, 5, 16, 1_000])('are those of the package, in pieces of %i bytes', async size => {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
      bytes.slice(at * size, (at + 1) * size),
    );
    const piped = streamOf(pieces)
      .stream.pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream());
    const found = await all(transformedEvents(streamOf(pieces).stream, { transform: pass<{ data: string }> }));
    expect(found).toEqual(await all(piped));
    expect(found.map(({ data }) => data)).toEqual(['{"a":"é€😀"}', 'one\ntwo', '[DONE]']);
  });
});

describe('teed', () => {
  it('reads ahead, and gives all of it again', async () => {
    const { stream, seen } = streamOf(['a', 'b', 'c', 'd']);
    const [first, second] = teed(stream);
    const ahead = first.getReader();
    expect([await ahead.read(), await ahead.read()].map(({ value }) => value)).toEqual(['a', 'b']);
    // As where the wait for it was too long.
    const late = ahead.read();
    await ahead.cancel();
    ahead.releaseLock();
    expect(await all(transformed(second, { transform: pass }))).toEqual(['a', 'b', 'c', 'd']);
    expect(await late).toEqual({ done: false, value: 'c' });
    expect(seen).toEqual({ taken: 4 });
  });

  it('ends for both where the stream ends while it is read ahead', async () => {
    const [first, second] = teed(streamOf(['a']).stream);
    const ahead = first.getReader();
    expect([await ahead.read(), await ahead.read()].map(({ done }) => done)).toEqual([false, true]);
    expect(await all(transformed(second, { transform: pass }))).toEqual(['a']);
  });

  it('passes on a failure and a cancel', async () => {
    const [, failing] = teed(streamOf(['a'], new Error('source')).stream);
    await expect(all(transformed(failing, { transform: pass }))).rejects.toThrow('source');
    const { stream, seen } = streamOf(['a', 'b']);
    const [, second] = teed(stream);
    const reader = transformed(second, { transform: pass }).getReader();
    await reader.read();
    await reader.cancel('enough');
    expect(seen).toEqual({ taken: 1, cancelled: 'enough' });
  });
});

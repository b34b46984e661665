import { describe, expect, it } from 'vitest';
import { jsonLines } from '../../../src/providers/ollama/ollama.ts';

async function read(...chunks: (string | Uint8Array)[]) {
  const bytes = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
      controller.close();
    },
  });
  const values: unknown[] = [];
  for await (const value of jsonLines(bytes)) values.push(value);
  return values;
}

describe('JSON lines', () => {
  it('come whole however the network cut them', async () => {
    const bytes = Buffer.from('{"a":"Grüße 🎉"}\r\n\n{"b":2}');
    for (let at = 0; at <= bytes.length; at++)
      expect(await read(bytes.subarray(0, at), bytes.subarray(at))).toEqual([{ a: 'Grüße 🎉' }, { b: 2 }]);
    expect(await read(...Array.from(bytes, byte => Uint8Array.of(byte)))).toHaveLength(2);
  });

  it('take time by their length alone, in however small pieces a long one comes', async () => {
    const text = 'x'.repeat(3_000_000);
    const pieces = Array.from({ length: 30_000 }, (_, at) => text.slice(at * 100, at * 100 + 100));
    const began = performance.now();
    expect(await read('{"a":"', ...pieces, '"}\n')).toEqual([{ a: text }]);
    // Gone through again with each piece, it takes half a minute.
    expect(performance.now() - began).toBeLessThan(8_000);
  });

  it.each(['{"a":1}\n{"b":', '[1]\n', '"text"\n', 'null\n', '<html>\n', ': comment\n'])('refuse %j', async text => {
    await expect(read(text)).rejects.toMatchObject({ kind: 'model', details: { class: 'bad_upstream' } });
  });
});

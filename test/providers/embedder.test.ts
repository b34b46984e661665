import { createServer } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ProviderSettings } from '../../src/models/provider.ts';
import { namedEmbedder } from '../../src/providers/embeddings.ts';
import { type FakeZhipu, startZhipu, vectorOf } from '../support/vendors/start-zhipu.ts';

const { signal } = new AbortController();
let vendor: FakeZhipu;

beforeEach(async () => {
  vendor = await startZhipu();
});
afterEach(async () => {
  await vendor.close();
});

const named = (name: string, settings: Record<string, ProviderSettings>) =>
  namedEmbedder(
    name,
    id => settings[id] ?? {},
    () => 0,
  );

describe('an embedder', () => {
  it('gives one vector a text in their order, in as many requests as the vendor wants', async () => {
    const embedder = named('zhipu:embedding-3', { zhipu: { apiKey: 'test-key', baseUrl: vendor.url } });
    const texts = Array.from({ length: 70 }, (_, at) => 'x'.repeat(at));
    const vectors = await embedder.embed(texts, signal);
    expect(embedder.model).toBe('zhipu:embedding-3');
    expect(vectors.map(vector => [...vector])).toEqual(texts.map(text => vectorOf(text || ' ')));
    expect(vendor.asked).toHaveLength(2);
    expect(await embedder.embed([], signal)).toEqual([]);
  });

  it('works at any server with such an interface, without a key too', async () => {
    const server = createServer((request, response) => {
      const { url, headers } = request;
      const body = JSON.stringify({ data: [{ index: 0, embedding: [1, 2] }] });
      response
        .writeHead(url === '/v1/embeddings' && !headers.authorization ? 200 : 400, {
          'content-type': 'application/json',
        })
        .end(body);
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const embedder = named('custom:bge-m3', { custom: { apiUrl: `http://127.0.0.1:${port}/v1/` } });
    expect(await embedder.embed(['x'], signal)).toEqual([Float32Array.from([1, 2])]);
    await expect(embedder.embed(['x', 'y'], signal)).rejects.toMatchObject({ details: { class: 'bad_upstream' } });
    server.close();
  });

  it('fails typed at the vendor, and in its own words where the setting is wrong', async () => {
    const wrong = named('zhipu:embedding-3', { zhipu: { apiKey: 'wrong', baseUrl: vendor.url } });
    await expect(wrong.embed(['x'], signal)).rejects.toMatchObject({ details: { class: 'auth' } });
    for (const name of ['embedding-3', 'anthropic:x', 'zhipu:', '__proto__:x']) {
      expect(() => named(name, {})).toThrow(/names no embedding model/);
    }
    expect(() => named('openai:text-embedding-3-large', {})).toThrow(/not configured/);
  });
});

import { AppError } from '../../src/core/errors.ts';
import type { Embedder } from '../../src/core/ports.ts';

/** A client of OpenAI's `POST /embeddings`, as plain as can be. */
export function httpEmbedder(baseUrl: string, model: string): Embedder {
  return {
    model: `custom:${model}`,
    async embed(texts, signal) {
      const response = await fetch(`${baseUrl}/embeddings`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer test-key' },
        body: JSON.stringify({ model, input: texts, encoding_format: 'float' }),
        signal,
      });
      if (!response.ok) {
        throw new AppError('model', `The server answered ${response.status}.`, {
          code: 'API_ERROR',
          class: 'bad_upstream',
        });
      }
      const { data } = JSON.parse(await response.text());
      const rows: { index: number; embedding: number[] }[] = data;
      return rows.toSorted((a, b) => a.index - b.index).map(({ embedding }) => Float32Array.from(embedding));
    },
  };
}

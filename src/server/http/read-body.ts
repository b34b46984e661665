import type { IncomingMessage } from 'node:http';
import type { Refusal } from '../guards/refusal.ts';

/** The whole body as text; a refusal once it is larger than `limit` bytes, before the rest is read. */
export async function readBody(incoming: IncomingMessage, limit: number): Promise<{ text: string } | Refusal> {
  if (Number(incoming.headers['content-length'] ?? 0) > limit) return tooLarge(limit);
  const chunks: Buffer[] = [];
  let size = 0;
  const parts: AsyncIterable<Buffer> = incoming.iterator({ destroyOnReturn: false });
  for await (const chunk of parts) {
    size += chunk.length;
    if (size > limit) return tooLarge(limit);
    chunks.push(chunk);
  }
  return { text: Buffer.concat(chunks).toString('utf8') };
}

function tooLarge(limit: number): Refusal {
  return {
    status: 413,
    class: 'size',
    message: `The body is larger than ${limit} bytes.`,
    next: 'Send less in one request, or name files by their paths.',
  };
}

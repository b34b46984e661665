import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Refusal } from '../guards/refusal.ts';

/** The whole body; a refusal once it is larger than `limit` bytes, before the rest is read. */
export async function readBody(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  limit: number,
): Promise<{ bytes: Buffer } | Refusal> {
  const declared = Number(incoming.headers['content-length'] ?? 0);
  if (declared > limit) return tooLarge(limit);
  if (incoming.headers.expect !== undefined) outgoing.writeContinue();
  const chunks: Buffer[] = [];
  let size = 0;
  const parts: AsyncIterable<Buffer> = incoming.iterator({ destroyOnReturn: false });
  for await (const chunk of parts) {
    size += chunk.length;
    if (size > limit) return tooLarge(limit);
    chunks.push(chunk);
  }
  return { bytes: Buffer.concat(chunks) };
}

function tooLarge(limit: number): Refusal {
  return {
    status: 413,
    class: 'size',
    message: `The body is larger than ${limit} bytes.`,
    next: 'Send less in one request, or name files by their paths.',
  };
}

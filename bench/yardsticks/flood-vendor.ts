import { createServer, type ServerResponse } from 'node:http';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';

// A vendor of every dialect whose answers come in pieces of one character, as fast as they are read. How many pieces an answer
// has is the number in the question (`many pieces: 1000000`).

type Dialect = 'responses' | 'chat' | 'anthropic' | 'gemini' | 'ollama';

interface Wire {
  path: RegExp;
  before: readonly object[];
  piece: object;
  after: readonly object[];
}

const item = { type: 'message', id: 'm', role: 'assistant', status: 'in_progress', content: [] };
const response = { id: 'r', object: 'response', created_at: 1, model: 'gpt-5', output: [], incomplete_details: null };
const usage = { input_tokens: 10, output_tokens: 10, total_tokens: 20 };
const place = { item_id: 'm', output_index: 0, content_index: 0 };
const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'many' };
const turn = { type: 'message', id: 'm', role: 'assistant', model: 'claude', content: [], stop_reason: null, usage };
const stop = { stop_reason: 'end_turn', stop_sequence: null };
const line = { model: 'many', created_at: '2026-01-01T00:00:00Z' };

const wires: Readonly<Record<Dialect, Wire>> = {
  responses: {
    path: /\/responses$/,
    before: [
      { type: 'response.created', response: { ...response, status: 'in_progress', usage: null } },
      { type: 'response.output_item.added', output_index: 0, item },
    ],
    piece: { type: 'response.output_text.delta', ...place, delta: 'x', logprobs: [], sequence_number: 7 },
    after: [
      { type: 'response.output_item.done', output_index: 0, item: { ...item, status: 'completed' } },
      { type: 'response.completed', response: { ...response, status: 'completed', usage } },
    ],
  },
  chat: {
    path: /\/chat\/completions$/,
    before: [],
    piece: { ...chunk, choices: [{ index: 0, delta: { content: 'x' }, finish_reason: null }] },
    after: [{ ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }],
  },
  anthropic: {
    path: /\/messages$/,
    before: [
      { type: 'message_start', message: turn },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    ],
    piece: { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'x' } },
    after: [
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: stop, usage },
      { type: 'message_stop' },
    ],
  },
  gemini: {
    path: /:streamGenerateContent/,
    before: [],
    piece: { candidates: [{ content: { parts: [{ text: 'x' }], role: 'model' }, index: 0 }], modelVersion: 'g' },
    after: [{ candidates: [{ content: { parts: [{ text: '.' }], role: 'model' }, finishReason: 'STOP', index: 0 }] }],
  },
  ollama: {
    path: /\/api\/chat$/,
    before: [],
    piece: { ...line, message: { role: 'assistant', content: 'x' }, done: false },
    after: [
      {
        ...line,
        message: { role: 'assistant', content: '' },
        done: true,
        done_reason: 'stop',
        prompt_eval_count: 1,
        eval_count: 1,
      },
    ],
  },
};

/** Events as they are on the wire. */
function framed(dialect: Dialect, events: readonly object[]): string {
  const frame = (event: object) => {
    const name = 'type' in event && dialect !== 'chat' ? `event: ${event.type}\n` : '';
    return dialect === 'ollama' ? `${JSON.stringify(event)}\n` : `${name}data: ${JSON.stringify(event)}\n\n`;
  };
  return events.map(frame).join('');
}

/** Pieces that go out with one write. */
const together = 500;

function answer(to: ServerResponse, dialect: Dialect, pieces: number): void {
  const { before, piece, after } = wires[dialect];
  const block = Buffer.from(framed(dialect, [piece]).repeat(together));
  to.writeHead(200, { 'content-type': dialect === 'ollama' ? 'application/x-ndjson' : 'text/event-stream' });
  to.write(framed(dialect, before));
  let left = pieces / together;
  const send = () => {
    while (left > 0 && !to.destroyed) {
      left -= 1;
      if (!to.write(left < 0 ? framed(dialect, [piece]) : block)) return void to.once('drain', send);
    }
    to.end(framed(dialect, after) + (dialect === 'chat' ? 'data: [DONE]\n\n' : ''));
  };
  send();
}

async function open(): Promise<string> {
  const server = createServer(async (request, reply) => {
    const url = request.url ?? '';
    let asked = '';
    for await (const bytes of request) asked += bytes;
    for (const dialect of Object.keys(wires) as Dialect[]) {
      const pieces = Number(/many pieces: (\d+)/.exec(asked)?.[1] ?? 1);
      if (wires[dialect].path.test(url)) return answer(reply, dialect, pieces);
    }
    const models = url.endsWith('/tags') ? { models: [{ name: 'many', digest: 'd' }] } : { data: [{ id: 'many' }] };
    reply.setHeader('content-type', 'application/json');
    reply.end(JSON.stringify(url.endsWith('/show') ? { capabilities: ['completion'], model_info: {} } : models));
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  await promise;
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the vendor has no port');
  return `http://127.0.0.1:${address.port}`;
}

/** The vendor in a thread of its own. */
export async function openFloodVendor(): Promise<{ url: string; close(): Promise<unknown> }> {
  const worker = new Worker(new URL(import.meta.url));
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  worker.once('message', resolve).once('error', reject);
  return { url: await promise, close: () => worker.terminate() };
}

if (!isMainThread) parentPort?.postMessage(await open());

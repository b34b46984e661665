import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { toModelError } from '../../../src/models/resilience/errors.ts';
import { ollamaModel } from '../../../src/providers/ollama/ollama.ts';
import { vendorFetch } from '../../../src/providers/shared/http.ts';
import { answerFetch } from '../../../src/providers/shared/non-streaming.ts';
import type { Wire } from '../../support/ask-vendors.ts';

const closing: (() => void)[] = [];

afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function vendor(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    answer(response);
  });
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('no port');
  return `http://127.0.0.1:${address.port}/`;
}

const sse = { 'content-type': 'text/event-stream' };
const json = { 'content-type': 'application/json' };

/** Sends for as long as it is listened to; `closed` resolves with the bytes that went out. */
async function endless(status: number, headers: Record<string, string>, piece: Buffer, gzip = false) {
  const closed = Promise.withResolvers<number>();
  const url = await vendor(response => {
    response.writeHead(status, gzip ? { ...headers, 'content-encoding': 'gzip' } : headers);
    const to = gzip ? createGzip() : response;
    if (to !== response) to.pipe(response);
    let sent = 0;
    response.once('close', () => closed.resolve(sent));
    const send = () => {
      while (!response.destroyed) {
        sent += piece.length;
        if (!to.write(piece)) return void to.once('drain', send);
      }
    };
    send();
  });
  return { url, closed: closed.promise };
}

const read = (url: string, ask = answerFetch) => ask(url, { method: 'POST' }).then(response => response.text());

/** Between the limit and what was read: buffers of sockets. */
const slack = 24 * 1024 * 1024;

describe('what never ends', () => {
  const megabyte = 1024 * 1024;
  const comments = Buffer.from(': keep-alive\n\n'.repeat(5_000));
  it.each([
    ['comments', sse, comments, 8],
    ['white space between events', sse, Buffer.alloc(65_536, '\n'), 8],
    ['a line of an event', sse, Buffer.alloc(65_536, 'x'), 8],
    ['lines of an event', sse, Buffer.from('data: x\n'.repeat(8_000)), 8],
    ['a JSON document', json, Buffer.alloc(65_536, ' '), 64],
    ['events without text', sse, Buffer.from('data: {"n":1}\n\n'.repeat(5_000)), 8],
    ['a body without a type', {}, Buffer.alloc(65_536, 'x'), 64],
    ['comments that can’t be made to wait', { ...sse, connection: 'close' }, comments, 136],
    ['a document that can’t be made to wait', { ...json, connection: 'close' }, Buffer.alloc(65_536, ' '), 128],
  ])('%s end as bad upstream, and the connection with them', async (_, headers, piece, megabytes) => {
    const { url, closed } = await endless(200, headers, piece);
    const failure: unknown = await read(url).catch(error => error);
    const error = toModelError(failure, { provider: 'p', model: 'm', now: 0 });
    expect(error).toMatchObject({ kind: 'model', details: { class: 'bad_upstream', retryable: false } });
    expect(await closed).toBeLessThan(megabytes * megabyte + slack);
  });

  it('is not unpacked further than it would be read', async () => {
    const { url, closed } = await endless(200, json, Buffer.alloc(megabyte), true);
    await expect(read(url)).rejects.toMatchObject({ details: { class: 'bad_upstream' } });
    // A megabyte of zeros is a kilobyte on the wire: what the sockets hold of it is much.
    expect(await closed).toBeLessThan(2_048 * megabyte);
  });

  it.each([
    [answerFetch, 500],
    [vendorFetch, 429],
    [vendorFetch, 700],
  ])('is cut in an error', async (ask, status) => {
    const { url, closed } = await endless(status, json, Buffer.alloc(65_536, 'x'));
    expect((await read(url, ask)).length).toBe(megabyte);
    expect(await closed).toBeLessThan(megabyte + slack);
  });
});

it('bodies that come at once are read in turns: other work is done between', async () => {
  const body = Buffer.alloc(1_000_000, 'x');
  const url = await vendor(response => void response.writeHead(200, json).end(body));
  const responses = await Promise.all(Array.from({ length: 8 }, () => vendorFetch(url)));
  let [inTurn, most, all, isOver] = [0, 0, 0, false];
  const turns = async () => {
    for (; !isOver; await setImmediate()) [most, inTurn] = [Math.max(most, inTurn), 0];
  };
  const readers = responses.map(async response => {
    for await (const bytes of response.body ?? []) {
      inTurn += bytes.length;
      all += bytes.length;
    }
  });
  const watching = turns();
  await Promise.all(readers);
  isOver = true;
  await watching;
  expect(all).toBe(8 * body.length);
  expect(most).toBeLessThanOrEqual(65_536);
});

const ollama = (url: string) =>
  ollamaModel({ baseUrl: url, headers: {} }, 'm').doStream({
    prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
  });

async function all<Part>(stream: ReadableStream<Part>): Promise<Part[]> {
  const parts: Part[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

it('a line of Ollama without an end is bad upstream', async () => {
  const { url, closed } = await endless(200, { 'content-type': 'application/x-ndjson' }, Buffer.alloc(65_536, 'x'));
  const { stream } = await ollama(url);
  await expect(all(stream)).rejects.toMatchObject({ details: { class: 'bad_upstream', retryable: false } });
  expect(await closed).toBeLessThan(8 * 1024 * 1024 + slack);
});

const chat = (delta: object, index = 0) =>
  `data: ${JSON.stringify({ id: 'x', created: index, choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`;

const count = 20_000;

describe('pieces that come together', () => {
  async function events(said: readonly string[]) {
    const url = await vendor(response => {
      response.writeHead(200, sse);
      for (const each of said) response.write(each);
      response.end();
    });
    const text = await read(url);
    return text
      .split('\n\n')
      .filter(Boolean)
      .map(event => JSON.parse(/^data: (.*)$/m.exec(event)?.[1] ?? ''));
  }

  it.each([
    ['chat', (n: number) => chat({ content: `${n % 10}é"\\` }, n), (event: Wire) => event.choices[0].delta.content],
    [
      'Responses',
      (n: number) =>
        `event: response.output_text.delta\ndata: ${JSON.stringify({ type: 'response.output_text.delta', item_id: 'i', output_index: 0, delta: `${n % 10}é"\\`, logprobs: [], sequence_number: n, obfuscation: 'x'.repeat(n % 7) })}\n\n`,
      (event: Wire) => event.delta,
    ],
    [
      'Anthropic',
      (n: number) =>
        `event: content_block_delta\r\ndata: ${JSON.stringify({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: `${n % 10}é"\\` } })}\r\n\r\n`,
      (event: Wire) => event.delta.text,
    ],
    [
      'Gemini',
      (n: number) =>
        `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: `${n % 10}é"\\` }], role: 'model' }, index: 0 }], usageMetadata: { candidatesTokenCount: n } })}\n\n`,
      (event: Wire) => event.candidates[0].content.parts[0].text,
    ],
  ])('are few events of %s with the same text', async (_, event, textOf) => {
    const found = await events(Array.from({ length: count }, (__, n) => event(n)));
    expect(found.map(textOf).join('')).toBe(Array.from({ length: count }, (__, n) => `${n % 10}é"\\`).join(''));
    expect(found.length).toBeLessThan(count / 10);
  });

  it('are few parts of Ollama with the same text', async () => {
    const line = (n: number, done: boolean) =>
      `${JSON.stringify({ model: 'm', created_at: `2026-01-01T00:00:00.${n}Z`, message: { role: 'assistant', content: `${n % 10}é` }, done })}\n`;
    const url = await vendor(response => {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
      for (let n = 0; n < count; n++) response.write(line(n, n === count - 1));
      response.end();
    });
    const parts = await all((await ollama(url)).stream);
    const deltas = parts.flatMap(part => (part.type === 'text-delta' ? [part.delta] : []));
    expect(deltas.join('')).toBe(Array.from({ length: count }, (_, n) => `${n % 10}é`).join(''));
    expect(deltas.length).toBeLessThan(count / 10);
  });

  it('stay apart where they belong to different texts, calls or fields', async () => {
    const type = 'function';
    const call = (id: string) =>
      chat({ tool_calls: [{ type, index: 0, id, function: { name: 'f', arguments: '{}' } }] });
    const block = (index: number) =>
      `data: ${JSON.stringify({ delta: { type: 'text_delta', text: 'a' }, type: 'content_block_delta', index })}\n\n`;
    const calls = [0, 1].map(index => ({ type, index, function: { arguments: 'a' } }));
    const both = chat({ reasoning_content: 'no', content: 'a' });
    const twice = chat({ reasoning: 'a', reasoning_details: [{ type: 'reasoning.text', text: 'a' }] });
    const said = [
      call('1'),
      call('1'),
      block(0),
      block(1),
      twice,
      twice,
      chat({ tool_calls: calls }),
      chat({ tool_calls: calls }),
      both,
      both,
      chat({ content: 'a' }),
      chat({ reasoning: 'a' }),
    ];
    expect(await events(said)).toEqual(said.map(each => JSON.parse(each.slice(6))));
  });

  it('are events alone that packages use', async () => {
    const named = (type: string) => `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: 1 })}\n\n`;
    const types = [
      'created',
      'in_progress',
      'content_part.added',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'completed',
    ];
    const found = await events([': hello\n\n', ...types.map(type => named(`response.${type}`)), ': bye\n\n']);
    const used = ['created', 'in_progress', 'output_text.delta', 'completed'];
    expect(found.map(({ type }) => type)).toEqual(used.map(type => `response.${type}`));
  });
});

import { PassThrough, Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { textSplitter } from '../../../src/server/mcp/lines.ts';
import { readMessages } from '../../../src/server/mcp/messages.ts';
import { StdioTransport } from '../../../src/server/mcp/stdio.ts';
import { type PipedClient, pipedClient } from '../../support/piped-client.ts';
import { type TestProduct, testProduct } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

const maxBytes = 1_048_576;
let project: TempProject;
let running: TestProduct;
let client: PipedClient | undefined;

beforeAll(async () => {
  project = await tempProject();
  running = await testProduct({
    root: project.root,
    env: { OFFLINE: 'true', POLYLOGUE_MAX_BODY_BYTES: String(maxBytes) },
  });
});
afterEach(() => client?.close());
afterAll(async () => {
  await running.close();
  await project.dispose();
});

async function begun(version?: string): Promise<PipedClient> {
  client = await pipedClient(running);
  await client.begin({}, version);
  return client;
}

describe('what is no message on standard input', () => {
  const request = { jsonrpc: '2.0', id: 5, method: 'ping' };
  it.each<[string, string | Uint8Array, number, number | null]>([
    ['a line of words', 'this is no JSON', -32_700, null],
    ['half a message', '{"jsonrpc":"2.0","id":5,', -32_700, null],
    ['bytes that are no UTF-8', Uint8Array.from([0x22, 0xc3, 0x28, 0x22]), -32_700, null],
    ['nesting without end', '['.repeat(100_000), -32_700, null],
    ['another object', '{"foo":1}', -32_600, null],
    ['a number', '5', -32_600, null],
    ['an id of null', JSON.stringify({ ...request, id: null }), -32_600, null],
    ['an id between numbers', JSON.stringify({ ...request, id: 1.5 }), -32_600, null],
    ['an id that JavaScript would round', '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', -32_600, null],
    ['another version', JSON.stringify({ ...request, jsonrpc: '1.0' }), -32_600, 5],
    ['parameters as a list', JSON.stringify({ ...request, params: [] }), -32_600, 5],
    ['an answer that says nothing', '{"jsonrpc":"2.0","id":5}', -32_600, null],
    ['an array of this revision', JSON.stringify([request]), -32_600, null],
  ])('is answered: %s', async (_what, bytes, code, id) => {
    const piped = await begun();
    for (let times = 0; times < 2; times += 1) {
      piped.write(bytes);
      piped.write('\n');
      const { error } = await piped.next(message => message.error !== undefined && message.id === id);
      expect(error).toEqual({ code, message: expect.stringMatching(/^[A-Z].{10,120}\.$/) });
    }
    expect(await piped.ask('ping')).toMatchObject({ result: {} });
    expect(piped.errors).toHaveLength(1);
  });

  it('is told why where its id is too large', () => {
    const { refused } = readMessages('{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', false);
    expect(refused[0]?.error.message).toMatch(/id is a text, or a whole number below 2\^53/);
  });

  it('is not an empty line, nor a mark before the first letter', async () => {
    const piped = await begun();
    piped.write('\n\r\n  \n\uFEFF{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n');
    expect(await piped.next(({ id }) => id === 1)).toMatchObject({ result: {} });
    expect([piped.errors, piped.heard.length]).toEqual([[], 2]);
  });

  it('may be several messages at once where the revision has it', async () => {
    const piped = await begun('2025-03-26');
    piped.write('[{"jsonrpc":"2.0","id":1,"method":"ping"},7,{"jsonrpc":"2.0","id":2,"method":"ping"}]\n[]\n');
    for (const id of [1, 2]) expect(await piped.next(message => message.id === id)).toMatchObject({ result: {} });
    for (let at = 0; at < 2; at += 1) {
      expect((await piped.next(message => message.id === null)).error.code).toBe(-32_600);
    }
  });
});

it('an answer is one line also to programs that end lines at other letters than a newline', async () => {
  const output = new PassThrough();
  const transport = new StdioTransport({ input: new PassThrough(), output, maxBytes });
  const answer = 'A\u2028B\u2029C\u0085D é';
  await transport.send({ jsonrpc: '2.0', id: 1, result: { answer } });
  const line = String(output.read());
  expect(line.split(/[\n\u0085\u2028\u2029]/)).toEqual([line.trimEnd(), '']);
  expect(JSON.parse(line)).toEqual({ jsonrpc: '2.0', id: 1, result: { answer } });
  await transport.close();
});

describe('null for what is left out', () => {
  it('is taken as that, in requests and notifications', async () => {
    const piped = await begun();
    piped.write('{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":null}\n');
    expect(await piped.ask('tools/list', null)).toMatchObject({ result: { tools: expect.any(Array) } });
    const call = await piped.ask('tools/call', { name: 'version', arguments: null, _meta: null });
    expect(call).toMatchObject({ result: { isError: false } });
    expect([piped.errors, piped.heard.filter(({ id }) => id === null)]).toEqual([[], []]);
  });

  it.each([
    ['what a client can do', { capabilities: { roots: null, sampling: null, experimental: null } }],
    ['how it can do it', { capabilities: { roots: { listChanged: null }, elicitation: { form: null } } }],
    ['who it is', { clientInfo: { name: 'piped', version: '1', title: null }, _meta: { progressToken: null } }],
  ])('is taken as that at any depth: %s', async (_what, given) => {
    const piped = await pipedClient(running);
    client = piped;
    const plain = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'piped', version: '1' } };
    expect(await piped.ask('initialize', { ...plain, ...given })).toMatchObject({
      result: { protocolVersion: '2025-06-18' },
    });
    piped.send({ method: 'notifications/initialized', params: null });
    const call = { name: 'version', arguments: {}, _meta: { progressToken: null, traceparent: null } };
    expect(await piped.ask('tools/call', call)).toMatchObject({ result: { isError: false } });
    const prompt = { name: 'chat', arguments: { request: 'Why?', model: null } };
    expect(await piped.ask('prompts/get', prompt)).toMatchObject({ result: { messages: [{ role: 'user' }] } });
  });

  it('is kept within the arguments of a tool, and as the id of what is no request', () => {
    const text = JSON.stringify({
      ...{ jsonrpc: '2.0', id: 1, method: 'tools/call', result: null },
      params: { name: 'x', arguments: { list: [{ deep: null }], top: null }, _meta: { a: [{ b: null }] } },
    });
    expect(readMessages(text, false).read).toEqual([
      {
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: { name: 'x', arguments: { list: [{ deep: null }] }, _meta: { a: [{}] } },
      },
    ]);
    expect(readMessages('{"jsonrpc":"2.0","id":null,"method":"ping"}', false)).toMatchObject({
      ...{ read: [], refused: [{ error: { code: -32_600 } }] },
    });
  });
});

describe('a call that does not fit its schema', () => {
  it('is told in words, and a notification is not answered at all', async () => {
    const piped = await begun();
    piped.write('{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}\n');
    const { error } = await piped.ask('tools/call', { name: 'version', arguments: ['all'] });
    expect(error).toEqual({ code: -32_602, message: expect.stringMatching(/^Invalid params: params.arguments: \w/) });
    expect(piped.heard.filter(({ id }) => id === null)).toEqual([]);
  });
});

describe('a message that is too long', () => {
  const text = 'x'.repeat(maxBytes);
  const call = { method: 'tools/call', params: { name: 'chat', arguments: { prompt: text } } };
  it.each([
    ['first', { jsonrpc: '2.0', id: 'mine', ...call }, 'mine'],
    ['last', { ...call, jsonrpc: '2.0', id: 7 }, 7],
    ['nowhere, for it is an answer', { jsonrpc: '2.0', id: 7, result: { text } }, null],
  ])('is refused by its id, which stands %s', async (_where, message, id) => {
    const piped = await begun();
    piped.write(`${JSON.stringify(message)}\n`);
    const { error } = await piped.next(answer => answer.error !== undefined);
    expect(error).toMatchObject({ code: -32_600, message: expect.stringContaining(String(maxBytes)) });
    expect(piped.heard.at(-1).id).toBe(id);
    expect(await piped.ask('ping')).toMatchObject({ result: {} });
  });

  it('is told of before it ends, and never kept', () => {
    const lines: string[] = [];
    const limit = 4_096;
    const take = textSplitter(limit, {
      onText: text => void lines.push(text),
      onLong: () => void lines.push('too long'),
      onRefused: ({ id }) => void lines.push(`refused ${id}`),
    });
    const before = process.memoryUsage().arrayBuffers;
    take(Buffer.from('{"id":"mine","method":"'));
    const piece = Buffer.alloc(65_536, 'x');
    for (let at = 0; at < 1_600; at += 1) take(piece);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8_000_000);
    expect(lines).toEqual(['too long']);
    take(Buffer.from('end'));
    take(Buffer.from('s\nnext\n'));
    for (const letter of 'slow\n') take(Buffer.from(letter));
    take(Buffer.from(`${'y'.repeat(limit)}\n`));
    expect(lines.slice(1)).toEqual(['refused mine', 'next', 'slow', 'y'.repeat(limit)]);
  });
});

describe('a client that asks on and reads nothing', () => {
  it('is not listened to until it reads again, and then gets all its answers', async () => {
    const input = new PassThrough();
    let read: (() => void) | undefined;
    let reads = false;
    const output = new Writable({
      write(_piece, _encoding, done) {
        read = done;
        if (reads) setImmediate(done);
      },
    });
    const transport = new StdioTransport({ input, output, maxBytes });
    const answer = 'x'.repeat(1_000_000);
    let asked = 0;
    let answered = 0;
    transport.onmessage = message => {
      asked += 1;
      const id = 'id' in message && message.id !== undefined ? message.id : 0;
      void transport.send({ jsonrpc: '2.0', id, result: { answer } }).then(() => (answered += 1));
    };
    transport.serve(readMessages);
    await transport.start();
    const most = 60;
    for (let id = 0; id < most; id += 1) {
      input.write(`{"jsonrpc":"2.0","id":${id},"method":"ping"}\n`);
      await turn();
    }
    expect(asked).toBeGreaterThan(8);
    expect(asked).toBeLessThan(40);
    reads = true;
    read?.();
    await expect.poll(() => answered, { timeout: 15_000 }).toBe(most);
    await transport.close();
  });
});

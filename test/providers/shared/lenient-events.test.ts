import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import type { ModelQuestion } from '../../../src/models/ask-model.ts';
import { type ProviderDefinition, plainModel } from '../../../src/models/provider.ts';
import { anthropic } from '../../../src/providers/anthropic.ts';
import { azure } from '../../../src/providers/azure.ts';
import { custom } from '../../../src/providers/custom.ts';
import { deepseek } from '../../../src/providers/deepseek.ts';
import { dial } from '../../../src/providers/dial.ts';
import { google } from '../../../src/providers/google/google.ts';
import { groq } from '../../../src/providers/groq.ts';
import { minimax } from '../../../src/providers/minimax.ts';
import { moonshot } from '../../../src/providers/moonshot/moonshot.ts';
import { openai } from '../../../src/providers/openai.ts';
import { openrouter } from '../../../src/providers/openrouter.ts';
import { LenientEvents } from '../../../src/providers/shared/lenient-events.ts';
import { xai } from '../../../src/providers/xai.ts';
import { zhipu } from '../../../src/providers/zhipu/zhipu.ts';
import { askProvider } from '../../contracts/ask-provider.ts';

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

interface Served {
  type?: string;
  /** Breaks the connection after the body. */
  cut?: true;
  path?: string;
  settings?: Record<string, string>;
  question?: Partial<ModelQuestion>;
}

/** Asks one provider whose vendor answers every request with the body; the answer or error, and how often it was asked. */
async function served(definition: ProviderDefinition, body: string, more: Served = {}) {
  let requests = 0;
  const server = createServer((request, response) => {
    requests++;
    request.resume();
    request.once('end', () => {
      response.writeHead(200, { 'content-type': more.type ?? 'text/event-stream' });
      if (more.cut) response.write(body, () => setImmediate(() => response.destroy()));
      else response.end(body);
    });
  });
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('no port');
  const url = `http://127.0.0.1:${address.port}${more.path ?? '/v1'}`;
  const settings = { apiKey: 'k', baseUrl: url, apiUrl: url, host: url, endpoint: url, ...more.settings };
  const facts = { provider: definition.id, id: 'm', window: 100_000, maxOutput: 8_000, score: 5, tools: true };
  const asked = askProvider(definition, settings, plainModel(facts), more.question);
  const [outcome] = await Promise.allSettled([asked]);
  return {
    requests,
    answer: outcome.status === 'fulfilled' ? outcome.value : undefined,
    error: outcome.status === 'rejected' ? outcome.reason : undefined,
  };
}

const sse = (...events: (object | string)[]) =>
  events.map(event => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('');

const chunk = (delta: object, finish_reason: string | null = null, more: object = {}) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
  ...more,
});

const hello = chunk({ role: 'assistant', content: 'Hello' });
const stop = chunk({}, 'stop');
const done = '[DONE]';
const whole = { requests: 1, answer: { text: 'Hello', partial: false, finish: { kind: 'stop' } } };

describe('types that a package does not know', () => {
  const start = {
    type: 'message_start',
    message: {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      usage: { input_tokens: 5, output_tokens: 1 },
    },
  };
  const block = (index: number, content_block: object, ...deltas: object[]) => [
    { type: 'content_block_start', index, content_block },
    ...deltas.map(delta => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
  const said = (index: number, ...more: object[]) =>
    block(index, { type: 'text', text: '' }, ...more, { type: 'text_delta', text: 'Hello' });
  const end = [
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 3 } },
    { type: 'message_stop' },
  ];
  const novel = { type: 'new_thing', x: 1 };
  const messages: [string, object[]][] = [
    ['a first event', [novel, start, ...said(0), ...end]],
    ['an event', [start, { type: 'ping' }, novel, { x: 1 }, ...said(0), novel, ...end]],
    [
      'a block, with its text',
      [start, ...block(0, { type: 'new_block' }, { type: 'text_delta', text: 'No. ' }), ...said(1), ...end],
    ],
    ['a delta', [start, ...said(0, { type: 'new_delta', y: 1 }), ...end]],
    ['a citation', [start, ...said(0, { type: 'citations_delta', citation: { type: 'new_location' } }), ...end]],
  ];
  it.each(messages)('%s is dropped from Anthropic messages', async (_name, events) => {
    expect(await served(anthropic, sse(...events))).toMatchObject(whole);
    expect(await served(minimax, sse(...events), { path: '/anthropic/v1' })).toMatchObject(whole);
  });

  const { usage: _, ...uncounted } = start.message;
  const [over = {}] = end;
  const counts: [string, object[], object][] = [
    ['an end', [start, ...said(0), { ...over, usage: undefined }, novel, ...end.slice(1)], { input: 5, estimated: 1 }],
    ['an end, for null', [start, ...said(0), { ...over, usage: null }, ...end.slice(1)], { input: 5, estimated: 1 }],
    ['a beginning', [{ ...start, message: uncounted }, ...said(0), ...end], { output: 3 }],
    ['both', [{ ...start, message: uncounted }, ...said(0), { ...over, usage: {} }], { estimated: 1 }],
  ];
  it.each(counts)('messages of Anthropic may lack the counts of %s', async (_name, events, usage) => {
    for (const [definition, path] of [[anthropic, '/v1'] as const, [minimax, '/anthropic/v1'] as const]) {
      const found = await served(definition, sse(...events), { path });
      expect(found).toMatchObject({ ...whole, answer: { ...whole.answer, usage } });
      expect(found.answer?.usage.output).toBeGreaterThan(0);
    }
  });

  it('messages of Anthropic are whole once they are told to be over', async () => {
    const events = [start, ...said(0), over];
    const late = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
    for (const [body, cut] of [[sse(...events), true] as const, [sse(...events, late), undefined] as const])
      expect(await served(anthropic, body, cut ? { cut } : {})).toMatchObject(whole);
    expect((await served(anthropic, sse(start, ...said(0), late))).answer?.partial ?? false).toBe(true);
  });

  const response = (status: string, output: object[] = []) => ({
    id: 'r',
    object: 'response',
    created_at: 1,
    status,
    model: 'm',
    output,
    usage: { input_tokens: 5, output_tokens: 5, total_tokens: 10 },
  });
  const created = { type: 'response.created', response: response('in_progress') };
  const item = { type: 'message', id: 'i', role: 'assistant', status: 'in_progress', content: [] };
  const text = [
    { type: 'response.output_item.added', output_index: 1, item },
    { type: 'response.output_text.delta', item_id: 'i', output_index: 1, content_index: 0, delta: 'Hello' },
    { type: 'response.output_item.done', output_index: 1, item: { ...item, status: 'completed' } },
  ];
  const odd: [string, unknown, object][] = [
    ['numbers as texts', { input_tokens: '5', output_tokens: '3', total_tokens: '8' }, { input: 5, output: 3 }],
    ['no input', { output_tokens: 3 }, { estimated: 1 }],
    ['none', {}, { estimated: 1 }],
    ['no prompt', { input_tokens: 0, output_tokens: 3, total_tokens: 3 }, { output: 3, estimated: 1 }],
    ['less than nothing', { input_tokens: -5, output_tokens: -3, total_tokens: -8 }, { estimated: 1 }],
    [
      'more from its cache than there was',
      { input_tokens: 5, output_tokens: 3, total_tokens: 8, input_tokens_details: { cached_tokens: '9' } },
      { output: 3 },
    ],
  ];
  it.each(odd)('a whole answer of Responses stays one whose usage tells %s', async (_name, usage, told) => {
    const body = sse(created, ...text, { type: 'response.completed', response: { ...response('completed'), usage } });
    for (const definition of [openai, xai]) {
      const found = await served(definition, body);
      expect(found, definition.id).toMatchObject({ ...whole, answer: { ...whole.answer, usage: told } });
      const { input, cacheRead } = found.answer!.usage;
      expect([input > 0, cacheRead <= input]).toEqual([true, true]);
    }
  });

  const call = { type: 'new_call', id: 'n', status: 'completed' };
  const responses: [string, object[]][] = [
    ['a first event', [{ type: 'keepalive' }, created, ...text]],
    ['events', [created, { type: 'keepalive', sequence_number: 3 }, { type: 'response.new.delta' }, { x: 1 }, ...text]],
    [
      'an item',
      [
        created,
        { type: 'response.output_item.added', output_index: 0, item: call },
        { type: 'response.output_item.done', output_index: 0, item: call },
        ...text,
      ],
    ],
  ];
  it.each(responses)('%s of that kind is dropped from Responses', async (_name, events) => {
    const body = sse(...events, { type: 'response.completed', response: response('completed', [call]) });
    expect(await served(xai, body)).toMatchObject(whole);
    expect(await served(openai, body)).toMatchObject(whole);
  });

  it('an error of that kind is told, and what of Responses is as it should be stays as it came', () => {
    const lenient = new LenientEvents();
    const delta =
      'event: x\ndata: {"type":"response.output_text.delta","delta":"An \\"error\\": {}","output_index":1}\n\n';
    const fault = { type: 'response.new_thing', error: { message: 'No room.' } };
    expect(lenient.fitted(sse(created) + delta)).toBe(sse(created) + delta);
    expect(lenient.fitted(sse({ type: 'response.new.delta', delta: 'x' }))).toBe('');
    expect(lenient.fitted(sse(fault))).toContain('"type":"error"');
    expect(new LenientEvents().fitted(sse({ type: 'response.new.delta', message: 'No.' }))).toContain('"type":"error"');
  });

  const typed: [string, RegExp, (type: string) => object][] = [
    [
      'anthropic',
      /literal\("((?:\w+_)?thinking|compaction|(?:mcp_|server_)?tool_use|\w+_tool_result)"\)/g,
      type => ({ type: 'content_block_start', index: 0, content_block: { type } }),
    ],
    [
      'anthropic',
      /literal\("((?!message|content)\w+_delta)"\)/g,
      type => ({ type: 'content_block_delta', index: 0, delta: { type } }),
    ],
    [
      'anthropic',
      /literal\("(\w+_location)"\)/g,
      type => ({ type: 'content_block_delta', index: 0, delta: { type: 'citations_delta', citation: { type } } }),
    ],
    ['xai', /literal\("(\w+_call)"\)/g, type => ({ type: 'response.output_item.added', item: { type } })],
  ];
  it.each(typed)('are none of those that are in its source: %s, %s', async (name, literal, event) => {
    const source = await readFile(new URL(import.meta.resolve(`@ai-sdk/${name}`)), 'utf8');
    const types = new Set(Array.from(source.matchAll(literal), ([, type]) => type ?? ''));
    const texts = sse(...[...types].map(event));
    expect(types.size).toBeGreaterThan(3);
    expect(new LenientEvents().fitted(texts)).toBe(texts);
  });

  it('an event is dropped from a chat, and an error without a known type is not', async () => {
    expect(await served(custom, sse({ type: 'ping' }, hello, { type: 'ping' }, stop, done))).toMatchObject(whole);
    const error = { object: 'error', type: 'BadRequestError', message: 'The prompt is bad.', code: 400 };
    expect(await served(custom, sse(error, done))).toMatchObject({
      requests: 1,
      error: { message: expect.stringContaining('The prompt is bad.'), details: { class: 'bad_request' } },
    });
  });
});

describe('chunks of a chat', () => {
  const usage = { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 };
  const { choices: _, ...bare } = chunk({}, null, { usage, x_groq: { usage } });
  const chatServers: [string, ProviderDefinition, Served][] = [
    ...[custom, moonshot, zhipu, deepseek, groq, openrouter, dial].map(
      (definition): [string, ProviderDefinition, Served] => [definition.id, definition, {}],
    ),
    ['azure', azure, { settings: { apiStyle: 'chat' } }],
    ['openai', openai, { settings: { apiStyle: 'chat' } }],
  ];
  it.each(chatServers)('of %s may lack choices, and tell numbers as texts', async (_name, definition, more) => {
    const texts = { prompt_tokens: '12', completion_tokens: '5', total_tokens: '17' };
    const ends = [bare, { ...bare, choices: null }, { ...bare, choices: [], usage: texts, x_groq: { usage: texts } }];
    for (const last of ends) {
      const found = await served(definition, sse(hello, stop, last, done), more);
      expect(found).toMatchObject(whole);
      expect(found.answer).toMatchObject({ usage: { input: 12, output: 5 }, warnings: [] });
    }
  });

  const tools: ModelQuestion['tools'] = [{ name: 'look', description: 'Looks.', inputSchema: { type: 'object' } }];
  const calling = {
    index: 0,
    id: 'x',
    type: 'function',
    function: { name: 'look', arguments: { a: { role: 'é中' } } },
  };
  it.each([
    ['a stream', sse(chunk({ role: 'assistant', tool_calls: [calling] }), chunk({}, 'tool_calls'), done), {}],
    [
      'a document',
      JSON.stringify({
        choices: [{ message: { role: 'assistant', tool_calls: [calling] }, finish_reason: 'tool_calls' }],
      }),
      { type: 'application/json' },
    ],
  ])('of %s may tell arguments as an object', async (_name, body, more) => {
    for (const definition of [custom, groq, deepseek]) {
      const found = await served(definition, body, { ...more, question: { tools } });
      expect(found).toMatchObject({ requests: 1, answer: { finish: { kind: 'tool_calls' } } });
      expect(found.answer?.said).toMatchObject([{ type: 'call', name: 'look', args: { a: { role: 'é中' } } }]);
    }
  });

  it.each([
    ['an error', sse(hello, stop, { error: { message: 'too late' } }, done), {}],
    ['an event that is no JSON', sse(hello, stop, '{"id":', done), {}],
    ['a connection that breaks', sse(hello, stop), { cut: true as const }],
  ])('are a whole answer where %s follows a reason', async (_name, body, more) => {
    for (const definition of [custom, groq, openrouter])
      expect(await served(definition, body, more)).toMatchObject(whole);
  });

  const place = (id: string, args: string) => ({ id, type: 'function', function: { name: 'look', arguments: args } });
  const several: [string, object[]][] = [
    ['have no numbers', [place('x', '{"n":1}'), place('y', '{"n":2}')]],
    ['all have the same number', [place('x', '{"n":1}'), place('y', '{"n":2}')].map(call => ({ index: 0, ...call }))],
    [
      'come in pieces without numbers',
      [place('x', '{"n"'), { function: { arguments: ':1}' } }, place('y', '{"n":'), { function: { arguments: '2}' } }],
    ],
    [
      'come in pieces of turns',
      [
        { index: 0, ...place('x', '') },
        { index: 1, ...place('y', '') },
        { index: 0, id: '', function: { arguments: '{"n":1}' } },
        { index: 1, id: null, function: { arguments: '{"n":2}' } },
      ],
    ],
    [
      'repeat what they are in each piece, and count from one',
      [
        { index: 1, ...place('x', '{"n"') },
        { index: 1, ...place('x', ':1}') },
        { index: 2, ...place('y', '{"n":2}') },
      ],
    ],
    [
      'have another ID in each piece',
      [
        { index: 0, ...place('x', '{"n"') },
        { index: 0, id: 'z', function: { arguments: ':1}' } },
        { index: 1, ...place('y', '{"n":2}') },
      ],
    ],
    [
      'do not say that they are functions',
      [place('x', '{"n":1}'), place('y', '{"n":2}')].map(call => ({ ...call, type: undefined })),
    ],
  ];
  it.each(several)('keep calls apart that %s', async (_name, calls) => {
    for (const one of [true, false]) {
      const parts = one ? [chunk({ tool_calls: calls })] : calls.map(call => chunk({ tool_calls: [call] }));
      const body = sse(hello, ...parts, chunk({}, 'tool_calls'), done);
      for (const definition of [custom, groq, deepseek, openrouter, moonshot, openai]) {
        const { answer } = await served(definition, body, { question: { tools }, settings: { apiStyle: 'chat' } });
        const said = [answer?.said].flat().filter(part => typeof part === 'object' && part.type === 'call');
        expect(said, definition.id).toMatchObject([{ args: { n: 1 } }, { args: { n: 2 } }]);
      }
    }
  });

  it('may tell the usage of a choice, and an error in a field of its own', async () => {
    const choices = [{ index: 0, delta: {}, finish_reason: 'stop', usage }];
    expect(await served(moonshot, sse(hello, chunk({}, null, { choices }), done))).toMatchObject({
      answer: { usage: { input: 12, output: 5 }, warnings: [] },
    });
    const error =
      'error: {"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}\n\n';
    expect(await served(custom, error)).toMatchObject({
      requests: 1,
      error: { message: expect.stringContaining('exceeds the available context size') },
    });
  });

  it('keep an error behind a reason that is an error itself', async () => {
    const body = sse(hello, chunk({}, 'error'), { error: { message: 'The machine stopped.' } }, done);
    const { answer } = await served(custom, body);
    expect(answer).toMatchObject({
      partial: true,
      warnings: expect.arrayContaining([expect.stringContaining('The machine stopped.')]),
    });
  });

  const blanks = ['', ' ', 'null'].map(blank => [JSON.stringify(blank), chunk({ content: 'Hello' }, blank)] as const);
  it.each(blanks)('with %s for a reason have not ended', async (_name, half) => {
    for (const more of [{}, { cut: true as const }]) {
      const found = await served(custom, sse(half), more);
      expect(found.answer).toMatchObject({ text: 'Hello', partial: true, finish: { raw: 'interrupted' } });
    }
    expect(await served(custom, sse(half, done))).toMatchObject(whole);
  });
});

describe('thoughts in tags', () => {
  it('are no part of an answer of a server that has no parser for them', async () => {
    const pieces = [chunk({ role: 'assistant', content: '<think>Hm' }), chunk({ content: '.</think>\n\nHello' }), stop];
    expect(await served(custom, sse(...pieces, done))).toMatchObject(whole);
  });
});

describe('a refusal', () => {
  const refused = {
    requests: 1,
    answer: { text: 'I cannot.', partial: false, finish: { kind: 'content_filter', raw: 'content_filter' } },
  };

  it.each([custom, openrouter, groq, deepseek, moonshot])('in pieces of a chat is told: $id', async definition => {
    const pieces = [chunk({ role: 'assistant', content: null, refusal: 'I ' }), chunk({ refusal: 'cannot.' }), stop];
    expect(await served(definition, sse(...pieces, done))).toMatchObject(refused);
  });

  it.each([openai, xai])('of Responses is told: $id', async definition => {
    const place = { item_id: 'm', output_index: 0, content_index: 0 };
    const item = { type: 'message', id: 'm', status: 'completed', role: 'assistant' };
    const response = { id: 'r', object: 'response', created_at: 1, model: 'm', output: [], status: 'completed' };
    const usage = { input_tokens: 5, output_tokens: 3 };
    const events = [
      { type: 'response.created', response: { ...response, status: 'in_progress' } },
      { type: 'response.output_item.added', output_index: 0, item: { ...item, content: [] } },
      { type: 'response.refusal.delta', ...place, delta: 'I ' },
      { type: 'response.refusal.delta', ...place, delta: 'cannot.' },
      { type: 'response.refusal.done', ...place, refusal: 'I cannot.' },
      {
        type: 'response.output_item.done',
        output_index: 0,
        item: { ...item, content: [{ type: 'refusal', refusal: 'I cannot.' }] },
      },
      { type: 'response.completed', response: { ...response, usage } },
    ];
    expect(await served(definition, sse(...events))).toMatchObject(refused);
  });
});

describe('an error inside of a chunk', () => {
  const empty = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [] };
  const long = chunk({ role: 'assistant', content: 'This is a fine text that goes on. '.repeat(6) });
  const base = (status_code: number, status_msg: string) => ({ ...empty, base_resp: { status_code, status_msg } });
  const cases: [string, ProviderDefinition, object, string, string][] = [
    ['of Groq', groq, { ...empty, x_groq: { id: 'r', error: 'over capacity' } }, 'over capacity', 'bad_upstream'],
    ['beside a choice', groq, chunk({}, null, { x_groq: { error: 'over capacity' } }), 'over capacity', 'bad_upstream'],
    ['of MiniMax, a filter', minimax, base(1027, 'output new_sensitive'), 'output new_sensitive', 'content_filter'],
    ['of MiniMax, a limit', minimax, base(1002, 'too fast'), 'too fast', 'rate_limit'],
    ['as a text', custom, { ...empty, error: 'connection reset' }, 'connection reset', 'bad_upstream'],
    ['with a code', openai, { ...chunk({}), error: { message: 'Slow down', code: 429 } }, 'Slow down', 'rate_limit'],
  ];
  it.each(cases)('%s is told, with and without a text before it', async (_name, definition, event, reason, kind) => {
    const settings = { apiStyle: 'chat' };
    const { answer } = await served(definition, sse(long, event, done), { settings });
    const told = expect.arrayContaining([expect.stringContaining(reason)]);
    expect(answer).toMatchObject({ partial: true, finish: { raw: 'interrupted' }, warnings: told });
    const { error } = await served(definition, sse(event, done), { settings });
    expect(error).toMatchObject({ message: expect.stringContaining(reason), details: { class: kind } });
  });

  it.each([{}, null, ''])('is none where it is %j', async error => {
    const quiet = chunk({ content: 'Hello' }, null, { error, x_groq: { error }, base_resp: { status_code: 0 } });
    expect(await served(custom, sse(quiet, stop, done))).toMatchObject(whole);
  });
});

describe('a JSON document', () => {
  const answer = JSON.stringify({ choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] }, null, 2);
  const limit = JSON.stringify({ error: { message: 'Only three a day.', code: 429 } });
  it.each(['text/event-stream', 'text/plain; charset=utf-8', 'application/octet-stream'])(
    'is read as what it is under the type %s',
    async type => {
      expect(await served(custom, answer, { type })).toMatchObject(whole);
      const { error } = await served(custom, limit, { type });
      expect(error).toMatchObject({
        message: expect.stringContaining('Only three a day.'),
        details: { class: 'rate_limit' },
      });
    },
  );
});

it('an answer of Gemini is gone on with a few times at most', async () => {
  const part = (text: string) => ({
    candidates: [{ content: { parts: [{ text }] }, finishReason: 'CONTINUATION', continuationToken: 'next', index: 0 }],
    usageMetadata: { promptTokenCount: 1_000, candidatesTokenCount: 5, totalTokenCount: 1_005 },
  });
  const { requests, answer } = await served(google, sse(part('The answer goes on and on. '.repeat(5))), {
    path: '/v1beta',
  });
  expect(requests).toBe(9);
  expect(answer).toMatchObject({
    partial: true,
    warnings: expect.arrayContaining([expect.stringContaining('8 times')]),
  });
});

it('tells the reason of Gemini for an answer that it did not complete', async () => {
  const event = { candidates: [{ content: {}, finishReason: 'MALFORMED_FUNCTION_CALL', index: 0 }] };
  const { error } = await served(google, sse(event), { path: '/v1beta' });
  expect(error).toMatchObject({ message: 'The model did not complete the answer (MALFORMED_FUNCTION_CALL).' });
});

describe('answers without pieces', () => {
  const choice = (more: object, finish_reason: string | null = null) => ({
    ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm' },
    choices: [{ index: 0, ...more, finish_reason }],
  });
  const message = (content: string, more: object = {}) => ({ message: { role: 'assistant', content, ...more } });
  it.each<[string, object[]]>([
    ['a whole message', [choice(message('Hello'), 'stop')]],
    ['messages that grow', [choice(message('Hel')), choice(message('Hello'), 'stop')]],
    ['messages that go on', [choice(message('Hel')), choice(message('lo')), stop]],
    ['the whole message again after its pieces', [hello, choice(message('Hello'), 'stop')]],
    [
      'a whole message behind empty pieces',
      [chunk({ role: 'assistant', content: '' }), choice(message('Hello'), 'stop')],
    ],
    ['texts of the older interface', [choice({ text: 'Hel' }), choice({ text: 'lo' }), choice({ text: '' }, 'stop')]],
  ])('are read from %s', async (_name, chunks) => {
    expect(await served(custom, sse(...chunks, done))).toMatchObject(whole);
    expect(await served(openrouter, sse(...chunks, done))).toMatchObject(whole);
  });

  const response = (status: string, output: object[] = []) => ({
    ...{ id: 'r', object: 'response', created_at: 1, model: 'm', status, output },
    usage: { input_tokens: 5, output_tokens: 5, total_tokens: 10 },
  });
  const part = { type: 'output_text', text: 'Hello', annotations: [] };
  const item = { type: 'message', id: 'i', role: 'assistant', status: 'completed', content: [part] };
  const begun = { type: 'response.created', response: response('in_progress') };
  const added = { type: 'response.output_item.added', output_index: 0, item: { ...item, content: [] } };
  const place = { item_id: 'i', output_index: 0, content_index: 0 };
  const textDone = { type: 'response.output_text.done', ...place, text: 'Hello' };
  const itemDone = { type: 'response.output_item.done', output_index: 0, item };
  const completed = { type: 'response.completed', response: response('completed', [item]) };
  const delta = { type: 'response.output_text.delta', ...place, delta: 'Hello' };
  const clear = { type: 'reasoning_text', text: 'A secret thought.' };
  const thought = { type: 'reasoning', id: 't', status: 'completed', summary: [], content: [clear] };
  const thoughtDone = { type: 'response.output_item.done', output_index: 0, item: thought };
  const bothCompleted = { ...completed, response: response('completed', [thought, item]) };
  it.each<[string, object[]]>([
    ['a text that is done', [begun, added, textDone, itemDone, completed]],
    ['an item that is done', [begun, added, itemDone, completed]],
    ['a response that is completed', [begun, completed]],
    ['a response that is completed, alone', [completed]],
    ['pieces, once', [begun, added, delta, textDone, itemDone, completed]],
    ['pieces behind thoughts', [begun, thoughtDone, added, delta, textDone, itemDone, completed]],
    ['a response with thoughts', [bothCompleted]],
    ['a response with the message behind thoughts that came before', [begun, thoughtDone, bothCompleted]],
    ['an item behind a text that is missing', [begun, added, { ...textDone, text: undefined }, itemDone, completed]],
  ])('are read from %s', async (_name, events) => {
    for (const definition of [openai, xai])
      expect(await served(definition, sse(...events)), definition.id).toMatchObject(whole);
  });
});

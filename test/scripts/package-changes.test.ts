import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createOpenAI } from '@ai-sdk/openai';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { createXai } from '@ai-sdk/xai';
import * as sdk from '@modelcontextprotocol/server';
import { afterAll, describe, expect, it } from 'vitest';
import { allMet, plainSchemas, signs, signsFirst } from '../../scripts/build/package-changes.ts';

type Create = (settings: { apiKey: string; fetch: typeof fetch }) => { responses(id: string): LanguageModelV4 };

mkdirSync('node_modules/.cache', { recursive: true });
// Where it finds the same packages.
const folder = mkdtempSync(join('node_modules', '.cache', 'package-changes-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A package as it is, and as it is built. */
async function packageOf(name: 'openai' | 'xai', plain: Create) {
  const file = resolve(`node_modules/@ai-sdk/${name}/dist/index.js`);
  const code = readFileSync(file, 'utf8');
  const path = join(folder, `${name}.mjs`);
  writeFileSync(path, plainSchemas.transform(code, file) ?? '');
  const { createOpenAI: openai, createXai: xai } = await import(pathToFileURL(resolve(path)).href);
  const built: Create = openai ?? xai;
  const both = async (events: readonly object[]) => ({
    built: await read(built, events),
    plain: await read(plain, events),
  });
  return { name, file, code, both };
}

/** What each of the two packages makes of an answer of these events: its parts, and the names of its errors. */
async function read(create: Create, events: readonly object[]): Promise<unknown[]> {
  const text = events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('');
  const headers = { 'content-type': 'text/event-stream' };
  const model = create({ apiKey: 'test-key', fetch: async () => new Response(text, { headers }) }).responses('gpt-5');
  const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Why?' }] }];
  const parts: unknown[] = [];
  try {
    const { stream } = await model.doStream({ prompt, includeRawChunks: true });
    for await (const part of stream)
      parts.push(part.type === 'error' && part.error instanceof Error ? part.error.name : part);
  } catch (error) {
    parts.push(error instanceof Error ? error.name : error);
  }
  // Some ids are drawn by lot.
  return JSON.parse(JSON.stringify(parts).replace(/"[A-Za-z0-9]{16}"/g, '"id"'));
}

const packages = await Promise.all([packageOf('openai', createOpenAI), packageOf('xai', createXai)]);

const place = { item_id: 'msg_1', output_index: 0, content_index: 0, summary_index: 0, sequence_number: 3 };
const created = { type: 'response.created', response: { id: 'resp_1', created_at: 1, model: 'gpt-5' } };
const usage = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 4, unknown: { deep: [1, null, 'text'] } },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 15,
  unknown: [{ more: true }],
};
const item = (type: string) => ({
  ...{ type, id: 'item_1', call_id: 'call_1', name: 'look', arguments: '{"a":1}', status: 'completed' },
  ...{ role: 'assistant', content: [{ type: 'output_text', text: 'Yes.', annotations: [] }], summary: [], code: '' },
  ...{ container_id: 'c', outputs: [], queries: ['q'], results: null, result: 'image', encrypted_content: 'x' },
  ...{ server_label: 's', error: { code: 1, why: ['no'] }, output: null, tools: [{ name: 't', schema: { a: [1] } }] },
  ...{ action: { type: 'search', query: 'q' }, input: 'i', execution: 'server' },
});

/** All texts in the source of a package that look so. */
const named = (code: string, pattern: RegExp) => [...new Set([...code.matchAll(pattern)].map(([, name = '']) => name))];

const eventTypes = /"((?:response|keepalive|error)[\w.]*)"/g;
const itemTypes = /literal\("(message|reasoning|[a-z_]+_(?:call|output|request|tools|list))"\)/g;

describe.each(packages)('the schemas of $name as they are built', ({ name, file, code, both }) => {
  it('read a whole answer like those of the package, with all that a usage tells', async () => {
    const { built, plain } = await both([
      created,
      { type: 'response.output_item.added', output_index: 0, item: item('message') },
      { type: 'response.output_text.delta', ...place, delta: 'Yes.', logprobs: [] },
      { type: 'response.output_item.done', output_index: 0, item: item('message') },
      { type: 'response.completed', response: { ...created.response, usage, incomplete_details: null } },
    ]);
    expect(built).toEqual(plain);
    expect(JSON.stringify(built)).toContain(name === 'openai' ? '"deep":[1,null,"text"]' : '"delta":"Yes."');
  });

  it('know each type of event, whole, in part and with a field of another kind', async () => {
    const types = named(code, eventTypes);
    expect(types.length).toBeGreaterThan(30);
    const fields = { ...place, delta: 'd', text: 't', refusal: 'r', code: 'c', message: 'm', diff: 'x', part: {} };
    const more = { item: item('message'), annotation: { type: 'url_citation', url: 'https://a.example', title: 'a' } };
    const response = { ...created.response, usage, error: { code: 'server_error', message: 'No.' } };
    for (const type of [...types, 'response.of_tomorrow']) {
      for (const event of [{ type }, { type, ...fields, ...more, response }, { type, ...fields, delta: 1, item: 1 }]) {
        const { built, plain } = await both([created, event]);
        expect(built, JSON.stringify(event)).toEqual(plain);
      }
    }
  });

  it('know each type of item', async () => {
    const types = named(code, itemTypes);
    expect(types.length).toBeGreaterThan(10);
    for (const type of [...types, 'item_of_tomorrow']) {
      const events = ['added', 'done'].map(what => ({
        type: `response.output_item.${what}`,
        output_index: 0,
        item: item(type),
      }));
      const { built, plain } = await both([created, ...events]);
      expect(built, type).toEqual(plain);
    }
  });

  it('tell of an error that has no type of its own, and of what is no event', async () => {
    for (const event of [
      { error: { message: 'No.', type: 'server_error' } },
      { type: 'error', error: { message: 'No.' } },
      {},
      [1],
    ]) {
      const { built, plain } = await both([created, event]);
      expect(built, JSON.stringify(event)).toEqual(plain);
    }
  });

  it('are not built from a package that checks in another way', () => {
    const other = code.replaceAll('ResponsesChunkSchema', 'Schema');
    expect(() => plainSchemas.transform(other, file)).toThrow(/look at the changes of plain-schemas again/);
    expect(plainSchemas.transform(code, 'node_modules/@ai-sdk/google/dist/index.js')).toBeUndefined();
  });
});

describe('what the SDK of the protocol looks at first', () => {
  const rpc = { jsonrpc: '2.0' };
  const client = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } };
  const messages = [
    { ...rpc, id: 1, method: 'tools/list' },
    { ...rpc, id: 'a', method: 'initialize', params: client },
    { ...rpc, method: 'notifications/initialized' },
    { ...rpc, id: 1, result: {} },
    { ...rpc, id: 1, error: { code: -32_600, message: 'No.' } },
    { ...rpc, id: 1, method: 'x', result: {}, error: { code: 1, message: 'No.' } },
    { ...rpc, id: 1 },
    { ...rpc, method: 1 },
    ...[null, undefined, 'text', 5, [], {}],
  ];
  const looks = Object.fromEntries(
    Object.entries(signs).map(([name, sign]) => [name, new Function('value', `return ${sign}`)]),
  );

  it('holds for each message that is of the kind, and for few others', () => {
    const counts = Object.entries(looks).map(([name, look]) => {
      const is: unknown = Reflect.get(sdk, name);
      if (typeof is !== 'function') throw new Error(`the package has no ${name}`);
      const found = messages.filter(message => is(message));
      expect(found.length, name).toBeGreaterThan(0);
      expect(found.filter(message => !look(message))).toEqual([]);
      return messages.filter(message => look(message)).length - found.length;
    });
    expect(Math.max(...counts)).toBeLessThan(5);
  });

  it('is asked before the schemas, or the build ends', () => {
    const guards = Object.keys(signs).map(name => `const ${name} = (value) => SomeSchema.safeParse(value).success;`);
    const id = 'node_modules/@modelcontextprotocol/server/dist/src-1.mjs';
    expect(signsFirst.transform(guards.join('\n'), id)).toContain('"result" in Object(value) && SomeSchema.safeParse(');
    expect(() => signsFirst.transform(guards.slice(0, 2).join('\n'), id)).toThrow(
      /look at the changes of signs-first again/,
    );
    expect(
      signsFirst.transform('export {};', 'node_modules/@modelcontextprotocol/server/dist/index.mjs'),
    ).toBeUndefined();
  });
});

it('ends the build where no file has the name of one that is changed', () => {
  // Here only some were met.
  expect(() => allMet.generateBundle()).toThrow(/No file that is bundled is called/);
});

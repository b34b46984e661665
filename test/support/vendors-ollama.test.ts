import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FakeVendor } from './vendors/fake-vendor.ts';
import { startOllama } from './vendors/start-ollama.ts';

type Body = Record<string, unknown>;

let ollama: FakeVendor;

beforeAll(async () => {
  ollama = await startOllama({
    keys: [],
    models: [
      { id: 'llama3.2:latest', window: 8_192, capabilities: ['completion'] },
      { id: 'qwen3:8b', capabilities: ['completion', 'thinking', 'vision'] },
    ],
  });
});
afterAll(() => ollama.close());

async function post(path: string, body: unknown) {
  const before = ollama.violations.length;
  const init = { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) };
  const response = await fetch(`${ollama.url}${path}`, init);
  const text = await response.text();
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    text,
    violations: ollama.violations.slice(before),
  };
}

const hello: Body = { model: 'qwen3:8b', messages: [{ role: 'user', content: 'Hi' }], stream: false };

describe('the fake Ollama', () => {
  it.each<[string, Body]>([
    ['a plain question', {}],
    ['a name without its tag', { model: 'llama3.2' }],
    ['levels of thinking', { think: 'max' }],
    ['no thinking, even of a model that can not', { model: 'llama3.2', think: false }],
    ['options', { options: { num_ctx: 4_096, num_predict: -1, temperature: 0, stop: ['x'] } }],
    ['an image', { messages: [{ role: 'user', content: 'See', images: ['AQID'] }] }],
    ['what nobody documents, but the server knows', { truncate: false, shift: false, keep_alive: '5m' }],
  ])('takes %s', async (_name, change) => {
    const { status, violations } = await post('/chat', { ...hello, ...change });
    expect({ status, violations }).toEqual({ status: 200, violations: [] });
  });

  it.each<[string, unknown, number, RegExp]>([
    ['a model that is not pulled', { ...hello, model: 'absent' }, 404, /model 'absent' not found/],
    ['no model', { messages: [] }, 400, /model is required/],
    ['no messages', { ...hello, messages: [] }, 400, /messages/],
    ['what would have no effect', { ...hello, temperature: 1 }, 400, /temperature/],
    ['an option that would have no effect', { ...hello, options: { max_tokens: 1 } }, 400, /max_tokens/],
    ['an option of another type', { ...hello, options: { num_ctx: '4096' } }, 400, /num_ctx/],
    ['an unknown level', { ...hello, think: 'minimal' }, 400, /invalid think value/],
    [
      'thinking of a model that can not',
      { ...hello, model: 'llama3.2', think: true },
      400,
      /does not support thinking/,
    ],
    ['a role of other vendors', { ...hello, messages: [{ role: 'developer', content: 'x' }] }, 400, /role/],
    ['content in parts', { ...hello, messages: [{ role: 'user', content: [] }] }, 400, /type string/],
    [
      'an image as an address',
      { ...hello, messages: [{ role: 'user', content: '', images: ['data:x'] }] },
      400,
      /base64/,
    ],
    [
      'an image for a model that sees none',
      { ...hello, model: 'llama3.2', messages: [{ role: 'user', content: '', images: ['AQID'] }] },
      500,
      /image/,
    ],
    ['broken JSON', '{', 400, /JSON/],
    [
      'more than the window that was asked for',
      { ...hello, options: { num_ctx: 50 }, messages: [{ role: 'user', content: 'word '.repeat(60) }] },
      400,
      /exceeds the context length/,
    ],
    [
      'more than the server takes by itself',
      { ...hello, messages: [{ role: 'user', content: 'word '.repeat(5_000) }] },
      400,
      /exceeds the context length/,
    ],
  ])('refuses %s', async (_name, body, status, message) => {
    const answer = await post('/chat', body);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.text)).toEqual({ error: expect.stringMatching(message) });
    expect(answer.violations).toHaveLength(1);
  });

  it('streams one object a line, thoughts first, counts last', async () => {
    ollama.script({ answer: 'one two', chunks: 2, reasoning: 'hm' });
    const { type, text } = await post('/chat', { ...hello, stream: true, think: true });
    expect(type).toBe('application/x-ndjson');
    const lines = text
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line));
    expect(lines.map(({ message, done }) => [message.thinking ?? '', message.content, done])).toEqual([
      ['hm', '', false],
      ['', 'one', false],
      ['', ' two', false],
      ['', '', true],
    ]);
    expect(lines.at(-1)).toMatchObject({ done_reason: 'stop', prompt_eval_count: 1, eval_count: 3 });
  });

  it('tells what is pulled and what each can do', async () => {
    const tags = JSON.parse(await (await fetch(`${ollama.url}/tags`)).text());
    expect(tags.models.map(({ name }: { name: string }) => name)).toEqual(['llama3.2:latest', 'qwen3:8b']);
    const shown = JSON.parse((await post('/show', { model: 'llama3.2' })).text);
    expect(shown).toMatchObject({ model_info: { 'llama.context_length': 8_192 }, capabilities: ['completion'] });
    expect((await post('/show', { model: 'absent' })).status).toBe(404);
  });

  it('asks for its key where it has one', async () => {
    const locked = await startOllama();
    try {
      const status = async (headers: Record<string, string>) => (await fetch(`${locked.url}/tags`, { headers })).status;
      expect(await status({})).toBe(401);
      expect(await status({ authorization: 'Bearer other' })).toBe(401);
      expect(await status({ authorization: 'Bearer test-key' })).toBe(200);
    } finally {
      await locked.close();
    }
  });
});

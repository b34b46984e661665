import { describe, expect, it } from 'vitest';
import type { ModelInfo } from '../../src/core/model.ts';
import { openai } from '../../src/providers/openai.ts';
import { providerAsker } from '../contracts/ask-provider.ts';
import { providerSuite } from '../contracts/provider-suite.ts';
import { modelInfo } from '../models/scripted-model.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const gpt: ModelInfo = modelInfo({
  provider: 'openai',
  id: 'gpt-5.1',
  window: 400_000,
  maxOutput: 128_000,
  reasoning: true,
  temperature: 'none',
  efforts: ['none', 'low', 'medium', 'high'],
});
const withTail = expect.stringMatching(/^What is this\?\n\n[\s\S]*WHAT TO DO NOW/);

providerSuite({
  name: 'openai (responses)',
  definition: openai,
  start: startOpenAi,
  settings: (baseUrl, apiKey = 'test-key') => ({ apiKey, baseUrl }),
  model: gpt,
  path: '/v1/responses',
  headers: { authorization: 'Bearer test-key', 'content-type': 'application/json' },
  body: {
    store: false,
    prompt_cache_key: 'thread-1',
    max_output_tokens: 2000,
    reasoning: { effort: 'none' },
    input: [
      { role: 'developer', content: 'You are careful.' },
      { role: 'user', content: [{ type: 'input_text', text: 'What is this?' }] },
      { role: 'developer', content: expect.stringContaining('WHAT TO DO NOW') },
    ],
  },
  thinking: [
    { ask: { effort: 'high' }, body: { reasoning: { effort: 'high' } } },
    { ask: { effort: 'max' }, body: { reasoning: { effort: 'high' } } },
    { ask: { effort: 'minimal' }, body: { reasoning: { effort: 'low' } } },
  ],
  imageBody: base64 => ({
    input: [
      {
        role: 'user',
        content: [{ type: 'input_text' }, { type: 'input_image', image_url: `data:image/png;base64,${base64}` }],
      },
    ],
  }),
  roles: ['developer', 'user', 'developer'],
  tells: { cacheWrite: true },
  marks: false,
  keyName: 'OPENAI_API_KEY',
});

providerSuite({
  name: 'openai (chat)',
  definition: openai,
  start: startOpenAi,
  settings: (baseUrl, apiKey = 'test-key') => ({ apiKey, baseUrl, apiStyle: 'chat' }),
  model: gpt,
  path: '/v1/chat/completions',
  headers: { authorization: 'Bearer test-key' },
  body: {
    max_completion_tokens: 2000,
    reasoning_effort: 'none',
    stream_options: { include_usage: true },
    messages: [
      { role: 'system', content: 'You are careful.' },
      { role: 'user', content: withTail },
    ],
  },
  thinking: [
    { ask: { effort: 'medium' }, body: { reasoning_effort: 'medium' } },
    { ask: { effort: 'max' }, body: { reasoning_effort: 'high' } },
  ],
  imageBody: base64 => ({
    messages: [
      {
        role: 'user',
        content: [{ type: 'text' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } }],
      },
    ],
  }),
  roles: ['system', 'user'],
  tells: { cacheWrite: true },
  marks: false,
  keyName: 'OPENAI_API_KEY',
});

describe('openai', () => {
  const connect = (settings: Record<string, string>) => openai.connect({ apiKey: 'test-key', ...settings });
  const options = async (model: ModelInfo, settings = {}) => {
    const { openai: sent } = (await connect(settings)).providerOptions({ model, effort: 'high', maxOutputTokens: 100 });
    return sent;
  };

  it('puts the tail last as instructions, but at servers with chat templates of their own', async () => {
    expect((await connect({})).tailRole?.(gpt)).toBe('system');
    expect((await connect({ apiStyle: 'chat' })).tailRole?.(gpt)).toBe('system');
    expect((await connect({ apiStyle: 'chat', baseUrl: 'http://127.0.0.1:1/v1' })).tailRole?.(gpt)).toBe('user');
  });

  it.each([
    ['https://api.openai.com/v1', true],
    ['https://api.openai.com', true],
    ['https://eu.api.openai.com/v1', true],
    ['https://generativelanguage.googleapis.com/v1beta/openai', false],
    ['https://api.openai.com.example.com/v1', false],
    ['http://127.0.0.1:8000/v1', false],
  ])('asks the chat of %s with a key of the cache, and to store nothing: %s', async (baseUrl, told) => {
    const { providerOptions } = await connect({ apiStyle: 'chat', baseUrl });
    const { openai: sent } = providerOptions({ model: gpt, effort: 'high', maxOutputTokens: 1, cacheKey: 'thread-1' });
    const own = told ? { store: false, promptCacheKey: 'thread-1' } : {};
    expect(sent).toEqual({ ...own, reasoningEffort: 'high', forceReasoning: true, systemMessageMode: 'system' });
  });

  it('treats a model as reasoning when the catalogue says so, whatever the package knows', async () => {
    expect(await options({ ...gpt, id: 'a-new-name' })).toMatchObject({
      forceReasoning: true,
      reasoningEffort: 'high',
    });
    expect(await options(modelInfo({ id: 'gpt-4o' }))).not.toHaveProperty('forceReasoning');
    expect(await options(modelInfo({ id: 'gpt-4o' }))).not.toHaveProperty('reasoningEffort');
  });

  it('keeps asking for responses after a name that the server does not know, with or without the version path', async () => {
    const vendor = await startOpenAi({ models: [{ id: 'good' }] });
    try {
      for (const baseUrl of [vendor.url, vendor.url.replace(/\/v1$/, '')]) {
        vendor.requests.length = 0;
        const ask = await providerAsker(openai, { apiKey: 'test-key', baseUrl });
        await expect(ask(modelInfo({ provider: 'openai', id: 'typo' }))).rejects.toThrow('`typo` does not exist');
        await ask(modelInfo({ provider: 'openai', id: 'good' }));
        expect(vendor.requests.map(({ path }) => path)).toEqual(['/v1/responses', '/v1/responses']);
      }
    } finally {
      await vendor.close();
    }
  });

  it('never sends the effort max through chat', async () => {
    const model: ModelInfo = { ...gpt, efforts: ['high', 'max'] };
    expect((await connect({})).providerOptions({ model, effort: 'max', maxOutputTokens: 1 }).openai).toMatchObject({
      reasoningEffort: 'max',
    });
    expect(
      (await connect({ apiStyle: 'chat' })).providerOptions({ model, effort: 'max', maxOutputTokens: 1 }).openai,
    ).toMatchObject({ reasoningEffort: 'high' });
  });
});

import { describe, expect, it } from 'vitest';
import { createAskModel } from '../../src/models/call/call.ts';
import { configureProviders, createConnections } from '../../src/models/catalogue/connections.ts';
import { custom } from '../../src/providers/custom.ts';
import { providerSuite } from '../contracts/provider-suite.ts';
import { modelInfo, say } from '../models/scripted-model.ts';
import { realClock } from '../support/clock.ts';
import { testProduct } from '../support/product.ts';
import { seededRandom } from '../support/random.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const withTail = expect.stringMatching(/^What is this\?\n\n[\s\S]*WHAT TO DO NOW/);

providerSuite({
  name: 'custom',
  definition: custom,
  start: startOpenAi,
  settings: (apiUrl, apiKey = 'test-key') => ({ apiUrl, apiKey, modelName: 'qwen3:32b' }),
  model: modelInfo({ provider: 'custom', id: 'qwen3:32b', efforts: ['low', 'high'] }),
  path: '/v1/chat/completions',
  headers: { authorization: 'Bearer test-key' },
  body: {
    max_tokens: 2000,
    stream_options: { include_usage: true },
    messages: [
      { role: 'system', content: 'You are careful.' },
      { role: 'user', content: withTail },
    ],
  },
  thinking: [{ ask: { effort: 'medium' }, body: { reasoning_effort: 'high', temperature: 0.4 } }],
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
  keyName: 'CUSTOM_API_KEY',
});

describe('custom', () => {
  const apiUrl = 'http://127.0.0.1:8000/v1';

  it('brings the one model of its settings along; its window is whatever the server tells', () => {
    expect(custom.models({ apiUrl, modelName: 'gpt-oss:20b' })).toMatchObject([
      { id: 'gpt-oss:20b', provider: 'custom', window: 32_768, windowAssumed: true, maxOutput: 16_384 },
    ]);
    expect(custom.models({ apiUrl })).toEqual([]);
  });

  it('takes the configured window where the server tells none, and says when nobody told one', () => {
    expect(custom.fallbackWindow({ contextWindow: '8192' })).toEqual({ tokens: 8192, assumed: false });
    expect(custom.fallbackWindow({})).toEqual({ tokens: 32_768, assumed: true });
    expect(custom.fallbackWindow({ contextWindow: 'many' })).toEqual({ tokens: 32_768, assumed: true });
  });

  it('is local on this machine and network only', () => {
    expect(custom.local({ apiUrl })).toBe(true);
    expect(custom.local({ apiUrl: 'https://models.example.com/v1' })).toBe(false);
    expect(custom.local({})).toBe(false);
  });

  it('asks a server without keys, by the whole id, and without words that the server may not know', async () => {
    const vendor = await startOpenAi({ keys: [] });
    try {
      const settings = { apiUrl: `${vendor.url}/`, modelName: 'gpt-oss:20b' };
      const ask = createAskModel({
        connection: createConnections(configureProviders([custom], { custom: settings })),
        clock: realClock(),
        random: seededRandom(),
        emit: () => {},
        isLocal: () => true,
        limits: { firstByteMs: 1000, idleMs: 1000, totalMs: 5000 },
      });
      const [model] = custom.models(settings);
      await ask({
        reqId: 'r',
        tool: 'chat',
        candidates: [{ model: model!, effort: 'high', reason: 'test' }],
        messages: [say('user', 'x')],
        maxOutputTokens: 100,
        cacheKey: 'thread',
        signal: new AbortController().signal,
      });
      const [request] = vendor.requests;
      expect(request?.headers).not.toHaveProperty('authorization');
      expect(request?.body).toMatchObject({ model: 'gpt-oss:20b' });
      expect(Object.keys(request?.body ?? {}).sort()).toEqual([
        'max_tokens',
        'messages',
        'model',
        'stream',
        'stream_options',
      ]);
    } finally {
      await vendor.close();
    }
  });

  it('is sent the schema that an answer is to have', async () => {
    const vendor = await startOpenAi();
    const schema = { type: 'object', properties: { city: { type: 'string' } } } as const;
    const { languageModel } = await custom.connect({ apiUrl: vendor.url, apiKey: 'test-key' });
    const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Which capital?' }] }];
    await languageModel(modelInfo({ id: 'any' })).doStream({ prompt, responseFormat: { type: 'json', schema } });
    expect(vendor.requests.at(-1)?.body).toMatchObject({
      response_format: { type: 'json_schema', json_schema: { schema } },
    });
    await vendor.close();
  });

  it('has its key in no error, whatever the key looks like, where the server repeats it', async () => {
    const key = 'team-gateway-prod-access';
    const vendor = await startOpenAi({ keys: [key] });
    const product = await testProduct({
      root: '/',
      env: { CUSTOM_API_URL: vendor.url, CUSTOM_API_KEY: key, CUSTOM_MODEL_NAME: 'any' },
    });
    vendor.script({ fault: 'status', status: 400, body: { error: { message: `Invalid request from ${key}` } } });
    const reply = await product.call('chat', { prompt: 'What?', model: 'custom:any' });
    expect(JSON.stringify(reply)).toContain('Invalid request from [removed]');
    expect(JSON.stringify(reply)).not.toContain(key);
    await product.close();
    await vendor.close();
  });
});

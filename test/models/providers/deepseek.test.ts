import { describe, expect, it } from 'vitest';
import { deepseek } from '../../../src/models/providers/deepseek.ts';
import { providerSuite } from '../../contracts/provider-suite.ts';
import { startDeepSeek } from '../../support/vendors/start-deepseek.ts';
import { catalogueModel } from '../catalogue-model.ts';

const flash = catalogueModel('deepseek', 'deepseek-flash');

providerSuite({
  name: 'deepseek',
  definition: deepseek,
  start: startDeepSeek,
  settings: (baseUrl, apiKey = 'test-key') => ({ apiKey, baseUrl }),
  model: flash,
  path: '/chat/completions',
  headers: { authorization: 'Bearer test-key' },
  body: {
    max_tokens: 2000,
    stream_options: { include_usage: true },
    thinking: { type: 'disabled' },
    messages: [
      { role: 'system', content: 'You are careful.' },
      { role: 'user', content: expect.stringMatching(/^What is this\?\n\n=== WHAT TO DO NOW/) },
    ],
  },
  thinking: [
    { ask: { effort: 'max' }, body: { thinking: { type: 'enabled' }, reasoning_effort: 'max' } },
    { ask: { effort: 'medium' }, body: { thinking: { type: 'enabled' }, reasoning_effort: 'low' } },
    {
      ask: { model: catalogueModel('deepseek', 'deepseek-v4-pro'), effort: 'low' },
      body: { thinking: { type: 'enabled' }, reasoning_effort: 'high' },
    },
  ],
  temperature: { temperature: 0.4 },
  imageBody: base64 => ({
    messages: [
      {
        role: 'user',
        content: [{ type: 'text' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } }],
      },
    ],
  }),
  roles: ['system', 'user'],
  tells: { cacheWrite: false },
  marks: false,
  keyName: 'DEEPSEEK_API_KEY',
});

describe('deepseek', () => {
  it('says nothing of thinking to models that can not be switched', async () => {
    const connection = await deepseek.connect({ apiKey: 'test-key' });
    for (const id of ['deepseek-chat', 'deepseek-reasoner']) {
      const model = catalogueModel('deepseek', id);
      expect(connection.providerOptions({ model, effort: 'high', maxOutputTokens: 1 })).toEqual({ deepseek: {} });
    }
  });
});

import { describe, expect, it } from 'vitest';
import { groq } from '../../src/providers/groq.ts';
import { askProvider } from '../contracts/ask-provider.ts';
import { providerSuite } from '../contracts/provider-suite.ts';
import { catalogueModel } from '../models/catalogue-model.ts';
import { startGroq } from '../support/vendors/start-groq.ts';

const qwen = catalogueModel('groq', 'qwen/qwen3.8-27b');
const withTail = expect.stringMatching(/^What is this\?\n\n[\s\S]*WHAT TO DO NOW/);

providerSuite({
  name: 'groq',
  definition: groq,
  start: startGroq,
  settings: (baseUrl, apiKey = 'test-key') => ({ apiKey, baseUrl }),
  model: qwen,
  path: '/openai/v1/chat/completions',
  headers: { authorization: 'Bearer test-key' },
  body: {
    max_tokens: 2000,
    reasoning_effort: 'none',
    reasoning_format: 'parsed',
    messages: [
      { role: 'system', content: 'You are careful.' },
      { role: 'user', content: withTail },
    ],
  },
  thinking: [
    { ask: { effort: 'medium' }, body: { reasoning_effort: 'medium', reasoning_format: 'parsed' } },
    { ask: { effort: 'max' }, body: { reasoning_effort: 'high' } },
    {
      ask: { model: catalogueModel('groq', 'qwen/qwen3-32b'), effort: 'low' },
      body: { reasoning_effort: 'default', reasoning_format: 'parsed' },
    },
    {
      ask: { model: catalogueModel('groq', 'openai/gpt-oss-120b'), effort: 'minimal' },
      body: { reasoning_effort: 'low' },
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
  keyName: 'GROQ_API_KEY',
});

describe('groq', () => {
  it.each(['qwen/qwen3.8-27b', 'openai/gpt-oss-20b'])('keeps the thoughts of %s out of the answer', async id => {
    const vendor = await startGroq();
    try {
      vendor.script({ answer: 'Forty-two.', reasoning: 'Six times seven.' });
      const answer = await askProvider(groq, { apiKey: 'test-key', baseUrl: vendor.url }, catalogueModel('groq', id));
      expect(answer).toMatchObject({ text: 'Forty-two.', usage: { reasoning: expect.any(Number) } });
      expect(vendor.violations).toEqual([]);
    } finally {
      await vendor.close();
    }
  });
});

import { describe, expect, it } from 'vitest';
import type { ModelQuestion } from '../../src/models/ask-model.ts';
import { deepseek } from '../../src/providers/deepseek.ts';
import { askProvider } from '../contracts/ask-provider.ts';
import { providerSuite } from '../contracts/provider-suite.ts';
import { catalogueModel } from '../models/catalogue-model.ts';
import { startDeepSeek } from '../support/vendors/start-deepseek.ts';

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
    { ask: { effort: 'medium' }, body: { thinking: { type: 'enabled' }, reasoning_effort: 'high' } },
    {
      ask: { model: catalogueModel('deepseek', 'deepseek-v4-pro'), effort: 'low' },
      body: { thinking: { type: 'enabled' }, reasoning_effort: 'high' },
    },
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
  tells: { cacheWrite: false },
  marks: false,
  keyName: 'DEEPSEEK_API_KEY',
});

describe('deepseek', () => {
  it('takes an answer that its machines had no room to finish for a broken one', async () => {
    const finish = 'insufficient_system_resource';
    const chunk = (delta: object, finish_reason: string | null) =>
      `data: ${JSON.stringify({ id: '1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
    const body = `${chunk({ role: 'assistant', content: 'Half of' }, null)}${chunk({}, finish)}data: [DONE]\n\n`;
    const vendor = await startDeepSeek();
    try {
      const headers = { 'content-type': 'text/event-stream' };
      vendor.byDefault({ fault: 'status', status: 200, body, headers });
      const answer = await askProvider(deepseek, { apiKey: 'test-key', baseUrl: vendor.url }, flash);
      expect(answer).toMatchObject({ text: 'Half of', partial: true });
    } finally {
      await vendor.close();
    }
  });

  it('warns of a temperature only where one was named', async () => {
    const vendor = await startDeepSeek();
    try {
      const ask = (question: Partial<ModelQuestion>) =>
        askProvider(deepseek, { apiKey: 'test-key', baseUrl: vendor.url }, flash, question);
      expect((await ask({ temperature: 0 })).warnings).toEqual([]);
      expect((await ask({ temperature: 0.7 })).warnings).toEqual([expect.stringContaining('temperature')]);
    } finally {
      await vendor.close();
    }
  });

  it('says nothing of thinking to models that can not be switched', async () => {
    const connection = await deepseek.connect({ apiKey: 'test-key' });
    for (const id of ['deepseek-chat', 'deepseek-reasoner']) {
      const model = catalogueModel('deepseek', id);
      expect(connection.providerOptions({ model, effort: 'high', maxOutputTokens: 1 })).toEqual({ deepseek: {} });
    }
  });
});

import { describe, expect, it } from 'vitest';
import { recordIn, recordsIn } from '../../src/core/json.ts';
import type { Message } from '../../src/core/message.ts';
import { xai } from '../../src/providers/xai.ts';
import { providerAsker } from '../contracts/ask-provider.ts';
import { providerSuite } from '../contracts/provider-suite.ts';
import { catalogueModel } from '../models/catalogue-model.ts';
import { say } from '../models/scripted-model.ts';
import { startXai } from '../support/vendors/start-xai.ts';

const grok = catalogueModel('xai', 'grok-4.3');

providerSuite({
  name: 'xai',
  definition: xai,
  start: startXai,
  settings: (baseUrl, apiKey = 'test-key') => ({ apiKey, baseUrl }),
  model: grok,
  path: '/v1/responses',
  headers: { authorization: 'Bearer test-key' },
  body: {
    store: false,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: 'thread-1',
    max_output_tokens: 2000,
    reasoning: { effort: 'none' },
    input: [
      { role: 'system', content: 'You are careful.' },
      { role: 'user', content: [{ type: 'input_text', text: 'What is this?' }] },
      { role: 'system', content: expect.stringContaining('WHAT TO DO NOW') },
    ],
  },
  thinking: [
    { ask: { effort: 'max' }, body: { reasoning: { effort: 'xhigh' } } },
    { ask: { effort: 'minimal' }, body: { reasoning: { effort: 'low' } } },
    { ask: { model: catalogueModel('xai', 'grok-4.7'), effort: 'none' }, body: { reasoning: { effort: 'low' } } },
  ],
  imageBody: base64 => ({
    input: [
      {
        role: 'user',
        content: [{ type: 'input_text' }, { type: 'input_image', image_url: `data:image/png;base64,${base64}` }],
      },
    ],
  }),
  temperature: { temperature: 0.4 },
  roles: ['system', 'user', 'system'],
  tells: { cacheWrite: false },
  marks: false,
  keyName: 'XAI_API_KEY',
});

describe('xai', () => {
  it('says no effort to models that take none', async () => {
    const connection = await xai.connect({ apiKey: 'test-key' });
    for (const id of ['grok-4', 'grok-3']) {
      const { xai: sent } = connection.providerOptions({
        model: catalogueModel('xai', id),
        effort: 'high',
        maxOutputTokens: 1,
      });
      expect(sent).not.toHaveProperty('reasoningEffort');
    }
  });

  it('sends the sealed thoughts of an answer back with it, in its own thread and to its own model alone', async () => {
    const vendor = await startXai();
    try {
      const ask = await providerAsker(xai, { apiKey: 'test-key', baseUrl: vendor.url });
      vendor.script({ answer: 'Yes.', reasoning: 'It is prime.' });
      await ask(grok, { cacheKey: 'thread-1' });
      const turns: Message[] = [say('user', 'Is 7 prime?'), say('assistant', 'Yes.'), say('user', 'And 9?')];
      await ask(grok, { cacheKey: 'thread-1', messages: turns });
      await ask(grok, { cacheKey: 'thread-2', messages: turns });
      await ask(catalogueModel('xai', 'grok-4.7'), { cacheKey: 'thread-1', messages: turns });
      await ask(grok, { messages: turns });
      const sealed = vendor.requests.map(({ body }) => JSON.stringify(body).includes('"encrypted_content"'));
      expect(sealed).toEqual([false, true, false, false, false]);
      expect(vendor.requests[1]?.body).toMatchObject({
        input: [
          { role: 'user' },
          {
            type: 'reasoning',
            encrypted_content: Buffer.from('It is prime.').toString('base64'),
            summary: [{ type: 'summary_text', text: 'It is prime.' }],
          },
          { role: 'assistant' },
          { role: 'user' },
        ],
      });
      expect(vendor.violations).toEqual([]);
    } finally {
      await vendor.close();
    }
  });

  it('sends sealed thoughts no more once the vendor refused a request with them', async () => {
    const vendor = await startXai();
    try {
      const ask = await providerAsker(xai, { apiKey: 'test-key', baseUrl: vendor.url });
      vendor.script({ answer: 'Yes.', reasoning: 'It is prime.' });
      await ask(grok, { cacheKey: 'thread-1' });
      const messages: Message[] = [say('user', 'Is 7 prime?'), say('assistant', 'Yes.'), say('user', 'And 9?')];
      vendor.script({ fault: 'status', status: 400, body: { error: 'Could not decrypt the provided content.' } });
      await expect(ask(grok, { cacheKey: 'thread-1', messages })).rejects.toThrow();
      await ask(grok, { cacheKey: 'thread-1', messages });
      const sealed = vendor.requests.map(({ body }) => JSON.stringify(body).includes('"encrypted_content"'));
      expect(sealed).toEqual([false, true, false]);
    } finally {
      await vendor.close();
    }
  });

  it('keeps the thoughts of the first answer of the same words, and of long ones the last few', async () => {
    const vendor = await startXai();
    try {
      const ask = await providerAsker(xai, { apiKey: 'test-key', baseUrl: vendor.url });
      const answers = Array.from({ length: 24 }, (_, at) => ({
        answer: `${at}.`,
        reasoning: `${at} `.padEnd(100_000, 'x'),
      }));
      for (const answer of [...answers, { answer: '23.', reasoning: 'Another.' }]) {
        vendor.script(answer);
        await ask(grok, { cacheKey: 'thread', maxOutputTokens: 40_000 });
      }
      await ask(grok, {
        cacheKey: 'thread',
        messages: [
          say('user', 'Why?'),
          ...answers.map(({ answer }) => say('assistant', answer)),
          say('user', 'Go on.'),
        ],
      });
      const input = recordsIn(recordIn(vendor.requests.at(-1)?.body).input);
      const sent = input.flatMap(({ summary }) => recordsIn(summary).map(({ text }) => String(text).slice(0, 4)));
      expect(sent.at(-1)).toBe('23 x');
      expect(sent.length).toBeGreaterThan(10);
      expect(sent.length).toBeLessThan(20);
    } finally {
      await vendor.close();
    }
  });
});

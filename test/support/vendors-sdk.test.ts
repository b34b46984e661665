import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FakeVendor, multibyteAnswer } from './vendors/fake-vendor.ts';
import { startAnthropic } from './vendors/start-anthropic.ts';
import { startOpenAi } from './vendors/start-open-ai.ts';

let openAi: FakeVendor;
let anthropic: FakeVendor;

beforeAll(async () => {
  openAi = await startOpenAi();
  anthropic = await startAnthropic();
});
afterAll(async () => {
  await openAi.close();
  await anthropic.close();
});

const prompt: LanguageModelV4CallOptions['prompt'] = [
  { role: 'system', content: 'Be brief.' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'What is this?' },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: new Uint8Array([1, 2, 3]) } },
    ],
  },
  { role: 'assistant', content: [{ type: 'text', text: 'An image.' }] },
  { role: 'user', content: [{ type: 'text', text: 'And now?' }] },
];

interface Way {
  vendor: FakeVendor;
  model: LanguageModelV4;
  options: LanguageModelV4CallOptions['providerOptions'];
}

const ways: [string, () => Way][] = [
  [
    'Responses',
    () => ({
      vendor: openAi,
      model: createOpenAI({ baseURL: openAi.url, apiKey: 'test-key' }).responses('gpt-5.2'),
      options: { openai: { store: false, promptCacheKey: 'thread', reasoningEffort: 'high' } },
    }),
  ],
  [
    'Chat',
    () => ({
      vendor: openAi,
      model: createOpenAI({ baseURL: openAi.url, apiKey: 'test-key' }).chat('gpt-5.2'),
      options: { openai: { store: false, reasoningEffort: 'high' } },
    }),
  ],
  [
    'a compatible server',
    () => ({
      vendor: openAi,
      model: createOpenAICompatible({ name: 'custom', baseURL: openAi.url, apiKey: 'test-key', includeUsage: true })(
        'llama3:8b',
      ),
      options: {},
    }),
  ],
  [
    'Messages with a budget',
    () => ({
      vendor: anthropic,
      model: createAnthropic({ baseURL: anthropic.url, apiKey: 'test-key' })('claude-sonnet-4-5'),
      options: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1_024 } } },
    }),
  ],
  [
    'Messages with an effort',
    () => ({
      vendor: anthropic,
      model: createAnthropic({ baseURL: anthropic.url, apiKey: 'test-key' })('claude-opus-5'),
      options: { anthropic: { thinking: { type: 'adaptive' }, effort: 'high' } },
    }),
  ],
];

async function ask({ model, options }: Way): Promise<LanguageModelV4StreamPart[]> {
  const { stream } = await model.doStream({
    prompt,
    maxOutputTokens: 2_000,
    ...(options && { providerOptions: options }),
  });
  const parts: LanguageModelV4StreamPart[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

const textOf = (parts: LanguageModelV4StreamPart[]) =>
  parts.map(part => (part.type === 'text-delta' ? part.delta : '')).join('');
const finishOf = (parts: LanguageModelV4StreamPart[]) =>
  parts.flatMap(part => (part.type === 'finish' ? [part] : []))[0];

describe.each(ways)('the AI SDK over %s', (_name, way) => {
  it('gets text, finish and usage, and breaks no rule', async () => {
    const made = way();
    made.vendor.script({ answer: 'It is a test.', reasoning: 'Hm, let me see.' });
    const parts = await ask(made);
    expect(textOf(parts)).toBe('It is a test.');
    expect(finishOf(parts)).toMatchObject({
      finishReason: { unified: 'stop' },
      usage: {
        inputTokens: { total: made.vendor.requests.at(-1)?.tokens },
        outputTokens: { total: 5 + 6, reasoning: 6 },
      },
    });
    expect(made.vendor.violations).toEqual([]);
    expect(made.vendor.requests.at(-1)?.canonical).toBe(
      'system:Be brief.\n[user]\nWhat is this?\n[image]\n[assistant]\nAn image.\n[user]\nAnd now?',
    );
  });

  it.each(['crlf', 'split_utf8'] as const)('reads a %s stream whole', async fault => {
    const made = way();
    made.vendor.script({ fault });
    expect(textOf(await ask(made))).toBe(multibyteAnswer);
  });

  it('learns how an answer ended', async () => {
    const made = way();
    made.vendor.script({ finish: 'length' }, { finish: 'content_filter' });
    expect(finishOf(await ask(made))).toMatchObject({ finishReason: { unified: 'length' } });
    expect(finishOf(await ask(made))).toMatchObject({ finishReason: { unified: 'content-filter' } });
  });

  it('throws what the vendor refuses, with status and message', async () => {
    const made = way();
    made.vendor.script({ fault: 'status', status: 429 });
    await expect(ask(made)).rejects.toMatchObject({ statusCode: 429, message: expect.stringMatching(/rate limit/i) });
  });

  it.each(['reset', 'cut_mid_stream'] as const)('throws on %s', async fault => {
    const made = way();
    made.vendor.script({ fault });
    await expect(ask(made)).rejects.toThrow();
  });

  it.each(['end_mid_stream', 'error_in_stream', 'html', 'empty', 'whitespace_and_comments'] as const)(
    'never takes %s for a finished answer',
    async fault => {
      const made = way();
      made.vendor.script({ fault });
      expect(['error', 'interrupted', undefined]).toContain(finishOf(await ask(made))?.finishReason.unified);
    },
  );
});

import { describe, expect, it } from 'vitest';
import type { Candidate, ModelInfo } from '../../src/core/model.ts';
import { anthropic } from '../../src/providers/anthropic.ts';
import { providerSuite } from '../contracts/provider-suite.ts';
import { modelInfo } from '../models/scripted-model.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';

const tailPart = { type: 'text', text: expect.stringContaining('WHAT TO DO NOW') };

const claude = modelInfo({ provider: 'anthropic', window: 200_000, reasoning: true, input: ['text', 'image'] });
const budgeted: ModelInfo = {
  ...claude,
  id: 'claude-sonnet-4-5',
  maxOutput: 64_000,
  thinkingBudget: { min: 1024, max: 16_000 },
};
const adaptive: ModelInfo = {
  ...claude,
  id: 'claude-opus-4-8',
  maxOutput: 128_000,
  temperature: 'none',
  efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
};
const enabled = (budget: number) => ({ thinking: { type: 'enabled', budget_tokens: budget } });

providerSuite({
  name: 'anthropic',
  model: budgeted,
  definition: anthropic,
  start: startAnthropic,
  settings: (baseUrl: string, apiKey = 'test-key') => ({ apiKey, baseUrl }),
  path: '/v1/messages',
  headers: { 'x-api-key': 'test-key', 'anthropic-version': '2023-06-01' },
  body: {
    max_tokens: 2000,
    system: [{ type: 'text', text: 'You are careful.', cache_control: { type: 'ephemeral' } }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, tailPart] }],
  },
  imageBody: (base64: string) => ({
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64 } },
        ],
      },
    ],
  }),
  roles: ['system', 'user'],
  tells: { cacheWrite: true },
  marks: true,
  keyName: 'ANTHROPIC_API_KEY',
  thinking: [
    { ask: { effort: 'max' }, body: { ...enabled(16_000), max_tokens: 18_000 } },
    { ask: { effort: 'minimal' }, body: { ...enabled(1024), max_tokens: 3024 } },
    { ask: { effort: undefined, thinkingBudget: 4096 }, body: { ...enabled(4096), max_tokens: 6096 } },
    { ask: { effort: undefined, thinkingBudget: 5 }, body: enabled(1024) },
    { ask: { effort: undefined, thinkingBudget: 99_000 }, body: enabled(16_000) },
    {
      ask: { model: adaptive, effort: 'low' },
      body: {
        thinking: { type: 'adaptive', display: 'summarized' },
        output_config: { effort: 'low' },
        max_tokens: 2000,
      },
    },
    {
      ask: { model: adaptive, effort: 'max' },
      body: { thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'max' } },
    },
  ],
});

describe('anthropic', () => {
  const optionsFor = async (model: ModelInfo, ask: Partial<Candidate>) => {
    const connection = await anthropic.connect({ apiKey: 'test-key' });
    return connection.providerOptions({ model, maxOutputTokens: 500, ...ask }).anthropic;
  };

  it('does not think unasked, and not at all when told so', async () => {
    expect(await optionsFor(budgeted, {})).toEqual({});
    expect(await optionsFor(budgeted, { effort: 'none' })).toEqual({ thinking: { type: 'disabled' } });
    expect(await optionsFor({ ...claude, efforts: ['none', 'high'] }, { effort: 'none' })).toEqual({
      thinking: { type: 'disabled' },
    });
    expect(await optionsFor({ ...claude, efforts: ['low', 'high'] }, { effort: 'none' })).toEqual({
      thinking: { type: 'adaptive', display: 'summarized' },
      effort: 'low',
    });
    expect(await optionsFor(modelInfo(), { effort: 'high' })).toEqual({});
  });

  it.each(['claude-sonnet-4-6', 'claude-opus-4-8', 'claude-opus-5-5'])(
    'hears the thoughts of %s while it thinks',
    async id => {
      const vendor = await startAnthropic();
      try {
        vendor.script({ answer: 'Done.', reasoning: 'First this, then that.' });
        const connection = await anthropic.connect({ apiKey: 'test-key', baseUrl: vendor.url });
        const model = { ...adaptive, id };
        const providerOptions = connection.providerOptions({ model, effort: 'high', maxOutputTokens: 2000 });
        const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'x' }] }];
        const call = { prompt, maxOutputTokens: 2000, providerOptions };
        const { stream } = await connection.languageModel(model).doStream(call);
        let thoughts = '';
        for await (const part of stream) if (part.type === 'reasoning-delta') thoughts += part.delta;
        expect(thoughts).toBe('First this, then that.');
        expect(vendor.violations).toEqual([]);
      } finally {
        await vendor.close();
      }
    },
  );

  it('is given one of temperature and top_p, where it takes no more, and the caller is told', async () => {
    const vendor = await startAnthropic();
    try {
      const connection = await anthropic.connect({ apiKey: 'test-key', baseUrl: vendor.url });
      const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'x' }] }];
      const call = { prompt, maxOutputTokens: 500, temperature: 0.3, topP: 0.9 };
      const model = { ...budgeted, id: 'claude-sonnet-4-5' };
      const { stream } = await connection.languageModel(model).doStream(call);
      const told: unknown[] = [];
      for await (const part of stream) if (part.type === 'stream-start') told.push(...part.warnings);
      expect(JSON.stringify(told)).toContain('topP');
      expect(vendor.requests[0]?.body).toMatchObject({ temperature: 0.3 });
      expect(vendor.violations).toEqual([]);
    } finally {
      await vendor.close();
    }
  });

  it('counts a prompt without the search, which the counting method refuses', async () => {
    const vendor = await startAnthropic();
    try {
      const connection = await anthropic.connect({ apiKey: 'test-key', baseUrl: vendor.url });
      const params = { model: adaptive, maxOutputTokens: 500, webSearch: { maxResults: 5, maxRounds: 2 } };
      const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'What is new?' }] }];
      const tools = connection.vendorTools?.(params);
      expect(await connection.countTokens?.(adaptive, { prompt, tools })).toBeGreaterThan(0);
      expect(vendor.violations).toEqual([]);
    } finally {
      await vendor.close();
    }
  });

  it('leaves at least 1,000 tokens for the answer', async () => {
    const small = { ...budgeted, maxOutput: 4096 };
    expect(await optionsFor(small, { effort: 'max' })).toEqual({ thinking: { type: 'enabled', budgetTokens: 3096 } });
    expect(await optionsFor({ ...budgeted, maxOutput: 2000 }, { effort: 'max' })).toEqual({});
  });

  it('sends budget + 1,000 at the least and what the model may write at the most, also for ids that the package does not know', async () => {
    const vendor = await startAnthropic();
    try {
      const connection = await anthropic.connect({ apiKey: 'test-key', baseUrl: vendor.url });
      const model = { ...budgeted, id: 'claude-haiku-4-5-of-tomorrow', maxOutput: 8000 };
      for (const maxOutputTokens of [10, 3000, 8000]) {
        const providerOptions = connection.providerOptions({ model, thinkingBudget: 4000, maxOutputTokens });
        const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'x' }] }];
        const { stream } = await connection.languageModel(model).doStream({ prompt, maxOutputTokens, providerOptions });
        for await (const part of stream) expect(part.type).not.toBe('error');
      }
      expect(vendor.requests.map(request => request.body)).toMatchObject([
        { max_tokens: 5000 },
        { max_tokens: 7000 },
        { max_tokens: 8000 },
      ]);
      expect(vendor.violations).toEqual([]);
    } finally {
      await vendor.close();
    }
  });
});

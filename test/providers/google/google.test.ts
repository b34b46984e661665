import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Candidate, ModelInfo } from '../../../src/core/model.ts';
import { createAskModel } from '../../../src/models/call/call.ts';
import { configureProviders, createConnections } from '../../../src/models/catalogue/connections.ts';
import { loadCatalogue } from '../../../src/models/catalogue/model-sources.ts';
import { google } from '../../../src/providers/google/google.ts';
import { providerSuite } from '../../contracts/provider-suite.ts';
import { modelInfo } from '../../models/scripted-model.ts';
import { realClock } from '../../support/clock.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { quotaSpent } from '../../support/vendors/google-refusal.ts';
import { startGoogle } from '../../support/vendors/start-google.ts';

const gemini = modelInfo({ provider: 'google', window: 1_048_576, reasoning: true, input: ['text', 'image'] });
const flash: ModelInfo = {
  ...gemini,
  id: 'gemini-2.5-flash',
  maxOutput: 65_536,
  efforts: ['none'],
  thinkingBudget: { min: 0, max: 24_576 },
};
const pro: ModelInfo = { ...flash, id: 'gemini-2.5-pro', efforts: [], thinkingBudget: { min: 128, max: 32_768 } };
const levelled: ModelInfo = {
  ...gemini,
  id: 'gemini-3.1-pro-preview',
  maxOutput: 65_536,
  efforts: ['low', 'medium', 'high'],
};
const config = (thinkingConfig: object, maxOutputTokens: number) => ({
  generationConfig: { thinkingConfig, maxOutputTokens },
});
const budget = (thinkingBudget: number) => config({ thinkingBudget, includeThoughts: true }, 2000 + thinkingBudget);
const level = (thinkingLevel: string) => config({ thinkingLevel, includeThoughts: true }, 2000);

providerSuite({
  name: 'google',
  model: flash,
  definition: google,
  start: startGoogle,
  settings: (baseUrl: string, apiKey = 'test-key') => ({ apiKey, baseUrl }),
  path: '/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
  headers: { 'x-goog-api-key': 'test-key' },
  modelInPath: true,
  body: {
    ...config({ thinkingBudget: 0 }, 2000),
    systemInstruction: { parts: [{ text: 'You are careful.' }] },
    contents: [
      { role: 'user', parts: [{ text: 'What is this?' }, { text: expect.stringContaining('WHAT TO DO NOW') }] },
    ],
  },
  imageBody: (base64: string) => ({
    contents: [{ role: 'user', parts: [{ text: 'See:' }, { inlineData: { mimeType: 'image/png', data: base64 } }] }],
  }),
  roles: ['system', 'user'],
  tells: { cacheWrite: false },
  marks: false,
  keyName: 'GEMINI_API_KEY',
  temperature: { generationConfig: { temperature: 0.4 } },
  thinking: [
    { ask: { effort: 'max' }, body: budget(24_576) },
    { ask: { effort: 'minimal' }, body: budget(128) },
    { ask: { effort: undefined, thinkingBudget: 4096 }, body: budget(4096) },
    { ask: { effort: undefined, thinkingBudget: 99_000 }, body: budget(24_576) },
    { ask: { effort: undefined, thinkingBudget: 0 }, body: config({ thinkingBudget: 0 }, 2000) },
    { ask: { model: pro, effort: 'none' }, body: budget(128) },
    { ask: { model: pro, effort: undefined, thinkingBudget: 0 }, body: budget(128) },
    { ask: { model: pro, effort: 'max' }, body: budget(32_768) },
    { ask: { model: levelled, effort: 'high' }, body: level('high') },
    { ask: { model: levelled, effort: 'max' }, body: level('high') },
    { ask: { model: levelled, effort: 'none' }, body: level('low') },
  ],
});

describe('google', () => {
  let vendor: FakeVendor;
  beforeEach(async () => {
    vendor = await startGoogle();
  });
  afterEach(() => vendor.close());

  const optionsFor = async (model: ModelInfo, ask: Partial<Candidate>) => {
    const connection = await google.connect({ apiKey: 'test-key' });
    return connection.providerOptions({ model, maxOutputTokens: 500, ...ask }).google;
  };

  const ask = (model: ModelInfo, more: Partial<Candidate> = {}) =>
    createAskModel({
      connection: createConnections(
        configureProviders([google], { google: { apiKey: 'test-key', baseUrl: vendor.url } }),
      ),
      clock: realClock(),
      random: { uuid: () => '', fraction: () => 0.01 },
      emit: () => {},
      isLocal: () => false,
      limits: { firstByteMs: 3000, idleMs: 3000, totalMs: 8000 },
    })({
      reqId: 'r',
      tool: 'chat',
      candidates: [{ model, reason: 'test', ...more }],
      messages: [
        { role: 'system', section: 'preamble', parts: [{ type: 'text', text: 'You are careful.' }] },
        { role: 'user', section: 'turn', parts: [{ type: 'text', text: 'Hi' }] },
      ],
      maxOutputTokens: 9000,
      signal: new AbortController().signal,
    });

  it('leaves thinking to the vendor unless it was asked for, and never names it to a model without', async () => {
    expect(await optionsFor(flash, {})).toEqual({});
    expect(await optionsFor(levelled, {})).toEqual({});
    expect(await optionsFor(modelInfo(), { effort: 'high' })).toEqual({});
    expect(await optionsFor(levelled, { thinkingBudget: 4000 })).toEqual({});
    expect(await optionsFor({ ...levelled, efforts: ['none', 'max'] }, { effort: 'max' })).toEqual({});
  });

  it('leaves at least 1,000 tokens for the answer', async () => {
    expect(await optionsFor({ ...flash, maxOutput: 3000 }, { effort: 'max' })).toEqual({
      thinkingConfig: { thinkingBudget: 2000, includeThoughts: true },
    });
    expect(await optionsFor({ ...flash, maxOutput: 1000 }, { effort: 'max' })).toEqual({
      thinkingConfig: { thinkingBudget: 0 },
    });
    expect(await optionsFor({ ...pro, maxOutput: 1100 }, { effort: 'max' })).toEqual({});
    await ask({ ...flash, maxOutput: 10_000 }, { thinkingBudget: 4000 });
    expect(vendor.requests[0]?.body).toMatchObject({ generationConfig: { maxOutputTokens: 10_000 } });
    expect(vendor.violations).toEqual([]);
  });

  it('asks each model of the catalogue for each effort in a way that the vendor takes', async () => {
    const own = loadCatalogue().filter(model => model.provider === 'google');
    expect(own.length).toBeGreaterThan(15);
    for (const model of own) {
      for (const effort of ['none', 'minimal', 'medium', 'xhigh', 'max'] as const) {
        expect(await ask(model, { effort })).toMatchObject({ warnings: [] });
      }
    }
    expect(vendor.violations).toEqual([]);
  });

  it('tells a blocked prompt from a blocked answer, and asks neither again', async () => {
    for (const answer of ['', '\n']) {
      vendor.script({ answer, finish: 'content_filter' });
      await expect(ask(flash)).rejects.toMatchObject({
        kind: 'model',
        details: { class: 'content_filter', retryable: false },
        message: expect.stringContaining('SAFETY'),
      });
    }
    expect(vendor.requests).toHaveLength(2);
  });

  it('asks again after an empty answer that ended as if all were well', async () => {
    vendor.byDefault({ answer: '' });
    await expect(ask(flash)).rejects.toMatchObject({ details: { class: 'bad_upstream', retryable: true } });
    expect(vendor.requests).toHaveLength(2);
  });

  it('waits as long as the error body says', async () => {
    vendor.script({ fault: 'status', status: 429, body: quotaSpent('0.6s').body }, { answer: 'Now.' });
    const began = performance.now();
    expect((await ask(flash)).text).toBe('Now.');
    expect(performance.now() - began).toBeGreaterThan(550);
    vendor.script({ fault: 'status', status: 429, body: quotaSpent('44.5s').body });
    await expect(ask(flash)).rejects.toMatchObject({ details: { class: 'rate_limit', retryAfterSeconds: 44.5 } });
  });

  it('keeps thoughts out of the answer and in the count', async () => {
    vendor.script({ answer: 'Four.', reasoning: 'Two and two.' });
    const answer = await ask(levelled, { effort: 'high' });
    expect(answer.text).toBe('Four.');
    expect(answer.usage.reasoning).toBeGreaterThan(0);
    expect(answer.usage.output).toBeGreaterThan(answer.usage.reasoning);
  });

  it('lists what writes text, over all pages, with its window and the length of its answers', async () => {
    await vendor.close();
    const many = Array.from({ length: 1200 }, (_, at) => ({ id: `gemini-${at}`, window: 1000 + at }));
    vendor = await startGoogle({ models: [{ id: 'gemini-embedding-001' }, ...many] });
    const { list } = await google.connect({ apiKey: 'test-key', baseUrl: vendor.url });
    expect(await list!(new AbortController().signal)).toEqual(many.map(each => ({ ...each, maxOutput: 65_536 })));
    expect(vendor.requests.map(({ path }) => path)).toEqual([
      '/v1beta/models?pageSize=1000',
      '/v1beta/models?pageSize=1000&pageToken=1000',
    ]);
  });

  it('tells a refused listing as an error of the key', async () => {
    const { list } = await google.connect({ apiKey: 'wrong', baseUrl: vendor.url });
    await expect(list!(new AbortController().signal)).rejects.toMatchObject({ details: { class: 'auth' } });
  });

  it('refuses a base address that is none before it asks', async () => {
    await expect(google.connect({ apiKey: 'k', baseUrl: 'nonsense' })).rejects.toMatchObject({
      message: expect.stringContaining('GEMINI_BASE_URL'),
    });
  });
});

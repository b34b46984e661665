import { afterEach, describe, expect, it } from 'vitest';
import type { Candidate, ModelInfo } from '../../src/core/model.ts';
import { costOf, feesUsd } from '../../src/core/usage.ts';
import type { ModelQuestion, WebSearch } from '../../src/models/ask-model.ts';
import { createAskModel } from '../../src/models/call/call.ts';
import { configureProviders, createConnections } from '../../src/models/catalogue/connections.ts';
import { loadCatalogue } from '../../src/models/catalogue/model-sources.ts';
import type { ProviderDefinition, ProviderSettings } from '../../src/models/provider.ts';
import { anthropic } from '../../src/providers/anthropic.ts';
import { custom } from '../../src/providers/custom.ts';
import { google } from '../../src/providers/google/google.ts';
import { openai } from '../../src/providers/openai.ts';
import { openrouter } from '../../src/providers/openrouter.ts';
import { xai } from '../../src/providers/xai.ts';
import { modelInfo, say } from '../models/scripted-model.ts';
import { realClock } from '../support/clock.ts';
import { seededRandom } from '../support/random.ts';
import type { FakeVendor, FakeVendorOptions } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startGoogle } from '../support/vendors/start-google.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { startOpenRouter } from '../support/vendors/start-openrouter.ts';
import { startXai } from '../support/vendors/start-xai.ts';

const search: WebSearch = { maxResults: 4, maxRounds: 2, contentSize: 'low' };
const pages = [
  { url: 'https://news.test/one', title: 'One', quote: 'It rained.', age: 'November 20, 2026' },
  { url: 'https://news.test/two', title: 'Two' },
];

interface Case {
  name: string;
  definition: ProviderDefinition;
  start(options?: FakeVendorOptions): Promise<FakeVendor>;
  model: string;
  /** What the vendor must be told of the search. */
  body: object;
  citations: object[];
  /** What its vendor charges for the one search. */
  fee: object;
}

const cases: Case[] = [
  {
    name: 'openai',
    definition: openai,
    start: startOpenAi,
    model: 'gpt-5',
    body: { tools: [{ type: 'web_search', search_context_size: 'low' }], max_tool_calls: 2, store: false },
    citations: [{ title: 'One', url: pages[0]!.url, provider: 'openai' }],
    fee: { amount: 1, usd: 0.01 },
  },
  {
    name: 'google',
    definition: google,
    start: startGoogle,
    model: 'gemini-2.5-flash',
    body: { tools: [{ googleSearch: {} }] },
    citations: [
      { title: 'One', url: pages[0]!.url, provider: 'google' },
      { title: 'Two', url: pages[1]!.url, provider: 'google' },
    ],
    fee: { amount: 1, usd: 0.035 },
  },
  {
    name: 'anthropic',
    definition: anthropic,
    start: startAnthropic,
    model: 'claude-sonnet-4-5',
    body: { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 2 }] },
    citations: [
      { title: 'One', url: pages[0]!.url, snippet: 'It rained.', date: 'November 20, 2026', provider: 'anthropic' },
      { title: 'Two', url: pages[1]!.url, provider: 'anthropic' },
    ],
    fee: { amount: 1, usd: 0.01 },
  },
  {
    name: 'openrouter',
    definition: openrouter,
    start: startOpenRouter,
    model: 'anthropic/claude-haiku-4.5',
    body: {
      tools: [
        {
          type: 'openrouter:web_search',
          parameters: { max_results: 4, max_total_results: 8, search_context_size: 'low' },
        },
      ],
    },
    citations: [
      { title: 'One', url: pages[0]!.url, snippet: 'It rained.', provider: 'openrouter' },
      { title: 'Two', url: pages[1]!.url, provider: 'openrouter' },
    ],
    // Part of the cost that it tells.
    fee: { amount: 1, usd: 0 },
  },
  {
    name: 'xai',
    definition: xai,
    start: startXai,
    model: 'grok-4.5',
    body: { tools: [{ type: 'web_search' }], max_turns: 2 },
    citations: [{ title: 'One', url: pages[0]!.url, provider: 'xai' }],
    fee: { amount: 1, usd: 0.005 },
  },
];

let vendor: FakeVendor | undefined;
afterEach(() => vendor?.close());

function asker(definition: ProviderDefinition, settings: ProviderSettings) {
  const ask = createAskModel({
    connection: createConnections(configureProviders([definition], { [definition.id]: settings })),
    clock: realClock(),
    random: seededRandom(),
    emit: () => {},
    isLocal: () => false,
    searches: model => definition.searches?.(model, settings) ?? false,
    limits: { firstByteMs: 2000, idleMs: 2000, totalMs: 5000 },
  });
  return (model: ModelInfo, more: Partial<ModelQuestion> & Pick<Candidate, 'effort'> = {}) => {
    const { effort, ...rest } = more;
    return ask({
      reqId: 'r',
      tool: 'chat',
      candidates: [{ model, effort, reason: 'test' }],
      messages: [say('user', 'What is new?')],
      maxOutputTokens: 2000,
      signal: new AbortController().signal,
      ...rest,
    });
  };
}

function known(provider: string, id: string): ModelInfo {
  return loadCatalogue().find(model => model.provider === provider && model.id === id)!;
}

describe.each(cases)('a search at $name', ({ name, definition, start, model: id, body, citations, fee }) => {
  async function setUp() {
    vendor = await start();
    const settings = { apiKey: 'test-key', baseUrl: vendor.url };
    return { vendor, ask: asker(definition, settings), model: known(name, id), settings };
  }

  it('is paid for once where the answer breaks off after it', async () => {
    const { vendor: fake, ask, model } = await setUp();
    fake.script({ fault: 'cut_mid_stream', answer: 'It rained in the north. '.repeat(20), finds: pages });
    const { partial, usage } = await ask(model, { webSearch: search });
    // These two tell of searches in their last chunk alone.
    const fees = ['google', 'openrouter'].includes(name) ? undefined : { web_search: fee };
    expect(fake.requests).toHaveLength(1);
    expect({ partial, fees: usage.fees, estimated: usage.estimated }).toEqual({ partial: true, fees, estimated: 1 });
  });

  it('is asked for as the vendor documents it, and its pages come back as citations', async () => {
    const { vendor: fake, ask, model } = await setUp();
    fake.script({ answer: 'It rained in the north.', finds: pages });
    const answer = await ask(model, { webSearch: search });
    expect(fake.violations).toEqual([]);
    expect(fake.requests[0]?.body).toMatchObject(body);
    expect(answer).toMatchObject({ text: 'It rained in the north.', couldSearch: true, warnings: [] });
    expect(answer.citations).toEqual(citations);
    expect(JSON.stringify(answer)).not.toContain('encrypted');
    expect(answer.usage.fees).toEqual({ web_search: fee });
    const { fees, ...tokens } = answer.usage;
    expect(answer.costUsd).toBeGreaterThanOrEqual((name === 'openrouter' ? 0.005 : feesUsd(fees)) + 1e-9);
    if (['openai', 'google', 'anthropic'].includes(name))
      expect(answer.costUsd).toBeCloseTo((costOf(tokens, model.price) ?? 0) + feesUsd(fees), 9);
  });

  it('leaves no trace in a request that does not want it', async () => {
    const { vendor: fake, ask, model } = await setUp();
    fake.script({ answer: 'It rained.', finds: pages });
    const answer = await ask(model);
    expect(fake.requests[0]?.body).not.toHaveProperty('tools');
    expect(answer.citations).toEqual([]);
    expect(answer.usage).not.toHaveProperty('fees');
    expect(answer.couldSearch).toBeUndefined();
  });

  it('brings no more citations than it may, the quoted ones first', async () => {
    const { vendor: fake, ask, model } = await setUp();
    const many = Array.from({ length: 12 }, (_, at) => ({ url: `https://news.test/${at}`, title: `Page ${at}` }));
    fake.script({ answer: 'Much.', finds: [...many, { ...pages[0]! }] });
    const { citations: shown } = await ask(model, { webSearch: search });
    expect(shown.length).toBeLessThanOrEqual(search.maxResults);
    if (name === 'anthropic' || name === 'openrouter') expect(shown[0]).toMatchObject({ snippet: 'It rained.' });
  });

  it('answers without a search where the vendor found nothing', async () => {
    const { vendor: fake, ask, model } = await setUp();
    fake.script({ answer: 'Nothing new.' });
    expect(await ask(model, { webSearch: search })).toMatchObject({
      text: 'Nothing new.',
      citations: [],
      warnings: [],
    });
    expect(fake.violations).toEqual([]);
  });
});

describe('a search that Anthropic paused', () => {
  const asked = { webSearch: search };
  async function setUp() {
    vendor = await startAnthropic();
    const ask = asker(anthropic, { apiKey: 'test-key', baseUrl: vendor.url });
    return { vendor, ask: () => ask(known('anthropic', 'claude-sonnet-4-5'), asked) };
  }

  it('is told as paused: it is not cut in the middle of a word', async () => {
    const { vendor: fake, ask } = await setUp();
    fake.script({ answer: 'First I look at', finds: pages, finish: 'pause' });
    expect(await ask()).toMatchObject({ text: 'First I look at', finish: { kind: 'other', raw: 'pause_turn' } });
  });

  it('is asked for again where it brought no text', async () => {
    const { vendor: fake, ask } = await setUp();
    fake.script({ answer: '', finds: pages, finish: 'pause' }, { answer: 'It rained.', finds: pages });
    expect(await ask()).toMatchObject({ text: 'It rained.', finish: { kind: 'stop' } });
    expect(fake.requests).toHaveLength(2);
  });
});

describe('who can search', () => {
  const can = (definition: ProviderDefinition, id: string, settings: ProviderSettings = {}) =>
    definition.searches?.(modelInfo({ provider: definition.id, id }), settings) ?? false;

  it.each([
    [
      openai,
      ['gpt-4o', 'gpt-5-mini', 'gpt-6.1-sol', 'o3', 'o4-mini'],
      ['gpt-4.1-nano', 'o3-mini', 'o1', 'gpt-3.5-turbo'],
    ],
    [
      google,
      ['gemini-2.5-pro', 'gemini-3.8-flash', 'gemini-flash-latest'],
      ['gemma-4-31b-it', 'gemini-2.0-flash-lite'],
    ],
    [anthropic, ['claude-opus-5-5', 'claude-3-5-haiku-20241022'], ['claude-3-haiku-20240307', 'claude-2.1']],
    [xai, ['grok-4', 'grok-4.7'], ['grok-3', 'grok-3-fast']],
  ])('is told by the model', (definition, able, unable) => {
    expect(able.filter(id => !can(definition, id))).toEqual([]);
    expect(unable.filter(id => can(definition, id))).toEqual([]);
  });

  it('is nobody behind the chat interface of OpenAI or on a server of one’s own', () => {
    expect(can(openai, 'gpt-5', { apiStyle: 'chat' })).toBe(false);
    expect(can(custom, 'gpt-5')).toBe(false);
  });

  it('gets a warning in the answer of a model that cannot, and no tool in its request', async () => {
    vendor = await startOpenAi();
    const ask = asker(openai, { apiKey: 'test-key', baseUrl: vendor.url });
    const answer = await ask(known('openai', 'o3-mini'), { webSearch: search });
    expect(answer.warnings).toEqual([expect.stringContaining('openai:o3-mini cannot search the web')]);
    expect(answer.couldSearch).toBe(false);
    expect(vendor.requests[0]?.body).not.toHaveProperty('tools');
    expect(vendor.violations).toEqual([]);
  });

  it('thinks a little where OpenAI refuses its search to the least effort', async () => {
    vendor = await startOpenAi();
    const ask = asker(openai, { apiKey: 'test-key', baseUrl: vendor.url });
    await ask(known('openai', 'gpt-5'), { effort: 'minimal', webSearch: search });
    await ask(known('openai', 'gpt-5'), { effort: 'minimal' });
    expect(vendor.violations).toEqual([]);
    expect(vendor.requests.map(({ body }) => body)).toMatchObject([
      { reasoning: { effort: 'low' } },
      { reasoning: { effort: 'minimal' } },
    ]);
  });
});

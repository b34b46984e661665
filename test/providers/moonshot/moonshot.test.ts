import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ModelInfo } from '../../../src/core/model.ts';
import { costOf } from '../../../src/core/usage.ts';
import { isLongContext } from '../../../src/engine/modes/prompt.ts';
import type { ModelQuestion, Waste } from '../../../src/models/ask-model.ts';
import { estimateCost } from '../../../src/models/budget.ts';
import { createAskModel } from '../../../src/models/call/call.ts';
import { configureProviders, createConnections } from '../../../src/models/catalogue/connections.ts';
import type { ProviderSettings } from '../../../src/models/provider.ts';
import { moonshot } from '../../../src/providers/moonshot/moonshot.ts';
import { providerSuite } from '../../contracts/provider-suite.ts';
import { catalogueModel } from '../../models/catalogue-model.ts';
import { say } from '../../models/scripted-model.ts';
import { realClock } from '../../support/clock.ts';
import { seededRandom } from '../../support/random.ts';
import { type FakeMoonshot, type MoonshotOptions, startMoonshot } from '../../support/vendors/start-moonshot.ts';

const k26 = catalogueModel('moonshot', 'kimi-k2.6');
const k3 = catalogueModel('moonshot', 'kimi-k3');
const v1 = catalogueModel('moonshot', 'moonshot-v1-128k');
const withTail = expect.stringMatching(/^What is this\?\n\n[\s\S]*WHAT TO DO NOW/);

providerSuite({
  name: 'moonshot',
  definition: moonshot,
  start: startMoonshot,
  settings: (baseUrl, apiKey = 'test-key') => ({ apiKey, baseUrl }),
  model: k26,
  path: '/v1/chat/completions',
  headers: { authorization: 'Bearer test-key' },
  body: {
    max_completion_tokens: 2000,
    prompt_cache_key: 'thread-1',
    stream_options: { include_usage: true },
    thinking: { type: 'disabled' },
    messages: [
      { role: 'system', content: 'You are careful.' },
      { role: 'user', content: withTail },
    ],
  },
  thinking: [
    { ask: { effort: 'high' }, body: { thinking: { type: 'enabled' } } },
    { ask: { effort: 'low' }, body: { thinking: { type: 'enabled' } } },
    { ask: { model: k3, effort: 'max' }, body: { reasoning_effort: 'max' } },
    { ask: { model: k3, effort: 'medium' }, body: { reasoning_effort: 'high' } },
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
  keyName: 'MOONSHOT_API_KEY',
});

let vendor: FakeMoonshot;

beforeEach(async () => {
  vendor = await startMoonshot();
});
afterEach(async () => {
  await vendor.close();
});

async function again(options: MoonshotOptions): Promise<void> {
  await vendor.close();
  vendor = await startMoonshot(options);
}

function asking(models: ModelInfo[], settings: ProviderSettings = {}) {
  const ask = createAskModel({
    connection: createConnections(
      configureProviders([moonshot], { moonshot: { apiKey: 'test-key', baseUrl: vendor.url, ...settings } }),
    ),
    clock: realClock(),
    random: { ...seededRandom(), fraction: () => 0.01 },
    emit: () => {},
    isLocal: () => false,
    searches: model => moonshot.searches(model),
    limits: { firstByteMs: 2000, idleMs: 2000, totalMs: 8000 },
  });
  return (more: Partial<ModelQuestion> = {}, effort: 'none' | 'high' = 'none') =>
    ask({
      reqId: 'r',
      tool: 'chat',
      candidates: models.map(model => ({ model, reason: 'test', effort })),
      messages: [say('user', 'What happened today?')],
      maxOutputTokens: 1000,
      signal: new AbortController().signal,
      ...more,
    });
}

const webSearch = { maxResults: 10, maxRounds: 3 };

describe('a search of the web by Kimi', () => {
  it('goes there and back with the arguments as they came, and what the model said and thought', async () => {
    Object.assign(vendor.searches, { wanted: 2, says: 'Let me look. ', thinks: 'I should search.' });
    vendor.byDefault({ answer: 'It rained.' });
    const answer = await asking([k26])({ webSearch });
    expect(answer.text).toBe('Let me look. Let me look. It rained.');
    expect(answer).toMatchObject({ finish: { kind: 'stop' }, partial: false });
    expect(vendor.violations).toEqual([]);
    expect(vendor.requests).toHaveLength(3);
    const last: unknown = vendor.requests.at(-1)?.body;
    expect(last).toMatchObject({
      tools: [{ type: 'builtin_function', function: { name: '$web_search' } }],
      thinking: { type: 'disabled' },
      messages: [
        { role: 'user' },
        {
          role: 'assistant',
          content: 'Let me look. ',
          tool_calls: [{ id: '$web_search:0', type: 'builtin_function' }],
        },
        {
          role: 'tool',
          tool_call_id: '$web_search:0',
          name: '$web_search',
          content: expect.stringContaining('"search_id":"s-0"'),
        },
        { role: 'assistant' },
        { role: 'tool', tool_call_id: '$web_search:1' },
      ],
    });
    // All three requests are paid for.
    expect(answer.usage.input).toBe(vendor.requests.reduce((sum, request) => sum + request.tokens, 0));
    expect(answer.usage.fees).toEqual({ web_search: { amount: 2, usd: 0.01 } });
  });

  it('is paid for with all its rounds where the last one breaks off', async () => {
    Object.assign(vendor.searches, { wanted: 2 });
    vendor.script({}, {}, { fault: 'cut_mid_stream', answer: 'It rained in the north. '.repeat(20) });
    const { partial, usage } = await asking([k26])({ webSearch });
    expect(partial).toBe(true);
    expect(vendor.requests).toHaveLength(3);
    expect(usage).toMatchObject({ estimated: 1, fees: { web_search: { amount: 2, usd: 0.01 } } });
    const [first, second, third] = vendor.requests.map(({ tokens }) => tokens);
    expect(usage.input).toBeGreaterThan(first! + second!);
    expect(usage.input).toBeLessThan(1.2 * (first! + second! + third!) + 1_000);
  });

  it('is no more than a declared tool when the model has no need of it', async () => {
    const answer = await asking([k26])({ webSearch });
    expect(answer.text).toBe('Answer 1.');
    expect(vendor.requests[0]?.body).toMatchObject({ tool_choice: 'auto' });
  });

  it('ends after the rounds that are allowed, with an answer', async () => {
    vendor.searches.wanted = 9;
    const answer = await asking([k26])({ webSearch: { maxResults: 10, maxRounds: 2 } });
    expect(answer.text).toMatch(/^Answer/);
    expect(vendor.requests).toHaveLength(3);
    expect(vendor.requests.at(-1)?.body).toMatchObject({ tool_choice: 'none' });
    expect(vendor.violations).toEqual([]);
  });

  it('ends typed when the model will not stop searching', async () => {
    Object.assign(vendor.searches, { wanted: 99, stubborn: true });
    const wasted: Waste[] = [];
    const more = { webSearch: { maxResults: 10, maxRounds: 9 }, onWaste: (waste: Waste) => void wasted.push(waste) };
    await expect(asking([k26])(more)).rejects.toMatchObject({
      kind: 'model',
      details: { class: 'bad_upstream', retryable: false },
    });
    // Each search was charged, though there is no answer.
    expect(wasted).toMatchObject([{ usage: { fees: { web_search: { amount: 4, usd: 0.02 } } } }]);
    expect(vendor.requests).toHaveLength(4);
  });

  it('is done without when what it announces does not fit into the window', async () => {
    Object.assign(vendor.searches, { wanted: 1, announces: 300_000 });
    const answer = await asking([k26])({ webSearch });
    expect(answer.text).toMatch(/^Answer/);
    expect(answer.warnings.join()).toMatch(/does not fit into the window/);
    expect(vendor.requests.at(-1)?.messages.map(({ role }) => role)).toEqual(['user']);
    expect(vendor.violations).toEqual([]);
  });

  it('is done by the platform for a model that always thinks, and its sealed results go back as they came', async () => {
    Object.assign(vendor.searches, { wanted: 2, says: 'Let me look. ', thinks: 'I should search.' });
    vendor.byDefault({ answer: 'It rained.' });
    const answer = await asking([k3])({ webSearch }, 'high');
    expect(vendor.violations).toEqual([]);
    expect(answer).toMatchObject({ text: 'Let me look. Let me look. It rained.', warnings: [], partial: false });
    expect(answer.usage.fees).toEqual({ web_search: { amount: 2, usd: 0.01 } });
    expect(vendor.formula.ran).toEqual(['{ "query":"what is new 0"}', '{ "query":"what is new 1"}']);
    const sealed = { role: 'tool', content: expect.stringContaining('MOONSHOT ENCRYPTED') };
    expect(vendor.requests.at(-1)?.body).toMatchObject({
      reasoning_effort: 'high',
      messages: [
        { role: 'user' },
        { role: 'assistant', reasoning_content: 'I should search.', tool_calls: [{ type: 'function' }] },
        { ...sealed, tool_call_id: 'web_search:0' },
        { role: 'assistant' },
        { ...sealed, tool_call_id: 'web_search:1' },
      ],
    });
    expect(JSON.stringify(answer)).not.toContain('ENCRYPTED');
    // The vendor declares its tool once.
    await asking([k3])({ webSearch });
    expect(vendor.violations).toEqual([]);
  });

  it('ends after the rounds that are allowed there too, and goes on where the platform fails', async () => {
    Object.assign(vendor.searches, { wanted: 9, thinks: 'Hm.' });
    const limited = await asking([k3])({ webSearch: { maxResults: 10, maxRounds: 2 } });
    expect(vendor.formula.ran).toHaveLength(2);
    expect(vendor.requests.at(-1)?.body).toMatchObject({ tool_choice: 'none' });
    expect(limited.text).toMatch(/^Answer/);
    vendor.searches.wanted = 1;
    vendor.formula.fails = 'fibers';
    const failed = await asking([k3])({ webSearch });
    expect(failed.usage).not.toHaveProperty('fees');
    expect(JSON.stringify(vendor.requests.at(-1)?.body)).toContain('the tool failed: no engine');
    vendor.formula.fails = 'tools';
    const without = await asking([k3])({ webSearch });
    expect(without.warnings.join()).toContain('did not tell of its search');
    expect(vendor.requests.at(-1)?.body).not.toHaveProperty('tools');
    vendor.formula.fails = undefined;
    vendor.formula.length = 5_000_000;
    const long = await asking([k3])({ webSearch });
    expect(long.warnings.join()).toMatch(/does not fit into the window/);
    expect(vendor.violations).toEqual([]);
  });

  it('says that thinking was switched off for it where the built-in search needs that', async () => {
    const answer = await asking([k26])({ webSearch }, 'high');
    expect(answer.warnings.join()).toMatch(/Thinking was switched off/);
    const can = (id: string) => moonshot.searches(catalogueModel('moonshot', id));
    expect(['kimi-k2.5', 'kimi-k2.6', 'kimi-k2-0905-preview', 'moonshot-v1-128k'].map(can)).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(['kimi-k3', 'kimi-k3.1-pro', 'kimi-k2.7-code'].map(can)).toEqual([true, true, true]);
  });

  it('is ended with the call, in the middle of it', async () => {
    vendor.searches.wanted = 1;
    vendor.script({}, { fault: 'hang_after_headers' });
    const caller = new AbortController();
    const asked = asking([k26])({ webSearch, signal: caller.signal }).catch(error => error);
    await expect.poll(() => vendor.requests.length).toBe(2);
    caller.abort();
    expect(await asked).toMatchObject({ kind: 'cancelled' });
    await vendor.requests[1]!.aborted;
  });
});

describe('a long prompt', () => {
  // About 200,000 tokens.
  const long = say('user', 'alpha beta gamma delta '.repeat(50_000));

  it('goes to a model of the long-context family, which takes it', async () => {
    expect(isLongContext(200_000)).toBe(true);
    expect(isLongContext(128_000)).toBe(false);
    await again({
      models: [
        { id: k26.id, window: k26.window },
        { id: v1.id, window: v1.window },
      ],
    });
    const answer = await asking([k26])({ messages: [long] });
    expect(answer.text).toBe('Answer 1.');
    expect(vendor.requests[0]?.tokens).toBeGreaterThan(190_000);
  });

  it('is refused by the older family, and taken by the wider model behind it', async () => {
    await again({
      models: [
        { id: k26.id, window: k26.window },
        { id: v1.id, window: v1.window },
      ],
    });
    const answer = await asking([v1, k26])({ messages: [long] });
    expect(answer.model.id).toBe(k26.id);
    expect(answer.attempts[0]).toMatchObject({ outcome: 'failed', class: 'context_length' });
  });
});

describe('the cache of Kimi', () => {
  const preamble = {
    ...say('user', 'A rule of the house. '.repeat(1_000)),
    role: 'system' as const,
    section: 'preamble' as const,
  };
  const turns = [preamble, say('user', 'First?'), say('assistant', 'Yes.')];
  const sent = () => vendor.requests.map(({ body }) => (body as Record<string, unknown>).prompt_cache_options);

  it('is kept for an hour where that is asked for, and finds the whole beginning again', async () => {
    const ask = asking([k3], { cacheSeconds: '3600' });
    const first = await ask({ messages: turns.slice(0, 2), cacheKey: 'thread-1' });
    const second = await ask({ messages: [...turns, say('user', 'Second?')], cacheKey: 'thread-1' });
    expect(sent()).toEqual([{ ttl: '1h' }, { ttl: '1h' }]);
    expect(vendor.violations).toEqual([]);
    expect(vendor.requests.map(({ body }) => body)).toMatchObject([
      { prompt_cache_key: 'thread-1' },
      { prompt_cache_key: 'thread-1' },
    ]);
    const [before, after] = vendor.requests.map(({ canonical }) => canonical);
    expect(after!.startsWith(before!)).toBe(true);
    expect(second.usage.cacheRead).toBeGreaterThan(4_000);
    const written = second.usage.input - second.usage.cacheRead;
    expect(second.usage).toMatchObject({ cacheWrite: written, cacheWriteHour: written });
    // What goes there costs twice as much as input.
    const { input, output } = first.usage;
    expect(costOf(first.usage, k3.price)).toBeCloseTo((input * 6 + output * 15) / 1_000_000, 9);
  });

  it('is left to the vendor where its own five minutes do, and for models that sell no hour', async () => {
    await asking([k3])({ messages: turns });
    await asking([k3], { cacheSeconds: '300' })({ messages: turns });
    await asking([k26], { cacheSeconds: '3600' })({ messages: turns });
    const again = await asking([k26])({ messages: [...turns, say('user', 'Second?')] });
    expect(sent()).toEqual([undefined, undefined, undefined, undefined]);
    expect(again.usage).toMatchObject({ cacheRead: expect.toSatisfy(tokens => tokens > 4_000), cacheWrite: 0 });
    expect(vendor.violations).toEqual([]);
  });

  it('is paid with all rounds of a search', async () => {
    Object.assign(vendor.searches, { wanted: 1, thinks: 'I should search.' });
    const { usage } = await asking([k3], { cacheSeconds: '3600' })({ messages: turns, webSearch });
    expect(vendor.requests).toHaveLength(2);
    expect(usage.cacheWriteHour).toBe(usage.input - usage.cacheRead);
  });

  it('is reserved at its price before anyone is asked', () => {
    const estimate = (hour: boolean) =>
      estimateCost({ model: k3, reason: 'test', effort: 'low' }, 100_000, {
        isLocal: () => false,
        cachesApart: () => moonshot.cachesApart?.(hour ? { cacheSeconds: '3600' } : {}) ?? false,
        allowUnpriced: false,
      }).fixed;
    expect(estimate(true) - estimate(false)).toBeCloseTo(0.1 * (6 - 3 + 0.3), 9);
  });
});

describe('moonshot', () => {
  it('asks a tracing proxy to record, where that was set', async () => {
    await asking([k26])();
    await asking([k26], { trace: 'true' })();
    expect(vendor.requests.map(({ headers }) => headers['msh-trace-mode'])).toEqual([undefined, 'on']);
  });

  it.each([
    [
      { type: 'exceeded_current_quota_error', message: 'Your account is suspended, please check your plan' },
      429,
      'quota',
    ],
    [
      { type: 'content_filter', message: 'The request was rejected because it was considered high risk' },
      400,
      'content_filter',
    ],
    [{ type: 'invalid_request_error', message: 'Input token length too long' }, 400, 'context_length'],
    [{ type: 'engine_overloaded_error', message: 'The engine is currently overloaded' }, 429, 'rate_limit'],
  ] as const)('understands %j', async (error, status, kind) => {
    vendor.byDefault({ fault: 'status', status, body: { error } });
    await expect(asking([k26])()).rejects.toMatchObject({ details: { class: kind } });
  });
});

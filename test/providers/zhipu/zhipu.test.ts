import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ModelQuestion } from '../../../src/models/ask-model.ts';
import { createAskModel } from '../../../src/models/call/call.ts';
import { configureProviders, createConnections } from '../../../src/models/catalogue/connections.ts';
import { hitsToAsk, searchEngineOf, zhipu } from '../../../src/providers/zhipu/zhipu.ts';
import { providerSuite } from '../../contracts/provider-suite.ts';
import { catalogueModel } from '../../models/catalogue-model.ts';
import { say } from '../../models/scripted-model.ts';
import { realClock } from '../../support/clock.ts';
import { seededRandom } from '../../support/random.ts';
import { type FakeZhipu, startZhipu } from '../../support/vendors/start-zhipu.ts';

const glm45 = { ...catalogueModel('zhipu', 'glm-4.5v'), window: 131_072 };
const glm52 = catalogueModel('zhipu', 'glm-5.2');
const glm53 = catalogueModel('zhipu', 'glm-5.3');

providerSuite({
  name: 'zhipu',
  definition: zhipu,
  start: startZhipu,
  settings: (baseUrl, apiKey = 'test-key') => ({ apiKey, baseUrl }),
  model: glm45,
  path: '/api/paas/v4/chat/completions',
  headers: { authorization: 'Bearer test-key' },
  body: {
    max_tokens: 2000,
    thinking: { type: 'disabled' },
    messages: [
      { role: 'system', content: 'You are careful.' },
      { role: 'user', content: expect.stringMatching(/^What is this\?\n\n=== WHAT TO DO NOW/) },
    ],
  },
  thinking: [
    { ask: { effort: 'high' }, body: { thinking: { type: 'enabled' } } },
    { ask: { effort: 'max' }, body: { thinking: { type: 'enabled' } } },
    { ask: { model: glm52, effort: 'none' }, body: { thinking: { type: 'disabled' } } },
    { ask: { model: glm52, effort: 'max' }, body: { thinking: { type: 'enabled' }, reasoning_effort: 'max' } },
    { ask: { model: glm53, effort: 'none' }, body: {} },
    { ask: { model: glm53, effort: 'medium' }, body: { reasoning_effort: 'high' } },
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
  keyName: 'ZHIPUAI_API_KEY',
});

let vendor: FakeZhipu;

beforeEach(async () => {
  vendor = await startZhipu();
});
afterEach(async () => {
  await vendor.close();
});

function ask(more: Partial<ModelQuestion> = {}) {
  const asking = createAskModel({
    connection: createConnections(configureProviders([zhipu], { zhipu: { apiKey: 'test-key', baseUrl: vendor.url } })),
    clock: realClock(),
    random: { ...seededRandom(), fraction: () => 0.01 },
    emit: () => {},
    isLocal: () => false,
    searches: model => zhipu.searches(model),
    limits: { firstByteMs: 2000, idleMs: 2000, totalMs: 5000 },
  });
  return asking({
    reqId: 'r',
    tool: 'chat',
    candidates: [{ model: glm53, reason: 'test' }],
    messages: [say('user', 'What happened today?')],
    maxOutputTokens: 1000,
    signal: new AbortController().signal,
    ...more,
  });
}

const hit = {
  title: 'Weather',
  content: 'It rained in the morning.',
  link: 'https://news.example/rain',
  media: 'News',
  icon: 'https://news.example/i.png',
  refer: 'ref_1',
  publish_date: '2026-11-20',
};

describe('a search of the web by GLM', () => {
  it('is paid for where the answer breaks off before the hits, and where it does not search nothing is', async () => {
    const broken = { fault: 'cut_mid_stream' as const, answer: 'It rained in the north. '.repeat(20) };
    vendor.script(broken, broken);
    expect(await ask({ webSearch: { maxResults: 5, maxRounds: 3 } })).toMatchObject({
      partial: true,
      usage: { estimated: 1, fees: { web_search: { amount: 1, usd: 0.01 } } },
    });
    expect((await ask()).usage.fees).toBeUndefined();
  });

  it('is asked for in its words, and its hits come as citations', async () => {
    vendor.hits.push(hit, { ...hit, link: 'javascript:alert(1)' }, { ...hit, title: 'Again' }, { ...hit, link: '' });
    const answer = await ask({ webSearch: { maxResults: 80, maxRounds: 3 } });
    expect(answer.citations).toEqual([
      { title: 'Weather', url: hit.link, snippet: hit.content, date: '2026-11-20', provider: 'zhipu' },
    ]);
    expect(answer.usage.fees).toEqual({ web_search: { amount: 1, usd: 0.01 } });
    expect(vendor.requests[0]?.body).toMatchObject({
      tools: [
        {
          type: 'web_search',
          web_search: { enable: true, search_engine: 'search-prime', search_result: true, count: 50 },
        },
      ],
      tool_choice: 'auto',
    });
    expect(vendor.violations).toEqual([]);
  });

  it('is not mentioned where it is not wanted', async () => {
    await ask();
    expect(vendor.requests[0]?.body).not.toHaveProperty('tools');
    expect(vendor.requests[0]?.body).not.toHaveProperty('vendorSearch');
  });

  it('asks Sogou for tens alone', () => {
    expect([1, 10, 11, 48, 80].map(wanted => hitsToAsk('search_pro_sogou', wanted))).toEqual([10, 10, 20, 50, 50]);
    expect([0, 11, 80].map(wanted => hitsToAsk('search_pro', wanted))).toEqual([1, 11, 50]);
  });

  it('uses the engine of the place, or the one that was set', () => {
    expect(searchEngineOf({}, 'https://api.z.ai/api/paas/v4')).toBe('search-prime');
    expect(searchEngineOf({}, 'https://open.bigmodel.cn/api/paas/v4')).toBe('search_pro');
    expect(searchEngineOf({ searchEngine: 'search_std' }, 'https://api.z.ai/api/paas/v4')).toBe('search_std');
  });
});

describe('zhipu', () => {
  it.each([
    ['1113', 429, 'balance', false],
    ['1302', 429, 'rate_limit', true],
    ['1308', 429, 'quota', false],
    ['1313', 429, 'quota', false],
    ['1301', 400, 'content_filter', false],
    ['1261', 400, 'context_length', false],
    ['1002', 401, 'auth', false],
    ['1234', 500, 'bad_upstream', true],
  ] as const)('understands the code %s', async (code, status, kind, retryable) => {
    vendor.byDefault({ fault: 'status', status, body: { error: { code, message: 'As the vendor says.' } } });
    await expect(ask()).rejects.toMatchObject({ details: { class: kind, retryable } });
  });
});

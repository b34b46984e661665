import { describe, expect, it } from 'vitest';
import type { Candidate, ModelInfo, Price } from '../../src/core/model.ts';
import {
  callLimit,
  costAt,
  estimateCost,
  leastOutput,
  mostOutput,
  type Pricing,
  promptTokens,
  quote,
  refuseCost,
  usefulAnswer,
} from '../../src/models/budget.ts';

const model: ModelInfo = {
  ...{ provider: 'openai', id: 'gpt-m', name: 'M', aliases: [], window: 100_000, maxOutput: 10_000, score: 1 },
  ...{ input: ['text'], efforts: [], reasoning: false, temperature: 'range', tools: false },
  ...{ allowCodeGeneration: false, status: 'active' },
};

/** $10 for a million tokens that go in, $100 for a million of an answer. */
const price = { in: 10, out: 100 };

const candidate = (changes: Partial<ModelInfo> = {}, more: Partial<Candidate> = {}): Candidate => ({
  model: { ...model, price, ...changes },
  reason: 'test',
  ...more,
});
const unpriced = (provider: string, id = 'gpt-m'): Candidate => ({ model: { ...model, provider, id }, reason: 'test' });

const pricing: Pricing = { isLocal: provider => provider === 'ollama', allowUnpriced: false };
const webSearch = { maxResults: 5, maxRounds: 3 };

describe('the most that an answer may cost', () => {
  const google: Partial<ModelInfo> = { provider: 'google', id: 'gemini-3-flash' };
  const apart: Pricing = { ...pricing, cachesApart: provider => provider === 'google' };
  const hourly: Price = { ...price, cacheWriteHour: 20 };
  const thinker = { thinkingBudget: { min: 0, max: 8_000 } };
  it.each<[string, Candidate, Pricing, number, boolean?]>([
    ['the prompt', candidate(), pricing, 0.01],
    ['the prompt with what may be searched', candidate(), pricing, 0.04, true],
    ['searches of a model without a price', unpriced('openai'), { ...pricing, allowUnpriced: true }, 0.03, true],
    ['no search of a model that would not', candidate(), { ...pricing, searches: () => false }, 0.01, true],
    ['searches of a model that would', candidate(), { ...pricing, searches: () => true }, 0.04, true],
    ['an hour in a cache that is paid apart', candidate({ ...google, price: hourly }), apart, 0.031],
    ['no cache that is not', candidate({ price: hourly }), apart, 0.01],
    ['a budget for thinking', candidate(thinker, { effort: 'max' }), pricing, 0.81],
    ['no thinking without an effort', candidate(thinker), pricing, 0.01],
    [
      'no thinking with none',
      candidate({ thinkingBudget: { min: 1_000, max: 8_000 } }, { effort: 'none' }),
      pricing,
      0.01,
    ],
    [
      'no more thinking than the model can',
      candidate({ ...thinker, maxOutput: 4_000 }, { effort: 'max' }),
      pricing,
      0.41,
    ],
    ['a prompt that is cut to the window', candidate({ window: 500 }), pricing, 0.005],
  ])('counts %s', (_, each, prices, fixed, searches = false) => {
    expect(estimateCost(each, 1_000, prices, searches ? webSearch : undefined).fixed).toBeCloseTo(fixed, 9);
  });

  it('is told for what goes in and for each token of the answer, the tokens counted as the model does', () => {
    const [cheap, dear] = [
      candidate({ price: { in: 1, out: 200 } }),
      candidate({ id: 'claude-m', price: { in: 30, out: 2 } }),
    ];
    expect(estimateCost(cheap, 1_000, pricing)).toEqual({ fixed: 0.001, perToken: 0.0002 });
    expect(estimateCost(dear, 1_000, pricing)).toEqual({ fixed: 0.03, perToken: 0.000002 });
    const question = {
      reqId: 'r',
      tool: 'chat',
      payer: undefined,
      candidates: [],
      messages: [],
      maxOutputTokens: 1,
      signal: AbortSignal.any([]),
    };
    expect(costAt(dear, question, 1_000, pricing).fixed).toBeGreaterThan(0.03);
  });
});

describe('an answer', () => {
  const reasoning = { reasoning: true };
  it.each<[string, Candidate[], number]>([
    ['of plain models', [candidate(), candidate()], 1_000],
    ['of one that thinks in it', [candidate(), candidate(reasoning, { effort: 'high' })], 3_000],
    ['of one that does not think', [candidate(reasoning, { effort: 'none' })], 1_000],
    ['of one with a budget for it', [candidate(reasoning, { thinkingBudget: 100 })], 1_000],
  ])('%s is of use from so many tokens', (_, candidates, least) => {
    expect(usefulAnswer(candidates).least).toBe(least);
  });

  it('is as long as wanted, and as the longest candidate can', () => {
    const question = (maxOutputTokens: number) => ({
      reqId: 'r',
      tool: 'chat',
      payer: undefined,
      candidates: [],
      messages: [],
      maxOutputTokens,
      signal: AbortSignal.any([]),
    });
    const candidates = [candidate({ maxOutput: 500 }), candidate()];
    expect([5_000, 50_000].map(most => mostOutput(question(most), candidates))).toEqual([5_000, 10_000]);
    expect([700, 50_000].map(most => leastOutput(question(most), candidates))).toEqual([700, 1_000]);
  });
});

describe('a quote', () => {
  // 10,000 tokens cost $0.10; an answer $0.10 for each thousand, 4,000 at most where the limit has room for them.
  it.each<[string, Candidate, number, number | undefined, Awaited<ReturnType<typeof quote>>]>([
    ['all of a prompt that fits', candidate(), 10_000, undefined, { usd: 0.9, holds: 1 }],
    ['at least what is always sent', candidate(), 10, undefined, { usd: 0.82, holds: 1 }],
    ['a part of what no window holds', candidate(), 180_000, undefined, { usd: 1.76, holds: 0.5 }],
    [
      'the usual room for an answer of a wide model',
      candidate({ maxOutput: 2_000 }),
      196_000,
      undefined,
      { usd: 1.18, holds: 0.5 },
    ],
    [
      'a small window, half of it for the answer',
      candidate({ window: 6_000 }),
      6_000,
      undefined,
      { usd: 0.83, holds: 0.6 },
    ],
    ['a limit that has exactly room for all', candidate(), 10_000, 1.06, { usd: 0.9, holds: 1 }],
    ['a limit that has room for less', candidate(), 10_000, 0.22, { usd: 0.9, maxPrompt: 11_400, holds: 1 }],
    [
      'a shorter prompt under a limit',
      candidate(),
      60_000,
      0.3,
      { usd: 1.4, maxPrompt: 19_000, holds: 19_000 / 60_000 },
    ],
    [
      'a long answer before a long prompt where the limit has room',
      candidate(),
      90_000,
      0.9,
      { usd: 1.7, maxPrompt: 47_500, holds: 47_500 / 90_000 },
    ],
    ['nothing where the limit lets nothing in', candidate(), 10_000, 0.11, { usd: 0.9, maxPrompt: 950, holds: 0 }],
    [
      'what is always sent, where the limit has exactly room for that',
      candidate({ window: 68_000, maxOutput: 4_000 }),
      10_000,
      0.1200001,
      { usd: 0.5, maxPrompt: 1_900, holds: 0.19 },
    ],
    [
      'a long answer where the limit is exactly twice as high',
      candidate({ price: { in: 20, out: 100 } }),
      90_000,
      0.88,
      { usd: 2.6, maxPrompt: 22_800, holds: 22_800 / 90_000 },
    ],
    [
      'all of a prompt that leaves exactly enough for a short answer',
      candidate(),
      90_000,
      1,
      { usd: 1.7, maxPrompt: 85_500, holds: 1 },
    ],
    ['what is free', unpriced('ollama'), 10_000, 0.01, { usd: 0, holds: 1 }],
    ['no price that nobody knows', unpriced('xai'), 10_000, 0.01, { usd: undefined, holds: 1 }],
  ])('is for %s', (_, each, tokens, limit, expected) => {
    const { usd, maxPrompt, holds } = quote(each, tokens, pricing, limit === undefined ? {} : { limit });
    if (expected.usd === undefined) expect(usd).toBeUndefined();
    else expect(usd).toBeCloseTo(expected.usd, 6);
    // The search for it stops 100 tokens before the exact number.
    if (expected.maxPrompt === undefined) expect(maxPrompt).toBeUndefined();
    else expect(Math.abs((maxPrompt ?? 0) - expected.maxPrompt), `${maxPrompt}`).toBeLessThanOrEqual(100);
    expect(holds).toBeCloseTo(expected.holds, 2);
  });
});

it('counts a prompt with its images and separators at the candidate that makes most tokens of it', () => {
  const text = { type: 'text' as const, text: 'Why?' };
  const image = { type: 'image' as const, mediaType: 'image/png' as const, data: '', name: 'a.png', sha256: '' };
  const of = (parts: (typeof text | typeof image)[], candidates: Candidate[] = []) =>
    promptTokens([{ role: 'user', section: 'turn', parts: parts as never }], candidates);
  const plain = of([text]);
  expect(plain).toBeGreaterThan(8);
  expect(plain).toBeLessThan(100);
  expect(of([text, image, image]) - plain).toBe(3_200);
  expect(of([text, image], [candidate(), candidate({ id: 'claude-m' })])).toBeGreaterThan(
    of([text, image], [candidate()]),
  );
});

it.each<[number | undefined, unknown, ReturnType<typeof callLimit>]>([
  [undefined, undefined, undefined],
  [undefined, Number.POSITIVE_INFINITY, undefined],
  [undefined, '3', undefined],
  [undefined, 3, { usd: 3, name: 'max_cost_usd' }],
  [2, 3, { usd: 2, name: 'MAX_COST_PER_REQUEST' }],
  [2, 2, { usd: 2, name: 'max_cost_usd' }],
  [2, -1, { usd: 0, name: 'max_cost_usd' }],
  [2, Number.NaN, { usd: 2, name: 'MAX_COST_PER_REQUEST' }],
])('of the limits %s and %s the lower one holds', (perRequest, asked, expected) => {
  expect(callLimit(perRequest, asked)).toEqual(expected);
});

it('says when a limit of a day is free again, and of no other that it will be', () => {
  const at = Date.UTC(2026, 0, 31, 18);
  const day = refuseCost(2, { name: 'MAX_COST_PER_DAY', usd: 1, free: -0.5 }, at);
  expect(day.details).toMatchObject({ retryable: true, retryAfterSeconds: 6 * 3_600, data: { left_usd: 0 } });
  const request = refuseCost(2, { name: 'MAX_COST_PER_REQUEST', usd: 1, free: 1 }, at);
  expect(request.details).toMatchObject({ retryable: false });
  expect(request.details.retryAfterSeconds).toBeUndefined();
});

import { describe, expect, it } from 'vitest';
import {
  addUsage,
  costOf,
  dollars,
  ratesFor,
  roundedUsd,
  type SpendRow,
  spendBy,
  spendTotal,
  usdText,
} from '../../src/core/usage.ts';

const usage = { input: 1_000, output: 500, reasoning: 100, cacheRead: 400, cacheWrite: 100 };

describe('the cost of a call', () => {
  it('is that of fresh input, cache reads, cache writes and output', () => {
    // 500 × 2 + 400 × 0.2 + 100 × 2.5 + 500 × 10 = 6,330
    expect(costOf(usage, { in: 2, out: 10, cacheRead: 0.2, cacheWrite: 2.5 })).toBeCloseTo(0.00633, 12);
    // 500 × 2 + 400 × 2 + 100 × 2 + 500 × 10 = 7,000
    expect(costOf(usage, { in: 2, out: 10 })).toBeCloseTo(0.007, 12);
    expect(costOf(usage, undefined)).toBeUndefined();
  });

  it('counts a cache that lasts for an hour by its own price', () => {
    const price = { in: 3, out: 15, cacheRead: 0.3, cacheWrite: 3.75, cacheWriteHour: 6 };
    // 500 × 3 + 400 × 0.3 + 40 × 3.75 + 60 × 6 + 500 × 15 = 9,630
    expect(costOf({ ...usage, cacheWriteHour: 60 }, price)).toBeCloseTo(0.00963, 12);
    // Without a price of its own it costs what other writes do: 500 × 3 + 120 + 100 × 3.75 + 7,500 = 9,495
    expect(costOf({ ...usage, cacheWriteHour: 60 }, { ...price, cacheWriteHour: undefined })).toBeCloseTo(0.009495, 12);
  });

  it('takes the rates of the tier that the whole input is in, cached tokens included', () => {
    const tiers = [
      { above: 1_000, in: 4, out: 20 },
      { above: 5_000, in: 8, out: 40 },
    ];
    const price = { in: 2, out: 10, tiers };
    expect([1_000, 1_001, 5_000, 5_001].map(tokens => ratesFor(price, tokens).in)).toEqual([2, 4, 4, 8]);
    const long = { ...usage, input: 5_001, cacheRead: 0, cacheWrite: 0 };
    expect(costOf(long, price)).toBeCloseTo((5_001 * 8 + 500 * 40) / 1e6, 12);
  });
});

describe('sums of usage', () => {
  it('keep what was written for an hour', () => {
    const sum = addUsage(usage, { ...usage, cacheWriteHour: 30 });
    expect(sum).toEqual({
      input: 2_000,
      output: 1_000,
      reasoning: 200,
      cacheRead: 800,
      cacheWrite: 200,
      cacheWriteHour: 30,
    });
    expect(addUsage(usage, usage)).not.toHaveProperty('cacheWriteHour');
  });

  it('are made by any column of the ledger, days in order and the rest by cost', () => {
    const row = (changes: Partial<SpendRow>): SpendRow => ({
      day: '2026-01-01',
      owner: 'local',
      tool: 'chat',
      provider: 'openai',
      model: 'm',
      calls: 1,
      unpriced: 0,
      usage,
      costUsd: 1,
      ...changes,
    });
    const rows = [
      row({ day: '2026-01-02', provider: 'google', costUsd: 5 }),
      row({ tool: 'debug', calls: 3, unpriced: 2 }),
      row({}),
    ];
    expect(spendBy(rows, 'day').map(({ key, calls, costUsd }) => [key, calls, costUsd])).toEqual([
      ['2026-01-01', 4, 2],
      ['2026-01-02', 1, 5],
    ]);
    expect(spendBy(rows, 'model').map(({ key }) => key)).toEqual(['google:m', 'openai:m']);
    expect(spendBy(rows, 'thread')).toMatchObject([{ key: 'none', calls: 5, unpriced: 2, costUsd: 7 }]);
    expect(spendTotal(rows).usage.input).toBe(3_000);
  });
});

describe('money', () => {
  it.each([
    [0, '0', 0],
    [12.3, '12.30', 12.3],
    [7.5, '7.50', 7.5],
    [0.5, '0.50', 0.5],
    [0.0042, '0.0042', 0.0042],
    [0.02521, '0.0252', 0.02521],
    [0.00008, '0.00008', 0.00008],
    [0.000_012_345, '0.000012', 0.000_012_3],
    [3e-9, '0.000000003', 3e-9],
    [0.1 + 0.2, '0.30', 0.3],
  ])('%d is never shown as nothing', (usd, text, rounded) => {
    expect([usdText(usd), dollars(usd), roundedUsd(usd)]).toEqual([text, `$${text}`, rounded]);
  });
});

import { describe, expect, it } from 'vitest';
import type { Candidate } from '../../src/core/model.ts';
import { createCallBudget } from '../../src/models/budget.ts';

function candidate(price: { in: number; out: number } | undefined, provider = 'openai'): Candidate {
  const model = {
    provider,
    id: 'm-1',
    name: 'M',
    aliases: [],
    window: 100_000,
    maxOutput: 10_000,
    input: ['text'] as const,
    efforts: [],
    reasoning: false,
    temperature: 'range' as const,
    tools: false,
    price,
    score: 1,
    allowCodeGeneration: false,
    status: 'active' as const,
  };
  return { model, reason: 'test' };
}

const pricing = { isLocal: (provider: string) => provider === 'ollama', allowUnpriced: false };
const limit = (usd: number) => ({ usd, name: 'max_cost_usd' as const });
const priced = candidate({ in: 1, out: 10 });

describe('the purse of a call', () => {
  it('limits nothing without a limit', () => {
    const grant = createCallBudget(undefined, pricing).take({
      candidates: [candidate(undefined)],
      inputTokens: 1e9,
      sharers: 1,
    });
    expect(grant).not.toHaveProperty('refused');
    expect(grant).not.toHaveProperty('maxOutputTokens');
  });

  it('never puts aside more than there is, however many are asked at once', () => {
    const purse = createCallBudget(limit(0.05), pricing);
    let put = 0;
    for (let n = 10; n > 0; n--) {
      const grant = purse.take({ candidates: [priced], inputTokens: 1_000, sharers: n });
      if ('maxOutputTokens' in grant) put += 0.001 + (grant.maxOutputTokens ?? 0) / 100_000;
    }
    expect(put).toBeGreaterThan(0.03);
    expect(put).toBeLessThanOrEqual(0.05);
  });

  it('frees what was not spent, and keeps what may have been', () => {
    const purse = createCallBudget(limit(0.045), pricing);
    const all = { candidates: [priced], inputTokens: 0, sharers: 1 };
    const first = purse.take(all);
    expect(purse.take(all)).toMatchObject({ next: expect.stringContaining('max_cost_usd') });
    const operators = createCallBudget({ usd: 0.000_001, name: 'MAX_COST_PER_REQUEST' }, pricing);
    expect(operators.take(all)).toMatchObject({
      refused: expect.stringContaining('MAX_COST_PER_REQUEST'),
      next: expect.stringContaining('the operator can raise MAX_COST_PER_REQUEST'),
    });
    if ('settle' in first) first.settle(0.001);
    const second = purse.take(all);
    expect(second).toHaveProperty('maxOutputTokens', 4_000);
    if ('settle' in second) second.settle(undefined);
    expect(purse.take(all)).toHaveProperty('refused');
  });

  it('asks a model without a price only where nobody is paid', () => {
    const purse = createCallBudget(limit(0.01), pricing);
    const question = { inputTokens: 1_000_000, sharers: 1 };
    expect(purse.take({ ...question, candidates: [candidate(undefined)] })).toHaveProperty('refused');
    expect(purse.take({ ...question, candidates: [candidate(undefined, 'ollama')] })).not.toHaveProperty('refused');
  });
});

import { describe, expect, it } from 'vitest';
import { createRetryBudget } from '../../../src/models/resilience/policy.ts';

const takes = (budget: ReturnType<typeof createRetryBudget>, upstream: string, now: number, times = 100) =>
  Array.from({ length: times }, () => budget.take(upstream, now)).filter(taken => taken).length;

describe('the budget of retries', () => {
  it('allows three when there are few calls', () => {
    const budget = createRetryBudget();
    budget.called('a', 0);
    expect(takes(budget, 'a', 0)).toBe(3);
  });

  it('allows a tenth of many calls, at each upstream by itself', () => {
    const budget = createRetryBudget();
    for (let call = 0; call < 200; call++) budget.called('a', call);
    expect(takes(budget, 'a', 200)).toBe(20);
    expect(takes(budget, 'b', 200)).toBe(3);
  });

  it('counts the last minute', () => {
    const budget = createRetryBudget();
    for (let call = 0; call < 200; call++) budget.called('a', 0);
    expect(takes(budget, 'a', 59_000)).toBe(20);
    expect(takes(budget, 'a', 61_000)).toBe(0);
    expect(takes(budget, 'a', 120_000)).toBe(3);
  });
});

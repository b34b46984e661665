import { describe, expect, it } from 'vitest';
import { budgetFor, closestEffort } from '../../src/models/provider.ts';

describe('closestEffort', () => {
  it.each([
    ['high', ['low', 'high'], 'high'],
    ['xhigh', ['low', 'medium', 'high'], 'high'],
    ['minimal', ['low', 'high'], 'low'],
    // DeepSeek Flash and Kimi K3.
    ['medium', ['none', 'low', 'high', 'max'], 'high'],
    ['medium', ['low', 'high', 'max'], 'high'],
    ['medium', ['minimal', 'high'], 'high'],
    ['low', ['minimal', 'high'], 'minimal'],
    ['none', ['low', 'high'], 'low'],
    ['low', ['none', 'high'], 'high'],
    ['low', ['none'], undefined],
    ['medium', [], undefined],
  ] as const)('%s of %j is %s', (wanted, supported, sent) => {
    expect(closestEffort(wanted, supported)).toBe(sent);
  });
});

describe('budgetFor', () => {
  it('grows with the effort from the least to the most of the range', () => {
    const budgets = (['minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const).map(effort =>
      budgetFor(effort, { min: 1024, max: 16_000 }),
    );
    expect(budgets[0]).toBe(1024);
    expect(budgets.at(-1)).toBe(16_000);
    expect(budgets).toEqual([...budgets].sort((a, b) => a - b));
  });
});

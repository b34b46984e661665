import { describe, expect, it } from 'vitest';
import { tallyOf, type Vote } from '../../../../src/engine/modes/ask-many/verdicts.ts';

const vote = (label: string, position?: string, confidence?: number): Vote => ({ label, position, confidence });

describe('the tally of verdicts', () => {
  it('names those who stand against the majority', () => {
    const tally = tallyOf([vote('A', 'support', 8), vote('B', 'oppose', 9), vote('C', 'support', 7)]);
    expect(tally).toMatchObject({
      majority: 'support',
      minority: ['B'],
      mean: 8,
      lowest: 7,
      highest: 9,
      level: 'medium',
    });
  });

  it('knows no majority where the sides are equal, and is not sure', () => {
    const tally = tallyOf([vote('A', 'support', 9), vote('B', 'oppose', 9)]);
    expect(tally).toMatchObject({ minority: [], level: 'low' });
    expect(tally.majority).toBeUndefined();
  });

  it.each([
    ['high', [vote('A', 'support', 8), vote('B', 'support', 9)]],
    ['low', [vote('A', 'support', 3), vote('B', 'support', 4)]],
    ['unknown', [vote('A', 'support'), vote('B')]],
    ['unknown', []],
  ] as const)('is %s', (level, votes) => {
    expect(tallyOf(votes).level).toBe(level);
  });
});

import { describe, expect, it } from 'vitest';
import { isAppError } from '../../src/core/errors.ts';
import { planBudget, windowClass } from '../../src/threads/compaction.ts';

describe('planBudget', () => {
  it('gives 60 % of a narrow window to content and half of the rest to the history at the most', () => {
    const budget = planBudget({ window: 200_000, maxOutput: 100_000, reserved: 20_000 });
    expect(budget).toEqual({ window: 200_000, answer: 80_000, reserved: 20_000, rest: 100_000, history: 50_000 });
  });

  it('gives 80 % of a wide window to content', () => {
    const budget = planBudget({ window: 1_000_000, maxOutput: 500_000, reserved: 0 });
    expect(budget).toMatchObject({ answer: 200_000, rest: 800_000, history: 320_000 });
  });

  it('leaves to content what the model cannot answer anyway', () => {
    expect(planBudget({ window: 200_000, maxOutput: 8_192, reserved: 0 }).rest).toBe(191_808);
  });

  it('refuses reserved parts that do not fit, with the numbers', () => {
    try {
      planBudget({ window: 8_192, maxOutput: 4_096, reserved: 6_000 });
      expect.unreachable();
    } catch (error) {
      expect(isAppError(error) && error.details).toMatchObject({
        code: 'LIMIT',
        class: 'tokens',
        data: { window: 8_192, reserved: 6_000 },
      });
    }
  });
});

describe('windowClass', () => {
  it('is the largest power of two that fits', () => {
    expect([8_192, 200_000, 1_048_576, 1_000_000].map(windowClass)).toEqual([8_192, 131_072, 1_048_576, 524_288]);
  });
});

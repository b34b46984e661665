import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { countO200k } from '../../../src/workspace/workers/count-tokens.ts';
import { createPool, type WorkPool } from '../../../src/workspace/workers/worker-pool.ts';
import { manualClock } from '../../support/clock.ts';
import { longestTurn } from '../../support/longest-turn.ts';
import { o200kTokens } from '../../support/vendors/o200k-tokens.ts';

let pool: WorkPool;
beforeAll(() => {
  pool = createPool({ size: 1, clock: manualClock() });
});
afterAll(() => pool.close());

describe('counting tokens exactly', () => {
  it.each([
    ['200,000 blanks', ' '.repeat(200_000)],
    ['200,000 letters a', 'a'.repeat(200_000)],
    ['200,000 line ends', '\n'.repeat(200_000)],
    ['200,000 marks', '='.repeat(200_000)],
    ['base64', randomBytes(150_000).toString('base64')],
    ['East Asian text', '这是一个测试文本，用来测量分词器的精度。'.repeat(5_000)],
  ])('lets others have their turn with %s', async (_name, text) => {
    const counts: number[] = [];
    expect(await longestTurn(async () => counts.push(await pool.count([text])), 50)).toBeLessThan(50);
    expect(counts[0]).toBeGreaterThan(0);
  });

  it('is right for what people write, and never under', () => {
    const text = 'The server answers each request once, however long the conversation has become.\n'.repeat(300);
    const exact = o200kTokens(text).length;
    const counted = countO200k([text]);
    expect(counted).toBeGreaterThanOrEqual(exact);
    expect(counted).toBeLessThanOrEqual(exact * 1.02);
  });
});

import { describe, expect, it } from 'vitest';
import { namesIn } from '../../src/workspace/words.ts';

describe('the names in a question', () => {
  it.each([
    ['class Field', ['Field']],
    ['Does the Field class call Model.save or save()?', ['Field', 'call', 'Model', 'save', 'save']],
    ['Who sets maxBytes, max_bytes, _maxBytes or `limit`?', ['maxBytes', 'max_bytes', '_maxBytes', 'limit']],
    ['why does it fail', []],
  ])('are found as they are written: %s', (question, names) => {
    expect(namesIn(question)).toEqual(names);
  });

  it.each([
    ['letters', 'a'],
    ['letters without case', '\u4e2d'],
    ['spaces', ' '],
  ])('are found in a long run of %s too', (_what, one) => {
    const from = performance.now();
    expect(namesIn(`x ${one.repeat(20_000)} y`)).toEqual([]);
    expect(performance.now() - from).toBeLessThan(1_000);
  });
});

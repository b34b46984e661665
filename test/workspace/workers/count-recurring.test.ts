import { expect, it } from 'vitest';
import { countO200k } from '../../../src/workspace/workers/count-tokens.ts';

// In a file of its own: the counter of the fake vendors sets the size of the tokenizer's cache too.
it('counts a word that recurs no slower than new ones, also after many of these', () => {
  const rare = (_: unknown, at: number) => String.fromCharCode(0x4e00 + (at % 20_000), 0xac00 + ((at * 7) % 11_000));
  const msFor = (text: string) => {
    const begun = performance.now();
    countO200k([text]);
    return performance.now() - begun;
  };
  const perNew = msFor(Array.from({ length: 70_000 }, rare).join(' ')) / 70_000;
  const times = Array.from({ length: 4 }, () => msFor('┄┄┄┄┄┄┄┄ '.repeat(10_000)));
  expect(Math.min(...times.slice(1)) / 10_000).toBeLessThan(3 * perNew);
});

import { expect, it } from 'vitest';
import { relevantRanges } from '../../../src/calls/ask/relevant-ranges.ts';
import { ownTime } from '../../support/own-time.ts';

it('looks at a question of one long word in linear time', async () => {
  const began = ownTime();
  await relevantRanges('One line.\n', undefined, 'a'.repeat(20_000), { tokens: 100, overhead: 0, costOf: () => 1 });
  expect(ownTime() - began).toBeLessThan(300);
});

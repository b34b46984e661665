import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { manualClock } from '../support/clock.ts';
import { type TestProduct, testProduct } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

let project: TempProject;
let polylogue: TestProduct;
const clock = manualClock(Date.UTC(2031, 1, 28, 23, 59, 59));

beforeEach(async () => {
  project = await tempProject();
  polylogue = await testProduct({ root: project.root, clock });
});
afterEach(async () => {
  await polylogue.close();
  await project.dispose();
});

describe('apilookup', () => {
  it('says how to look it up as of today, and asks nobody', async () => {
    const reply = await polylogue.call('apilookup', { prompt: 'the limit of fetch retries' });
    expect(reply).toMatchObject({
      isError: false,
      status: 'web_lookup_needed',
      user_prompt: 'the limit of fetch retries',
      instructions: expect.stringContaining('Today is 2031-02-28.'),
    });
    await clock.advance(1_000);
    const next = await polylogue.call('apilookup', { question: 'and tomorrow?' });
    expect(next.instructions).toContain('Today is 2031-03-01.');
    expect(next.user_prompt).toBe('and tomorrow?');
  });

  it('needs a question', async () => {
    const reply = await polylogue.call('apilookup', { prompt: '' });
    expect(reply).toMatchObject({ isError: true, error: { code: 'MISSING_PARAMETER' } });
  });
});

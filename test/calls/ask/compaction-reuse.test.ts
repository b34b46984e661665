import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestProduct, testProduct } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

const turns = 60;
const answer = Array.from({ length: 60 }, (_, n) => `Finding ${n}: the gate compares keys by reference, which fails.`);
let vendor: FakeVendor;
let project: TempProject;

beforeAll(async () => {
  vendor = await startOpenAi();
  vendor.byDefault({ answer: answer.join('\n') });
  project = await tempProject();
});
afterAll(async () => {
  await vendor.close();
  await project.dispose();
});

/** A thread of 60 questions; the part of each prompt that began the next one. */
async function reuse(window: number): Promise<{ compactions: number; part: number }> {
  const custom = { CUSTOM_API_URL: vendor.url, CUSTOM_API_KEY: 'test-key', CUSTOM_MODEL_NAME: 'any' };
  const model = { CUSTOM_CONTEXT_WINDOW: String(window), DEFAULT_MODEL: 'custom:any' };
  // What is sent does not depend on where turns are kept.
  const env = { ...custom, ...model, POLYLOGUE_STORE: 'memory' };
  const polylogue: TestProduct = await testProduct({ root: project.root, env });
  let thread: string | undefined;
  let [before, all, kept, compactions] = ['', 0, 0, 0];
  for (let n = 1; n <= turns; n++) {
    const reply = await polylogue.call('chat', { prompt: `Question ${n}`, ...(thread && { continuation_id: thread }) });
    expect(reply.isError, JSON.stringify(reply.error)).toBe(false);
    thread = reply.continuation_offer.continuation_id;
    const now = vendor.requests.at(-1)!.canonical;
    let at = 0;
    while (at < before.length && before[at] === now[at]) at++;
    all += before.length;
    kept += at;
    if (before !== '' && at < before.length * 0.9) compactions++;
    before = now;
  }
  await polylogue.close();
  const part = kept / all;
  process.stdout.write(
    `window ${window}: ${turns} turns, ${compactions} compactions, ${(part * 100).toFixed(1)} % of each prompt kept\n`,
  );
  return { compactions, part };
}

describe('a thread of 60 turns', () => {
  it('is not summarised where the window has room for it', async () => {
    expect(await reuse(400_000)).toMatchObject({ compactions: 0 });
  }, 60_000);

  it('is summarised by large steps where it has not, so that few prompts begin anew', async () => {
    const { compactions, part } = await reuse(64_000);
    expect(compactions).toBeGreaterThan(0);
    expect(compactions).toBeLessThanOrEqual(3);
    expect(part).toBeGreaterThan(0.9);
  }, 60_000);
});

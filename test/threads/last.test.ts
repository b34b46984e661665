import { expect, it } from 'vitest';
import { aheadBy, realClock } from '../support/clock.ts';
import { testProduct, vendorEnv } from '../support/product.ts';
import { tempProject } from '../support/temp-project.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const hourMs = 3_600_000;

it.each([
  ['sqlite', 9_000],
  ['memory', 9_000],
  ['sqlite', 0],
])('"last" on %s is the newest thread, also after the clock was %s hours ahead', async (store, hours) => {
  const vendor = await startOpenAi();
  const project = await tempProject();
  let ahead = hours * hourMs;
  const clock = aheadBy(realClock(), () => ahead);
  const env = { ...vendorEnv({ openai: vendor.url }), POLYLOGUE_STORE: store, CONVERSATION_TIMEOUT_HOURS: '20000' };
  const product = await testProduct({ root: project.root, env, clock });
  const idOf = async (args: Record<string, unknown>) =>
    (await product.call('chat', { model: 'gpt-5-mini', ...args })).continuation_offer.continuation_id;
  const early = await idOf({ prompt: 'In the future?' });
  ahead = 0;
  // With nothing else it is still the one.
  expect(await idOf({ prompt: 'Go on?', continuation_id: 'last' })).toBe(early);
  ahead = hours * hourMs;
  await idOf({ prompt: 'Once more?', continuation_id: early });
  ahead = 0;
  const now = await idOf({ prompt: 'Brand new?' });
  expect(await idOf({ prompt: 'Where?', continuation_id: 'last' })).toBe(now);
  await product.close();
  await Promise.all([vendor.close(), project.dispose()]);
});

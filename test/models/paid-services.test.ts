import { expect, it } from 'vitest';
import { dayOf } from '../../src/core/usage.ts';
import { createServiceMeter } from '../../src/models/paid-services.ts';
import { createMeter } from '../../src/models/spend-meter.ts';
import { createMemoryStore } from '../../src/storage/memory/memory.ts';
import { manualClock } from '../support/clock.ts';
import { seededRandom } from '../support/random.ts';

it('lets pass what fits exactly, however the sums are rounded, and no more', async () => {
  const store = createMemoryStore();
  const clock = manualClock();
  const pay = createServiceMeter(
    createMeter({
      ledger: store.spend,
      caps: { perDay: 0.03 },
      pricing: { isLocal: () => false, allowUnpriced: false },
      clock,
      random: seededRandom(1),
      emit: () => {},
      ask: () => Promise.reject(new TypeError('no model is asked')),
    }).limits,
  );
  const kind = 'web_search' as const;
  const service = { payer: { owner: 'local' }, tool: 'search', provider: 'zhipu', used: 'search-prime', kind, max: 1 };
  // Of 0.03 less two times 0.01 a little less than 0.01 is left.
  for (let time = 0; time < 3; time += 1) await pay(service, async tell => tell(1));
  await expect(pay(service, async tell => tell(1))).rejects.toMatchObject({ details: { class: 'cost' } });
  expect(await store.spend.rows({ owner: 'local', from: dayOf(clock.now()) })).toMatchObject([{ calls: 3 }]);
  await store.close();
});

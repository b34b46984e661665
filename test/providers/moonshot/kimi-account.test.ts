import { afterEach, beforeEach, expect, it } from 'vitest';
import { moonshotBalance, moonshotEndpoint } from '../../../src/providers/moonshot/api.ts';
import { createMoonshotCaching } from '../../../src/providers/moonshot/caching.ts';
import { type FakeMoonshot, startMoonshot } from '../../support/vendors/start-moonshot.ts';

const { signal } = new AbortController();
let vendor: FakeMoonshot;

beforeEach(async () => {
  vendor = await startMoonshot();
});
afterEach(async () => {
  await vendor.close();
});

const door = (apiKey = 'test-key') => moonshotEndpoint({ apiKey, baseUrl: vendor.url }, () => 0);

it('tells what an account has left', async () => {
  expect(await moonshotBalance(door(), signal)).toEqual({ available: 49.58, voucher: 46.58, cash: 3 });
  await expect(moonshotBalance(door('wrong'), signal)).rejects.toMatchObject({ details: { class: 'auth' } });
});

it('makes, asks about and removes caches', async () => {
  const caching = createMoonshotCaching(door(), 60);
  const made = await caching.create([{ role: 'system', content: 'A rule.' }], signal);
  expect(made).toEqual({ id: 'cache-1', status: 'ready' });
  expect(await caching.status(made.id, signal)).toEqual(made);
  await caching.remove(made.id, signal);
  await caching.remove(made.id, signal);
  expect(vendor.services.caches.size).toBe(0);
});

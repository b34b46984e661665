import { afterEach, beforeEach, expect, it } from 'vitest';
import { moonshotBalance } from '../../../src/providers/moonshot/api.ts';
import { moonshot } from '../../../src/providers/moonshot/moonshot.ts';
import { type FakeMoonshot, startMoonshot } from '../../support/vendors/start-moonshot.ts';

const { signal } = new AbortController();
let vendor: FakeMoonshot;

beforeEach(async () => {
  vendor = await startMoonshot();
});
afterEach(async () => {
  await vendor.close();
});

const door = (apiKey = 'test-key') => moonshot.endpoint({ apiKey, baseUrl: vendor.url }, () => 0);

it('tells what an account has left', async () => {
  expect(await moonshotBalance(door(), signal)).toEqual({ available: 49.58, voucher: 46.58, cash: 3 });
  await expect(moonshotBalance(door('wrong'), signal)).rejects.toMatchObject({ details: { class: 'auth' } });
});

import { afterEach, beforeEach } from 'vitest';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

export interface Vendors {
  alpha: FakeVendor;
  beta: FakeVendor;
}

/** Two vendors on real sockets, new for each test. */
export function stormVendors(): Vendors {
  const vendors: Partial<Vendors> = {};
  beforeEach(async () => {
    [vendors.alpha, vendors.beta] = await Promise.all([startOpenAi(), startOpenAi({ keys: [] })]);
  });
  afterEach(async () => {
    await Promise.all([vendors.alpha?.close(), vendors.beta?.close()]);
  });
  return {
    get alpha() {
      return vendors.alpha!;
    },
    get beta() {
      return vendors.beta!;
    },
  };
}

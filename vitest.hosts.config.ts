import { defineConfig } from 'vitest/config';

/** Real hosts, for `npm run test:hosts` alone: `npm test` leaves this folder out. */
export default defineConfig({
  test: {
    include: ['test/e2e/hosts/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000, interval: 50 } },
  },
});

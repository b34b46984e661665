import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    // A machine with other work needs more than the second that polls have otherwise; they end as soon as they are right.
    expect: { poll: { timeout: 15_000, interval: 20 } },
    passWithNoTests: false,
  },
});

import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take much longer than their size lets expect: begun last, they would be waited for with nothing else to do. */
const long = [
  'calls/ask/window-property',
  'storage/sqlite/sqlite-crash',
  'storage/redis/redis-cluster',
  'storage/redis/redis',
  'storage/sqlite/sqlite',
  'deploy/image',
].map(name => `/test/${name}.test.ts`);

/** These mostly wait for programs, browsers and daemons that they start, while other files compute. */
const starting = /\/test\/(?:cli|deploy|e2e|scripts|server\/proxy)\//;

/** Vitest's own order, by what each file took before or else by its size, with the long ones first. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) =>
      long.some(name => moduleId.endsWith(name)) ? 0 : starting.test(moduleId) ? 1 : 2;
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    // Longer than any wait within a test, so that the wait ends first and says what it was for; also on a crowded machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Two more than processors: most tests wait part of their time for programs that they started, timers and disks.
    maxWorkers: availableParallelism() + 2,
    // One odd moment of a shared machine is told as a retry and is no failure of the whole run; what fails three times is one.
    retry: process.env.CI ? 2 : 0,
    // A machine with other work needs more than the second that polls have otherwise; they end as soon as they are right.
    expect: { poll: { timeout: 30_000, interval: 20 } },
    passWithNoTests: false,
    sequence: { sequencer: LongFirst },
    // Programs of the tests are started hundreds of times; so Node reads each of their files as source but once.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache') },
    include: ['test/**/*.test.ts'],
    // Real hosts are downloaded and run by `npm run test:hosts` only.
    exclude: ['test/e2e/hosts/**'],
    // Nothing in src keeps state in a module but what it read once: files share a worker, and what it loaded.
    isolate: false,
  },
});

import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What takes longest is begun first: the calls of 90 s, beside which all else runs, then the slowest hosts. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const order = ['long-call', 'opencode', 'qwen', 'gemini', 'claude', 'codex'];
    const rank = ({ moduleId }: TestSpecification) => order.findIndex(name => moduleId.endsWith(`/${name}.test.ts`));
    return files.toSorted((a, b) => rank(a) - rank(b));
  }
}

/** Real hosts, for `npm run test:hosts` alone: `npm test` leaves this folder out. */
export default defineConfig({
  test: {
    include: ['test/e2e/hosts/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // One host at work beside the next; a third worker sees to the long calls, which are almost all waiting.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // One odd moment of a shared machine is told as a retry and is no failure; what fails three times is one.
    retry: process.env.CI ? 2 : 0,
    expect: { poll: { timeout: 30_000, interval: 50 } },
    reporters: ['verbose'],
  },
});

import { installTestClis } from './test-clis.ts';
import { hostCache, hostClis } from './test-needs/host-clis.ts';

const minute = 60_000;

/** Real hosts for `npm run test:hosts`. One that can't be installed in time is said here and skipped there. */
const problems = installTestClis(Object.values(hostClis), hostCache, { each: 3 * minute, all: 8 * minute });
for (const problem of problems) console.error(problem);

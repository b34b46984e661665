import { installTestClis } from './test-clis.ts';
import { hostCache, hostClis } from './test-needs/host-clis.ts';

/** Real hosts for `npm run test:hosts`. One that can't be installed is said here and skipped there. */
for (const problem of installTestClis(Object.values(hostClis), hostCache)) console.error(problem);

import { installTestClis } from './test-clis.ts';
import { hostCache, hostClis } from './test-needs/host-clis.ts';

const minute = 60_000;

/** Real hosts for `npm run test:hosts`. What kept one from being installed is printed here; its tests fail. */
const problems = installTestClis(Object.values(hostClis), hostCache, { each: 3 * minute, all: 8 * minute });
for (const problem of problems) console.error(problem);

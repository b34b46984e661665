/** Asks the first vendor once for each line that it reads, and prints how that ended. See storm-process.ts. */
import { createInterface } from 'node:readline';
import { createStoredState } from '../../../src/storage/shared-state.ts';
import { createSqliteStore } from '../../../src/storage/sqlite/sqlite.ts';
import { realClock } from '../../support/clock.ts';
import { sharedFastClock } from '../../support/fast-clock.ts';
import type { StormProcessOptions } from './storm-process.ts';
import { alpha, stormTeam } from './storm-team.ts';

const options: StormProcessOptions = JSON.parse(process.argv[2] ?? '');
// Pauses pass quickly; what is bounded by a time limit (the disk, a vendor) gets it in full.
const clock = { ...sharedFastClock(options.factor, options.origin), after: realClock().after };
const store = createSqliteStore({
  file: options.file,
  clock: realClock(),
  onWarning: message => {
    throw new Error(message);
  },
});
const { one } = stormTeam({ ...options, clock, state: createStoredState(store, clock) });

const input = createInterface({ input: process.stdin });
input.on('line', async line => {
  const { answer, error } = await one([alpha]);
  const breaker = error?.details.data?.breaker;
  process.stdout.write(
    `${JSON.stringify({ id: Number(line), text: answer?.text, error: error?.details.class, breaker })}\n`,
  );
});
input.on('close', () => store.close());

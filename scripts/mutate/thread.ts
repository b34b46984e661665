/** Loaded first by each worker thread of the tests: gives it the instrumented files and the switches. */
import { registerHooks } from 'node:module';
import { getEnvironmentData } from 'node:worker_threads';
import { answerMutants, readPlan, type Switches, threadData } from './protocol.ts';

const switches: Switches = Object(getEnvironmentData(threadData));
const { sources } = readPlan();
answerMutants(switches);
registerHooks({
  load(url, context, next) {
    const source = sources[url];
    return source === undefined ? next(url, context) : { format: 'module-typescript', source, shortCircuit: true };
  },
});

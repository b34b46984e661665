import { createRequire, syncBuiltinESMExports } from 'node:module';
import { DatabaseSync } from 'node:sqlite';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { startWriter } from '../../src/storage/sqlite/writer.ts';

/** A program for a thread that is the writer of one store after the other. See kept-writers.ts. */

interface Job {
  workerData: unknown;
  port: MessagePort;
}

const threads: typeof import('node:worker_threads') = createRequire(import.meta.url)('node:worker_threads');

// Kept, because each job replaces what is imported.
const main = parentPort;

main?.on('message', ({ workerData, port }: Job) => {
  // To the writer it is as if the thread had been started with these.
  Object.assign(threads, { workerData, parentPort: port });
  syncBuiltinESMExports();
  port.once('close', () => main?.postMessage('free'));
  startWriter((file, { timeout }) => new DatabaseSync(file, { timeout }));
});

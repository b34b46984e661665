import { parentPort, workerData } from 'node:worker_threads';
import { type TracedSources, type TraceInput, traceSources } from './trace-sources.ts';

export type TraceAnswer = { traced: TracedSources } | { failure: string };

const port = parentPort;
if (port) {
  const input: TraceInput = workerData;
  const answer = (message: TraceAnswer) => port.postMessage(message);
  traceSources(input).then(
    traced => answer({ traced }),
    error => answer({ failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
}

import { createHash } from 'node:crypto';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { quantile } from '../../../bench/measure/statistics.ts';

const everyMs = 100;
const work = Buffer.alloc(2 * 1024 * 1024, 'work');

/** Does the same work ten times a second in a thread beside: it becomes slower only where the machine does. */
export function startYardstick() {
  const worker = new Worker(new URL(import.meta.url));
  let samples: number[] = [];
  worker.on('message', (ms: number) => void samples.push(ms));
  return {
    /** The p99 in ms since the last time. */
    take(): number {
      const taken = samples;
      samples = [];
      return quantile(taken, 0.99);
    },
    stop: () => worker.terminate(),
  };
}

if (!isMainThread) {
  setInterval(() => {
    const before = performance.now();
    createHash('sha256').update(work).digest();
    parentPort?.postMessage(performance.now() - before);
  }, everyMs);
}

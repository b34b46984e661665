import { parentPort } from 'node:worker_threads';
import type { Job, JobAnswer } from './run-job.ts';
import { doJob } from './run-job.ts';

const port = parentPort;
if (port) {
  const answer = (message: JobAnswer) => port.postMessage(message);
  port.on('message', (job: Job) => {
    doJob(job).then(
      done => answer({ done }),
      error => answer({ failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    );
  });
}

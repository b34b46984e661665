import { parentPort } from 'node:worker_threads';
import { doJob, type JobMessage } from './run-job.ts';

const port = parentPort;
port?.on('message', (job: JobMessage) => {
  doJob(job).then(
    done => port.postMessage({ done }),
    error => port.postMessage({ failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});

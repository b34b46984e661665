import { storageError } from '../../core/errors.ts';
import type { JobId } from '../../core/ids.ts';
import type { Job } from '../../core/job.ts';
import type { JobEnd } from '../../storage/store.ts';

export function refuseExistingJob(id: JobId): never {
  throw storageError('conflict', `Job ${id} exists already.`, { next: 'Give the new job an id of its own.' });
}

/** Answers what a job becomes; undefined when it ended before. */
export function endedJob(job: Job, { thread, ...end }: JobEnd): Job | undefined {
  if (job.status !== 'running') return undefined;
  return { ...job, ...end, thread: thread ?? job.thread };
}

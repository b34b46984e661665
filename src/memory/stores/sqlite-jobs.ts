import type { DatabaseSync } from 'node:sqlite';
import { storageError } from '../../core/errors.ts';
import type { JobId, ThreadId } from '../../core/ids.ts';
import type { Job } from '../../core/job.ts';
import { sealRecord } from '../../storage/records.ts';
import { type Row, recordOf } from '../../storage/sqlite/tables.ts';
import type { JobEnd, JobQuery } from '../../storage/store.ts';
import { endedJob, refuseExistingJob } from './job-change.ts';

/** Changes of jobs. Each one expects to run inside a transaction of its caller. */
export interface SqliteJobs {
  createJob(job: Job): void;
  endJob(id: JobId, end: JobEnd): boolean;
  dropExpired(now: number): void;
  dropOfThread(thread: ThreadId): void;
}

export function sqliteJobs(db: DatabaseSync): SqliteJobs {
  const find = db.prepare('SELECT id, body, seal FROM jobs WHERE id = ?');
  const add = db.prepare(
    'INSERT INTO jobs (id, owner, thread, created_at, expires_at, body, seal) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const change = db.prepare('UPDATE jobs SET thread = ?, expires_at = ?, body = ?, seal = ? WHERE id = ?');
  const expired = db.prepare('DELETE FROM jobs WHERE expires_at <= ?');
  const ofThread = db.prepare('DELETE FROM jobs WHERE thread = ?');
  return {
    createJob(job) {
      if (find.get(job.id)) refuseExistingJob(job.id);
      const { body, seal } = sealRecord({ kind: 'job', job });
      add.run(job.id, job.owner, job.thread ?? null, job.createdAt, job.expiresAt, body, seal);
    },
    endJob(id, end) {
      const row = find.get(id);
      const job = row && endedJob(jobOf(row), end);
      if (!job) return false;
      const { body, seal } = sealRecord({ kind: 'job', job });
      change.run(job.thread ?? null, job.expiresAt, body, seal, id);
      return true;
    },
    dropExpired: now => void expired.run(now),
    dropOfThread: thread => void ofThread.run(thread),
  };
}

export interface SqliteJobReads {
  job(id: JobId, now: number): Job | undefined;
  jobs(query: JobQuery): Job[];
}

export function sqliteJobReads(db: DatabaseSync): SqliteJobReads {
  const find = db.prepare('SELECT id, body, seal FROM jobs WHERE id = ? AND expires_at > ?');
  const ofOwner = db.prepare(
    'SELECT id, body, seal FROM jobs WHERE owner = ? AND expires_at > ? ORDER BY created_at DESC, n DESC LIMIT ?',
  );
  return {
    job(id, now) {
      const row = find.get(id, now);
      return row && jobOf(row);
    },
    jobs: ({ owner, limit, now }) =>
      ofOwner.all(owner, now, Math.max(0, limit)).flatMap(row => {
        // One that is damaged is refused to whoever asks for it; it does not hide the others.
        const job = recordOf(row, 'job')?.job;
        return job && job.id === row.id && job.owner === owner ? [job] : [];
      }),
  };
}

function jobOf(row: Row): Job {
  const job = recordOf(row, 'job')?.job;
  if (job && job.id === row.id) return job;
  throw storageError('corrupt', `Job ${String(row.id)} is damaged on the disk and is not served.`, {
    next: 'Look into the thread, which may have its answer, or send the call again.',
  });
}

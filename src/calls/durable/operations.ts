import { IdempotentCalls, type IdempotentCallsOptions } from './idempotent-calls.ts';
import { Jobs } from './jobs.ts';
import { createProcessLease } from './process-lease.ts';

export interface OperationsOptions extends Omit<IdempotentCallsOptions, 'lease' | 'jobs' | 'graceMs'> {
  /** How long work goes on after its caller is gone without a word, or after its process is told to end; absent: as below. */
  detachedGraceSeconds?: number | undefined;
}

/** Nobody reads what a call comes to, unless its client sends it again within this time. */
const callGraceSeconds = 4;

/** The client of a job was told that the work goes on. */
const jobGraceSeconds = 30;

/** The work of this process that outlasts its callers, under one lease. */
export function createOperations(options: OperationsOptions) {
  const lease = createProcessLease({ ...options, holder: options.random.uuid() });
  const jobs = new Jobs({ ...options, lease });
  const { detachedGraceSeconds: seconds } = options;
  const graceMs = (seconds ?? callGraceSeconds) * 1_000;
  const endMs = (seconds ?? jobGraceSeconds) * 1_000;
  const idempotentCalls = new IdempotentCalls({ ...options, lease, jobs, graceMs });
  return {
    jobs,
    idempotentCalls,
    /** Gives what runs its grace, or until `hurry` is aborted; then it is interrupted. */
    async close(hurry?: AbortSignal): Promise<void> {
      await Promise.all([jobs.close(endMs, hurry), idempotentCalls.close(endMs, hurry)]);
      await lease.close();
    },
  };
}

import type { Clock, Emit, Random } from '../../core/ports.ts';
import type { Store } from '../../storage/store.ts';
import type { ReplyFormat } from '../format-reply.ts';
import { createIdempotentCalls, type IdempotentCalls } from './idempotent-calls.ts';
import { Jobs } from './jobs.ts';
import { createProcessLease } from './process-lease.ts';

export interface OperationsOptions {
  store: Store;
  clock: Clock;
  random: Random;
  emit: Emit;
  replyFormat: ReplyFormat;
  /** How long work goes on after its caller is gone without a word, or after its process is told to end; absent: as below. */
  detachedGraceSeconds?: number | undefined;
}

/** Nobody reads what a call comes to, unless its client sends it again within this time. */
const callGraceSeconds = 4;

/** The client of a job was told that the work goes on. */
const jobGraceSeconds = 30;

/** The work of this process that outlasts its callers, under one lease. */
export interface Operations {
  jobs: Jobs;
  idempotentCalls: IdempotentCalls;
  /** Gives what runs its grace, or until `hurry` is aborted; then it is interrupted. */
  close(hurry?: AbortSignal): Promise<void>;
}

export function createOperations(options: OperationsOptions): Operations {
  const lease = createProcessLease({ ...options, holder: options.random.uuid() });
  const jobs = new Jobs({ ...options, lease });
  const { detachedGraceSeconds: seconds } = options;
  const graceMs = (seconds ?? callGraceSeconds) * 1_000;
  const endMs = (seconds ?? jobGraceSeconds) * 1_000;
  const idempotentCalls = createIdempotentCalls({ ...options, lease, jobs, graceMs });
  return {
    jobs,
    idempotentCalls,
    async close(hurry) {
      await Promise.all([jobs.close(endMs, hurry), idempotentCalls.close(endMs, hurry)]);
      await lease.close();
    },
  };
}

import { z } from 'zod';
import { defineTool } from '../calls/tool.ts';
import { interruptedError } from '../core/errors.ts';
import type { Job, JobReply } from '../core/job.ts';

const fields = {
  job_id: z.string().min(1),
  wait_ms: z.int().min(0).describe('Max wait for completion').optional(),
  action: z.enum(['status', 'cancel']).optional(),
  page: z.int().min(1).optional(),
};

export const job = defineTool({
  name: 'job',
  title: 'Job',
  description: 'Get the reply of a call that answered "running", or a page of a long one; wait for it, or cancel it.',
  toolset: 'core',
  effects: { writes: false, destroys: false, network: false, idempotent: true },
  fields,
  readingFields: { ...fields, action: z.enum(['status']).optional() },
  mode: {
    kind: 'passThrough',
    async run({ job_id, wait_ms, action, page = 1 }, { jobs }) {
      if (action === 'cancel') return stateOf(await jobs.cancel(job_id));
      const found = await jobs.wait(job_id, wait_ms ?? 0);
      return found.reply ? { ...found.reply, kept: { job: found.id, page } } : stateOf(found, jobs.stage(found));
    },
  },
});

const nexts: Record<Exclude<Job['status'], 'interrupted'>, string> = {
  running: 'Call "job" again with this job_id and wait_ms.',
  done: 'The call has ended; action "status" returns its reply.',
  failed: 'The call has ended; action "status" returns its reply.',
  cancelled: 'Resend the call if you still need it.',
};

function stateOf({ id, tool, thread, status, createdAt, updatedAt }: Job, stage?: string): JobReply {
  const known = { job_id: id, tool_name: tool, ...(thread !== undefined && { continuation_id: thread }) };
  if (status === 'interrupted')
    throw interruptedError(`The call of ${tool} was interrupted: its process ended before the answer arrived.`, {
      next: 'Resend the call. Its thread keeps everything stored so far.',
      retryable: false,
      replyStatus: 'interrupted',
      data: known,
    });
  return {
    isError: false,
    document: {
      status,
      ...known,
      ...(stage !== undefined && { stage }),
      started_at: new Date(createdAt).toISOString(),
      ...(status !== 'running' && { ended_at: new Date(updatedAt).toISOString() }),
      next: nexts[status],
    },
  };
}

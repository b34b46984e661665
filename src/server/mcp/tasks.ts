import {
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { isAppError } from '../../core/errors.ts';
import type { Job } from '../../core/job.ts';
import { isRecord } from '../../core/json.ts';
import type { HostJobs } from '../../core/tool-host.ts';
import { declaredCapabilities } from '../capabilities.ts';
import { answersIn, elicitations } from '../questions.ts';
import { resultOf } from '../results.ts';

/** The protocol's extension for calls that go on by themselves; a job by another name. */
export const tasksExtension = 'io.modelcontextprotocol/tasks';

const pollIntervalMs = 1_000;
const taskParams = z.looseObject({ taskId: z.string() });
const updateParams = z.looseObject({
  taskId: z.string(),
  inputResponses: z.record(z.string(), z.unknown()).optional(),
});

/** Whether the client of this very request knows tasks. */
export function knowsTasks(context: ServerContext): boolean {
  const told = declaredCapabilities(context);
  return isRecord(told) && isRecord(told.extensions) && isRecord(told.extensions[tasksExtension]);
}

/** What a call answers whose work goes on as a task. */
export function createdTask(job: Job) {
  return { resultType: 'task' as const, content: [], ...taskOf(job, 'working') };
}

/** The methods by which clients come back for their tasks. */
export function serveTasks(server: Server, jobs: HostJobs, owner: string): void {
  server.setRequestHandler('tasks/get', { params: taskParams }, async ({ taskId }, context) => {
    requireTasks(context);
    return detailsOf(jobs, await known(jobs.find(taskId, owner)));
  });
  server.setRequestHandler('tasks/update', { params: updateParams }, async ({ taskId, inputResponses }, context) => {
    requireTasks(context);
    const job = await known(jobs.find(taskId, owner));
    for (const [key, answer] of answersIn(inputResponses ?? context.mcpReq.inputResponses))
      jobs.answer(job, key, answer);
    return {};
  });
  server.setRequestHandler('tasks/cancel', { params: taskParams }, async ({ taskId }, context) => {
    requireTasks(context);
    await known(jobs.cancel(taskId, owner));
    return {};
  });
}

/** Refuses a request that only a client of tasks can make. */
export function requireTasks(context: ServerContext): void {
  if (knowsTasks(context)) return;
  throw new MissingRequiredClientCapabilityError({
    requiredCapabilities: { extensions: { [tasksExtension]: {} } },
  });
}

/** A task that is not this owner's is unknown, like one that never was. */
async function known(job: Promise<Job>): Promise<Job> {
  try {
    return await job;
  } catch (error) {
    if (!isAppError(error) || error.kind !== 'input') throw error;
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, error.message);
  }
}

type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

function taskOf({ id, createdAt, updatedAt, expiresAt }: Job, status: TaskStatus, statusMessage?: string) {
  return {
    taskId: id,
    status,
    ...(statusMessage !== undefined && { statusMessage }),
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttlMs: Math.max(0, Math.round(expiresAt - createdAt)),
    pollIntervalMs,
  };
}

function detailsOf(jobs: HostJobs, job: Job) {
  switch (job.status) {
    case 'running': {
      const questions = jobs.questions(job);
      if (questions.length === 0) return taskOf(job, 'working', jobs.stage(job));
      return { ...taskOf(job, 'input_required'), inputRequests: elicitations(questions) };
    }
    case 'done':
    case 'failed':
      // The protocol's "failed" is for what never became a reply; a tool's own failure is one.
      return { ...taskOf(job, 'completed'), ...(job.reply && { result: resultOf(jobs.show(job.reply)) }) };
    case 'cancelled':
      return taskOf(job, 'cancelled');
    case 'interrupted': {
      const message = 'The process that ran this call ended before the answer came. Send the call again.';
      return { ...taskOf(job, 'failed', message), error: { code: ProtocolErrorCode.InternalError, message } };
    }
  }
}

import {
  CLIENT_CAPABILITIES_META_KEY,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { isAppError } from '../domain/error.ts';
import type { Job } from '../domain/job.ts';
import { isRecord } from '../domain/json.ts';
import type { HostJobs, UserAnswer } from '../domain/request.ts';
import { resultOf } from './results.ts';

/** The protocol's extension for calls that go on by themselves; a job by another name. */
export const tasksExtension = 'io.modelcontextprotocol/tasks';

const pollIntervalMs = 1_000;
const taskParams = z.looseObject({ taskId: z.string() });
const updateParams = z.looseObject({
  taskId: z.string(),
  inputResponses: z.record(z.string(), z.unknown()).optional(),
});

/** Whether the client of this very request knows tasks: 2026 clients say so with each request. */
export function knowsTasks({ mcpReq }: ServerContext): boolean {
  const envelope: unknown = mcpReq.envelope;
  const told = isRecord(envelope) ? envelope[CLIENT_CAPABILITIES_META_KEY] : undefined;
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
    const told: unknown = inputResponses ?? context.mcpReq.inputResponses;
    for (const [key, answer] of Object.entries(isRecord(told) ? told : {})) jobs.answer(job, key, answerOf(answer));
    return {};
  });
  server.setRequestHandler('tasks/cancel', { params: taskParams }, async ({ taskId }, context) => {
    requireTasks(context);
    await known(jobs.cancel(taskId, owner));
    return {};
  });
}

function requireTasks(context: ServerContext): void {
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
      const requests = questions.map(({ key, message, schema }) => {
        const params = { mode: 'form', message, requestedSchema: schema };
        return [key, { method: 'elicitation/create', params }];
      });
      return { ...taskOf(job, 'input_required'), inputRequests: Object.fromEntries(requests) };
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

function answerOf(told: unknown): UserAnswer {
  if (!isRecord(told)) return { action: 'cancel' };
  const { action, content } = told;
  if (action === 'accept') return { action, content: isRecord(content) ? content : {} };
  return { action: action === 'decline' ? 'decline' : 'cancel' };
}

import type { Server, ServerContext } from '@modelcontextprotocol/server';
import { MissingRequiredClientCapabilityError, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { isAppError } from '../../core/errors.ts';
import type { Job } from '../../core/job.ts';
import { isRecord, recordIn } from '../../core/json.ts';
import type { HostJobs, ToolHost, UserAnswer, UserQuestion } from '../../core/tool-host.ts';
import { clientOf, declaredCapabilities } from './clients.ts';
import { type PagedFor, resultOf } from './results.ts';

/** Questions as requests of the protocol, by their keys. */
function elicitations(questions: readonly UserQuestion[]) {
  const method = 'elicitation/create';
  const formOf = ({ message, schema }: UserQuestion) => ({ mode: 'form' as const, message, requestedSchema: schema });
  return Object.fromEntries(questions.map(each => [each.key, { method, params: formOf(each) } as const]));
}

/** What a call answers that is to come again once its caller was asked. */
export function inputRequired(questions: readonly UserQuestion[]) {
  return { resultType: 'input_required' as const, content: [], inputRequests: elicitations(questions) };
}

/** So long a user of a 2025 client has for a form. */
const formMs = 600_000;

/** The answers of a 2025 client's user. A form that was not shown, or not answered as it should be or in time, counts as put aside. */
export async function askUser(server: Server, { mcpReq }: ServerContext, questions: readonly UserQuestion[]) {
  const { id, signal } = mcpReq;
  const options = { relatedRequestId: id, signal, timeout: formMs, resetTimeoutOnProgress: true, onprogress: () => {} };
  const answers = Object.entries(elicitations(questions)).map(async ([key, form]) => {
    const given = server.request(form, options).catch((error: unknown) => {
      if (signal.aborted) throw error;
    });
    return [key, await given] as const;
  });
  return answersIn(Object.fromEntries(await Promise.all(answers)));
}

/** The answers that a client sent. What is none counts as a question that was put aside. */
export const answersIn = (responses: unknown): Map<string, UserAnswer> =>
  new Map(Object.entries(recordIn(responses)).map(([key, answer]) => [key, answerOf(answer)]));

function answerOf(response: unknown): UserAnswer {
  if (!isRecord(response)) return { action: 'cancel' };
  const { action, content } = response;
  if (action === 'accept') return { action, content: recordIn(content) };
  return { action: action === 'decline' ? 'decline' : 'cancel' };
}

/** The protocol's extension for calls that go on by themselves; a job by another name. */
export const tasksExtension = 'io.modelcontextprotocol/tasks';

const taskParams = z.looseObject({ taskId: z.string() });

const updateParams = taskParams.extend({ inputResponses: z.record(z.string(), z.unknown()).optional() });

export const knowsTasks = (context: ServerContext): boolean =>
  isRecord(recordIn(recordIn(declaredCapabilities(context)).extensions)[tasksExtension]);

/** What a call answers whose work goes on as a task. */
export const createdTask = (job: Job) => ({ resultType: 'task' as const, content: [], ...taskOf(job, 'working') });

export function serveTasks(server: Server, host: ToolHost, owner: string): void {
  const { jobs } = host;
  server.setRequestHandler('tasks/get', { params: taskParams }, async ({ taskId }, context) => {
    requireTasks(context);
    const reader = { client: clientOf(server, context), maxTokens: host.replyTokens?.() };
    return detailsOf(jobs, await known(jobs.find(taskId, owner)), reader);
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
  throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [tasksExtension]: {} } } });
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

const taskOf = ({ id, createdAt, updatedAt, expiresAt }: Job, status: TaskStatus, statusMessage?: string) => ({
  taskId: id,
  status,
  ...(statusMessage !== undefined && { statusMessage }),
  createdAt: new Date(createdAt).toISOString(),
  lastUpdatedAt: new Date(updatedAt).toISOString(),
  ttlMs: Math.max(0, Math.round(expiresAt - createdAt)),
  pollIntervalMs: 1_000,
});

async function detailsOf(jobs: HostJobs, job: Job, reader: Omit<PagedFor, 'keep'>) {
  switch (job.status) {
    case 'running': {
      const questions = jobs.questions(job);
      if (questions.length === 0) return taskOf(job, 'working', jobs.stage(job));
      return { ...taskOf(job, 'input_required'), inputRequests: elicitations(questions) };
    }
    case 'done':
    case 'failed':
      // The protocol's "failed" is for what never became a reply; a tool's own failure is one.
      // A task's result is kept already: as the job that the task is.
      return {
        ...taskOf(job, 'completed'),
        ...(job.reply && { result: await resultOf(jobs.show(job.reply), { ...reader, keep: async () => job.id }) }),
      };
    case 'cancelled':
      return taskOf(job, 'cancelled');
    case 'interrupted': {
      const message = 'The process that ran this call ended before the answer came. Resend the call.';
      return { ...taskOf(job, 'failed', message), error: { code: ProtocolErrorCode.InternalError, message } };
    }
  }
}

import { z } from 'zod';
import { createOperations } from '../../../src/calls/durable/idempotent-calls.ts';
import { detachLong } from '../../../src/calls/durable/long-calls.ts';
import type { JobReply } from '../../../src/core/job.ts';
import type { ToolHost, ToolReply, ToolRequest } from '../../../src/core/tool-host.ts';
import { createMemoryStore } from '../../../src/storage/memory/memory.ts';
import { realClock } from '../clock.ts';
import { seededRandom } from '../random.ts';

type Reply = JobReply & Pick<ToolReply, 'questions'>;
type Tool = (request: ToolRequest, signal: AbortSignal) => Promise<Reply>;

const clock = realClock();
const said = (content: string): JobReply => ({ isError: false, document: { status: 'success', content } });
const failed = (content: string): JobReply => ({ isError: true, document: { status: 'error', content } });

const shown = (reply: Reply) => ({ ...reply, text: String(reply.document.content), markdown: true as const });

async function confirm({ ask }: ToolRequest, key: string): Promise<string> {
  const schema = { type: 'object' as const, properties: { confirm: { type: 'boolean' as const } } };
  return (await ask?.({ key, message: `Confirm ${key}?`, schema }))?.action ?? 'not asked';
}

/** The tools that the Tasks scenarios call, by the names and behaviours that they ask for. */
const tools: Record<string, Tool> = {
  greet: async ({ arguments: args }) => said(`Hello, ${String(args.name)}!`),
  async slow_compute({ arguments: args }, signal) {
    await clock.sleep(z.coerce.number().parse(args.seconds) * 1_000, signal);
    return said('computed');
  },
  async failing_job(_request, signal) {
    await clock.sleep(1_000, signal);
    return failed('this tool always fails');
  },
  protocol_error_job: (_request, signal) =>
    new Promise(resolve => signal.addEventListener('abort', () => resolve(failed('ended')))),
  confirm_delete: async request => said(await confirm(request, 'delete')),
  multi_input: async request => {
    const answers = await Promise.all([confirm(request, 'first'), confirm(request, 'second')]);
    return said(answers.join(', '));
  },
  async test_tool_with_task({ answers }, signal) {
    const told = answers?.get('user_name');
    if (told?.action !== 'accept') {
      const schema = { type: 'object' as const, properties: { name: { type: 'string' as const } }, required: ['name'] };
      return { ...said('Who are you?'), questions: [{ key: 'user_name', message: 'Who are you?', schema }] };
    }
    await clock.sleep(400, signal);
    return said(`Hello, ${String(told.content.name)}!`);
  },
};
/** Tools whose work can only be had as a task. */
const onlyAsTask = new Set(['failing_job', 'test_tool_with_task']);
const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };

/** A host with the product's own jobs, and tools of the conformance suite in the place of the product's. */
export function fixtureHost(): ToolHost {
  const store = createMemoryStore();
  const options = {
    store,
    clock,
    random: seededRandom(7),
    emit: () => {},
    replyFormat: 'json',
    detachedGraceSeconds: 0,
  } as const;
  const { jobs } = createOperations(options);
  const call: ToolHost['call'] = async (request, signal) => {
    const run = tools[request.name];
    const reply = run ? await run(request, signal).catch(error => failed(String(error))) : failed('unknown tool');
    return shown(reply);
  };
  // A job whose process is gone is what becomes of a task that ends without a reply.
  jobs.watch(async ({ id, tool, status, expiresAt }) => {
    if (tool !== 'protocol_error_job' || status !== 'running') return;
    await store.endJob(id, { status: 'interrupted', updatedAt: clock.now(), expiresAt });
  });
  return {
    list: () =>
      Object.keys(tools).map(name => ({
        name,
        title: name,
        description: `The fixture ${name}.`,
        inputSchema: { type: 'object' },
        annotations,
        ...(onlyAsTask.has(name) && { execution: { taskSupport: 'required' as const } }),
      })),
    call: detachLong(
      {
        jobs,
        clock,
        emit: () => {},
        replyFormat: 'json',
        patience: () => 50_000,
        takesLong: ({ name }) => name !== 'greet',
      },
      call,
    ),
    prompts: { list: () => [], text: () => undefined },
    resources: { templates: () => [], list: async () => [], read: async () => undefined, watch: async () => {} },
    jobs: {
      find: (id, owner) => jobs.find(id, owner),
      cancel: (id, owner) => jobs.cancel(id, owner),
      stage: ({ id }) => jobs.workOf(id)?.stage(),
      questions: ({ id }) => jobs.workOf(id)?.questions.pending() ?? [],
      answer: ({ id }, key, answer) => jobs.workOf(id)?.questions.answer(key, answer),
      show: shown,
      keep: (tool, reply, owner) => jobs.keep(tool, reply, owner),
    },
    complete: async () => [],
  };
}

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createOperations } from '../../../src/calls/durable/idempotent-calls.ts';
import { detachLong } from '../../../src/calls/durable/long-calls.ts';
import type { ToolReply, ToolRequest } from '../../../src/core/tool-host.ts';
import { createMemoryStore } from '../../../src/storage/memory/memory.ts';
import type { Store } from '../../../src/storage/store.ts';
import { createThreads } from '../../../src/threads/threads.ts';
import { createSandbox } from '../../../src/workspace/sandbox.ts';
import { manualClock } from '../../support/clock.ts';
import { seededRandom } from '../../support/random.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

let project: TempProject;
const clock = manualClock();
const random = seededRandom(11);
const fails = () => Promise.reject(new Error('no disk'));
const said: ToolReply = { isError: false, document: { content: 'Yes.' }, text: '' };
let warnings: string[];
const emit = (event: { type: string }) => void warnings.push(event.type);

beforeEach(async () => {
  warnings = [];
  project = await tempProject();
});

afterEach(() => project.dispose());

const operationsOn = (store: Store) =>
  createOperations({ store, clock, random, emit, replyFormat: 'json', detachedGraceSeconds: 0 });

/** What calls are compared with. */
function world(store: Store) {
  const threads = createThreads({ store, clock, random, emit });
  const sandbox = createSandbox({ roots: [project.root], allowSecrets: false });
  return { threads, sandbox, home: project.root, maxFileBytes: 1_000, maxTurns: 20, replyTokens: 10_000 };
}

function request(more: Partial<ToolRequest> = {}): ToolRequest {
  const session = { gone: new AbortController().signal };
  return {
    name: 'ask',
    arguments: { prompt: 'Why?' },
    principal: { owner: 'ann', root: project.root },
    session,
    ...more,
  };
}

const facts = { threaded: false, looks: false, writesTo: [], edits: false, isRead: () => false };

describe('a store that fails', () => {
  it.each([
    ['with its first look', ['fact', 'swapFact', 'lease', 'release']],
    ['with the record', ['swapFact']],
    ['with the lease', ['lease', 'release']],
  ] as const)('costs the record and never the call: %s', async (_what, methods) => {
    const broken = Object.fromEntries(methods.map(method => [method, fails]));
    const store = { ...createMemoryStore(), ...broken };
    const operations = operationsOn(store);
    let runs = 0;
    const run = async () => {
      runs += 1;
      return said;
    };
    const way = { ...world(store), run };
    for (const idempotencyKey of [undefined, 'k-1']) {
      const session = { gone: new AbortController().signal, ...(idempotencyKey && { idempotencyKey }) };
      const reply = await operations.idempotentCalls.call(
        request({ session }),
        new AbortController().signal,
        facts,
        way,
      );
      expect(reply).toMatchObject({ isError: false, document: { content: 'Yes.' } });
    }
    expect(runs).toBe(2);
    expect(warnings).toContain('warning');
    await operations.close();
  });

  it('makes no job of a call, whose client waits for its reply then', async () => {
    const store = { ...createMemoryStore(), createJob: fails };
    const { jobs } = operationsOn(store);
    const { promise, resolve } = Promise.withResolvers<ToolReply>();
    const options = { jobs, clock, emit, replyFormat: 'json' as const, patience: () => 1_000, takesLong: () => true };
    const reply = detachLong(options, () => promise)(request({ detach: 'job' }), new AbortController().signal);
    await clock.advance(1_000);
    resolve(said);
    expect(await reply).toBe(said);
    expect(await jobs.list('ann', 10)).toEqual([]);
    expect(warnings).toEqual(['warning']);
  });
});

describe('a job', () => {
  it('is kept for a day after it ended', async () => {
    const { jobs } = operationsOn(createMemoryStore());
    const id = (await jobs.keep('ask', said, 'ann')) ?? '';
    await clock.advance(24 * 3_600_000 - 1);
    expect(await jobs.find(id, 'ann')).toMatchObject({ status: 'done', reply: { document: { content: 'Yes.' } } });
    await clock.advance(1);
    await expect(jobs.find(id, 'ann')).rejects.toMatchObject({ details: { class: 'job_not_found' } });
  });
});

describe('a job whose end the store does not take', () => {
  const begun = async () => {
    const memory = createMemoryStore();
    const store = { ...memory, endJob: fails };
    const operations = operationsOn(store);
    const { promise, resolve } = Promise.withResolvers<ToolReply>();
    const questions = { pending: () => [], answer() {} };
    const work = { request: request(), reply: promise, abort() {}, stage: () => undefined, questions };
    const { id } = await operations.jobs.adopt(work);
    resolve(said);
    await expect.poll(() => warnings).toContain('warning');
    const recover = () => Object.assign(store, { endJob: memory.endJob });
    return { memory, store, operations, id, recover };
  };

  it('is answered from memory, and stored once the store works again', async () => {
    const { memory, operations, id, recover } = await begun();
    const done = { status: 'done', reply: { document: { content: 'Yes.' } } };
    expect(await operations.jobs.wait(id, 'ann', 1_000, new AbortController().signal)).toMatchObject(done);
    expect(await operations.jobs.cancel(id, 'ann')).toMatchObject(done);
    expect(await operations.jobs.list('ann', 9)).toMatchObject([done]);
    await clock.advance(2_000);
    expect(await memory.job(id, clock.now())).toMatchObject({ status: 'running' });
    recover();
    await clock.advance(2_000);
    await expect.poll(() => memory.job(id, clock.now())).toMatchObject(done);
    expect(warnings).toEqual(['warning']);
    await operations.close();
  });

  it('is told to who watches, though the store cannot be read', async () => {
    const { operations, id, recover, store } = await begun();
    const heard: string[] = [];
    operations.jobs.watch(job => heard.push(`${job.id} ${job.status} ${job.reply?.document.content}`));
    recover();
    Object.assign(store, { job: fails });
    await clock.advance(2_000);
    await expect.poll(() => heard).toEqual([`${id} done Yes.`]);
    await operations.close();
  });

  it('is stored with the end of the process', async () => {
    const { memory, operations, id, recover } = await begun();
    recover();
    await operations.close();
    expect(await memory.job(id, clock.now())).toMatchObject({ status: 'done', reply: { isError: false } });
  });
});

it('a job keeps what was answered alone: neither its rendered text nor the error of the vendor', async () => {
  const store = createMemoryStore();
  const { jobs } = operationsOn(store);
  const document = { status: 'error', content: 'No.' };
  const reply = { isError: true, document, text: 'No.', cause: new Error('what the vendor said') };
  const questions = { pending: () => [], answer() {} };
  const { id } = await jobs.adopt({
    request: request(),
    reply: Promise.resolve(reply),
    abort() {},
    stage: () => undefined,
    questions,
  });
  await expect
    .poll(() => store.job(id, clock.now()))
    .toMatchObject({ status: 'failed', reply: { isError: true, document } });
  expect(Object.keys((await store.job(id, clock.now()))?.reply ?? {})).toEqual(['isError', 'document']);
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { patienceOf } from '../../../src/calls/durable/long-calls.ts';
import type { Clock } from '../../../src/core/ports.ts';
import type { ToolRequest } from '../../../src/core/tool-host.ts';
import { realClock } from '../../support/clock.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

const patienceSeconds = 7;
/** Ends the patience of the clients that wait at this moment. */
let losePatience = () => {};

/** The machine's clock, but patience ends when a test says so: how far a call comes in a second is up to the machine. */
function clockOfPatience(): Clock {
  const real = realClock();
  const waiting = new Set<() => void>();
  losePatience = () => {
    for (const run of waiting) run();
    waiting.clear();
  };
  return {
    ...real,
    after(ms, run) {
      if (ms !== patienceSeconds * 1_000) return real.after(ms, run);
      waiting.add(run);
      return () => void waiting.delete(run);
    },
  };
}

async function start(more: Record<string, string> = {}, clock: Clock = clockOfPatience()): Promise<void> {
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' };
  const times = { CALL_PATIENCE_SECONDS: `${patienceSeconds}`, DETACHED_GRACE_SECONDS: '0' };
  polylogue = await testProduct({ root: project.root, env: { ...env, ...times, ...more }, clock });
}

beforeEach(async () => {
  [vendor, project] = await Promise.all([startOpenAi(), tempProject()]);
  await start();
});

afterEach(async () => {
  await polylogue.close();
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose()]);
});

type Options = Pick<ToolRequest, 'detach' | 'onProgress'> & { owner?: string; signal?: AbortSignal };

async function call(name: string, args: Record<string, unknown>, options: Options = {}): Promise<Document> {
  const { owner = 'local', signal = new AbortController().signal, ...rest } = options;
  const principal = { owner, root: project.root, client: 'codex-mcp-client' };
  const reply = await polylogue.product.host.call({ name, arguments: args, principal, detach: 'job', ...rest }, signal);
  expect(JSON.parse(reply.text)).toEqual(reply.document);
  return { ...reply.document, isError: reply.isError };
}

/** A call whose client loses his patience once the vendor was asked. */
async function outlasted(prompt: string, options: Options = {}): Promise<Document> {
  const before = vendor.requests.length;
  const reply = call('chat', { prompt }, options);
  await expect.poll(() => vendor.requests.length).toBe(before + 1);
  losePatience();
  return reply;
}

/** What a job came to. The client's patience ends each wait, and a busy machine may need several. */
async function outcomeOf(job_id: string): Promise<Document> {
  for (;;) {
    const reply = await call('job', { job_id, wait_ms: 10_000 });
    if (reply.status !== 'running') return reply;
  }
}

const slow = (delayMs: number) => ({ answer: 'At last.', delayMs });
/** An answer that comes when a test lets it. */
function held() {
  const { promise: when, resolve: release } = Promise.withResolvers<void>();
  return { step: { answer: 'At last.', when }, release };
}
const hangs = { fault: 'hang_after_headers' } as const;

describe('a call that outlasts the patience of its client', () => {
  it('answers that it goes on, and the job has the very reply', async () => {
    const { step, release } = held();
    vendor.script(step);
    const running = await outlasted('Take your time.');
    expect(running).toMatchObject({ status: 'running', tool_name: 'chat', isError: false });
    expect(running.stage).toBe('asking openai:gpt-5-mini');
    release();
    const reply = await outcomeOf(running.job_id);
    expect(reply).toMatchObject({ status: 'continuation_available', content: 'At last.', isError: false });
    expect(reply.metadata.tool_name).toBe('chat');
    const again = await call('job', { job_id: running.job_id });
    expect(again).toEqual(reply);
    const next = await call('chat', { prompt: 'And?', ...continuing(reply) });
    expect(next.isError).toBe(false);
    expect(vendor.requests).toHaveLength(2);
  });

  it('tells the thread that it goes on in, however its id was written', async () => {
    vendor.script({ answer: 'First.' }, hangs);
    const { continuation_id: id } = (await call('chat', { prompt: 'Begin.' })).continuation_offer;
    const reply = call('chat', { prompt: 'Hang.', continuation_id: ` ${id.toUpperCase()} ` });
    await expect.poll(() => vendor.requests.length).toBe(2);
    losePatience();
    const { job_id } = await reply;
    expect(await call('job', { job_id: `"${job_id}"` })).toMatchObject({ status: 'running', continuation_id: id });
  });

  it('waits with the client and no longer than it', async () => {
    await polylogue.close();
    await start({ CALL_PATIENCE_SECONDS: '1' }, realClock());
    vendor.script(hangs);
    const { job_id } = await call('chat', { prompt: 'Hang.' });
    const began = performance.now();
    expect(await call('job', { job_id, wait_ms: 60_000 })).toMatchObject({ status: 'running', job_id });
    expect(performance.now() - began).toBeGreaterThan(900);
    expect(performance.now() - began).toBeLessThan(30_000);
  });

  it('is cancelled down to the vendor’s socket, once', async () => {
    vendor.script(hangs);
    const { job_id } = await outlasted('Hang.');
    expect(vendor.openSockets()).toBe(1);
    expect(await call('job', { job_id, action: 'cancel' })).toMatchObject({ status: 'cancelled', isError: false });
    await vendor.requests[0]!.aborted;
    await expect.poll(() => vendor.openSockets()).toBe(0);
    expect(await call('job', { job_id, action: 'cancel' })).toMatchObject({ status: 'cancelled' });
    const { transcript } = await call('threads', { action: 'read', continuation_id: 'last' });
    expect(transcript).toMatchObject([{ content: 'Hang.', status: 'interrupted' }]);
  });

  it('keeps the error that it ended with', async () => {
    await polylogue.close();
    await start({ CALL_TIMEOUT_SECONDS: '1' });
    vendor.script(hangs);
    const { job_id } = await outlasted('Hang.');
    const ended = { status: 'error', isError: true, tool_name: 'chat', error: { class: 'timeout' } };
    expect(await outcomeOf(job_id)).toMatchObject(ended);
    expect(await call('job', { job_id })).toMatchObject(ended);
  });

  it('tells progress to its client, and to nobody once he was told that it goes on', async () => {
    const { step, release } = held();
    vendor.script(step);
    const heard: string[] = [];
    const { job_id } = await outlasted('Slow.', { onProgress: ({ message }) => heard.push(message) });
    expect(heard).toEqual(['reading files', 'asking openai:gpt-5-mini']);
    release();
    await outcomeOf(job_id);
    expect(heard).toHaveLength(2);
  });

  it('is still ended by who cancels before that, and makes no job', async () => {
    vendor.script(hangs);
    const stop = new AbortController();
    const reply = call('chat', { prompt: 'Hang.' }, { signal: stop.signal });
    await expect.poll(() => vendor.requests.length).toBe(1);
    stop.abort();
    expect(await reply).toMatchObject({ isError: true, error: { code: 'CANCELLED' } });
    await vendor.requests[0]!.aborted;
    const { resources } = polylogue.product.host;
    const listed = await resources.list({ owner: 'local', root: project.root });
    expect(listed.filter(({ uri }) => uri.includes('/jobs/'))).toEqual([]);
  });

  it('goes on for as long as it takes when its caller waits, as the command line does', async () => {
    vendor.script(slow(300));
    const reply = polylogue.call('chat', { prompt: 'Slow.' });
    await expect.poll(() => vendor.requests.length).toBe(1);
    losePatience();
    expect(await reply).toMatchObject({ content: 'At last.' });
  });
});

describe('a job', () => {
  it('is seen by its owner alone', async () => {
    vendor.script(hangs);
    const { job_id } = await outlasted('Hang.', { owner: 'ann' });
    for (const action of ['status', 'cancel']) {
      const refused = await call('job', { job_id, action }, { owner: 'bob' });
      expect(refused).toMatchObject({ isError: true, error: { class: 'job_not_found' } });
    }
    const unknown = await call('job', { job_id: 'x'.repeat(5_000) });
    expect(unknown).toMatchObject({ isError: true, error: { class: 'job_not_found' } });
    expect(unknown.error.message.length).toBeLessThan(200);
    const { resources } = polylogue.product.host;
    const uri = `polylogue://jobs/${job_id}`;
    expect(await resources.read(uri, { owner: 'bob', root: project.root })).toBeUndefined();
    expect(await resources.read(uri, { owner: 'ann', root: project.root })).toBeDefined();
    expect(await call('job', { job_id }, { owner: 'ann' })).toMatchObject({ status: 'running' });
  });

  it('is interrupted when the server ends before it, and its reply outlasts the server when not', async () => {
    const { step, release } = held();
    vendor.script(step);
    const done = await outlasted('Slow.');
    release();
    const reply = await outcomeOf(done.job_id);
    vendor.script(hangs);
    const lost = await outlasted('Hang.');
    await polylogue.restart();
    await vendor.requests[1]!.aborted;
    expect(await call('job', { job_id: done.job_id })).toEqual(reply);
    const interrupted = await call('job', { job_id: lost.job_id });
    expect(interrupted).toMatchObject({
      status: 'interrupted',
      isError: true,
      error: { code: 'INTERRUPTED', data: { job_id: lost.job_id } },
    });
    const { continuation_id } = interrupted.error.data;
    expect(await call('threads', { action: 'read', continuation_id })).toMatchObject({ title: 'Hang.', turns: 1 });
  });

  it('is found, waited for and cancelled from another process on the same data', async () => {
    vendor.script(hangs);
    const { job_id } = await outlasted('Hang.');
    const first = polylogue.product;
    const other = await testProduct({ root: project.root, env: { POLYLOGUE_HOME: polylogue.home } });
    const elsewhere = (args: object) => other.call('job', { job_id, ...args });
    expect(await elsewhere({ wait_ms: 700 })).toMatchObject({ status: 'running' });
    expect(await elsewhere({ action: 'cancel' })).toMatchObject({ status: 'cancelled' });
    await vendor.requests[0]!.aborted;
    expect(first).toBe(polylogue.product);
    await other.close();
  });
});

describe('patience', () => {
  it.each([
    ['claude-code', 1_500_000],
    ['gemini-cli-mcp-client', 550_000],
    ['codex-mcp-client', 50_000],
    ['somebody', 50_000],
    [undefined, 50_000],
  ])('of %s', (client, ms) => {
    expect(patienceOf(undefined)(client)).toBe(ms);
    expect(patienceOf(3)(client)).toBe(3_000);
  });
});

function continuing(reply: Document) {
  return { continuation_id: reply.continuation_offer.continuation_id };
}

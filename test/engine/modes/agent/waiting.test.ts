import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ToolReply, ToolRequest, UserAnswer } from '../../../../src/core/tool-host.ts';
import { manualClock } from '../../../support/clock.ts';
import { type TestProduct, testProduct, vendorEnv } from '../../../support/product.ts';
import { type TempProject, tempProject } from '../../../support/temp-project.ts';
import type { FakeVendor } from '../../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../../support/vendors/start-anthropic.ts';

const task = { task: 'Write it.', model: 'anthropic:claude-sonnet-4-5' };
const writing = (path: string) => ({ calls: [{ name: 'write_file', args: { path, content: `${path}\n` } }] });
const allow: UserAnswer = { action: 'accept', content: { decision: 'allow' } };

let project: TempProject;
let vendor: FakeVendor;
let product: TestProduct;
const clock = manualClock();
beforeEach(async () => {
  project = await tempProject({ 'a.txt': 'before\n' });
  vendor = await startAnthropic();
});
afterEach(async () => {
  await product.close();
  expect(vendor.violations).toEqual([]);
  await vendor.close();
  await project.dispose();
});

async function start(env: Record<string, string> = {}) {
  const own = { ...vendorEnv({ anthropic: vendor.url }), POLYLOGUE_TOOLSETS: 'core,agent', ...env };
  product = await testProduct({ root: project.root, env: own, clock });
}

/** A call of a client that can be asked between two calls, with answers to what it was asked. */
function call(args: Record<string, unknown>, answers: [string, UserAnswer][] = [], more: Partial<ToolRequest> = {}) {
  const principal = { owner: 'local', root: product.product.root };
  const request = { name: 'agent', arguments: args, principal, answers: new Map(answers), ...more };
  return product.product.host.call(request, new AbortController().signal);
}

const keyOf = ({ questions }: ToolReply) => questions?.[0]?.key ?? 'none';

describe('a run that waits for its user', () => {
  it('goes on with the answer, and asks again for the next call', async () => {
    await start();
    vendor.script(writing('a.txt'), writing('b.txt'), { answer: 'Done.' });
    const first = await call(task);
    expect(first).toMatchObject({ isError: false, document: { status: 'approval_required' } });
    expect(first.questions?.[0]?.message).toContain('change files (write_file)');
    expect(await readFile(project.path('a.txt'), 'utf8')).toBe('before\n');
    const second = await call(task, [[keyOf(first), allow]]);
    expect(keyOf(second)).not.toBe(keyOf(first));
    expect(await readFile(project.path('a.txt'), 'utf8')).toBe('a.txt\n');
    const third = await call(task, [[keyOf(second), { action: 'cancel' }]]);
    expect(third).toMatchObject({ document: { status: 'success', content: 'Done.' } });
    expect(third.questions).toBeUndefined();
    await expect(readFile(project.path('b.txt'))).rejects.toThrow('ENOENT');
  });

  it('asks no more about a kind of call that was allowed for the whole run', async () => {
    await start();
    vendor.script(writing('a.txt'), writing('b.txt'), { answer: 'Done.' });
    const always: UserAnswer = { action: 'accept', content: { decision: 'allow all of this kind in this run' } };
    const reply = await call(task, [[keyOf(await call(task)), always]]);
    expect(reply.document).toMatchObject({ content: 'Done.', changed_files: [expect.any(String), expect.any(String)] });
  });

  it("shows its question again to who names it, and is nobody else's", async () => {
    await start();
    vendor.script(writing('a.txt'), { answer: 'Done.' });
    const first = await call(task);
    const stranger = { principal: { owner: 'other', root: project.root } };
    const theirs = await call({ run_id: first.document.run_id }, [[keyOf(first), allow]], stranger);
    expect(theirs).toMatchObject({ isError: true });
    expect(await readFile(project.path('a.txt'), 'utf8')).toBe('before\n');
    const again = await call({ run_id: first.document.run_id });
    expect(again.questions).toEqual(first.questions);
    expect((await call(task, [[keyOf(again), allow]])).document).toMatchObject({ content: 'Done.' });
    expect(await call({ run_id: first.document.run_id })).toMatchObject({ isError: true });
  });

  it('ends after ten minutes', async () => {
    await start();
    vendor.script(writing('a.txt'));
    const first = await call(task);
    await clock.advance(600_001);
    expect(await call({ run_id: first.document.run_id })).toMatchObject({ isError: true });
    expect(await readFile(project.path('a.txt'), 'utf8')).toBe('before\n');
  });

  it.each<[string, Record<string, string>, object]>([
    ['that it asks for', {}, { max_cost_usd: 0.2 }],
    ['for models that nobody names', { AUTO_COST_LIMIT: '0.2' }, { model: undefined }],
  ])('has one limit on its costs for all of its calls: one %s', async (_name, env, more) => {
    await start(env);
    vendor.byDefault({ ...writing('a.txt'), usage: { input: 1_000, output: 5_000 } });
    let reply = await call({ ...task, ...more });
    for (let calls = 0; reply.questions && calls < 6; calls++) reply = await call(task, [[keyOf(reply), allow]]);
    expect(reply).toMatchObject({ isError: true, document: { error: { code: 'LIMIT', class: 'cost' } } });
    expect(reply.document.tool_calls).toBeDefined();
  });
});

it('is brought back by its id when it asked after its client had stopped waiting', async () => {
  await start({ CALL_PATIENCE_SECONDS: '1' });
  const { promise, resolve } = Promise.withResolvers<void>();
  vendor.script({ ...writing('a.txt'), when: promise }, { answer: 'Done.' });
  const pending = call(task, [], { detach: 'job' });
  await expect.poll(() => vendor.requests.length).toBe(1);
  await clock.advance(2_000);
  const announced = await pending;
  resolve();
  expect(announced.document).toMatchObject({ status: 'running', job_id: expect.any(String) });
  const job = await product.call('job', { job_id: announced.document.job_id, wait_ms: 20_000 });
  expect(job).toMatchObject({ status: 'approval_required', run_id: expect.any(String) });
  const again = await call({ run_id: job.run_id });
  expect(again.questions).toHaveLength(1);
  expect((await call({ run_id: job.run_id }, [[keyOf(again), allow]])).document).toMatchObject({ content: 'Done.' });
  expect(await readFile(project.path('a.txt'), 'utf8')).toBe('a.txt\n');
});

it('asks a client that waits for a task while the work goes on', async () => {
  await start();
  vendor.script(writing('a.txt'), { answer: 'Done.' });
  const asked: string[] = [];
  const ask = async ({ message }: { message: string }) => {
    asked.push(message);
    return allow;
  };
  const reply = await call(task, [], { ask, answers: undefined });
  expect(reply.document).toMatchObject({ content: 'Done.' });
  expect(asked).toHaveLength(1);
});

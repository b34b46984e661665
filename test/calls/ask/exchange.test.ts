import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemEnvironment } from '../../../src/app/system-environment.ts';
import { createSqliteStore } from '../../../src/storage/sqlite/sqlite.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;
const model = 'gpt-5-mini';

const step = {
  step: 'Why is it slow?',
  step_number: 1,
  total_steps: 1,
  next_step_required: false,
  findings: 'A loop.',
};
const panel = { models: [{ model }, { model, stance: 'for' }] };

/** One call of each mode that asks about a thread. */
const calls: [name: string, args: Document][] = [
  ['chat', { prompt: 'Why?', model }],
  ['debug', { ...step, relevant_files: ['a.ts'], confidence: 'low', model }],
  ['diagnose', { stderr: 'Error: boom\n    at a.ts:1:1', model }],
  ['consensus', { prompt: 'Keep it?', ...panel, synthesizer: model }],
  ['consensus', { step: 'Keep it?', step_number: 1, total_steps: 2, next_step_required: true, ...panel }],
];

beforeEach(async () => {
  [vendor, project] = await Promise.all([startOpenAi(), tempProject({ 'a.ts': 'export const a = 1;\n' })]);
  const env = { ...vendorEnv({ openai: vendor.url }), POLYLOGUE_TOOLSETS: 'core,code,agent' };
  polylogue = await testProduct({ root: project.root, env });
});

afterEach(async () => {
  await polylogue.close();
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose()]);
});

const asked = () => vendor.requests.filter(({ dialect }) => dialect !== 'models').length;

async function transcript(): Promise<string[]> {
  const { threads } = await polylogue.call('threads', { action: 'list' });
  const { continuation_id } = threads[0];
  const { transcript } = await polylogue.call('threads', { action: 'read', continuation_id });
  return transcript.map(({ role, status }: Document) => `${role} ${status}`);
}

describe.each(calls)('the exchange of %s', (name, args) => {
  it('is stored before a model is paid, and done with the answer', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.byDefault({ answer: 'Because.', when: promise });
    const replied = polylogue.call(name, args);
    await expect.poll(asked).toBeGreaterThan(0);
    expect(await transcript()).toEqual(['user pending']);
    resolve();
    expect(await replied).toMatchObject({ isError: false });
    expect(await transcript()).toEqual(['user done', 'assistant done']);
  });

  it('ends with a call that is cancelled, and the reply says how to continue', async () => {
    vendor.byDefault({ fault: 'hang_before_headers' });
    const stop = new AbortController();
    const replied = polylogue.call(name, args, { signal: stop.signal });
    await expect.poll(asked).toBeGreaterThan(0);
    stop.abort();
    expect(await replied).toMatchObject({ isError: true, error: { code: 'CANCELLED' } });
    expect(await transcript()).toEqual(['user interrupted']);
  });

  it('is answered without an offer to continue where the thread is gone by then', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.byDefault({ answer: 'Because.', when: promise });
    const replied = polylogue.call(name, args);
    await expect.poll(asked).toBeGreaterThan(0);
    const { clock } = systemEnvironment();
    const file = join(polylogue.home, 'threads.sqlite');
    const store = createSqliteStore({ file, clock, onWarning: () => {} });
    const [head] = await store.list({ owner: 'local', limit: 1, now: 0 });
    await store.remove(head!.id, clock.now());
    await store.close();
    resolve();
    const reply = await replied;
    expect(reply.metadata.warnings).toContainEqual(expect.stringMatching(/^not_persisted: /));
    expect(reply).not.toHaveProperty('continuation_offer');
  });

  it('is answered with a warning where the store is down by then', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.byDefault({ answer: 'Because.', when: promise });
    const replied = polylogue.call(name, args);
    await expect.poll(asked).toBeGreaterThan(0);
    const file = join(polylogue.home, 'threads.sqlite');
    await rename(file, `${file}.away`);
    await mkdir(file);
    resolve();
    const reply = await replied;
    expect(JSON.stringify(reply)).toContain('Because.');
    expect(reply.metadata.warnings).toContainEqual(expect.stringMatching(/^not_persisted: /));
  });
});

it.each(calls.slice(0, 4))(
  '%s that no model answers keeps its question, and the caller its own work',
  async (name, args) => {
    vendor.byDefault({ fault: 'status', status: 400 });
    const reply = await polylogue.call(name, args);
    expect(reply).toMatchObject({ isError: true, status: 'error', continuation_id: expect.any(String) });
    if (name === 'debug') expect(reply).toMatchObject({ step_number: 1, investigation_status: { relevant_files: 1 } });
    if (name === 'consensus') expect(reply.responses).toMatchObject([{ status: 'error' }, { status: 'error' }]);
    expect(await transcript()).toEqual(['user failed']);
  },
);

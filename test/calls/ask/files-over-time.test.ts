import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor, RecordedRequest } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

const lines = (count: number, word: string) =>
  Array.from({ length: count }, (_, index) => `${word} ${index + 1}`).join('\n');

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

beforeEach(async () => {
  vendor = await startOpenAi();
  project = await tempProject({
    'small.ts': lines(20, 'small'),
    'large.ts': lines(900, 'large'),
    'other.ts': lines(30, 'other'),
  });
  polylogue = await testProduct({
    root: project.root,
    env: { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' },
  });
});

afterEach(async () => {
  expect(vendor.violations).toEqual([]);
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

const textOf = (request: RecordedRequest | undefined) =>
  request?.messages.map(message => message.text).join('\n') ?? '';
const last = () => textOf(vendor.requests.at(-1));
const count = (text: string, part: string) => text.split(part).length - 1;

async function chat(prompt: string, more: Record<string, unknown> = {}) {
  const reply = await polylogue.call('chat', { prompt, ...more });
  expect(reply.isError, JSON.stringify(reply.error)).toBe(false);
  return reply;
}

async function begin(...files: string[]): Promise<string> {
  const reply = await chat('Read these.', { absolute_file_paths: files });
  return reply.continuation_offer.continuation_id;
}

describe('a file in a thread', () => {
  it('is sent once, and listed as unchanged when it is named again', async () => {
    const id = await begin('small.ts');
    const reply = await chat('Again.', { continuation_id: id, absolute_file_paths: ['small.ts'] });
    expect(count(last(), 'small 7\n')).toBe(1);
    expect(last()).toContain(`--- FILE UNCHANGED: ${project.path('small.ts')} ---`);
    expect(reply.metadata.files.unchanged).toEqual([project.path('small.ts')]);
  });

  it('is sent as a diff after an edit when it has more than 200 lines, although nobody names it', async () => {
    const id = await begin('large.ts');
    await project.write('large.ts', lines(900, 'large').replace('large 450\n', 'EDITED 450\n'));
    const reply = await chat('What changed?', { continuation_id: id });
    expect(last()).toContain(`--- BEGIN DIFF: ${project.path('large.ts')} ---`);
    expect(last()).toContain('+EDITED 450');
    expect(count(last(), ' large 800\n')).toBe(1);
    expect(reply.metadata.files.changed).toEqual([project.path('large.ts')]);
  });

  it('is sent in full after an edit when it has at most 200 lines', async () => {
    const id = await begin('small.ts');
    await project.write('small.ts', lines(20, 'small').replace('small 7\n', 'EDITED 7\n'));
    await chat('What changed?', { continuation_id: id });
    expect(count(last(), `--- BEGIN FILE: ${project.path('small.ts')}`)).toBe(2);
    expect(last()).toContain('EDITED 7');
  });

  it('is not sent at all when it did not change', async () => {
    const id = await begin('small.ts', 'large.ts');
    await chat('Go on.', { continuation_id: id });
    expect(count(last(), '--- BEGIN FILE')).toBe(2);
    expect(last()).not.toContain('--- BEGIN DIFF');
  });

  it('is noted as deleted when it is gone, once', async () => {
    const id = await begin('small.ts');
    await project.remove('small.ts');
    await chat('Go on.', { continuation_id: id });
    await chat('And on.', { continuation_id: id });
    expect(count(last(), `--- FILE DELETED: ${project.path('small.ts')} ---`)).toBe(1);
  });

  it('shows a second edit against the first one', async () => {
    const id = await begin('large.ts');
    await project.write('large.ts', lines(900, 'large').replace('large 450\n', 'FIRST 450\n'));
    await chat('One.', { continuation_id: id });
    await project.write('large.ts', lines(900, 'large').replace('large 450\n', 'SECOND 450\n'));
    await chat('Two.', { continuation_id: id });
    expect(last()).toContain('-FIRST 450\n+SECOND 450');
  });

  it('sends only the lines that were asked for, numbered as in the file', async () => {
    await chat('Look.', { absolute_file_paths: ['large.ts:100-102'] });
    expect(last()).toContain(' 100│ large 100\n 101│ large 101\n 102│ large 102');
    expect(last()).not.toContain('large 103');
  });

  it('keeps the rest of a call when some named files can not be read, and says which', async () => {
    const reply = await chat('Look.', { absolute_file_paths: ['small.ts', 'missing.ts', '/etc/passwd'] });
    expect(reply.status).toBe('partial');
    expect(reply.metadata.files.skipped.map((skip: { code: string }) => skip.code).sort()).toEqual([
      'not_found',
      'outside_roots',
    ]);
  });

  it.each([
    [['/etc/passwd'], 'SECURITY'],
    [['missing.ts', '../outside.ts'], 'SECURITY'],
    [['../outside.ts'], 'SECURITY'],
  ])('refuses %j before a model is paid', async (files, code) => {
    const reply = await polylogue.call('chat', { prompt: 'Look.', absolute_file_paths: files });
    expect(reply).toMatchObject({ isError: true, status: 'error', error: { code } });
    expect(vendor.requests).toEqual([]);
  });

  it.each([[['missing.ts']], [['small.ts', 'missing.ts']], [['none.ts', 'missing.ts']]])(
    'asks all the same where of %j some are not there, and says so',
    async files => {
      const reply = await polylogue.call('chat', { prompt: 'Look.', absolute_file_paths: files });
      expect(reply).toMatchObject({ isError: false, status: 'continuation_available' });
      expect(JSON.stringify(reply.metadata.warnings)).toContain('missing.ts');
    },
  );

  it('masks a secret the same way in every turn, so that the prompt stays put', async () => {
    const key = `sk-proj-${'aB3dE5fG7hJ9'.repeat(4)}`;
    await project.write('config.ts', `export const key = '${key}';\n${lines(20, 'line')}`);
    const id = await begin('config.ts');
    await chat(`Is ${key} in there?`, { continuation_id: id });
    expect(last()).not.toContain(key);
    expect(count(last(), '[masked:')).toBe(2);
    expect(new Set(last().match(/\[masked:[^\]]*\]/g)).size).toBe(1);
  });
});

describe('calls side by side', () => {
  const step = (n: number, findings: string, more: Record<string, unknown> = {}) => ({
    step: `step ${n}`,
    step_number: n,
    total_steps: 2,
    next_step_required: n < 2,
    findings,
    ...more,
  });

  it('share nothing when two unrelated debug runs interleave', async () => {
    const a = await polylogue.call('debug', step(1, 'alpha leak', { relevant_files: ['small.ts'] }));
    const b = await polylogue.call('debug', step(1, 'beta crash', { relevant_files: ['other.ts'] }));
    const [first, second] = await Promise.all([
      polylogue.call('debug', step(2, 'alpha cause', { continuation_id: a.continuation_id })),
      polylogue.call('debug', step(2, 'beta cause', { continuation_id: b.continuation_id })),
    ]);
    expect(first.complete_investigation).toMatchObject({
      initial_request: 'step 1',
      steps_taken: 2,
      relevant_files: ['small.ts'],
    });
    expect(second.complete_investigation.relevant_files).toEqual(['other.ts']);
    const [alpha, beta] = vendor.requests
      .map(textOf)
      .sort((x, y) => Number(y.includes('alpha')) - Number(x.includes('alpha')));
    expect(alpha).not.toMatch(/beta|other 3/);
    expect(beta).not.toMatch(/alpha|small 3/);
  });

  it('run one after the other on one thread, the second one waiting', async () => {
    const id = await begin('small.ts');
    vendor.byDefault({ answer: 'slow', delayMs: 150 });
    const stages: string[] = [];
    const replies = await Promise.all([
      polylogue.call('chat', { prompt: 'first', continuation_id: id }),
      polylogue.call(
        'chat',
        { prompt: 'second', continuation_id: id },
        { onProgress: ({ message }) => stages.push(message) },
      ),
    ]);
    expect(replies.map(reply => reply.isError)).toEqual([false, false]);
    expect(stages[0]).toBe('waiting for the thread');
    const [, first, second] = vendor.requests;
    expect(textOf(second)).toContain('first');
    expect(second!.at).toBeGreaterThanOrEqual(first!.at + 100);
    expect(second!.canonical.startsWith(first!.canonical)).toBe(true);
  });

  it('keep the caller’s work when the expert fails, and let the step be sent again', async () => {
    const a = await polylogue.call('debug', step(1, 'alpha leak'));
    vendor.script({ fault: 'status', status: 400 });
    const failed = await polylogue.call('debug', step(2, 'alpha cause', { continuation_id: a.continuation_id }));
    expect(failed).toMatchObject({ isError: true, status: 'error', continuation_id: a.continuation_id });
    expect(failed).not.toHaveProperty('complete_investigation');
    const again = await polylogue.call('debug', step(2, 'alpha cause', { continuation_id: a.continuation_id }));
    expect(again.status).toBe('calling_expert_analysis');
    expect(again.complete_investigation.work_summary).toContain('alpha cause');
    expect(count(last(), 'alpha cause')).toBe(1);
  });
});

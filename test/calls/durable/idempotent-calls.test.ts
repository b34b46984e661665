import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { databaseSize } from '../../../bench/measure/database-size.ts';
import type { Clock } from '../../../src/core/ports.ts';
import type { ToolReply, ToolRequest } from '../../../src/core/tool-host.ts';
import { aheadBy, realClock } from '../../support/clock.ts';
import { type GitRepository, gitRepository } from '../../support/git-repository.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { step } from '../../tools/workflow-rig.ts';

let vendor: FakeVendor;
let project: TempProject;
let products: TestProduct[];
let polylogue: TestProduct;

/** Clients that wait for a second lose their patience after a tenth of that. */
function impatience(): Clock {
  const real = realClock();
  return { ...real, after: (ms, run) => real.after(ms === 1_000 ? 100 : ms, run) };
}

/** With a patience of a second, of which a tenth passes. */
const startImpatient = (env: Record<string, string> = {}) =>
  start({ CALL_PATIENCE_SECONDS: '1', ...env }, undefined, impatience());

async function start(env: Record<string, string> = {}, home?: string, clock?: Clock): Promise<TestProduct> {
  const settings = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', DETACHED_GRACE_SECONDS: '20' };
  const place: Record<string, string> = home === undefined ? {} : { POLYLOGUE_HOME: home };
  const all = { ...settings, ...place, ...env };
  const product = await testProduct({ root: project.root, env: all, ...(clock && { clock }) });
  products.push(product);
  return product;
}

beforeEach(async () => {
  products = [];
  [vendor, project] = await Promise.all([startOpenAi(), tempProject({ 'notes.md': 'One.\n', 'src/a.ts': 'let a;\n' })]);
  polylogue = await start();
  await beforeNow();
});

afterEach(async () => {
  // The first one removes the data folder that later ones share.
  for (const product of products.toReversed()) await product.close();
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose()]);
});

/** What was written a moment ago counts as written during a call that begins now: file systems take their times from a slow clock. */
const beforeNow = () => sleep(25);

interface Sent {
  reply: Promise<Document & { raw: ToolReply }>;
  /** The connection breaks. */
  lose(): void;
  cancel(): void;
}

interface SendOptions extends Pick<ToolRequest, 'detach'> {
  from?: TestProduct;
  owner?: string;
  tool?: string;
  key?: string;
  /** The program that sends it. */
  client?: string;
}

/** A call as a transport sends it that can tell what arrived. */
function send(args: Record<string, unknown>, options: SendOptions = {}): Sent {
  const { from = polylogue, owner = 'local', tool = 'chat', key: idempotencyKey, client: clientId, detach } = options;
  const [gone, stop] = [new AbortController(), new AbortController()];
  const principal = { owner, root: from.product.root, client: 'test' };
  const session = { gone: gone.signal, idempotencyKey, clientId };
  const request = { name: tool, arguments: args, principal, session, detach };
  const reply = from.product.host
    .call(request, stop.signal)
    .then(raw => ({ ...raw.document, isError: raw.isError, raw }));
  return { reply, lose: () => gone.abort(), cancel: () => stop.abort() };
}

async function delivered(args: Record<string, unknown>, options?: SendOptions): Promise<Document> {
  const reply = await send(args, options).reply;
  reply.raw.delivered?.();
  return reply;
}

/** The number of the newest record of a call, 0 before there is one: it grows with each change, also when a call is lost. */
function lastRecord(home: string): number {
  const db = new DatabaseSync(join(home, 'threads.sqlite'), { readOnly: true });
  try {
    return Number(db.prepare("SELECT max(n) AS n FROM facts WHERE key LIKE 'call/%'").get()?.n ?? 0);
  } finally {
    db.close();
  }
}
const asked = (times: number) => expect.poll(() => vendor.requests.length).toBe(times);
const question = { prompt: 'What is a door?' };

describe('the same call after its reply was lost', () => {
  it('gets the stored answer, as often as it is lost, and is a new call once it arrived', async () => {
    vendor.script({ answer: 'A hinge.' }, { answer: 'A hole.' });
    const first = await send(question).reply;
    const second = await send(question).reply;
    expect(second.content).toBe('A hinge.');
    expect(second.continuation_offer).toEqual(first.continuation_offer);
    expect(second.metadata).toEqual({ ...first.metadata, replayed: true });
    expect((await delivered({ ...question })).content).toBe('A hinge.');
    expect(vendor.requests).toHaveLength(1);
    const anew = await delivered(question);
    expect(anew).toMatchObject({ content: 'A hole.' });
    expect(anew.metadata.replayed).toBeUndefined();
    expect(vendor.requests).toHaveLength(2);
  });

  it('is a new call right after a reply that arrived', async () => {
    vendor.script({ answer: '1' }, { answer: '2' }, { answer: '3' });
    for (const content of ['1', '2', '3']) expect((await delivered(question)).content).toBe(content);
  });

  it('is a new call in another process, too, however soon after the reply arrived', async () => {
    const other = await start({}, polylogue.home);
    vendor.script({ answer: '1' }, { answer: '2' }, { answer: '3' });
    expect((await delivered(question)).content).toBe('1');
    expect((await delivered(question, { from: other })).content).toBe('2');
    expect((await delivered(question)).content).toBe('3');
  });

  it('costs no commit beside that of the question and that of the answer', async () => {
    const real = realClock();
    const beatless = {
      ...real,
      after: (ms: number, run: () => void) => (ms === 2_000 ? () => {} : real.after(ms, run)),
    };
    const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' };
    const quiet = await testProduct({ root: project.root, env, clock: beatless });
    products.push(quiet);
    const file = join(quiet.home, 'threads.sqlite');
    const counts: number[] = [];
    for (let n = 0; n < 8; n++) {
      const before = databaseSize(file).commits;
      await delivered({ prompt: `What is ${n}?` }, { from: quiet });
      counts.push(databaseSize(file).commits - before);
    }
    // A machine that stands still for a moment may make a commit more of one of them.
    expect(Math.min(...counts.slice(1))).toBe(2);
    await quiet.restart();
    expect(lastRecord(quiet.home)).toBe(0);
  });

  it('joins the call while its vendor thinks, and keeps it alive', async () => {
    vendor.script({ answer: 'A hinge.', delayMs: 300 });
    const first = send(question);
    await asked(1);
    first.lose();
    expect((await delivered(question)).content).toBe('A hinge.');
    expect((await first.reply).content).toBe('A hinge.');
    expect(vendor.requests).toHaveLength(1);
  });

  it('gets the answer that came while nobody was there', async () => {
    vendor.script({ answer: 'A hinge.', delayMs: 200 });
    const first = send(question);
    await asked(1);
    first.lose();
    await first.reply;
    expect((await delivered(question)).content).toBe('A hinge.');
    expect(vendor.requests).toHaveLength(1);
  });

  it('finds the answer after a restart', async () => {
    vendor.script({ answer: 'A hinge.' });
    await send(question).reply;
    await polylogue.restart();
    expect((await delivered(question)).content).toBe('A hinge.');
    expect(vendor.requests).toHaveLength(1);
  });

  it('waits for a call that another process goes on with', async () => {
    vendor.script({ answer: 'A hinge.', delayMs: 600 });
    const other = await start({}, polylogue.home);
    const first = send(question);
    await asked(1);
    await expect.poll(() => lastRecord(polylogue.home)).toBeGreaterThan(0);
    const before = lastRecord(polylogue.home);
    first.lose();
    await expect.poll(() => lastRecord(polylogue.home)).toBeGreaterThan(before);
    expect((await delivered(question, { from: other })).content).toBe('A hinge.');
    expect(vendor.requests).toHaveLength(1);
    vendor.byDefault({ answer: 'A hole.' });
    // That it arrived there is told to the others a moment later.
    await expect.poll(async () => (await delivered(question)).content).toBe('A hole.');
  });

  it('waits for it, too, where its caller was gone before it was recorded', async () => {
    vendor.script({ answer: 'A hinge.', delayMs: 600 }, { answer: 'A hole.' });
    const other = await start({}, polylogue.home);
    send(question).lose();
    await asked(1);
    expect((await delivered(question, { from: other })).content).toBe('A hinge.');
    expect(vendor.requests).toHaveLength(1);
  });

  it('is one fork and one import, and a list is made anew', async () => {
    polylogue = await start({ POLYLOGUE_TOOLSETS: 'core,code,ops' });
    const { continuation_offer } = await delivered(question);
    const { continuation_id } = continuation_offer;
    await polylogue.call('export_thread', { continuation_id, format: 'jsonl', output_path: 'talk.jsonl' });
    const calls = [
      ['threads', { action: 'fork', continuation_id }],
      ['import_thread', { file_path: 'talk.jsonl', as_new: true }],
    ] as const;
    for (const [tool, args] of calls) {
      const first = await send(args, { tool }).reply;
      expect(await delivered(args, { tool })).toMatchObject({ continuation_id: first.continuation_id });
    }
    const list = () => send({ action: 'list' }, { tool: 'threads' }).reply;
    expect((await list()).threads).toHaveLength(3);
    await delivered({ action: 'fork', continuation_id }, { tool: 'threads' });
    expect((await list()).threads).toHaveLength(4);
  });

  it('is one step of a tool that asks no model, too', async () => {
    const { findings: _none, ...planned } = step(1, 2);
    const first = await send(planned, { tool: 'planner' }).reply;
    const again = await delivered(planned, { tool: 'planner' });
    expect([again.continuation_id, again.metadata.replayed]).toEqual([first.continuation_id, true]);
    expect((await delivered(planned, { tool: 'planner' })).continuation_id).not.toBe(first.continuation_id);
  });

  it('goes on in its thread as the first one would have', async () => {
    vendor.script({ answer: 'One.' }, { answer: 'Two.' }, { answer: 'Three.' });
    const { continuation_offer } = await delivered(question);
    const { continuation_id } = continuation_offer;
    await send({ prompt: 'More?', continuation_id }).reply;
    expect((await delivered({ prompt: 'More?', continuation_id })).content).toBe('Two.');
    await delivered({ prompt: 'Still more?', continuation_id: 'last' });
    const { transcript } = await polylogue.call('threads', { action: 'read', continuation_id });
    expect(transcript.map(({ content }: Document) => content)).toEqual([
      question.prompt,
      'One.',
      'More?',
      'Two.',
      'Still more?',
      'Three.',
    ]);
  });

  it.each(['last', ' LAST', '"Last"'])(
    'is another one where %j means another thread by then',
    async continuation_id => {
      vendor.script(...['One.', 'Two.', 'Three.', 'Four.'].map(answer => ({ answer })));
      await delivered(question);
      const more = { prompt: 'More?', continuation_id };
      await send(more).reply;
      await delivered({ prompt: 'Something else.' });
      expect((await delivered(more)).content).toBe('Four.');
      expect(vendor.requests).toHaveLength(4);
    },
  );

  it('asks several models once, too, whose answers no thread holds', async () => {
    vendor.script({ answer: 'A hinge.' });
    const env = { POLYLOGUE_TOOLSETS: 'core,wrapper' };
    polylogue = await start(env);
    const args = { text: 'What is a door?', models_prefixed_by_provider: ['openai:gpt-5-mini'] };
    const first = await send(args, { tool: 'prompt' }).reply;
    expect(first.isError).toBe(false);
    const again = await delivered(args, { tool: 'prompt' });
    expect(again.result).toEqual(first.result);
    expect(vendor.requests).toHaveLength(1);
  });

  it('is told of the job that the first one became, until it heard of it', async () => {
    polylogue = await startImpatient();
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'At last.', when: promise }, { answer: 'Another.', when: promise });
    const { job_id } = await send(question, { detach: 'job' }).reply;
    const again = await delivered(question, { detach: 'job' });
    expect(again).toMatchObject({ status: 'running', job_id });
    expect(again.raw.job.id).toBe(job_id);
    const anew = await delivered(question, { detach: 'job' });
    expect(anew.job_id).not.toBe(job_id);
    expect(vendor.requests).toHaveLength(2);
    resolve();
  });

  it('lets an agent work once, whose own changes to the files make no other call of it', async () => {
    const agents = await start({ POLYLOGUE_TOOLSETS: 'core,agent', AGENT_APPROVE: 'all' });
    const first = await delivered({ prompt: 'See.', absolute_file_paths: ['notes.md'] }, { from: agents });
    vendor.script(
      { calls: [{ name: 'write_file', args: { path: 'notes.md', content: 'Two.\n' } }], reasoning: 'Write.' },
      { answer: 'Written.' },
    );
    const id = first.continuation_offer.continuation_id;
    const task = { task: 'Count on.', files: ['notes.md', 'src'], continuation_id: id };
    await send(task, { from: agents, tool: 'agent' }).reply;
    const again = await delivered(task, { from: agents, tool: 'agent' });
    expect(again).toMatchObject({ content: 'Written.', metadata: { replayed: true } });
    expect(again.continuation_offer.continuation_id).toBe(id);
    expect(vendor.requests).toHaveLength(3);
    expect((await send(task, { from: agents, tool: 'agent' }).reply).metadata.replayed).toBeUndefined();
  });
});

describe('what makes a call another one', () => {
  const edits: [string, Record<string, unknown>, (files: TempProject) => Promise<unknown>][] = [
    [
      'a file that it names was edited',
      { absolute_file_paths: ['notes.md'] },
      files => files.write('notes.md', 'Two.\n'),
    ],
    [
      'a file came that it names, with a space in its name',
      { absolute_file_paths: ['notes.md', 'Vol. 2'] },
      files => files.write('Vol. 2', 'Mine.\n'),
    ],
    [
      'a file in a folder that it names was edited',
      { absolute_file_paths: ['src'] },
      files => files.write('src/a.ts', 'let b;\n'),
    ],
    [
      'a file came into the project, which it searches',
      { use_search: true },
      files => files.write('c.ts', '// Review this.\nexport function review() {\n  return 1;\n}\n'),
    ],
    [
      'a file came into a folder that it names',
      { absolute_file_paths: ['src'] },
      files => files.write('src/b.ts', 'let b;\n'),
    ],
  ];
  it.each(edits)('%s', async (_what, files, edit) => {
    vendor.script({ answer: 'First.' }, { answer: 'Second.' });
    const args = { prompt: 'Review.', ...files };
    await send(args).reply;
    expect((await send(args).reply).content).toBe('First.');
    await edit(project);
    expect((await delivered(args)).content).toBe('Second.');
    expect(vendor.requests[1]!.canonical).not.toBe(vendor.requests[0]!.canonical);
  });

  it.each([
    ['the working tree', (repo: GitRepository) => repo.write('cart.ts', 'export const total = 3;\n')],
    ['what is staged', (repo: GitRepository) => repo.git('add', '.')],
  ])('%s is another one, for a tool that looks for itself', async (_what, edit) => {
    const repo = await gitRepository(project.root);
    await repo.write('cart.ts', 'export const total = 1;\n');
    await repo.commit();
    await repo.write('cart.ts', 'export const total = 2;\n');
    await repo.git('status');
    await beforeNow();
    vendor.byDefault({ answer: 'Go.' });
    const last = step(1, 1, { step: 'Check the changes.', path: '.' });
    const first = await send(last, { tool: 'precommit' }).reply;
    expect(first.isError).toBe(false);
    expect((await send(last, { tool: 'precommit' }).reply).metadata.replayed).toBe(true);
    await edit(repo);
    const anew = await delivered(last, { tool: 'precommit' });
    expect(anew.isError).toBe(false);
    expect(anew.metadata.replayed).toBeUndefined();
  });

  it('a file that its thread sent before was edited', async () => {
    vendor.script({ answer: 'One.' }, { answer: 'Two.' }, { answer: 'Three.' });
    const { continuation_offer } = await delivered({ prompt: 'Review.', absolute_file_paths: ['notes.md'] });
    const args = { prompt: 'Is it better?', continuation_id: continuation_offer.continuation_id };
    await send(args).reply;
    await project.write('notes.md', 'One and a half.\n');
    expect((await delivered(args)).content).toBe('Three.');
    expect(vendor.requests[2]!.canonical).toContain('One and a half.');
  });

  it('somebody went on with its thread', async () => {
    vendor.script({ answer: 'One.' }, { answer: 'Two.' }, { answer: 'Three.' }, { answer: 'Four.' });
    const { continuation_offer } = await delivered(question);
    const { continuation_id } = continuation_offer;
    await send({ prompt: 'More?', continuation_id }).reply;
    await delivered({ prompt: 'Something else.', continuation_id });
    expect((await delivered({ prompt: 'More?', continuation_id })).content).toBe('Four.');
  });

  it('another owner, another word, another tool', async () => {
    vendor.script({ answer: '1' }, { answer: '2' }, { answer: '3' });
    await send(question).reply;
    expect((await send(question, { owner: 'eve' }).reply).content).toBe('2');
    expect((await send({ prompt: 'What is a door!' }).reply).content).toBe('3');
  });

  it('somebody still waits for the first: two callers may want two answers', async () => {
    vendor.script({ answer: '1', delayMs: 400 }, { answer: '2', delayMs: 400 });
    const both = await Promise.all([send(question).reply, send(question).reply]);
    expect(both.map(({ content }) => content).sort()).toEqual(['1', '2']);
  });

  it('the first was cancelled, down to the vendor’s socket', async () => {
    vendor.script({ fault: 'hang_after_headers' }, { answer: 'Two.' });
    const first = send(question);
    await asked(1);
    first.cancel();
    expect(await first.reply).toMatchObject({ error: { code: 'CANCELLED' } });
    await vendor.requests[0]!.aborted;
    expect((await delivered(question)).content).toBe('Two.');
  });

  it('the first was refused by its vendor', async () => {
    vendor.script({ fault: 'status', status: 400, body: { error: { message: 'no' } } }, { answer: 'Two.' });
    expect((await send(question).reply).isError).toBe(true);
    expect((await delivered(question)).content).toBe('Two.');
  });

  it('ten minutes went by', async () => {
    let ahead = 0;
    const clock = aheadBy(realClock(), () => ahead);
    const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' };
    polylogue = await testProduct({ root: project.root, env, clock });
    products.push(polylogue);
    vendor.script({ answer: 'One.' }, { answer: 'Two.' });
    await send(question).reply;
    ahead = 590_000;
    expect((await send(question).reply).content).toBe('One.');
    ahead = 601_000;
    expect((await send(question).reply).content).toBe('Two.');
  });
});

describe('a call that nobody comes for', () => {
  it('is interrupted after its grace, and the same question is asked anew', async () => {
    polylogue = await start({ DETACHED_GRACE_SECONDS: '0' });
    vendor.script({ fault: 'hang_after_headers' }, { answer: 'Two.' });
    const first = send(question);
    await asked(1);
    first.lose();
    await vendor.requests[0]!.aborted;
    await first.reply;
    const { transcript } = await polylogue.call('threads', { action: 'read', continuation_id: 'last' });
    expect(transcript).toMatchObject([{ content: question.prompt, status: 'interrupted' }]);
    expect(vendor.requests).toHaveLength(1);
    expect((await delivered(question)).content).toBe('Two.');
  });

  it('goes on beyond its grace for as long as somebody in another process waits for it', async () => {
    polylogue = await start({ DETACHED_GRACE_SECONDS: '1' });
    const other = await start({}, polylogue.home);
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'A hinge.', when: promise });
    const first = send(question);
    await asked(1);
    const before = lastRecord(polylogue.home);
    first.lose();
    await expect.poll(() => lastRecord(polylogue.home)).toBeGreaterThan(before);
    const second = delivered(question, { from: other });
    await sleep(2_500);
    resolve();
    expect((await second).content).toBe('A hinge.');
    expect(vendor.requests).toHaveLength(1);
  });

  it('has its grace when the server ends, and is interrupted at once when that hurries', async () => {
    vendor.script({ answer: 'A hinge.', delayMs: 500 }, { fault: 'hang_after_headers' }, { answer: 'A pane.' });
    const first = send(question);
    await asked(1);
    first.lose();
    await polylogue.restart();
    expect((await delivered(question)).content).toBe('A hinge.');
    const second = send({ prompt: 'What is a window?' });
    await asked(2);
    second.lose();
    const hurry = new AbortController();
    hurry.abort();
    const began = performance.now();
    await polylogue.product.close(hurry.signal);
    expect(performance.now() - began).toBeLessThan(15_000);
    await vendor.requests[1]!.aborted;
    const next = await start({}, polylogue.home);
    expect(await send({ prompt: 'What is a window?' }, { from: next }).reply).toMatchObject({ content: 'A pane.' });
    expect(vendor.requests).toHaveLength(3);
  });

  it('is ended with its connection where nothing is paid for', async () => {
    vendor.script({ fault: 'hang_after_headers' });
    polylogue = await startImpatient();
    const { job_id } = await delivered(question, { detach: 'job' });
    const waiting = send({ job_id, wait_ms: 60_000 }, { tool: 'job' });
    waiting.lose();
    expect(await waiting.reply).toMatchObject({ isError: true, error: { code: 'CANCELLED' } });
    expect(await polylogue.call('job', { job_id, action: 'cancel' })).toMatchObject({ status: 'cancelled' });
  });
});

describe('a call that came to nothing with its server', () => {
  /** A question under way when its server ends at once; its caller had not left it. */
  async function ended(options: SendOptions, home = polylogue.home): Promise<TestProduct> {
    vendor.script({ fault: 'hang_after_headers' }, { answer: 'Two.' });
    const first = send(question, options);
    if (options.detach) await first.reply;
    await asked(1);
    await polylogue.product.close(AbortSignal.abort());
    return start({}, home);
  }

  it.each([
    ['a call', {}],
    ['a job whose id did not arrive', { detach: 'job' }],
    ['a call of a program that is known', { client: 'host 1' }],
  ] as const)('is told to be interrupted once, and then asked anew: %s', async (_what, options) => {
    polylogue = await startImpatient();
    const from = await ended(options);
    const again = { ...options, from, detach: undefined };
    expect(await delivered(question, again)).toMatchObject({ isError: true, error: { code: 'INTERRUPTED' } });
    expect(vendor.requests).toHaveLength(1);
    expect(await delivered(question, again)).toMatchObject({ isError: false, content: 'Two.' });
  });

  it.each([
    ['another one', { client: 'host 1' }, { client: 'host 2' }],
    ['one that is known, after one that was not', {}, { client: 'host 2' }],
    ['another one, of a job', { client: 'host 1', detach: 'job' }, { client: 'host 2' }],
  ] as const)('is asked anew at once by another program: %s', async (_what, options, other) => {
    polylogue = await startImpatient();
    const from = await ended(options);
    expect(await delivered(question, { ...other, from })).toMatchObject({ isError: false, content: 'Two.' });
    expect(vendor.requests).toHaveLength(2);
  });

  it('keeps what its name says, whichever program sends it', async () => {
    const from = await ended({ key: 'k-9', client: 'host 1' });
    const again = await delivered(question, { key: 'k-9', client: 'host 2', from });
    expect(again).toMatchObject({ isError: true, error: { code: 'INTERRUPTED' } });
  });

  it('is asked anew by who waited for it in another process', async () => {
    const other = await start({}, polylogue.home);
    vendor.script({ fault: 'hang_after_headers' }, { answer: 'Two.' });
    const first = send(question);
    await asked(1);
    await expect.poll(() => lastRecord(polylogue.home)).toBeGreaterThan(0);
    const before = lastRecord(polylogue.home);
    first.lose();
    await expect.poll(() => lastRecord(polylogue.home)).toBeGreaterThan(before);
    const lost = lastRecord(polylogue.home);
    const second = delivered(question, { from: other });
    await expect.poll(() => lastRecord(polylogue.home)).toBeGreaterThan(lost);
    await polylogue.product.close(AbortSignal.abort());
    expect(await second).toMatchObject({ isError: false, content: 'Two.' });
    expect(vendor.requests).toHaveLength(2);
  });

  it('gives its answer to any program where it was stored before the end', async () => {
    vendor.script({ answer: 'A hinge.' });
    await send(question, { client: 'host 1' }).reply;
    await polylogue.restart();
    expect(await delivered(question, { client: 'host 2' })).toMatchObject({ content: 'A hinge.' });
    expect(vendor.requests).toHaveLength(1);
  });
});

describe('a call to which its caller gave a name', () => {
  it('is made once, whoever waits, and answered the same for ten minutes', async () => {
    vendor.script({ answer: 'A hinge.', delayMs: 400 });
    const other = await start({}, polylogue.home);
    const froms = [polylogue, polylogue, polylogue, other];
    const replies = await Promise.all(froms.map(from => delivered(question, { key: 'k-1', from })));
    expect(replies.map(({ content }) => content)).toEqual(froms.map(() => 'A hinge.'));
    expect((await delivered(question, { key: 'k-1' })).content).toBe('A hinge.');
    expect(vendor.requests).toHaveLength(1);
  });

  it('keeps going for the others when one of them cancels', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'A hinge.', when: promise });
    const first = send(question, { key: 'k-2' });
    await asked(1);
    const second = send(question, { key: 'k-2' });
    // It looks twice at the store before it joins, in the order in which it was asked.
    for (let look = 0; look < 20; look++) await polylogue.call('threads', { action: 'list' });
    first.cancel();
    expect(await first.reply).toMatchObject({ error: { code: 'CANCELLED' } });
    resolve();
    expect((await second.reply).content).toBe('A hinge.');
  });

  it('stores once what asks no model: a step, an import, a fork', async () => {
    polylogue = await start({ POLYLOGUE_TOOLSETS: 'core,code,ops' });
    const list = async () => (await polylogue.call('threads', { action: 'list' })).threads;
    const { findings: _none, ...planned } = step(1, 2);
    const traced = { ...step(1, 2), trace_mode: 'dependencies', target_description: 'a' };
    const twice = async (tool: string, args: Record<string, unknown>, key: string) => {
      const [first, again] = [await delivered(args, { tool, key }), await delivered(args, { tool, key })];
      expect([tool, first.isError, again.isError]).toEqual([tool, false, false]);
      expect(again.continuation_id).toBe(first.continuation_id);
      return first.continuation_id;
    };
    const id = await twice('planner', planned, 'p-1');
    await twice('planner', { ...planned, ...step(2, 3), findings: undefined, continuation_id: id }, 'p-2');
    await twice('tracer', traced, 't-1');
    await twice('docgen', step(1, 2, { relevant_files: ['src'] }), 'd-1');
    expect(await list()).toMatchObject([{ tool: 'docgen' }, { tool: 'tracer' }, { tool: 'planner', turns: 2 }]);
    await twice('threads', { action: 'fork', continuation_id: id }, 'f-1');
    await polylogue.call('export_thread', { continuation_id: id, format: 'jsonl', output_path: 'talk.jsonl' });
    await twice('import_thread', { file_path: 'talk.jsonl', as_new: true }, 'i-1');
    expect(await list()).toHaveLength(5);
  });

  it('can’t lend its name to another call, nor to another owner', async () => {
    vendor.script({ answer: '1' }, { answer: '2' });
    await delivered(question, { key: 'k-3' });
    const refused = await delivered({ prompt: 'Other?' }, { key: 'k-3' });
    expect(refused).toMatchObject({ isError: true, error: { class: 'idempotency_key' } });
    expect((await delivered({ prompt: 'Other?' }, { key: 'k-3', owner: 'eve' })).content).toBe('2');
  });
});

import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { waitedTime } from '../support/waited-time.ts';

let server: RedisServer;
let vendor: FakeVendor;
let project: TempProject;
let env: Record<string, string>;
let products: TestProduct[];

beforeAll(async () => {
  server = await startRedis('--appendfsync', 'always');
});
afterAll(() => server.dispose());

beforeEach(async () => {
  [vendor, project] = await Promise.all([startOpenAi(), tempProject()]);
  products = [];
  env = {
    ...vendorEnv({ openai: vendor.url }),
    DEFAULT_MODEL: 'gpt-5-mini',
    DETACHED_GRACE_SECONDS: '0',
    AI_MANAGER: 'rules',
    POLYLOGUE_STORE: 'redis',
    REDIS_URL: server.url,
    REDIS_PREFIX: `${randomUUID()}:`,
    REDIS_TIMEOUT_MS: '5000',
  };
});

afterEach(async () => {
  server.signal('SIGCONT');
  await Promise.all(products.map(product => product.close()));
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose()]);
});

async function start(more: Record<string, string> = {}): Promise<TestProduct> {
  const product = await testProduct({ root: project.root, env: { ...env, ...more } });
  products.push(product);
  return product;
}

const idOf = (reply: Document): string => reply.continuation_offer.continuation_id;
const textsSent = () => vendor.requests.map(request => JSON.stringify(request.body));

describe('a product on Redis', () => {
  it('goes on after a restart, and lists, finds, forks and deletes its threads', async () => {
    const polylogue = await start();
    vendor.script({ answer: 'The zebra is striped.' }, { answer: 'Because of flies.' });
    const first = await polylogue.call('chat', { prompt: 'Tell me of the zebra.' });
    expect(first.isError, JSON.stringify(first.error)).toBe(false);
    const continuation_id = idOf(first);
    await polylogue.restart();
    const second = await polylogue.call('chat', { prompt: 'Why?', continuation_id });
    expect(second).toMatchObject({ content: 'Because of flies.', isError: false });
    expect(textsSent()[1]).toContain('The zebra is striped.');

    const threads = (args: Record<string, unknown>) => polylogue.call('threads', args);
    expect((await threads({ action: 'list' })).threads).toMatchObject([{ continuation_id, turns: 4 }]);
    expect((await threads({ action: 'search', query: 'zebra strip' })).hits).toMatchObject([
      { continuation_id, turn: 2 },
    ]);
    const fork = await threads({ action: 'fork', continuation_id, turn: 2 });
    vendor.script({ answer: 'Both.' });
    const forked = await polylogue.call('chat', { prompt: 'Black or white?', continuation_id: fork.continuation_id });
    expect(forked.content).toBe('Both.');
    expect(textsSent()[2]).toContain('The zebra is striped.');
    expect(textsSent()[2]).not.toContain('Because of flies.');
    expect(await threads({ action: 'delete', continuation_id, confirm: true })).toMatchObject({ isError: false });
    expect(await polylogue.call('chat', { prompt: 'Still there?', continuation_id })).toMatchObject({
      error: { code: 'THREAD_NOT_FOUND' },
    });
    expect((await threads({ action: 'list' })).threads).toHaveLength(1);
  });

  it('shares threads, their order and jobs with another one', async () => {
    const [one, other] = [await start(), await start()];
    vendor.script({ answer: 'First.' });
    const continuation_id = idOf(await one.call('chat', { prompt: 'One?' }));
    vendor.script({ answer: 'Second.', delayMs: 300 }, { answer: 'Third.', delayMs: 300 });
    const both = await Promise.all([
      one.call('chat', { prompt: 'Two?', continuation_id }),
      other.call('chat', { prompt: 'Three?', continuation_id }),
    ]);
    expect(both.map(reply => reply.isError)).toEqual([false, false]);
    // The one that came second was sent what the first one left.
    expect(textsSent()[2]).toContain('Second.');
    const { transcript } = await other.call('threads', { action: 'read', continuation_id });
    expect(transcript).toHaveLength(6);

    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'At last.', when: promise });
    const principal = { owner: 'local', root: project.root, client: 'codex-mcp-client' };
    const impatient = await start({ CALL_PATIENCE_SECONDS: '1' });
    const request = { name: 'chat', arguments: { prompt: 'Take your time.' }, principal, detach: 'job' as const };
    const { document } = await impatient.product.host.call(request, new AbortController().signal);
    expect(document).toMatchObject({ status: 'running' });
    resolve();
    const { job_id } = document;
    await expect.poll(async () => (await other.call('job', { job_id })).content).toBe('At last.');
  });
});

describe('a product whose Redis fails', () => {
  /** Long enough for a busy machine; what counts is that the wait is this one alone. */
  const quick = { REDIS_TIMEOUT_MS: '600' };

  it('asks nobody for an answer that could not be kept, says so in time, and goes on when it is back', async () => {
    const polylogue = await start(quick);
    vendor.script({ answer: 'Yes.' });
    const continuation_id = idOf(await polylogue.call('chat', { prompt: 'Are you there?' }));
    server.signal('SIGSTOP');
    const waited = waitedTime();
    const refused = await polylogue.call('chat', { prompt: 'And now?', continuation_id });
    expect(waited()).toBeLessThan(1_100);
    expect(refused).toMatchObject({ isError: true, error: { code: 'STORAGE', class: 'unavailable' } });
    expect(vendor.requests).toHaveLength(1);
    server.signal('SIGCONT');
    vendor.script({ answer: 'Again.' });
    await expect
      .poll(async () => (await polylogue.call('chat', { prompt: 'And now?', continuation_id })).content)
      .toBe('Again.');
  });

  it('gives an answer that was paid for, with the word that it is not kept, and keeps it when it is back', async () => {
    const polylogue = await start(quick);
    vendor.script({ answer: 'Yes.' });
    const continuation_id = idOf(await polylogue.call('chat', { prompt: 'Are you there?' }));
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'Paid for.', when: promise });
    const asked = polylogue.call('chat', { prompt: 'And now?', continuation_id });
    await expect.poll(() => vendor.requests.length).toBe(2);
    await server.kill();
    resolve();
    const reply = await asked;
    expect(reply).toMatchObject({ isError: false, content: 'Paid for.' });
    expect(reply.metadata.warnings).toEqual([expect.stringContaining('not_persisted')]);
    await server.start();
    const said = async () => {
      const { transcript = [] } = await polylogue.call('threads', { action: 'read', continuation_id });
      return transcript.map((turn: Document) => `${turn.content} ${turn.status}`);
    };
    // Without any other call on the thread.
    await expect.poll(said).toEqual(['Are you there? done', 'Yes. done', 'And now? done', 'Paid for. done']);
    await expect.poll(() => polylogue.log.join('')).toContain('was not persisted is stored now');
  });

  it('never shows the password of REDIS_URL', async () => {
    const password = 'hunter2-hunter2';
    const url = server.url.replace('//', `//:${password}@`);
    const polylogue = await start({ ...quick, REDIS_URL: url, LOG_LEVEL: 'debug' });
    const reply = await polylogue.call('chat', { prompt: `What is ${password}?` });
    expect(reply).toMatchObject({ isError: true, error: { code: 'STORAGE' } });
    const version = await polylogue.call('version');
    expect(JSON.stringify(version)).toContain(`Redis at 127.0.0.1:${server.port}`);
    await polylogue.product.close();
    const files = await readdir(polylogue.home, { recursive: true, withFileTypes: true });
    const written = await Promise.all(
      files.filter(file => file.isFile()).map(file => readFile(join(file.parentPath, file.name), 'utf8')),
    );
    expect(JSON.stringify([reply, version, polylogue.log, written])).not.toContain(password);
  });

  it.each([
    ['REDIS_URL', { REDIS_URL: 'http://127.0.0.1' }],
    ['REDIS_URL', { REDIS_URL: 'redis://me:100%zz@127.0.0.1' }],
    ['REDIS_URL', { REDIS_URL: 'redis://127.0.0.1/threads' }],
    ['REDIS_PREFIX', { REDIS_PREFIX: 'a{b}' }],
  ])('refuses to start with a wrong %s', async (name, wrong) => {
    await expect(start(wrong)).rejects.toMatchObject({ kind: 'config', message: expect.stringContaining(name) });
  });
});

import { randomUUID } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ToolReply, UserAnswer } from '../../../../src/core/tool-host.ts';
import { manualClock } from '../../../support/clock.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../../support/product.ts';
import { type RedisServer, startRedis } from '../../../support/redis-server.ts';
import { type TempProject, tempProject } from '../../../support/temp-project.ts';
import type { FakeVendor } from '../../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../../support/vendors/start-anthropic.ts';

const task = { task: 'Write it.', model: 'anthropic:claude-sonnet-4-5' };
const writing = (path: string, content = `${path}\n`) => ({ name: 'write_file', args: { path, content } });
const allow: UserAnswer = { action: 'accept', content: { decision: 'allow' } };
const always: UserAnswer = { action: 'accept', content: { decision: 'allow all of this kind in this run' } };

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.dispose());

let project: TempProject;
let home: TempProject;
let vendor: FakeVendor;
let store: Record<string, string>;
let products: TestProduct[];
const clock = manualClock();
beforeEach(async () => {
  products = [];
  [vendor, home] = await Promise.all([startAnthropic(), tempProject()]);
  project = await tempProject({ 'a.txt': 'before\n', 'b.txt': 'b before\n' });
});
afterEach(async () => {
  for (const each of products) await each.close();
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose(), home.dispose()]);
});

const onSqlite = () => ({ POLYLOGUE_HOME: home.root });
const onRedis = () => ({ POLYLOGUE_STORE: 'redis', REDIS_URL: redis.url, REDIS_PREFIX: `${randomUUID()}:` });

/** A server on the store of the others. */
async function start(env: Record<string, string> = {}, root = project.root) {
  const own = { ...vendorEnv({ anthropic: vendor.url }), POLYLOGUE_TOOLSETS: 'core,agent,ops', ...store, ...env };
  const product = await testProduct({ root, env: own, clock });
  products.push(product);
  return product;
}

/** A call of a client that can be asked between two calls. */
function call(
  { product }: TestProduct,
  args: Document,
  answers: [string, UserAnswer][] = [],
  owner = 'local',
): Promise<ToolReply> {
  const principal = { owner, root: product.root };
  const request = { name: 'agent', arguments: args, principal, answers: new Map(answers) };
  return product.host.call(request, new AbortController().signal);
}

const keyOf = ({ questions }: ToolReply) => questions?.[0]?.key ?? 'none';
const read = (path: string) => readFile(project.path(path), 'utf8');
const textsOf = (index: number) => vendor.requests[index]!.messages.map(({ text }) => text).join('\n');
const elsewhere = { isError: true, document: { error: { code: 'CONFIG', class: 'run_elsewhere' } } };
const nobody = { isError: true, document: { error: { validation_errors: [{ field: 'run_id' }] } } };

describe.each([
  ['SQLite', onSqlite],
  ['Redis', onRedis],
])('a run that waits in a store of %s, with two servers on it', (_name, place) => {
  beforeEach(() => {
    store = place();
  });

  it('goes on at the other one with all that was said and done, and asks there', async () => {
    const [a, b] = [await start(), await start()];
    const round = { calls: [{ name: 'read_file', args: { path: 'b.txt' } }, writing('a.txt'), writing('c.txt')] };
    vendor.script({ ...round, answer: 'First I look.' }, { answer: 'Done.' });
    const first = await call(a, { ...task, max_rounds: 2 });
    expect(first.document).toMatchObject({ status: 'approval_required' });
    const second = await call(b, { run_id: first.document.run_id }, [[keyOf(first), allow]]);
    expect(await read('a.txt')).toBe('a.txt\n');
    expect(keyOf(second)).not.toBe(keyOf(first));
    const third = await call(a, task, [[keyOf(second), allow]]);
    expect(third.document).toMatchObject({ status: 'success', content: 'Done.', rounds: 2 });
    expect(third.document.tool_calls).toMatchObject([
      { name: 'read_file', outcome: 'ok' },
      { name: 'write_file', outcome: 'ok' },
      { name: 'write_file', outcome: 'ok' },
    ]);
    expect(third.document.changed_files).toHaveLength(2);
    expect(vendor.requests).toHaveLength(2);
    const before = vendor.requests[0]!.messages;
    expect(vendor.requests[1]!.messages.slice(0, before.length)).toEqual(before);
    expect(textsOf(1)).toContain('First I look.');
    expect(textsOf(1).split('b before').length).toBe(2);
    const { transcript } = await b.call('threads', { action: 'read', continuation_id: first.document.continuation_id });
    expect(transcript.map(({ status }: Document) => status)).toEqual(['done', 'done']);
  });

  it.each([2, 1])('uses an answer once: of two at the same moment at %i servers one is told at once', async count => {
    const servers = [await start(), await start()];
    const [a, b] = [servers[0]!, servers[count - 1]!];
    const { promise: isTold, resolve: tell } = Promise.withResolvers<void>();
    vendor.script({ calls: [writing('a.txt')] }, { answer: 'Done.', when: isTold });
    const first = await call(a, task);
    const run = { run_id: first.document.run_id };
    const replies = [a, b].map(each => call(each, run, [[keyOf(first), allow]]));
    const told = { code: 'INVALID_INPUT_FORMAT', class: 'answered', data: { run_id: run.run_id } };
    // The other one goes on only then.
    expect(await Promise.race(replies)).toMatchObject({ isError: true, document: { error: told } });
    tell();
    const ended = (await Promise.all(replies)).filter(({ isError }) => !isError);
    expect(ended).toMatchObject([{ document: { content: 'Done.' } }]);
    // And so is who comes later, with the task as well.
    expect((await call(a, task, [[keyOf(first), allow]])).document.error).toMatchObject(told);
    expect((await call(b, run)).document.error).toMatchObject(told);
    expect(vendor.requests).toHaveLength(2);
  });

  it('is shown again at the other one, and is nobody else’s', async () => {
    const [a, b] = [await start(), await start()];
    vendor.script({ calls: [writing('a.txt')] }, { answer: 'Done.' });
    const first = await call(a, task);
    const run = { run_id: first.document.run_id };
    expect(await call(b, run, [[keyOf(first), allow]], 'other')).toMatchObject(nobody);
    expect((await call(b, run)).questions).toEqual(first.questions);
    expect((await call(b, run, [[keyOf(first), { action: 'decline' }]])).document).toMatchObject({ content: 'Done.' });
    expect(await read('a.txt')).toBe('before\n');
    expect(textsOf(1)).toContain('did not approve');
  });

  it('outlasts the server', async () => {
    const a = await start();
    vendor.script({ calls: [writing('a.txt')] }, { answer: 'Done.' });
    const first = await call(a, task);
    await a.restart();
    const second = await call(a, { run_id: first.document.run_id }, [[keyOf(first), allow]]);
    expect(second.document).toMatchObject({ content: 'Done.' });
    expect(await read('a.txt')).toBe('a.txt\n');
  });

  it('goes with its thread', async () => {
    const [a, b] = [await start(), await start()];
    vendor.script({ calls: [writing('a.txt')] });
    const { document } = await call(a, task);
    const removal = { action: 'delete', continuation_id: document.continuation_id, confirm: true };
    expect(await b.call('threads', removal)).toMatchObject({ isError: false });
    expect(await call(a, { run_id: document.run_id })).toMatchObject(nobody);
  });

  it('writes nothing over what somebody changed since it asked', async () => {
    const [a, b] = [await start(), await start()];
    vendor.script({ calls: [writing('a.txt')] }, { answer: 'Somebody was here.' });
    const first = await call(a, task);
    await writeFile(project.path('a.txt'), 'theirs\n');
    const { document } = await call(b, task, [[keyOf(first), allow]]);
    expect(document).toMatchObject({ content: 'Somebody was here.', tool_calls: [{ outcome: 'refused' }] });
    expect(textsOf(1)).toContain('changed by somebody else meanwhile');
    expect(await read('a.txt')).toBe('theirs\n');
  });

  it('has one limit on its costs, one count of its rounds and one set of approvals at all servers', async () => {
    const servers = [await start(), await start()];
    const usage = { input: 1_000, output: 5_000 };
    vendor.script({ calls: [writing('a.txt'), writing('b.txt')], usage }, { answer: 'Done.' });
    const asked = await call(servers[0]!, { ...task, max_rounds: 1 });
    const ended = await call(servers[1]!, task, [[keyOf(asked), always]]);
    expect(ended.document).toMatchObject({ stop_reason: 'max_rounds', rounds: 2 });
    vendor.byDefault({ calls: [writing('a.txt')], usage });
    let reply = await call(servers[0]!, { ...task, max_cost_usd: 0.2 });
    let calls = 0;
    while (reply.questions && calls < 6) {
      calls++;
      reply = await call(servers[calls % 2]!, { run_id: reply.document.run_id }, [[keyOf(reply), allow]]);
    }
    expect(reply).toMatchObject({ isError: true, document: { error: { code: 'LIMIT', class: 'cost' } } });
    expect(calls).toBeGreaterThan(0);
  });

  it('waits on where the other server can’t continue it, which says why', async () => {
    const a = await start({ AGENT_FETCH: 'true' });
    const other = await tempProject();
    vendor.script({ calls: [writing('a.txt')] }, { answer: 'Done.' });
    const first = await call(a, task);
    const lacking: [Record<string, string>, string, RegExp][] = [
      [{ AGENT_FETCH: 'true', AGENT_SANDBOX: 'off' }, project.root, /its commands run in/],
      [
        { AGENT_FETCH: 'true', ANTHROPIC_API_KEY: '', OPENAI_API_KEY: 'test-key' },
        project.root,
        /its model anthropic:/,
      ],
      [{}, project.root, /fetch_url/],
      [{ AGENT_FETCH: 'true' }, other.root, /not in the directories/],
    ];
    for (const [env, root, why] of lacking) {
      const reply = await call(await start(env, root), { run_id: first.document.run_id }, [[keyOf(first), allow]]);
      expect(reply).toMatchObject(elsewhere);
      expect(reply.document.error).toMatchObject({ message: expect.stringMatching(why) });
    }
    expect(await read('a.txt')).toBe('before\n');
    const { document } = await call(a, task, [[keyOf(first), allow]]);
    expect(document).toMatchObject({ content: 'Done.' });
    expect(await read('a.txt')).toBe('a.txt\n');
    await other.dispose();
  });
});

describe('secrets in a run that waits', () => {
  const made = `ghp_${'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8'}`;
  const found = `ghp_${'z9Y8x7W6v5U4t3S2r1Q0p9O8n7M6l5K4j3I2'}`;
  /** All that the data folder holds of the store. */
  const stored = async () => {
    const names = (await readdir(home.root, { recursive: true, withFileTypes: true })).filter(entry => entry.isFile());
    return (await Promise.all(names.map(entry => readFile(join(entry.parentPath, entry.name), 'latin1')))).join('\n');
  };
  beforeEach(() => {
    store = onSqlite();
  });

  it('are stored as placeholders, from which the other server writes them back', async () => {
    const [a, b] = [await start(), await start()];
    await writeFile(project.path('a.txt'), `token = ${found}\n`);
    const placeholder = () => /\[masked:\w+:[0-9a-f]{8}\]/.exec(textsOf(1))?.[0];
    vendor.script(
      { calls: [{ name: 'read_file', args: { path: 'a.txt' } }] },
      { calls: () => [writing('a.txt', `new = ${placeholder()}\n`)] },
      { answer: 'Done.' },
    );
    const first = await call(a, task);
    expect(await stored()).toContain('[masked:');
    expect(await stored()).not.toContain(found);
    expect((await call(b, task, [[keyOf(first), allow]])).document).toMatchObject({ content: 'Done.' });
    expect(await read('a.txt')).toBe(`new = ${found}\n`);
  });

  it('that its model made up are not stored: only the server that asked continues it', async () => {
    const [a, b] = [await start(), await start()];
    vendor.script({ calls: [writing('a.txt', `test = ${made}\n`)] }, { answer: 'Done.' });
    const first = await call(a, task);
    expect(await stored()).not.toContain(made);
    expect(await call(b, task, [[keyOf(first), allow]])).toMatchObject(elsewhere);
    expect((await call(a, task, [[keyOf(first), allow]])).document).toMatchObject({ content: 'Done.' });
    expect(await read('a.txt')).toBe(`test = ${made}\n`);
  });
});

it('a damaged state of a run is not continued', async () => {
  store = onSqlite();
  const a = await start();
  await rm(project.path('b.txt'));
  vendor.script({ calls: [writing('a.txt')] });
  const first = await call(a, task);
  await a.product.close();
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(home.path('threads.sqlite'));
  db.exec(`UPDATE facts SET body = replace(body, 'Write it.', 'Wrote it.') WHERE key LIKE 'run-body/%'`);
  db.close();
  const reply = await call(await start(), task, [[keyOf(first), allow]]);
  expect(reply).toMatchObject({ isError: true, document: { error: { code: 'STORAGE', class: 'corrupt' } } });
  expect(await read('a.txt')).toBe('before\n');
});

// Redis counts its time itself.
it('a run that waits in a file outlasts the server, and ends ten minutes after it asked', async () => {
  store = onSqlite();
  const a = await start();
  vendor.script({ calls: [writing('a.txt')] }, { calls: [writing('b.txt')] }, { answer: 'Done.' });
  const first = await call(a, task);
  await a.restart();
  await clock.advance(599_000);
  const second = await call(a, { run_id: first.document.run_id }, [[keyOf(first), allow]]);
  expect(second.document).toMatchObject({ status: 'approval_required' });
  expect(await read('a.txt')).toBe('a.txt\n');
  await clock.advance(600_001);
  expect(await call(await start(), { run_id: second.document.run_id })).toMatchObject(nobody);
  expect(await read('b.txt')).toBe('b before\n');
});

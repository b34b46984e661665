import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { documentOf, eraVersions } from '../support/mcp-session.ts';
import { type Document, vendorEnv } from '../support/product.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { type ServeProcess, startServe } from '../support/serve-process.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';

const task = { task: 'Write it.', model: 'anthropic:claude-sonnet-4-5' };
const writing = { calls: [{ name: 'write_file', args: { path: 'a.txt', content: 'after\n' } }] };

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.dispose());

let project: TempProject;
let homes: TempProject[];
let vendor: FakeVendor;
let daemons: ServeProcess[];
beforeEach(async () => {
  [homes, daemons] = [[], []];
  [vendor, project] = await Promise.all([startAnthropic(), tempProject({ 'a.txt': 'before\n' })]);
});
afterEach(async () => {
  await Promise.all(daemons.map(daemon => daemon.kill()));
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose(), ...homes.map(home => home.dispose())]);
});

async function folder(): Promise<TempProject> {
  const home = await tempProject();
  homes.push(home);
  return home;
}

/** Starts daemons on one store: in one data folder, or each in its own with Redis. */
const stores = {
  async SQLite() {
    const home = await folder();
    return async () => ({ home: home.root, env: {} });
  },
  async Redis() {
    const env = { POLYLOGUE_STORE: 'redis', REDIS_URL: redis.url, REDIS_PREFIX: `${randomUUID()}:` };
    return async () => ({ home: (await folder()).root, env });
  },
};

async function start(place: { home: string; env: Record<string, string> }): Promise<ServeProcess> {
  const env = { ...vendorEnv({ anthropic: vendor.url }), POLYLOGUE_TOOLSETS: 'core,agent', ...place.env };
  const daemon = await startServe({ root: project.root, home: place.home, env });
  daemons.push(daemon);
  return daemon;
}

const allow = { action: 'accept' as const, content: { decision: 'allow' } };

/** A call of a client of the legacy era that shows forms; `onForm` answers them. */
async function callAgent(
  { url }: ServeProcess,
  args: Document,
  onForm: (message: string) => typeof allow | Promise<typeof allow>,
): Promise<Document> {
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: { form: {} } } });
  client.setRequestHandler('elicitation/create', ({ params }) => onForm(params.message));
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
  try {
    return documentOf(await client.callTool({ name: 'agent', arguments: args }, { timeout: 60_000 }));
  } finally {
    await client.close().catch(() => undefined);
  }
}

/** Resolves with the id of a run once its form is shown, while which its daemon is killed. */
async function killedAtTheForm(daemon: ServeProcess): Promise<string> {
  const shown = Promise.withResolvers<string>();
  const lost = callAgent(daemon, task, async message => {
    await daemon.kill();
    shown.resolve(/run_id: (\S+)/.exec(message)?.[1] ?? 'none');
    return new Promise(() => {});
  });
  lost.catch(() => undefined);
  return shown.promise;
}

const read = () => readFile(project.path('a.txt'), 'utf8');

describe.each(['SQLite', 'Redis'] as const)('a run whose daemon is killed with -9, in a store of %s', kind => {
  it('goes on in another process with the approval, and is done once', async () => {
    const place = await stores[kind]();
    vendor.script(writing, { answer: 'Done.' });
    const run_id = await killedAtTheForm(await start(await place()));
    expect(await read()).toBe('before\n');
    const other = await start(await place());
    const messages: string[] = [];
    const reply = await callAgent(other, { run_id }, message => {
      messages.push(message);
      return allow;
    });
    expect(reply).toMatchObject({ status: 'success', content: 'Done.' });
    expect(messages).toEqual([expect.stringContaining('write_file')]);
    expect(await read()).toBe('after\n');
    expect(vendor.requests).toHaveLength(2);
    const again = await callAgent(other, { run_id }, () => allow);
    expect(again.error).toMatchObject({ class: 'answered' });
  });

  it('after the approval is told to be of unknown outcome, and nothing of it is repeated', async () => {
    const place = await stores[kind]();
    vendor.script(writing, { fault: 'hang_before_headers' });
    const run_id = await killedAtTheForm(await start(await place()));
    const second = await start(await place());
    const lost = callAgent(second, { run_id }, () => allow);
    lost.catch(() => undefined);
    await expect.poll(() => vendor.requests.length, { timeout: 30_000 }).toBe(2);
    await second.kill();
    expect(await read()).toBe('after\n');
    await writeFile(project.path('a.txt'), 'later\n');
    const third = await start(await place());
    // The killed process holds the run until its lease lapses.
    const outcome = async () => (await callAgent(third, { run_id }, () => allow)).error?.class;
    await expect.poll(outcome, { timeout: 30_000, interval: 200 }).toBe('interrupted');
    const { error } = await callAgent(third, { run_id }, () => allow);
    expect(error).toMatchObject({ code: 'INTERRUPTED', message: expect.stringContaining('write_file') });
    expect(await read()).toBe('later\n');
    expect(vendor.requests).toHaveLength(2);
  });
});

it('a run goes on at another daemon when its client brings the answer there', async () => {
  const place = await stores.Redis();
  const [a, b] = [await start(await place()), await start(await place())];
  vendor.script(writing, { answer: 'Done.' });
  const capabilities = { elicitation: { form: {} } };
  const mode = { pin: eraVersions.modern };
  const client = new Client({ name: 'test', version: '1' }, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', () => allow);
  let posts = 0;
  const balancer: typeof fetch = (input, init) => {
    // Each call goes to the other one.
    const isCall = typeof init?.body === 'string' && init.body.includes('"tools/call"');
    const target = isCall && ++posts % 2 === 0 ? b : a;
    return fetch(String(input).replace(a.url, target.url), init);
  };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${a.url}/mcp`), { fetch: balancer }));
  const reply = documentOf(await client.callTool({ name: 'agent', arguments: task }, { timeout: 60_000 }));
  await client.close();
  expect(reply).toMatchObject({ content: 'Done.' });
  expect(posts).toBe(2);
  expect(await read()).toBe('after\n');
});

import { afterAll, beforeAll, describe, type ExpectStatic, expect, it } from 'vitest';
import { createPolylogue } from '../../../src/app/library/polylogue.ts';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import { eraVersions } from '../../support/mcp-session.ts';
import * as doors from '../../support/one-bill-doors.ts';
import {
  answerIn,
  type Client,
  call,
  capabilities,
  documentOf,
  type Open,
  posting,
} from '../../support/one-bill-doors.ts';
import { pipedClient } from '../../support/piped-client.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { waitUntil } from '../../support/wait-until.ts';

let vendor: FakeVendor;
let project: TempProject;
let daemon: TestDaemon;
/** Another process would be the same: it shares the store, and nothing else. */
let neighbour: TestDaemon;
let product: TestProduct;

beforeAll(async () => {
  [vendor, project] = await Promise.all([startOpenAi(), tempProject({ 'notes.md': 'One.\n' })]);
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', DETACHED_GRACE_SECONDS: '20' };
  const tokens = ['ann', 'bob'].map(name => ({ name, owner: name, token: `${name}-${'t'.repeat(32)}` }));
  daemon = await testDaemon({ root: project.root, env, tokens });
  neighbour = await testDaemon({ root: project.root, env: { ...env, POLYLOGUE_HOME: daemon.home }, tokens });
  product = await testProduct({ root: project.root, env: { ...env, POLYLOGUE_STORE: 'memory' } });
});

afterAll(async () => {
  for (const release of gates.splice(0)) release();
  expect(vendor.violations).toEqual([]);
  await product.close();
  await Promise.all([daemon.close(), neighbour.close()]);
  await Promise.all([vendor.close(), project.dispose()]);
});

let ids = 0;

type OpenHere = (at?: TestDaemon, owner?: string) => Promise<Client>;
const here =
  (open: Open): OpenHere =>
  (at = daemon, owner) =>
    open(at, owner);
const [http2025, http2026, api] = [here(doors.http2025), here(doors.http2026), here(doors.api)];
const [webSocket, frames] = [here(doors.webSocket), here(doors.frames)];

const stdio: OpenHere = async () => {
  const client = await pipedClient(product);
  await client.begin();
  return {
    send(args, key) {
      const { params } = call(args, key === undefined ? undefined : { idempotencyKey: key });
      return {
        reply: client.ask('tools/call', params).then(({ result }) => documentOf(result)),
        cut: () => void client.close(),
      };
    },
  };
};

const gates: (() => void)[] = [];

/** A vendor that thinks about a question until it may answer. */
function thinking({ prompt }: { prompt: string }, ...answers: string[]): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  gates.push(resolve);
  vendor.script(...answers.map(answer => ({ answer, when: promise, about: prompt })));
  return resolve;
}

const question = () => ({ prompt: `What is a door? (${++ids})`, absolute_file_paths: ['notes.md'] });
const requestsFor = ({ prompt }: { prompt: string }) =>
  vendor.requests.filter(({ canonical }) => canonical.includes(prompt));
const bills = (asked: { prompt: string }) => requestsFor(asked).length;
const billed = (asked: { prompt: string }, times = 1) =>
  waitUntil('the vendor was asked', () => bills(asked) === times);
/** Long enough, on a busy machine too, for what was sent to be judged and for a second request to get to the vendor, were there one. */
const settle = () => new Promise(resolve => setTimeout(resolve, 600));
const lost = (reply: Promise<unknown>) => void reply.catch(() => undefined);

/** The same, of a client that knows tasks: the call becomes one. */
const tasks = async (args: object, key: string): Promise<Document> => {
  const headers = { 'mcp-protocol-version': eraVersions.modern, 'mcp-method': 'tools/call', 'mcp-name': 'chat' };
  const meta = { ...capabilities({ 'io.modelcontextprotocol/tasks': {} }), idempotencyKey: key };
  return answerIn(await posting(daemon, '/mcp', 'ann')(call(args, meta), headers).response);
};

/** A client without a name for its call is known by its session; where there are none, by the name alone. */
const ways: [door: string, open: OpenHere, key: string | undefined][] = [
  ['standard input', stdio, undefined],
  ['/mcp of 2025', http2025, undefined],
  ['/mcp of 2025, named', http2025, 'k'],
  ['/mcp of 2026, named', http2026, 'k'],
  ['/ws', webSocket, undefined],
  ['frames', frames, 'r'],
  ['/api/tools, named', api, 'k'],
];

// They mostly wait, so they run at the same time.
describe.concurrent.each(ways)('a call through %s', (_door, open, name) => {
  const keyOf = () => (name === undefined ? undefined : `${name}-${++ids}`);

  it('that is sent again while the first one runs is one bill', async ({ expect }) => {
    const [asked, key] = [question(), keyOf()];
    const answer = thinking(asked, 'A hinge.');
    const client = await open();
    const first = client.send(asked, key);
    await billed(asked);
    const second = open === frames ? first : client.send(asked, key);
    await settle();
    answer();
    expect((await second.reply).content).toBe('A hinge.');
    expect((await first.reply).content).toBe('A hinge.');
    expect(bills(asked)).toBe(1);
  });
});

describe.concurrent.each(ways.slice(1))('a call through %s', (_door, open, name) => {
  const keyOf = () => (name === undefined ? undefined : `${name}-${++ids}`);

  it('that is sent again after its stream broke is one bill', async ({ expect }) => {
    const [asked, key] = [question(), keyOf()];
    const answer = thinking(asked, 'A hinge.');
    const client = await open();
    const first = client.send(asked, key);
    lost(first.reply);
    await billed(asked);
    first.cut();
    await settle();
    const back = open === frames ? client : await open();
    const second = back.send(asked, key);
    await settle();
    answer();
    expect((await second.reply).content).toBe('A hinge.');
    expect(bills(asked)).toBe(1);
  });
});

describe.concurrent('the same call', () => {
  it('of a 2025 client that begins a new session while the stream of the old one is broken, at another daemon', async ({
    expect,
  }) => {
    const asked = question();
    const answer = thinking(asked, 'A hinge.');
    const first = (await http2025(daemon)).send(asked);
    lost(first.reply);
    await billed(asked);
    first.cut();
    await settle();
    const second = (await http2025(neighbour)).send(asked);
    await settle();
    answer();
    expect(await second.reply).toMatchObject({ content: 'A hinge.', metadata: { replayed: true } });
    expect(bills(asked)).toBe(1);
  });

  it('under one name, at two daemons, before and after its reply', async ({ expect }) => {
    const [asked, key] = [question(), `k-${++ids}`];
    const answer = thinking(asked, 'A hinge.');
    const first = (await http2026(daemon)).send(asked, key);
    await billed(asked);
    const second = (await api(neighbour)).send(asked, key);
    await settle();
    answer();
    for (const { reply } of [first, second]) expect((await reply).content).toBe('A hinge.');
    for (const open of [http2026, http2025, webSocket, api])
      expect(await (await open(neighbour)).send(asked, key).reply).toMatchObject({ metadata: { replayed: true } });
    expect(bills(asked)).toBe(1);
  });

  it('of two requests in one breath', async ({ expect }) => {
    const asked = question();
    const answer = thinking(asked, 'A hinge.');
    const client = await http2025();
    const both = [client.send(asked), client.send(asked)];
    await billed(asked);
    await settle();
    answer();
    for (const { reply } of both) expect((await reply).content).toBe('A hinge.');
    expect(bills(asked)).toBe(1);
  });

  it('that became a task is the same task', async ({ expect }) => {
    const [asked, key] = [question(), `k-${++ids}`];
    const answer = thinking(asked, 'A hinge.');
    const [first, second] = [await tasks(asked, key), await tasks(asked, key)];
    expect(first).toMatchObject({ resultType: 'task', taskId: expect.any(String) });
    expect(second).toMatchObject({ resultType: 'task', taskId: first.taskId });
    answer();
    await settle();
    expect(bills(asked)).toBe(1);
  });

  it('of a program, under a name', async ({ expect }) => {
    const asked = question();
    const answer = thinking(asked, 'A hinge.');
    const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', POLYLOGUE_STORE: 'memory' };
    await using polylogue = await createPolylogue({ env, root: project.root, home: project.root });
    const both = [0, 1].map(() => polylogue.callTool('chat', asked, { idempotencyKey: 'k' }));
    await billed(asked);
    await settle();
    answer();
    for (const reply of both) expect((await reply).content).toBe('A hinge.');
    expect((await polylogue.callTool('chat', asked, { idempotencyKey: 'k' })).content).toBe('A hinge.');
    expect(bills(asked)).toBe(1);
  });
});

describe.concurrent('what looks like the same call', () => {
  const twice = async (expect: ExpectStatic, one: Client, other: Client, key?: string) => {
    const asked = question();
    const answer = thinking(asked, 'A hinge.', 'A hole.');
    const first = one.send(asked, key);
    await billed(asked);
    const second = other.send(asked, key);
    await billed(asked, 2);
    answer();
    const replies = [await first.reply, await second.reply];
    expect(replies.map(({ isError, metadata }) => [isError, metadata.replayed])).toEqual([
      [false, undefined],
      [false, undefined],
    ]);
  };

  it.for([
    ['/mcp of 2025', http2025],
    ['/mcp of 2026', http2026],
    ['/ws', webSocket],
    ['/api/tools', api],
  ] as const)('of two clients at the same time is two answers: %s', async ([, open], { expect }) => {
    await twice(expect, await open(), await open());
  });

  it('of two owners under one name is two answers', async ({ expect }) => {
    const [ann, bob] = [await http2026(daemon, 'ann'), await http2026(daemon, 'bob')];
    await twice(expect, ann, bob, `k-${++ids}`);
  });

  it('after a reply that arrived is a new call', async ({ expect }) => {
    const asked = question();
    const client = await http2025();
    await client.send(asked).reply;
    await settle();
    expect((await client.send(asked).reply).metadata.replayed).toBeUndefined();
    expect(bills(asked)).toBe(2);
  });

  it('of 2026 without a name is cancelled with its stream, down to the vendor', async ({ expect }) => {
    const asked = question();
    const answer = thinking(asked, 'A hinge.');
    const first = (await http2026()).send(asked);
    lost(first.reply);
    await billed(asked);
    first.cut();
    const [request] = requestsFor(asked);
    await expect.poll(() => request?.wasAborted()).toBe(true);
    answer();
  });
});

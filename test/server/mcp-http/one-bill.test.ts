import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createPolylogue } from '../../../src/app/library/polylogue.ts';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import { helloFrames } from '../../support/frame-client.ts';
import { eraVersions } from '../../support/mcp-session.ts';
import { pipedClient } from '../../support/piped-client.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { webSocketTransport } from '../../support/web-socket-transport.ts';

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
  expect(vendor.violations).toEqual([]);
  await product.close();
  await Promise.all([daemon.close(), neighbour.close()]);
  await Promise.all([vendor.close(), project.dispose()]);
});

const tokenOf = (name: string) => `${name}-${'t'.repeat(32)}`;

/** One client of a door. */
interface Client {
  /** Sends the call; the reply fails once it is cut. */
  send(args: object, key?: string): { reply: Promise<Document>; cut(): void };
}

type Open = (at?: TestDaemon, owner?: string) => Promise<Client>;

const documentOf = ({ content, isError = false }: Document): Document => ({ ...JSON.parse(content[0].text), isError });

/** The answer of a POST to `/mcp`: one JSON document, or the last message of a stream. */
async function answerIn(response: Response): Promise<Document> {
  const text = await response.text();
  const messages = text.startsWith('{') ? [text] : [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => data);
  const answer = messages.map(each => JSON.parse(each)).find(message => message.id !== undefined && !message.method);
  if (!answer?.result) throw new Error(`no result in ${text.slice(0, 500)}`);
  return answer.result;
}

function posting(at: TestDaemon, path: string, owner: string) {
  return (body: object, headers: Record<string, string> = {}) => {
    const stop = new AbortController();
    const accept = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const init = {
      method: 'POST',
      body: JSON.stringify(body),
      signal: stop.signal,
      headers: { ...accept, ...headers },
    };
    return { response: at.ask(path, { ...init, token: tokenOf(owner) }), cut: () => stop.abort() };
  };
}

let ids = 0;

const call = (args: object, meta?: object) => ({
  jsonrpc: '2.0',
  id: ++ids,
  method: 'tools/call',
  params: { name: 'chat', arguments: args, ...(meta && { _meta: meta }) },
});

const initialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'one', version: '1' } },
};

const http2025: Open = async (at = daemon, owner = 'ann') => {
  const post = posting(at, '/mcp', owner);
  const opened = await post(initialize).response;
  await opened.text();
  const headers = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, headers).response;
  return {
    send(args, key) {
      const { response, cut } = post(call(args, key === undefined ? undefined : { idempotencyKey: key }), headers);
      return { reply: response.then(answerIn).then(documentOf), cut };
    },
  };
};

const capabilities = (extensions: object) => ({
  'io.modelcontextprotocol/protocolVersion': eraVersions.modern,
  'io.modelcontextprotocol/clientInfo': { name: 'one', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': { extensions },
});

const http2026: Open = async (at = daemon, owner = 'ann') => {
  const post = posting(at, '/mcp', owner);
  const headers = { 'mcp-protocol-version': eraVersions.modern, 'mcp-method': 'tools/call', 'mcp-name': 'chat' };
  return {
    send(args, key) {
      const meta = { ...capabilities({}), ...(key !== undefined && { idempotencyKey: key }) };
      const { response, cut } = post(call(args, meta), headers);
      return { reply: response.then(answerIn).then(documentOf), cut };
    },
  };
};

const api: Open = async (at = daemon, owner = 'ann') => {
  const post = posting(at, '/api/tools/chat', owner);
  return {
    send(args, key) {
      const { response, cut } = post(args, { accept: 'application/json', ...(key && { 'idempotency-key': key }) });
      return { reply: response.then(async each => ({ ...JSON.parse(await each.text()), isError: !each.ok })), cut };
    },
  };
};

const stdio: Open = async () => {
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

/** MCP over a WebSocket, as the bridge speaks it. */
const webSocket: Open = async (at = daemon, owner = 'ann') => {
  const transport = webSocketTransport(`${at.url.replace('http', 'ws')}/ws`, {
    authorization: `Bearer ${tokenOf(owner)}`,
  });
  const waiting = new Map<unknown, (result: Document) => void>();
  transport.onmessage = message => 'result' in message && waiting.get(message.id)?.(message.result);
  await transport.start();
  const ask = (message: Document) =>
    new Promise<Document>(resolve => {
      waiting.set(message.id, resolve);
      void transport.send(message);
    });
  await ask(initialize);
  await transport.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  return {
    send: (args, key) => ({
      reply: ask(call(args, key === undefined ? undefined : { idempotencyKey: key })).then(documentOf),
      cut: () => void transport.close(),
    }),
  };
};

const frames: Open = async (at = daemon, owner = 'ann') => {
  const url = `${at.url.replace('http', 'ws')}/ws`;
  let client = await helloFrames(url, { token: tokenOf(owner) });
  const session = client.ack.session_id;
  return {
    send: (args, key = `r${++ids}`) => {
      const asked = async () => {
        if (client.socket.readyState !== client.socket.OPEN)
          client = await helloFrames(url, { token: tokenOf(owner), ...(session && { session }) });
        client.call(key, 'chat', { ...args });
        return (await client.result(key)).document;
      };
      return { reply: asked(), cut: () => client.socket.terminate() };
    },
  };
};

const gates: { release: () => void }[] = [];

beforeEach(() => {
  for (const { release } of gates.splice(0)) release();
});

/** A vendor that thinks until it may answer. */
function thinking(...answers: string[]): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  gates.push({ release: resolve });
  vendor.script(...answers.map(answer => ({ answer, when: promise })));
  return resolve;
}

const question = () => ({ prompt: `What is a door? (${++ids})`, absolute_file_paths: ['notes.md'] });
const requestsFor = ({ prompt }: { prompt: string }) =>
  vendor.requests.filter(({ canonical }) => canonical.includes(prompt));
const bills = (asked: { prompt: string }) => requestsFor(asked).length;
const billed = (asked: { prompt: string }, times = 1) =>
  expect.poll(() => bills(asked), { timeout: 10_000 }).toBe(times);
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
const doors: [door: string, open: Open, key: string | undefined][] = [
  ['standard input', stdio, undefined],
  ['/mcp of 2025', http2025, undefined],
  ['/mcp of 2025, named', http2025, 'k'],
  ['/mcp of 2026, named', http2026, 'k'],
  ['/ws', webSocket, undefined],
  ['frames', frames, 'r'],
  ['/api/tools, named', api, 'k'],
];

describe.each(doors)('a call through %s', (_door, open, name) => {
  const keyOf = () => (name === undefined ? undefined : `${name}-${++ids}`);

  it('that is sent again while the first one runs is one bill', async () => {
    const answer = thinking('A hinge.');
    const [asked, key] = [question(), keyOf()];
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

describe.each(doors.slice(1))('a call through %s', (_door, open, name) => {
  const keyOf = () => (name === undefined ? undefined : `${name}-${++ids}`);

  it('that is sent again after its stream broke is one bill', async () => {
    const answer = thinking('A hinge.');
    const [asked, key] = [question(), keyOf()];
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

describe('the same call', () => {
  it('of a 2025 client that begins a new session while the stream of the old one is broken, at another daemon', async () => {
    const answer = thinking('A hinge.');
    const asked = question();
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

  it('under one name, at two daemons, before and after its reply', async () => {
    const answer = thinking('A hinge.');
    const [asked, key] = [question(), `k-${++ids}`];
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

  it('of two requests in one breath', async () => {
    const answer = thinking('A hinge.');
    const asked = question();
    const client = await http2025();
    const both = [client.send(asked), client.send(asked)];
    await billed(asked);
    await settle();
    answer();
    for (const { reply } of both) expect((await reply).content).toBe('A hinge.');
    expect(bills(asked)).toBe(1);
  });

  it('that became a task is the same task', async () => {
    const answer = thinking('A hinge.');
    const [asked, key] = [question(), `k-${++ids}`];
    const [first, second] = [await tasks(asked, key), await tasks(asked, key)];
    expect(first).toMatchObject({ resultType: 'task', taskId: expect.any(String) });
    expect(second).toMatchObject({ resultType: 'task', taskId: first.taskId });
    answer();
    await settle();
    expect(bills(asked)).toBe(1);
  });

  it('of a program, under a name', async () => {
    const answer = thinking('A hinge.');
    const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', POLYLOGUE_STORE: 'memory' };
    await using polylogue = await createPolylogue({ env, root: project.root, home: project.root });
    const asked = question();
    const both = [0, 1].map(() => polylogue.callTool('chat', asked, { idempotencyKey: 'k' }));
    await billed(asked);
    await settle();
    answer();
    for (const reply of both) expect((await reply).content).toBe('A hinge.');
    expect((await polylogue.callTool('chat', asked, { idempotencyKey: 'k' })).content).toBe('A hinge.');
    expect(bills(asked)).toBe(1);
  });
});

describe('what looks like the same call', () => {
  const twice = async (asked: { prompt: string }, one: Client, other: Client, key?: string) => {
    const answer = thinking('A hinge.', 'A hole.');
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

  it.each([
    ['/mcp of 2025', http2025],
    ['/mcp of 2026', http2026],
    ['/ws', webSocket],
    ['/api/tools', api],
  ])('of two clients at the same time is two answers: %s', async (_door, open) => {
    await twice(question(), await open(), await open());
  });

  it('of two owners under one name is two answers', async () => {
    const [ann, bob] = [await http2026(daemon, 'ann'), await http2026(daemon, 'bob')];
    await twice(question(), ann, bob, `k-${++ids}`);
  });

  it('after a reply that arrived is a new call', async () => {
    const asked = question();
    const client = await http2025();
    await client.send(asked).reply;
    await settle();
    expect((await client.send(asked).reply).metadata.replayed).toBeUndefined();
    expect(bills(asked)).toBe(2);
  });

  it('of 2026 without a name is cancelled with its stream, down to the vendor', async () => {
    const answer = thinking('A hinge.');
    const asked = question();
    const first = (await http2026()).send(asked);
    lost(first.reply);
    await billed(asked);
    first.cut();
    const [request] = requestsFor(asked);
    await expect.poll(() => request?.wasAborted()).toBe(true);
    answer();
  });
});

import { PassThrough } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { runProxy } from '../../../src/server/proxy/proxy.ts';
import { realClock } from '../../support/clock.ts';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import { type Document, vendorEnv } from '../../support/product.ts';
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

const token = 'ann-'.repeat(10);

let vendor: FakeVendor;
let project: TempProject;
let daemon: TestDaemon;
let impatient: TestDaemon;
let way: TcpProxy;
let bridges: Bridge[] = [];

beforeAll(async () => {
  [vendor, project] = await Promise.all([startOpenAi(), tempProject({ 'notes.md': 'One.\n' })]);
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', DETACHED_GRACE_SECONDS: '20' };
  const tokens = [{ name: 'ann', owner: 'ann', token }];
  const options = { root: project.root, tokens };
  daemon = await testDaemon({ ...options, env: { ...env, POLYLOGUE_STORE: 'memory' } });
  const hasty = { CALL_PATIENCE_SECONDS: '1', DETACHED_GRACE_SECONDS: '1' };
  impatient = await testDaemon({ ...options, env: { ...env, POLYLOGUE_STORE: 'memory', ...hasty } });
  way = await startProxy(portOf(daemon));
});

afterEach(async () => {
  for (const release of gates.splice(0)) release();
  await Promise.all(bridges.map(({ end }) => end()));
  bridges = [];
  way.target = portOf(daemon);
});

afterAll(async () => {
  expect(vendor.violations).toEqual([]);
  await Promise.all([way.dispose(), daemon.close(), impatient.close()]);
  await Promise.all([vendor.close(), project.dispose()]);
});

const portOf = ({ url }: TestDaemon) => Number(new URL(url).port);

interface Bridge {
  /** A call as its host sends it. */
  chat(args: object): Promise<Document>;
  end(): Promise<void>;
}

/** A bridge to the daemon, over a way that can break, and its host. */
async function bridge(): Promise<Bridge> {
  const [input, output, stop] = [new PassThrough(), new PassThrough(), new AbortController()];
  const run = runProxy({
    url: way.url.replace('redis', 'http'),
    access: { token },
    root: project.root,
    isGuess: false,
    home: project.root,
    daemon: undefined,
    maxBytes: 1_000_000,
    clock: realClock(),
    onRemark() {},
    input,
    output,
    stop: stop.signal,
  });
  const waiting = new Map<unknown, (message: Document) => void>();
  let ids = 0;
  let rest = '';
  output.on('data', piece => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const message of lines.map(line => JSON.parse(line))) waiting.get(message.id)?.(message);
  });
  const send = (message: object) => input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const ask = (method: string, params: object) =>
    new Promise<Document>(resolve => {
      const id = ++ids;
      waiting.set(id, resolve);
      send({ id, method, params });
    });
  const clientInfo = { name: 'bridged', version: '1' };
  await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  send({ method: 'notifications/initialized' });
  const self = {
    async chat(args: object) {
      const { result } = await ask('tools/call', { name: 'chat', arguments: args });
      return { ...JSON.parse(result.content[0].text), isError: result.isError ?? false };
    },
    async end() {
      stop.abort();
      await run;
    },
  };
  bridges.push(self);
  return self;
}

let questions = 0;
const question = () => ({ prompt: `What is a door? (${++questions})`, absolute_file_paths: ['notes.md'] });
const bills = ({ prompt }: { prompt: string }) =>
  vendor.requests.filter(({ canonical }) => canonical.includes(prompt)).length;
const billed = (asked: { prompt: string }, times = 1) =>
  expect.poll(() => bills(asked), { timeout: 10_000 }).toBe(times);
/** Long enough, on a busy machine too, for what was sent to be judged and for a second request to get to the vendor, were there one. */
const settle = () => new Promise(resolve => setTimeout(resolve, 600));

const gates: (() => void)[] = [];

function thinking(...answers: string[]): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  gates.push(resolve);
  vendor.script(...answers.map(answer => ({ answer, when: promise })));
  return resolve;
}

/** The bytes of the answer go nowhere, and then the way breaks. */
async function loseAnswer(answer: () => void): Promise<void> {
  const before = way.connections;
  way.left = 0;
  answer();
  await expect.poll(() => way.connections, { timeout: 10_000 }).toBeGreaterThan(before);
}

describe('a call over a bridge', () => {
  it.each([
    ['breaks at both ends', () => way.cutAll()],
    ['breaks, and the daemon does not notice', () => way.cutNear()],
    [
      'breaks twice',
      async () => {
        const before = way.connections;
        way.cutAll();
        await expect.poll(() => way.connections).toBeGreaterThan(before + 1);
        await settle();
        way.cutAll();
      },
    ],
  ])('is one bill where its way %s while the vendor thinks', async (_how, cut) => {
    const answer = thinking('A hinge.');
    const asked = question();
    const first = (await bridge()).chat(asked);
    await billed(asked);
    await cut();
    await settle();
    answer();
    expect(await first).toMatchObject({ isError: false, content: 'A hinge.' });
    expect(bills(asked)).toBe(1);
  });

  it('is one bill where its answer was written and lost on its way', async () => {
    const answer = thinking('A hinge.');
    const asked = question();
    const first = (await bridge()).chat(asked);
    await billed(asked);
    await loseAnswer(answer);
    expect(await first).toMatchObject({ content: 'A hinge.', metadata: { replayed: true } });
    expect(bills(asked)).toBe(1);
  });

  it('that its host sends again while it runs is one bill', async () => {
    const answer = thinking('A hinge.');
    const asked = question();
    const host = await bridge();
    const both = [host.chat(asked)];
    await billed(asked);
    both.push(host.chat(asked));
    await settle();
    answer();
    for (const reply of both) expect((await reply).content).toBe('A hinge.');
    expect(bills(asked)).toBe(1);
  });

  it('that became a job is the same job where the word of it was lost on its way', async () => {
    way.target = portOf(impatient);
    const answer = thinking('A hinge.', 'A hole.');
    const asked = question();
    const host = await bridge();
    const first = host.chat(asked);
    await billed(asked);
    await loseAnswer(() => undefined);
    const { status, job_id } = await first;
    expect(status).toBe('running');
    await settle();
    expect(bills(asked)).toBe(1);
    // This time it arrived: the same question is a new one.
    const anew = await host.chat(asked);
    expect(anew.status).toBe('running');
    expect(anew.job_id).not.toBe(job_id);
    expect(bills(asked)).toBe(2);
    answer();
  });
});

describe('a call whose host and bridge are gone', () => {
  it('is joined by the next host that asks the same', async () => {
    const answer = thinking('A hinge.');
    const asked = question();
    const first = await bridge();
    void first.chat(asked);
    await billed(asked);
    await first.end();
    await settle();
    const second = (await bridge()).chat(asked);
    await settle();
    answer();
    expect(await second).toMatchObject({ content: 'A hinge.', metadata: { replayed: true } });
    expect(bills(asked)).toBe(1);
  });

  it('is asked anew by the next host once its grace is over', async () => {
    way.target = portOf(impatient);
    thinking('A hinge.');
    vendor.byDefault({ answer: 'A hole.' });
    const asked = question();
    const first = await bridge();
    void first.chat(asked);
    await billed(asked);
    await first.end();
    await expect.poll(() => impatient.daemon.load().callsRunning, { timeout: 10_000 }).toBe(0);
    expect(await (await bridge()).chat(asked)).toMatchObject({ isError: false, content: 'A hole.' });
    expect(bills(asked)).toBe(2);
  });
});

describe('what looks like the same call over a bridge', () => {
  it('is two answers for two hosts at the same time', async () => {
    const answer = thinking('A hinge.', 'A hole.');
    const asked = question();
    const hosts = [await bridge(), await bridge()];
    const both = hosts.map(host => host.chat(asked));
    await billed(asked, 2);
    answer();
    for (const reply of await Promise.all(both)) expect(reply.metadata.replayed).toBeUndefined();
  });

  it('is a new call after an answer that arrived, also where its way broke afterwards', async () => {
    vendor.script({ answer: '1' }, { answer: '2' }, { answer: '3' });
    const asked = question();
    const host = await bridge();
    for (const content of ['1', '2']) expect((await host.chat(asked)).content).toBe(content);
    await settle();
    way.cutAll();
    expect((await host.chat(asked)).content).toBe('3');
    expect(bills(asked)).toBe(3);
  });
});

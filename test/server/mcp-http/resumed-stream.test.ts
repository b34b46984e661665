import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import { type Document, vendorEnv } from '../../support/product.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { waitUntil } from '../../support/wait-until.ts';

let vendor: FakeVendor;
let project: TempProject;
let redis: RedisServer;

beforeAll(async () => {
  [vendor, project, redis] = await Promise.all([startOpenAi(), tempProject({ 'notes.md': 'One.\n' }), startRedis()]);
});

afterAll(async () => {
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose(), redis.dispose()]);
});

let ids = 0;

/** A vendor that thinks about a question until it may answer; at the latest when the `gates` are opened. */
const thinkingBehind =
  (gates: (() => void)[]) =>
  ({ prompt }: { prompt: string }, ...answers: string[]): (() => void) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    gates.push(resolve);
    vendor.script(...answers.map(answer => ({ answer, when: promise, about: prompt })));
    return resolve;
  };

const question = () => ({ prompt: `What is a door? (${++ids})`, absolute_file_paths: ['notes.md'] });
const bills = ({ prompt }: { prompt: string }) =>
  vendor.requests.filter(({ canonical }) => canonical.includes(prompt)).length;
const billed = (asked: { prompt: string }, times = 1) =>
  waitUntil('the vendor was asked', () => bills(asked) === times);
/** Long enough, on a busy machine too, for what was sent to be judged and for a second request to get to the vendor, were there one. */
const settle = () => new Promise(resolve => setTimeout(resolve, 600));

interface Stream {
  /** The id of its newest event so far. */
  lastEvent(): Promise<string>;
  reply: Promise<Document>;
  cut(): void;
}

/** Reads a stream of events; its reply fails once it is cut. */
function readStream(open: (signal: AbortSignal) => Promise<Response>): Stream {
  const stop = new AbortController();
  const begun = Promise.withResolvers<void>();
  let text = '';
  const read = async (): Promise<Document> => {
    const response = await open(stop.signal);
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      if (text.includes('id: ')) begun.resolve();
    }
    const messages = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data));
    const { result } = messages.find(message => message.id !== undefined && !message.method) ?? {};
    if (!result) throw new Error(`no result in ${response.status} ${text.slice(0, 500)}`);
    return { ...JSON.parse(result.content[0].text), isError: result.isError ?? false };
  };
  const reply = read();
  reply.catch(() => undefined);
  return {
    reply,
    cut: () => stop.abort(),
    async lastEvent() {
      await begun.promise;
      return [...text.matchAll(/^id: (\S+)$/gm)].at(-1)?.[1] ?? '';
    },
  };
}

/** A 2025 client in a session of its own. */
async function client(at: TestDaemon) {
  const accept = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const post = (body: object, headers: object, signal?: AbortSignal) =>
    at.ask('/mcp', {
      method: 'POST',
      body: JSON.stringify({ jsonrpc: '2.0', ...body }),
      signal,
      headers: { ...accept, ...headers },
    });
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'resumes', version: '1' } };
  const opened = await post({ id: 0, method: 'initialize', params }, {});
  await opened.text();
  const session = {
    'mcp-session-id': opened.headers.get('mcp-session-id') ?? '',
    'mcp-protocol-version': '2025-11-25',
  };
  // Null for what is left out, as clients in some languages write it.
  const noted = await post({ method: 'notifications/initialized', params: null }, session);
  if (noted.status !== 202) throw new Error(`a notification was answered with ${noted.status}`);
  return {
    chat: (args: object) =>
      readStream(signal =>
        post(
          { id: ++ids, method: 'tools/call', params: { name: 'chat', arguments: args, _meta: null } },
          session,
          signal,
        ),
      ),
    listen: (signal: AbortSignal, headers = {}) =>
      at.ask('/mcp', { signal, headers: { accept: 'text/event-stream', ...session, ...headers } }),
    resume: (lastEvent: string) =>
      readStream(signal =>
        at.ask('/mcp', { signal, headers: { accept: 'text/event-stream', 'last-event-id': lastEvent, ...session } }),
      ),
  };
}

// They mostly wait, for different times: so they run at the same time.
describe.concurrent.each([
  ['on files that two servers share', async () => ({})],
  [
    'on a Redis that two servers share',
    async () => ({
      POLYLOGUE_STORE: 'redis',
      REDIS_URL: redis.url,
      REDIS_PREFIX: `${randomUUID()}:`,
      REDIS_TIMEOUT_MS: '5000',
    }),
  ],
])('a call whose stream breaks, %s', (_where, store) => {
  const gates: (() => void)[] = [];
  const thinking = thinkingBehind(gates);
  let one: TestDaemon;
  let other: TestDaemon;
  let impatient: TestDaemon;
  let hasty: TestDaemon;

  beforeAll(async () => {
    const settings = { DEFAULT_MODEL: 'gpt-5-mini', AI_MANAGER: 'rules', DETACHED_GRACE_SECONDS: '20' };
    const env = { ...vendorEnv({ openai: vendor.url }), ...settings, ...(await store()) };
    one = await testDaemon({ root: project.root, env });
    const POLYLOGUE_HOME = one.home;
    other = await testDaemon({ root: project.root, env: { ...env, POLYLOGUE_HOME } });
    hasty = await testDaemon({ root: project.root, env: { ...env, POLYLOGUE_HOME, DETACHED_GRACE_SECONDS: '3' } });
    impatient = await testDaemon({ root: project.root, env: { ...env, POLYLOGUE_HOME, CALL_PATIENCE_SECONDS: '1' } });
  });

  afterAll(async () => {
    for (const release of gates) release();
    await Promise.all([hasty.close(), impatient.close(), other.close()]);
    await one.close();
  });

  it('keeps the stream that listens when a request for another one is refused', async ({ expect }) => {
    const { listen } = await client(one);
    const stop = new AbortController();
    const first = await listen(stop.signal);
    let isOver = false;
    const reading = first
      .text()
      .catch(() => undefined)
      .then(() => (isOver = true));
    expect((await listen(stop.signal, { accept: 'application/json' })).status).toBe(406);
    expect((await listen(stop.signal, { 'mcp-protocol-version': '2024-01-01' })).status).toBe(400);
    await settle();
    expect(isOver).toBe(false);
    expect((await listen(stop.signal)).status).toBe(200);
    await reading;
    stop.abort();
  });

  it('is answered on the stream that resumes it, is one bill, and a new call afterwards', async ({ expect }) => {
    const asked = question();
    const answer = thinking(asked, 'A hinge.', 'A hole.');
    const { chat, resume } = await client(one);
    const first = chat(asked);
    await billed(asked);
    const lastEvent = await first.lastEvent();
    first.cut();
    await settle();
    const resumed = resume(lastEvent);
    await settle();
    answer();
    expect(await resumed.reply).toMatchObject({ isError: false, content: 'A hinge.' });
    expect(bills(asked)).toBe(1);
    await settle();
    expect(await chat(asked).reply).toMatchObject({ content: 'A hole.' });
  });

  it('is answered on the stream that resumes it before the server knows that the one before is lost', async ({
    expect,
  }) => {
    const asked = question();
    const answer = thinking(asked, 'A hinge.', 'A hole.');
    const { chat, resume } = await client(one);
    const first = chat(asked);
    await billed(asked);
    const resumed = resume(await first.lastEvent());
    await expect(first.reply).rejects.toThrow('no result');
    answer();
    expect(await resumed.reply).toMatchObject({ isError: false, content: 'A hinge.' });
    expect(bills(asked)).toBe(1);
    await settle();
    expect(await chat(asked).reply).toMatchObject({ content: 'A hole.' });
  });

  it('leaves the stream of other messages to who asks for it last', async ({ expect }) => {
    const { listen, resume } = await client(one);
    const stop = new AbortController();
    const [first, second] = [await listen(stop.signal), await listen(stop.signal)];
    expect([first.status, second.status, await first.text()]).toEqual([200, 200, '']);
    stop.abort();
    await expect(resume('999').reply).rejects.toThrow('kept no longer');
  });

  it('is one bill where the resumed stream breaks, too, and its answer comes in between', async ({ expect }) => {
    const asked = question();
    const answer = thinking(asked, 'A hinge.');
    const { chat, resume } = await client(one);
    const first = chat(asked);
    await billed(asked);
    const lastEvent = await first.lastEvent();
    first.cut();
    await settle();
    const second = resume(lastEvent);
    await settle();
    second.cut();
    answer();
    await settle();
    expect((await resume(lastEvent).reply).content).toBe('A hinge.');
    expect(bills(asked)).toBe(1);
  });

  it.for([
    ['after its own was cut', true],
    ['while its own seems open', false],
  ] as const)(
    'goes on while a stream resumes it %s, and ends at its vendor once that broke for longer than its grace',
    async ([, isCut], { expect }) => {
      const asked = question();
      thinking(asked, 'A hinge.');
      const { chat, resume } = await client(hasty);
      const first = chat(asked);
      await billed(asked);
      const lastEvent = await first.lastEvent();
      if (isCut) first.cut();
      const second = resume(lastEvent);
      await new Promise(resolve => setTimeout(resolve, 4_500));
      const [request] = vendor.requests.filter(({ canonical }) => canonical.includes(asked.prompt));
      expect(request?.wasAborted()).toBe(false);
      second.cut();
      await expect.poll(() => request?.wasAborted(), { timeout: 20_000 }).toBe(true);
    },
  );

  it('is one bill where it is resumed and sent again', async ({ expect }) => {
    const asked = question();
    const answer = thinking(asked, 'A hinge.');
    const { chat, resume } = await client(one);
    const first = chat(asked);
    await billed(asked);
    const lastEvent = await first.lastEvent();
    first.cut();
    const both = [resume(lastEvent), chat(asked)];
    await settle();
    answer();
    for (const { reply } of both) expect((await reply).content).toBe('A hinge.');
    expect(bills(asked)).toBe(1);
  });

  it('is one bill where it is sent to the other server while the first one works', async ({ expect }) => {
    const asked = question();
    const answer = thinking(asked, 'A hinge.');
    const first = (await client(one)).chat(asked);
    await billed(asked);
    await first.lastEvent();
    first.cut();
    await settle();
    const second = (await client(other)).chat(asked);
    await settle();
    answer();
    expect(await second.reply).toMatchObject({ content: 'A hinge.', metadata: { replayed: true } });
    expect(bills(asked)).toBe(1);
  });

  it('is the job that it became, where it is resumed and for who sends it again to the other server', async ({
    expect,
  }) => {
    const asked = question();
    const answer = thinking(asked, 'A hinge.');
    const { chat, resume } = await client(impatient);
    const first = chat(asked);
    await billed(asked);
    const lastEvent = await first.lastEvent();
    first.cut();
    await new Promise(resolve => setTimeout(resolve, 1_500));
    const again = await (await client(other)).chat(asked).reply;
    expect(again).toMatchObject({ status: 'running', job_id: expect.any(String) });
    expect((await resume(lastEvent).reply).job_id).toBe(again.job_id);
    answer();
    await settle();
    expect(bills(asked)).toBe(1);
  });

  it('is two answers for two clients who both wait, at one server and at two', async ({ expect }) => {
    for (const at of [one, other]) {
      const asked = question();
      const answer = thinking(asked, 'A hinge.', 'A hole.');
      const first = (await client(one)).chat(asked);
      await billed(asked);
      const second = (await client(at)).chat(asked);
      await billed(asked, 2);
      answer();
      const contents = [(await first.reply).content, (await second.reply).content];
      expect(contents.sort()).toEqual(['A hinge.', 'A hole.']);
    }
  });
});

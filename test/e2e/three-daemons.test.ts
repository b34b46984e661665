import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startHaproxy } from '../support/haproxy.ts';
import { type Document, vendorEnv } from '../support/product.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { postTool, type ServeProcess, startServe } from '../support/serve-process.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const token = 'a-token-of-three-daemons';

let redis: RedisServer;
let openAi: FakeVendor;
let anthropic: FakeVendor;
let project: TempProject;
let homes: TempProject[];
let env: Record<string, string>;
let daemons: ServeProcess[];

beforeAll(async () => {
  [redis, openAi, anthropic, project] = await Promise.all([
    startRedis(),
    startOpenAi(),
    startAnthropic(),
    tempProject(),
  ]);
  env = {
    ...vendorEnv({ openai: openAi.url, anthropic: anthropic.url }),
    POLYLOGUE_STORE: 'redis',
    REDIS_URL: redis.url,
    REDIS_PREFIX: `${randomUUID()}:`,
    REDIS_TIMEOUT_MS: '5000',
    DEFAULT_MODEL: 'gpt-5-mini',
    AI_MANAGER: 'rules',
    POLYLOGUE_TOKEN: token,
    LOG_LEVEL: 'error',
  };
  [homes, daemons] = [[], []];
  await Promise.all([start(), start(), start()]);
});

afterAll(async () => {
  await Promise.all(daemons.map(daemon => daemon.kill()));
  expect([...openAi.violations, ...anthropic.violations]).toEqual([]);
  await Promise.all([openAi.close(), anthropic.close(), project.dispose(), ...homes.map(home => home.dispose())]);
  await redis.dispose();
});

/** A daemon with a data folder of its own, as on another machine. */
async function start(): Promise<ServeProcess> {
  const home = await tempProject();
  homes.push(home);
  const daemon = await startServe({ root: project.root, home: home.root, env });
  daemons.push(daemon);
  return daemon;
}

it('a thread begun on A goes on on B, while C is killed', async () => {
  const [a, b] = daemons;
  const c = await start();
  const asked = (times: number) => expect.poll(() => openAi.requests.length).toBe(times);
  openAi.script({ answer: 'One.' }, { fault: 'hang_after_headers' }, { answer: 'Two.', delayMs: 200 });
  const first = await a!.post('chat', { prompt: 'First?' });
  const { continuation_id } = first.document.continuation_offer;
  const lost = c.post('chat', { prompt: 'Lost?' }).catch(error => error);
  await asked(2);
  const second = b!.post('chat', { prompt: 'Second?', continuation_id });
  await asked(3);
  await c.kill();
  expect((await second).document.content).toBe('Two.');
  expect(await lost).toBeInstanceOf(Error);
  expect(openAi.requests[2]!.canonical).toContain('One.');
  const read = await a!.post('threads', { action: 'read', continuation_id });
  expect(read.document.transcript.map((turn: Document) => turn.content)).toEqual(['First?', 'One.', 'Second?', 'Two.']);
});

it('a breaker opened on A is open on B', async () => {
  const [a, b] = daemons;
  const call = { prompt: 'Hello?', model: 'claude-sonnet-4-5' };
  anthropic.byDefault({ fault: 'status', status: 429, headers: { 'retry-after': '300' } });
  const first = await a!.post('chat', call);
  expect(first.document.error).toMatchObject({ code: 'API_ERROR', class: 'rate_limit' });
  const asked = anthropic.requests.length;
  expect(asked).toBeGreaterThan(0);
  // A daemon looks what the others found once a second, with any call; no call waits long for that.
  await wait(1_000);
  await b!.post('chat', { prompt: 'And the other vendor?' });
  const second = await b!.post('chat', call);
  expect(second.document.error).toMatchObject({ code: 'API_ERROR', next: expect.stringMatching(/\b(2\d\d|300) s\b/) });
  expect(anthropic.requests).toHaveLength(asked);
});

it('500 calls through the proxy while one daemon is killed: each ends once, none is lost', async () => {
  const [one, two, three] = daemons;
  const proxy = await startHaproxy([one!.port, two!.port, three!.port]);
  const before = openAi.requests.length;
  const numberIn = (text: string) => /call number (\d+)\b/.exec(text)?.[1];
  const answer = (number: unknown) => `Answer to ${number}.`;
  openAi.byDefault({
    delayMs: 30,
    chunks: 1,
    answer: ({ messages }) => answer(numberIn(messages.map(({ text }) => text).join(' '))),
  });
  const ends = new Map<number, Document>();
  let unanswered = 0;
  try {
    await inParallel(500, 40, async number => {
      const args = { prompt: `This is call number ${number}.` };
      const headers = { authorization: `Bearer ${token}`, 'idempotency-key': `call ${number}` };
      const send = () => postTool(proxy.url, 'chat', args, headers).catch(() => undefined);
      let reply = await send();
      // What no daemon said anything of, its caller sends again under the same name.
      for (; !reply?.document.tool_name && !reply?.document.status; reply = await send()) {
        unanswered += 1;
        await wait(50);
      }
      expect(ends.has(number)).toBe(false);
      ends.set(number, reply.document);
      if (ends.size === 150) await three!.kill();
    });
  } finally {
    await proxy.dispose();
  }
  expect(unanswered).toBeGreaterThan(0);
  expect(ends.size).toBe(500);
  const others = [...ends].filter(([number, { content }]) => content !== answer(number));
  expect(others.filter(([, { error }]) => error?.code !== 'INTERRUPTED')).toEqual([]);
  expect(others.length).toBeLessThan(60);
  const asked = openAi.requests.slice(before).map(({ canonical }) => numberIn(canonical));
  expect(asked.toSorted()).toEqual([...new Set(asked)].toSorted());
});

/** Runs the numbers from 0, so many at a time. */
async function inParallel(count: number, atOnce: number, run: (number: number) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < count) await run(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

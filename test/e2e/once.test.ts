import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Era, type McpSession, startSession } from '../support/mcp-session.ts';
import { type Document, vendorEnv } from '../support/product.ts';
import { seededRandom } from '../support/random.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { initializeParams, type RawServer, startRawServer } from './raw-server.ts';

let vendor: FakeVendor;
let project: TempProject;
let home: TempProject;
let sessions: McpSession[];
let servers: RawServer[];

beforeEach(async () => {
  [sessions, servers] = [[], []];
  [vendor, home] = await Promise.all([startOpenAi(), tempProject()]);
  project = await tempProject({ 'notes.md': 'The notes have one line.\n' });
});

afterEach(async () => {
  for (const session of sessions) await session.close();
  for (const server of servers) server.signal('SIGKILL');
  await Promise.all(servers.map(({ ended }) => ended));
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose(), home.dispose()]);
});

const place = () => ({
  root: project.root,
  home: home.root,
  env: { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', DETACHED_GRACE_SECONDS: '10' },
});

async function start(era: Era = 'legacy'): Promise<McpSession> {
  const session = await startSession(place(), era);
  sessions.push(session);
  return session;
}

/** A server whose client is a test: nothing of what it writes needs to be read. */
async function startRaw(): Promise<RawServer> {
  const server = startRawServer(place());
  servers.push(server);
  await server.request(1, 'initialize', initializeParams);
  server.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  return server;
}

const review = { name: 'chat', arguments: { prompt: 'Review the notes.', absolute_file_paths: ['notes.md'] } };
/** More of them where somebody asks for it: scripts/torture.ts. */
const rounds = Number(process.env.TORTURE_ROUNDS ?? 8);
const asked = (times: number) => expect.poll(() => vendor.requests.length).toBe(times);
/** The records of calls, as other processes see them. */
function records(): string {
  const db = new DatabaseSync(home.path('threads.sqlite'), { readOnly: true });
  try {
    return db
      .prepare("SELECT body FROM facts WHERE key LIKE 'call/%'")
      .all()
      .map(({ body }) => body)
      .join();
  } finally {
    db.close();
  }
}

const again = (session: McpSession): Promise<Document> => session.call(review.name, review.arguments);

describe('a call that is sent again to a new server', () => {
  it('after its stream was cut before the vendor answered: one request, and its answer', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'Fine.', when: promise });
    const first = await startRaw();
    void first.request(2, 'tools/call', review);
    await asked(1);
    first.end();
    await expect.poll(records).toMatch(/lost\W+true/);
    const reply = again(await start());
    await expect.poll(records).toContain('wantedAt');
    resolve();
    expect(await reply).toMatchObject({ isError: false, content: 'Fine.', metadata: { replayed: true } });
    expect(await first.ended).toMatchObject({ code: 0 });
    expect(vendor.requests).toHaveLength(1);
  });

  it('after its stream was cut while the vendor answered, in the other era', async () => {
    const chunks = {
      answer: 'A long answer that comes in many pieces, one after the other.',
      chunks: 6,
      chunkDelayMs: 350,
    };
    vendor.script(chunks);
    const first = await startRaw();
    void first.request(2, 'tools/call', review);
    await asked(1);
    await new Promise(resolve => setTimeout(resolve, 300));
    first.end();
    expect(await first.ended).toMatchObject({ code: 0 });
    expect(await again(await start('modern'))).toMatchObject({ content: chunks.answer });
    expect(vendor.requests).toHaveLength(1);
  });

  it('that was the last word of its client, before anything had been opened: one request, and its answer', async () => {
    vendor.script({ answer: 'Fine.' });
    const first = await startRaw();
    void first.request(2, 'tools/call', review);
    first.end();
    expect(await first.ended).toMatchObject({ code: 0 });
    expect(await again(await start())).toMatchObject({ isError: false, content: 'Fine.' });
    expect(vendor.requests).toHaveLength(1);
  });

  it('after its file was edited: the vendor sees the new one', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'Fine.', when: promise, delayMs: 300 }, { answer: 'Better.' });
    const first = await startRaw();
    void first.request(2, 'tools/call', review);
    await asked(1);
    first.end();
    resolve();
    await first.ended;
    await project.write('notes.md', 'The notes have another line.\n');
    expect(await again(await start())).toMatchObject({ content: 'Better.' });
    expect(vendor.requests[1]!.canonical).toContain('another line');
  });

  it('after its reply arrived: a new call', async () => {
    vendor.script({ answer: 'Fine.' }, { answer: 'Still fine.' });
    const first = await start();
    expect((await again(first)).content).toBe('Fine.');
    await first.close();
    expect((await again(await start())).content).toBe('Still fine.');
    expect(vendor.requests).toHaveLength(2);
  });

  it('under a name of its own, by two servers at once: one request', async () => {
    vendor.script({ answer: 'Fine.', delayMs: 800 });
    const both = await Promise.all([startRaw(), startRaw()]);
    const named = { ...review, _meta: { idempotencyKey: 'the-review' } };
    const replies = await Promise.all(both.map(server => server.request(2, 'tools/call', named)));
    for (const { result } of replies) expect(JSON.parse(result.content[0].text).content).toBe('Fine.');
    expect(vendor.requests).toHaveLength(1);
  });
});

describe('a call whose server is killed', () => {
  it('before the vendor answered, is told to be interrupted; the call after that asks anew', async () => {
    vendor.script({ fault: 'hang_after_headers' }, { answer: 'Fine.' });
    const first = await startRaw();
    void first.request(2, 'tools/call', review);
    await asked(1);
    first.signal('SIGKILL');
    await first.ended;
    const next = await start();
    expect(await again(next)).toMatchObject({ status: 'interrupted', isError: true, error: { code: 'INTERRUPTED' } });
    expect(vendor.requests).toHaveLength(1);
    expect(await again(next)).toMatchObject({ isError: false, content: 'Fine.' });
    expect(vendor.requests).toHaveLength(2);
  });

  it('at any moment, costs one request for as long as the answer can be had', {
    timeout: 60_000 + rounds * 10_000,
  }, async () => {
    const random = seededRandom(20_261_122);
    const outcomes = new Set<string>();
    vendor.byDefault({ answer: 'Asked again.' });
    for (let round = 0; round < rounds; round++) {
      const prompt = `Round ${round}.`;
      const before = vendor.requests.length;
      vendor.script({ answer: `Answer ${round}.`, delayMs: 60 });
      const first = await startRaw();
      const call = { name: 'chat', arguments: { prompt } };
      const reply = first.request(2, 'tools/call', call).then(() => 'arrived' as const);
      await asked(before + 1);
      const moment = new Promise<'killed'>(resolve => setTimeout(() => resolve('killed'), random.fraction() * 160));
      const arrived = (await Promise.race([reply, moment])) === 'arrived';
      first.signal('SIGKILL');
      await first.ended;
      if (arrived) continue;
      const next = await start();
      const told = await next.call('chat', call.arguments);
      outcomes.add(told.status);
      if (told.isError) expect(told).toMatchObject({ status: 'interrupted', error: { code: 'INTERRUPTED' } });
      else expect(told.content).toBe(`Answer ${round}.`);
      expect(vendor.requests.length).toBe(before + 1);
      await next.close();
    }
    expect(outcomes.size).toBeGreaterThan(0);
  });
});

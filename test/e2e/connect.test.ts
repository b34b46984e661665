import { readFile, stat } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { isRunning, type McpSession, startSession } from '../support/mcp-session.ts';
import { type Document, vendorEnv } from '../support/product.ts';
import { freePort } from '../support/redis-server.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { initializeParams, startRawServer } from './raw-server.ts';

let vendor: FakeVendor;
let home: TempProject;
let projects: [TempProject, TempProject];
let env: Record<string, string>;
let sessions: McpSession[];

beforeAll(async () => {
  [vendor, home] = await Promise.all([startOpenAi(), tempProject()]);
  projects = await Promise.all([
    tempProject({ 'notes.md': 'The notes of one.\n' }),
    tempProject({ 'notes.md': 'The notes of two.\n' }),
  ]);
  env = {
    ...vendorEnv({ openai: vendor.url }),
    // A home directory is nobody's project.
    HOME: home.root,
    POLYLOGUE_PORT: String(await freePort()),
    DEFAULT_MODEL: 'gpt-5-mini',
    AI_MANAGER: 'rules',
    DETACHED_GRACE_SECONDS: '1',
  };
});

beforeEach(() => {
  sessions = [];
});

afterEach(async () => {
  await Promise.all(sessions.map(session => session.close()));
});

afterAll(async () => {
  await endDaemon('SIGTERM');
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), home.dispose(), ...projects.map(project => project.dispose())]);
});

const place = (project: TempProject, args: string[] = []) => ({
  root: project.root,
  home: home.root,
  env,
  args: ['connect', ...args],
});

async function connect(project: TempProject, era: 'legacy' | 'modern' = 'legacy'): Promise<McpSession> {
  const session = await startSession(place(project), era);
  sessions.push(session);
  return session;
}

/** The daemon that bridges started, by its process; 0 where none runs. */
async function running(): Promise<number> {
  const text = await readFile(home.path(`daemon/${env.POLYLOGUE_PORT}.pid`), 'utf8').catch(() => '0');
  return isRunning(Number(text)) ? Number(text) : 0;
}

async function endDaemon(signal: NodeJS.Signals): Promise<void> {
  const pid = await running();
  expect(pid).toBeGreaterThan(0);
  process.kill(pid, signal);
  while (isRunning(pid)) await wait(20);
}

const ask = (session: McpSession, path: string): Promise<Document> =>
  session.call('chat', { prompt: 'What do the notes say?', absolute_file_paths: [path] });

it('two clients that come at once start one daemon and share it, each within its own root', async () => {
  const [one, two] = await Promise.all([connect(projects[0], 'legacy'), connect(projects[1], 'modern')]);
  const log = await readFile(home.path('logs/daemon.log'), 'utf8');
  expect(log.match(/listening on/g)).toHaveLength(1);
  expect(log).not.toContain('EADDRINUSE');
  const told = await Promise.all([one.call('version'), two.call('version')]);
  for (const [index, { content }] of told.entries()) expect(content).toContain(`readable: ${projects[index]!.root}\n`);

  await ask(one, 'notes.md');
  expect(vendor.requests.at(-1)!.canonical).toContain('The notes of one.');
  await ask(two, 'notes.md');
  expect(vendor.requests.at(-1)!.canonical).toContain('The notes of two.');
  const asked = vendor.requests.length;
  for (const [session, other] of [
    [one, projects[1]],
    [two, projects[0]],
  ] as const) {
    const refused = await ask(session, other.path('notes.md'));
    expect(refused).toMatchObject({ isError: true, error: { code: 'SECURITY' } });
  }
  expect(vendor.requests).toHaveLength(asked);

  const threads = await Promise.all([one, two].map(session => session.call('threads', { action: 'list' })));
  for (const { threads: own } of threads) expect(own).toHaveLength(1);
});

it('the daemon outlives its clients; its token is for its user alone', async () => {
  const one = await connect(projects[0]);
  const before = await running();
  await one.close();
  expect(before).toBeGreaterThan(0);
  const tools = `http://127.0.0.1:${env.POLYLOGUE_PORT}/api/tools`;
  expect((await fetch(tools)).status).toBe(401);
  const token = (await readFile(home.path('daemon.token'), 'utf8')).trim();
  expect((await stat(home.path('daemon.token'))).mode & 0o777).toBe(0o600);
  expect((await fetch(tools, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
  await connect(projects[1]);
  expect(await running()).toBe(before);
});

it('says what is wrong and ends where it can’t connect', async () => {
  await connect(projects[0]);
  const other = { ...place(projects[0], ['--running']), env: { ...env, POLYLOGUE_PORT: String(await freePort()) } };
  const wrongToken = { ...place(projects[0]), env: { ...env, POLYLOGUE_TOKEN: 'not-the-token-it-knows' } };
  const elsewhere = { ...place(projects[0]), home: projects[0].path('.other-home') };
  const misnamed = place(projects[0], ['--url', 'ftp://127.0.0.1']);
  const ends = [other, wrongToken, misnamed, elsewhere].map(where => startRawServer(where).ended);
  const [alone, stranger, misled, suspicious] = await Promise.all(ends);
  expect(suspicious).toMatchObject({
    code: 1,
    errors: expect.stringContaining('does not belong to this data directory'),
  });
  expect(alone).toMatchObject({
    code: 1,
    errors: expect.stringMatching(/cannot be reached: .*ECONNREFUSED.*\n.*polylogue serve/),
  });
  expect(stranger).toMatchObject({ code: 1, errors: expect.stringContaining('Set POLYLOGUE_TOKEN') });
  expect(misled).toMatchObject({ code: 2, errors: expect.stringContaining('--url takes') });
});

it('ends in order at the end of input and on a signal, and writes nothing but messages', async () => {
  await connect(projects[0]);
  const hows = ['end of input', 'SIGTERM'] as const;
  await Promise.all(
    hows.map(async how => {
      const bridge = startRawServer(place(projects[0]));
      await bridge.request(1, 'initialize', initializeParams);
      bridge.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\nno JSON\n');
      await bridge.request(2, 'tools/list', {});
      if (how === 'SIGTERM') bridge.signal(how);
      else bridge.end();
      expect(await bridge.ended).toMatchObject({ code: 0, signal: null });
      expect(bridge.lines.map(line => JSON.parse(line).id)).toEqual([1, null, 2]);
    }),
  );
});

it('clients of both eras do not notice that the daemon was told to stop and started anew', async () => {
  const both = await Promise.all([connect(projects[0], 'legacy'), connect(projects[1], 'modern')]);
  const asked = vendor.requests.length;
  vendor.byDefault({ answer: 'Told to stop, and done.', delayMs: 600 });
  const calls = both.map(session => ask(session, 'notes.md'));
  await expect.poll(() => vendor.requests.length).toBe(asked + 2);
  await endDaemon('SIGTERM');
  vendor.byDefault({ answer: 'Fine.' });
  const replies = await Promise.all(calls);
  for (const { content } of replies) expect(content).toBe('Told to stop, and done.');
  const later = both.map((session, index) => {
    const { continuation_id } = replies[index].continuation_offer;
    return session.call('chat', { prompt: 'Go on.', continuation_id });
  });
  for (const { content } of await Promise.all(later)) expect(content).toBe('Fine.');
  expect(await running()).toBeGreaterThan(0);
  expect(vendor.requests).toHaveLength(asked + 4);
});

it('a call whose daemon crashed is answered once another one is there', async () => {
  const session = await connect(projects[0]);
  const asked = vendor.requests.length;
  vendor.script({ fault: 'hang_after_headers' });
  const call = ask(session, 'notes.md');
  await expect.poll(() => vendor.requests.length).toBe(asked + 1);
  await endDaemon('SIGKILL');
  expect(await call).toMatchObject({ isError: true, error: { code: 'INTERRUPTED' } });
  expect(vendor.requests).toHaveLength(asked + 1);
  expect(await ask(session, 'notes.md')).toMatchObject({ isError: false });
});

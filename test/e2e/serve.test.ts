import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDaemon } from '../support/daemon-process.ts';
import { connectHttp } from '../support/http-session.ts';
import { type Era, serverCommand, startSession } from '../support/mcp-session.ts';
import { type Document, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

let vendor: FakeVendor;
let project: TempProject;
let env: Record<string, string>;
const homes: TempProject[] = [];

beforeAll(async () => {
  [vendor, project] = await Promise.all([startOpenAi(), tempProject()]);
  env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', DETACHED_GRACE_SECONDS: '1' };
});

afterAll(async () => {
  // The doctor looks whether the address has /responses.
  expect(vendor.violations).toEqual(['POST /v1/responses: 400 you must provide a model parameter']);
  await Promise.all([vendor.close(), project.dispose(), ...homes.map(home => home.dispose())]);
});

async function newHome(): Promise<string> {
  const home = await tempProject();
  homes.push(home);
  return home.root;
}

const start = async (home: string, more: Record<string, string> = {}, args: string[] = []) =>
  startDaemon({ root: project.root, home, env: { ...env, ...more }, args });

function polylogue(home: string, ...args: string[]): Promise<{ code: number; out: string }> {
  const { command, args: line, cwd, env: variables } = serverCommand({ root: project.root, home, env, args });
  return new Promise(resolve => {
    execFile(command, line, { cwd, env: variables }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, out: stdout + stderr });
    });
  });
}

const post = (url: string, prompt: string) =>
  fetch(`${url}/api/tools/chat`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ prompt }),
  });

describe('polylogue serve', () => {
  it('tells of itself in its data folder, and leaves nothing there when it ends', async () => {
    const home = await newHome();
    expect(await polylogue(home, 'status')).toMatchObject({
      code: 1,
      out: expect.stringContaining('No daemon is running'),
    });
    const daemon = await start(home);
    const port = new URL(daemon.url).port;
    expect(await readFile(join(home, 'daemon', `${port}.pid`), 'utf8')).toBe(`${daemon.pid}\n`);
    const { code, out } = await polylogue(home, 'status', '--json');
    expect([code, JSON.parse(out)]).toMatchObject([
      0,
      { daemons: [{ pid: daemon.pid, url: daemon.url, state: 'running', answer: 'ready', sessions: 0 }] },
    ]);
    expect((await polylogue(home, 'status')).out).toMatch(/ready[\s\S]*process \d+/);
    daemon.signal('SIGTERM');
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
    expect(await readdir(join(home, 'daemon'))).toEqual([]);
  });

  it('tells of jobs, for which no client waits, as what runs', async () => {
    const home = await newHome();
    const daemon = await start(home, { CALL_PATIENCE_SECONDS: '1' });
    const client = await connectHttp(daemon.url, 'legacy');
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'At last.', when: promise });
    const { job_id } = await client.call('chat', { prompt: 'Take your time.' });
    // It tells of itself every ten seconds, and at once when it is to read its settings again.
    daemon.signal('SIGHUP');
    const told = () => readFile(join(home, 'daemon', `${new URL(daemon.url).port}.json`), 'utf8');
    await expect.poll(told).toMatch(/"jobs_running":1\b/);
    expect((await polylogue(home, 'status')).out).toContain('0 calls and 1 jobs running');
    resolve();
    expect(await client.call('job', { job_id, wait_ms: 10_000 })).toMatchObject({ content: 'At last.' });
    await client.close();
    daemon.signal('SIGTERM');
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
  });

  it('makes itself a token that connect, status, doctor and the dashboard lead to, unless it is told not to', async () => {
    const home = await newHome();
    const file = join(home, 'daemon.token');
    const daemon = await startDaemon({ root: project.root, home, env, keepsToken: true });
    expect(daemon.log()).toContain(file);
    const token = (await readFile(file, 'utf8')).trim();
    expect([token.length, (await stat(file)).mode & 0o777]).toEqual([43, 0o600]);
    expect(daemon.log()).not.toContain(token);
    const asked = (headers = {}) => fetch(`${daemon.url}/api/tools`, { headers }).then(({ status }) => status);
    expect([await asked(), await asked({ Authorization: `Bearer ${token}` })]).toEqual([401, 200]);
    expect(await (await fetch(`${daemon.url}/login`)).text()).toContain('polylogue status');
    for (const command of ['status', 'doctor']) expect((await polylogue(home, command)).out, command).toContain(file);
    // Named by its URL, too, a daemon of this data folder gets its token.
    const named = { ...env, POLYLOGUE_PORT: new URL(daemon.url).port };
    for (const flags of [['--url', daemon.url], ['--running']]) {
      const session = await startSession({ root: project.root, home, env: named, args: ['connect', ...flags] });
      expect((await session.call('version')).isError).toBe(false);
      await session.close();
    }
    daemon.signal('SIGTERM');
    expect(await daemon.ended).toMatchObject({ code: 0 });
    const open = await start(home);
    expect((await fetch(`${open.url}/api/tools`)).status).toBe(200);
    open.signal('SIGTERM');
    expect(await open.ended).toMatchObject({ code: 0 });

    const both = await polylogue(home, 'serve', '--port', '0', '--token', token, '--no-token');
    expect([both.code, both.out]).toEqual([2, expect.stringContaining('--no-token contradicts')]);
    await writeFile(file, 'short');
    const short = await polylogue(home, 'serve', '--port', '0');
    expect([short.code, short.out]).toEqual([
      2,
      expect.stringMatching(/daemon\.token" could be guessed[\s\S]*delete the file/),
    ]);
    await rm(file);
    await mkdir(file);
    const unreadable = await polylogue(home, 'serve', '--port', '0');
    expect([unreadable.code, unreadable.out]).toEqual([
      2,
      expect.stringMatching(/daemon\.token" cannot be read: EISDIR/),
    ]);
  });

  it('is found dead when it was killed', async () => {
    const home = await newHome();
    const daemon = await start(home);
    daemon.signal('SIGKILL');
    await daemon.ended;
    const { code, out } = await polylogue(home, 'status');
    expect([code, out]).toEqual([1, expect.stringContaining('its process is gone')]);
  });

  it('refuses what it can’t do safely, in a sentence', async () => {
    const home = await newHome();
    await expect(start(home, {}, ['--host', '0.0.0.0'])).rejects.toThrow(/ended with 2[\s\S]*POLYLOGUE_TOKEN/);
    await expect(start(home, { POLYLOGUE_TOKEN: 'short' })).rejects.toThrow(/ended with 2[\s\S]*at least 16/);
    await expect(start(home, { POLYLOGUE_TOKENS_FILE: join(home, 'none.json') })).rejects.toThrow(/cannot be read/);
    const daemon = await start(home);
    const { port } = new URL(daemon.url);
    await expect(start(home, {}, ['--port', port])).rejects.toThrow(/ended with 2[\s\S]*already in use/);
    daemon.signal('SIGTERM');
    expect(await daemon.ended).toMatchObject({ code: 0 });
  });

  it('reads the file of tokens again at SIGHUP and goes on, with a good one and with a bad one', async () => {
    const home = await newHome();
    const file = join(home, 'tokens.json');
    const write = (name: string) =>
      writeFile(file, JSON.stringify({ tokens: [{ name, token: `the-token-of-${name}-1` }] }), { mode: 0o600 });
    await write('ann');
    const daemon = await start(home, { POLYLOGUE_TOKENS_FILE: file });
    const isIn = async (name: string) => {
      const headers = { Authorization: `Bearer the-token-of-${name}-1` };
      return (await fetch(`${daemon.url}/api/tools`, { headers })).status;
    };
    await write('bob');
    daemon.signal('SIGHUP');
    await expect.poll(() => daemon.log(), { timeout: 15_000 }).toContain('ann is out, bob is new');
    expect([await isIn('ann'), await isIn('bob')]).toEqual([401, 200]);
    await writeFile(file, '{"tokens": [');
    daemon.signal('SIGHUP');
    await expect.poll(() => daemon.log(), { timeout: 15_000 }).toContain('The tokens of before hold on');
    expect(await isIn('bob')).toBe(200);
    const told = () => readFile(join(home, 'daemon', `${new URL(daemon.url).port}.json`), 'utf8');
    await expect.poll(told, { timeout: 15_000 }).toContain('tokens_problem');
    expect((await polylogue(home, 'status')).out).toMatch(/tokens: The tokens of before hold on: .*it is no JSON/);
    daemon.signal('SIGTERM');
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
  });

  it('sheds the calls that a small heap would not bear, at once and by a typed error, and answers the others', async () => {
    const home = await newHome();
    const daemon = await start(home, { NODE_OPTIONS: '--max-old-space-size=200', CALL_PATIENCE_SECONDS: '110' });
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.byDefault({ answer: 'Borne.', when: promise });
    const statuses: number[] = [];
    const calls = Array.from({ length: 100 }, async (_, at) => {
      const response = await post(daemon.url, `Call ${at}`);
      statuses.push(response.status);
      const reply: Document = await response.json();
      return { retryAfter: response.headers.get('retry-after'), reply };
    });
    // 68 MB are for calls, and one client has two thirds of them; nothing is answered yet.
    await expect.poll(() => statuses.length, { timeout: 60_000 }).toBeGreaterThan(50);
    expect(new Set(statuses)).toEqual(new Set([503]));
    resolve();
    const all = await Promise.all(calls);
    const shed = all.filter(({ reply }) => reply.status === 'error');
    expect(shed.length).toBeGreaterThan(50);
    for (const { retryAfter, reply } of shed) {
      expect(retryAfter).toBe('5');
      expect(reply.error).toMatchObject({ class: 'over_capacity', retryable: true, retry_after_s: 5 });
    }
    expect(all.length - shed.length).toBeGreaterThan(40);
    vendor.byDefault({});
    daemon.signal('SIGTERM');
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
  });

  it('drops none of 50 calls under way when it is told to stop, and takes no new one', async () => {
    const home = await newHome();
    // All of them run at the same time, those without a session on one caller's places, however long the machine takes.
    const more = { POLYLOGUE_SESSION_CALLS: '64', CALL_PATIENCE_SECONDS: '110', POLYLOGUE_DRAIN_SECONDS: '110' };
    const daemon = await start(home, more);
    const eras: Era[] = ['legacy', 'modern'];
    const clients = await Promise.all(eras.map(era => connectHttp(daemon.url, era)));
    const before = vendor.requests.length;
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.byDefault({ answer: 'Drained.', when: promise });
    const ask = async (at: number) => {
      const client = clients[at % 3];
      const prompt = `Call ${at}`;
      return client ? client.call('chat', { prompt }) : (await post(daemon.url, prompt)).json();
    };
    const calls = Array.from({ length: 50 }, (_, at) => ask(at));
    await expect.poll(() => vendor.requests.length, { timeout: 60_000 }).toBe(before + 50);
    daemon.signal('SIGTERM');
    await expect.poll(async () => (await fetch(`${daemon.url}/readyz`)).status).toBe(503);
    const late = await post(daemon.url, 'Too late.');
    expect([late.status, await late.json()]).toMatchObject([
      503,
      { error: { class: 'over_capacity', retryable: true } },
    ]);
    resolve();
    for (const reply of await Promise.all(calls))
      expect(reply).toMatchObject({ content: expect.stringContaining('Drained.') });
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
    expect(vendor.requests.length).toBe(before + 50);
    vendor.byDefault({});
    const files = await readdir(home);
    const wal = files.find(name => name.endsWith('-wal'));
    expect(wal === undefined ? 0 : (await stat(join(home, wal))).size).toBe(0);
  });

  it('ends at once when it is told twice', async () => {
    const daemon = await start(await newHome());
    const before = vendor.requests.length;
    vendor.script({ fault: 'hang_after_headers' });
    const lost = post(daemon.url, 'Hang.').catch(error => error);
    await expect.poll(() => vendor.requests.length).toBe(before + 1);
    daemon.signal('SIGTERM');
    await expect.poll(() => daemon.log()).toContain('stopping');
    daemon.signal('SIGTERM');
    expect(await daemon.ended).toMatchObject({ code: 1 });
    expect(await lost).toBeInstanceOf(Error);
  });

  it('answers calls that outlast the time to end with an error that says to come again', async () => {
    const daemon = await start(await newHome(), { POLYLOGUE_DRAIN_SECONDS: '1' });
    const before = vendor.requests.length;
    vendor.script({ fault: 'hang_after_headers' });
    const ended = post(daemon.url, 'Hang on.');
    await expect.poll(() => vendor.requests.length).toBe(before + 1);
    daemon.signal('SIGTERM');
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
    const reply = await ended;
    const error = { class: 'shutting_down', retryable: true, retry_after_s: 5 };
    expect([reply.status, await reply.json()]).toMatchObject([503, { error }]);
  });
});

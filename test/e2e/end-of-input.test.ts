import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { isRunning, type ServerPlace, serverCommand } from '../support/mcp-session.ts';
import { type Document, vendorEnv } from '../support/product.ts';
import { freePort } from '../support/redis-server.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { initializeParams, startRawServer } from './raw-server.ts';

let vendor: FakeVendor;
let project: TempProject;
let home: TempProject;
let env: Record<string, string>;

beforeAll(async () => {
  [vendor, project, home] = await Promise.all([startOpenAi(), tempProject({ 'notes.md': 'Notes.\n' }), tempProject()]);
  env = {
    ...vendorEnv({ openai: vendor.url }),
    HOME: home.root,
    DEFAULT_MODEL: 'gpt-5-mini',
    AI_MANAGER: 'rules',
    POLYLOGUE_PORT: String(await freePort()),
    DETACHED_GRACE_SECONDS: '1',
  };
});

afterAll(async () => {
  const daemon = await daemonPid();
  if (daemon !== undefined) {
    process.kill(daemon, 'SIGTERM');
    await vi.waitUntil(() => !isRunning(daemon), { timeout: 30_000, interval: 20 });
  }
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose(), home.dispose()]);
});

beforeEach(() => vendor.byDefault({ answer: 'The answer.', delayMs: 1_500 }));

/** The daemon that bridges started, by its process; undefined where none runs. */
async function daemonPid(): Promise<number | undefined> {
  const pid = Number(await readFile(home.path(`daemon/${env.POLYLOGUE_PORT}.pid`), 'utf8').catch(() => '0'));
  return pid > 0 && isRunning(pid) ? pid : undefined;
}

const chat = (id: number, args: object) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'chat', arguments: args },
});

const greeting = [
  { jsonrpc: '2.0', id: 1, method: 'initialize', params: initializeParams },
  { jsonrpc: '2.0', method: 'notifications/initialized' },
];

/** As `printf … | polylogue` does it: all is written at once, the input is closed, and what comes is read to its end. */
async function piped(messages: readonly object[], place: Partial<ServerPlace> = {}, lastEnd = '\n') {
  const { command, args, cwd, env: own } = serverCommand({ root: project.root, home: home.root, env, ...place });
  const child = spawn(command, args, { cwd, env: own, stdio: ['pipe', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  child.stdin.end(messages.map(message => JSON.stringify(message)).join('\n') + lastEnd);
  let output = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) output += chunk;
  const [code] = await closed;
  const read: Document[] = output
    .trim()
    .split('\n')
    .map(line => JSON.parse(line));
  const reply = (id: number): Document => JSON.parse(read.find(each => each.id === id)?.result.content[0].text ?? '{}');
  return { code, read, reply };
}

describe.each([
  // A job would be of no use to a client that can't come back for it: patience shorter than the vendor's answer changes nothing.
  ['a server for each call', { more: { CALL_PATIENCE_SECONDS: '1' } }],
  ['the bridge to a daemon', { args: ['connect'] }],
])('%s', (name, { args, more }: { args?: string[]; more?: Record<string, string> }) => {
  const here = () => ({ root: project.root, home: home.root, env: { ...env, ...more }, args: args ?? [] });

  it('answers two calls whose input was closed at once, and a third process continues their thread', async () => {
    const asked = vendor.requests.length;
    const { code, read, reply } = await piped(
      [...greeting, chat(2, { prompt: `First of ${name}?` }), chat(3, { prompt: `Second of ${name}?` })],
      here(),
      '',
    );
    expect(code).toBe(0);
    expect(read.filter(({ id }) => id !== undefined).map(({ id }) => id)).toHaveLength(3);
    for (const id of [2, 3]) expect(reply(id)).toMatchObject({ content: 'The answer.' });
    expect(vendor.requests).toHaveLength(asked + 2);

    vendor.byDefault({ answer: 'Continued.' });
    const first = await piped([...greeting, chat(2, { prompt: 'Third?' })], here());
    const id = first.reply(2).continuation_offer.continuation_id;
    const next = await piped([...greeting, chat(2, { prompt: 'Fourth?', continuation_id: id })], here());
    expect(next.reply(2)).toMatchObject({ content: 'Continued.' });
    expect(JSON.stringify(vendor.requests.at(-1)?.body)).toContain('Third?');
  });

  it('answers what needs no vendor, whatever else the input holds', async () => {
    const listen = { jsonrpc: '2.0', id: 5, method: 'tools/list' };
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 3 } };
    const { code, read } = await piped([...greeting, listen, chat(3, { prompt: 'Cancelled?' }), cancel], here());
    expect(code).toBe(0);
    expect(read.find(({ id }) => id === 5)?.result.tools.length).toBeGreaterThan(10);
  });

  it('ends when nobody reads any more, though the vendor goes on', async () => {
    vendor.byDefault({ fault: 'hang_after_headers' });
    const asked = vendor.requests.length;
    const server = startRawServer(here());
    await server.request(1, 'initialize', initializeParams);
    server.write(`${JSON.stringify(chat(2, { prompt: `Nobody reads this of ${name}.` }))}\n`);
    await expect.poll(() => vendor.requests.length).toBe(asked + 1);
    server.end();
    server.deafen();
    expect(await server.ended).toMatchObject({ code: 0 });
    expect(isRunning(server.pid)).toBe(false);
  });
});

it('asks nobody who can no longer answer: roots of the client, and its approval', async () => {
  const capabilities = { roots: { listChanged: true }, elicitation: {} };
  const hello = { ...greeting[0], params: { ...initializeParams, capabilities } };
  const { code, read } = await piped([hello, greeting[1] ?? {}, chat(2, { prompt: 'Whose roots?' })], {
    env: { ...env, PROJECT_ROOT: '' },
  });
  expect(code).toBe(0);
  expect(read.find(({ id }) => id === 2)).toMatchObject({ result: expect.anything() });
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { isRunning, serverCommand } from '../support/mcp-session.ts';
import { type Document, vendorEnv } from '../support/product.ts';
import { freePort } from '../support/redis-server.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { waitUntil } from '../support/wait-until.ts';
import { initializeParams } from './raw-server.ts';

let vendor: FakeVendor;
let project: TempProject;
let home: TempProject;
let env: Record<string, string>;

beforeAll(async () => {
  [vendor, project, home] = await Promise.all([startOpenAi(), tempProject({ 'notes.md': 'One.\n' }), tempProject()]);
  const port = String(await freePort());
  const settings = { DEFAULT_MODEL: 'gpt-5-mini', AI_MANAGER: 'rules', DETACHED_GRACE_SECONDS: '20' };
  vendor.byDefault({ answer: 'One.' });
  env = { ...vendorEnv({ openai: vendor.url }), ...settings, HOME: home.root, POLYLOGUE_PORT: port };
});

afterAll(async () => {
  const daemon = await daemonPid();
  if (daemon > 0) process.kill(daemon, 'SIGKILL');
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose(), home.dispose()]);
});

/** The daemon that bridges started, by its process; 0 where none runs. */
async function daemonPid(): Promise<number> {
  const text = await readFile(home.path(`daemon/${env.POLYLOGUE_PORT}.pid`), 'utf8').catch(() => '0');
  return isRunning(Number(text)) ? Number(text) : 0;
}

/** As hosts do it: a server as a child of their own process group, behind two pipes; another one when it ended. */
const hostProgram = `
  const { spawn } = require('node:child_process');
  const [command, ...args] = process.argv.slice(1);
  const start = () => {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'] });
    const feed = chunk => child.stdin.write(chunk);
    child.stdin.on('error', () => {});
    process.stdin.on('data', feed);
    child.stdout.pipe(process.stdout, { end: false });
    process.stdout.write(JSON.stringify({ pid: child.pid }) + '\\n');
    child.on('close', () => { process.stdin.off('data', feed); start(); });
  };
  start();
`;

interface Host {
  /** Of the host, which is that of its process group too. */
  pid: number;
  /** Of the server that it has now. */
  server(): number;
  begin(): Promise<void>;
  chat(prompt: string, meta?: object): Promise<Document>;
  end(): Promise<void>;
}

/** A host in a process group of its own, until the end of the test; `args`: of the server. */
async function startHost({ onTestFinished }: TestContext, args: readonly string[] = []): Promise<Host> {
  const { command, args: own, cwd, env: all } = serverCommand({ root: project.root, home: home.root, env, args });
  const child = spawn(process.execPath, ['-e', hostProgram, command, ...own], {
    ...{ cwd, env: all, detached: true, stdio: ['pipe', 'pipe', 'ignore'] },
  });
  const { stdin, stdout, pid = 0 } = child;
  if (!stdin || !stdout) throw new Error('the host has no pipes');
  stdin.on('error', () => {});
  const waiting = new Map<unknown, (message: Document) => void>();
  const servers: number[] = [];
  createInterface({ input: stdout }).on('line', line => {
    const message: Document = JSON.parse(line);
    if (typeof message.pid === 'number') servers.push(message.pid);
    waiting.get(message.id)?.(message);
  });
  let ids = 0;
  const send = (message: object) => stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const ask = (method: string, params: object) =>
    new Promise<Document>(resolve => {
      const id = ++ids;
      waiting.set(id, resolve);
      send({ id, method, params });
    });
  const host: Host = {
    pid,
    server: () => servers.at(-1) ?? 0,
    async begin() {
      await ask('initialize', initializeParams);
      send({ method: 'notifications/initialized' });
    },
    async chat(prompt, _meta) {
      const args = { prompt, absolute_file_paths: ['notes.md'] };
      const { result } = await ask('tools/call', { name: 'chat', arguments: args, ...(_meta && { _meta }) });
      return { ...JSON.parse(result.content[0].text), isError: result.isError ?? false };
    },
    async end() {
      const closed = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
      kill(-pid, 'SIGKILL');
      await closed;
    },
  };
  onTestFinished(host.end);
  await host.begin();
  return host;
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // All of it ended before.
  }
}

let questions = 0;
const question = () => `What do the notes say? (${++questions})`;
const bills = (prompt: string) => vendor.requests.filter(({ canonical }) => canonical.includes(prompt)).length;
const billed = (prompt: string) => waitUntil('the vendor was asked', () => bills(prompt) === 1);
const gone = (pid: number) => waitUntil(`process ${pid} ended`, () => !isRunning(pid));

/** A vendor that answers the first request of a question when it is told to, and others at once. */
function thinking(prompt: string): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  vendor.script({ answer: 'One.', when: promise, about: prompt });
  return resolve;
}

interface Death {
  prompt: string;
  how(host: Host): void;
  args?: readonly string[];
  meta?: object;
}

/** A host that dies in mid-call. */
async function died(test: TestContext, { prompt, how, args, meta }: Death): Promise<Host> {
  const host = await startHost(test, args);
  void host.chat(prompt, meta);
  await billed(prompt);
  how(host);
  await gone(host.pid);
  return host;
}

const ofGroup = (signal: NodeJS.Signals) => (host: Host) => kill(-host.pid, signal);
const alone = (host: Host) => kill(host.pid, 'SIGKILL');
const ways: [how: string, args: readonly string[]][] = [
  ['a server for each host', []],
  ['the bridge to a daemon', ['connect']],
];

// They mostly wait, so they run at the same time.
describe.concurrent.each(ways)('after the death of a host with %s', (_way, args) => {
  it.for([
    ['all of its group got SIGINT', ofGroup('SIGINT')],
    ['all of its group got SIGKILL', ofGroup('SIGKILL')],
    ['it died alone, and its server sees the end of its input', alone],
  ] as const)('a new one that asks the same is answered: %s', async ([, how], test) => {
    const prompt = question();
    const answer = thinking(prompt);
    await died(test, { prompt, how, args });
    const again = (await startHost(test, args)).chat(prompt);
    setTimeout(answer, 1_000);
    test.expect(await again).toMatchObject({ isError: false, content: 'One.' });
    test.expect(bills(prompt)).toBeLessThanOrEqual(2);
  });

  it('a new one gets the answer that came meanwhile', async test => {
    const prompt = question();
    const answer = thinking(prompt);
    const { server } = await died(test, { prompt, how: alone, args });
    answer();
    await gone(server());
    const again = await (await startHost(test, args)).chat(prompt);
    test.expect(again).toMatchObject({ content: 'One.', metadata: { replayed: true } });
    test.expect(bills(prompt)).toBe(1);
  });
});

it.concurrent('a host whose server alone was killed is told so once, and then asked anew', async test => {
  const prompt = question();
  thinking(prompt);
  const host = await startHost(test);
  void host.chat(prompt);
  await billed(prompt);
  const server = host.server();
  kill(server, 'SIGKILL');
  await waitUntil('the host had another server', () => host.server() !== server);
  await host.begin();
  test.expect(await host.chat(prompt)).toMatchObject({ isError: true, error: { code: 'INTERRUPTED' } });
  test.expect(bills(prompt)).toBe(1);
  test.expect(await host.chat(prompt)).toMatchObject({ isError: false, content: 'One.' });
});

it.concurrent('a call with a name of its own is what it was, whoever sends it', async test => {
  const prompt = question();
  thinking(prompt);
  const meta = { idempotencyKey: 'notes-1' };
  await died(test, { prompt, how: ofGroup('SIGKILL'), meta });
  const again = await startHost(test);
  test.expect(await again.chat(prompt, meta)).toMatchObject({ isError: true, error: { code: 'INTERRUPTED' } });
  test.expect(bills(prompt)).toBe(1);
});

// After the others, which need the daemon.
it('a new host asks anew, too, where the daemon was killed with the old one', async test => {
  const prompt = question();
  thinking(prompt);
  await died(test, { prompt, how: ofGroup('SIGKILL'), args: ['connect'] });
  const daemon = await daemonPid();
  expect(daemon).toBeGreaterThan(0);
  kill(daemon, 'SIGKILL');
  await gone(daemon);
  const again = await startHost(test, ['connect']);
  expect(await again.chat(prompt)).toMatchObject({ isError: false, content: 'One.' });
  expect(bills(prompt)).toBe(2);
});

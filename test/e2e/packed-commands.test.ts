import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { type DaemonProcess, startDaemon } from '../support/daemon-process.ts';
import { type McpSession, startSession } from '../support/mcp-session.ts';
import { type PackedPackage, packedPackage } from '../support/packed-package.ts';
import { vendorEnv } from '../support/product.ts';
import { pseudoTerminal } from '../support/pseudo-terminal.ts';
import { freePort } from '../support/redis-server.ts';
import { geminiAnswers, standIn } from '../support/stand-in-cli.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

let packed: PackedPackage;
/** The user's home directory, with a data directory for each test. */
let user: TempProject;
let vendor: FakeVendor;
let tests = 0;
/** What ends after each test. */
let open: (() => Promise<unknown>)[];

beforeAll(async () => {
  [packed, user] = await Promise.all([packedPackage({ 'a.ts': 'const one = 1;\n' }), tempProject()]);
});
beforeEach(async () => {
  tests += 1;
  vendor = await startOpenAi();
  open = [];
});
afterEach(async () => {
  await Promise.all(open.map(end => end()));
  await vendor.close();
  expect(vendor.violations).toEqual([]);
});
afterAll(() => Promise.all([packed.dispose(), user.dispose()]));

const program = () => packed.path('node_modules/.bin/polylogue');
const home = () => user.path(`home-of-test-${tests}`);
const keys = () => ({ ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' });
const asked = () => vendor.requests.filter(({ dialect }) => dialect !== 'models');

const place = (env: Record<string, string> = {}) => ({
  cwd: packed.root,
  env: {
    PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
    HOME: user.root,
    POLYLOGUE_HOME: home(),
    ...(Object.keys(env).length > 0 ? env : keys()),
  },
});

/** The installed command, as a shell starts it, without a terminal. */
async function polylogue(args: string[], env?: Record<string, string>) {
  const run = promisify(execFile)(program(), args, place(env));
  run.child.stdin?.end();
  const { code = 0, stdout, stderr } = await run.catch(failed => failed);
  return { code, out: stdout, err: stderr };
}

async function daemon(env: Record<string, string> = {}): Promise<DaemonProcess> {
  const where = { root: packed.root, home: home(), env: { ...keys(), HOME: user.root, ...env }, program: program() };
  const started = await startDaemon({ ...where, keepsToken: true });
  open.push(() => {
    started.signal('SIGTERM');
    return started.ended;
  });
  return started;
}

/** What hosts start; it has no key, so that only a daemon can answer. */
async function session(args: string[], env: Record<string, string> = {}): Promise<McpSession> {
  const started = await startSession({
    root: packed.root,
    home: home(),
    env: { HOME: user.root, ...env },
    args,
    program: program(),
  });
  open.unshift(() => started.close());
  return started;
}

/** Answers every path with a page; resolves with its port. */
async function startWebServer(): Promise<number> {
  const page = createServer((_request, response) => void response.setHeader('content-type', 'text/html').end('Hello'));
  await once(page.listen(0, '127.0.0.1'), 'listening');
  open.push(async () => page.close());
  return (page.address() as AddressInfo).port;
}

it('"connect" finds the daemon of its data directory on whichever port', async () => {
  const { url, log } = await daemon();
  const { client, call, log: remarks } = await session(['connect']);
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('chat');
  expect(await call('chat', { prompt: 'Who answers?' })).toMatchObject({ isError: false, content: 'Answer 1.' });
  expect(remarks()).toBe('');
  const { daemons } = JSON.parse((await polylogue(['status', '--json'])).out);
  expect(daemons).toMatchObject([{ url, answer: 'ready' }]);
  expect(log()).not.toContain(':8765');
});

it('"status --port" asks the daemon on that port, of any data directory', async () => {
  const ports = { page: await startWebServer(), nothing: await freePort() };
  const { url, pid } = await daemon();
  const { port } = new URL(url);
  const status = async (at: string | number, env?: Record<string, string>) => {
    const [text, json] = await Promise.all(
      [[], ['--json']].map(more => polylogue(['status', '--port', `${at}`, ...more], env)),
    );
    expect(json?.code).toBe(text?.code);
    return { code: text?.code, text: text?.out, daemons: JSON.parse(json?.out ?? '').daemons };
  };
  expect(await status(port)).toMatchObject({
    code: 0,
    text: expect.stringMatching(`^${url}  ready\n  process ${pid}, `),
    daemons: [{ url, pid, port: Number(port), answer: 'ready' }],
  });
  expect(await status(port, { POLYLOGUE_HOME: user.path('elsewhere') })).toEqual({
    code: 0,
    text: `${url}  ready (not registered in this data directory)\n`,
    daemons: [{ url, answer: 'ready' }],
  });
  for (const [at, text] of [
    [ports.nothing, `No daemon answers at http://127.0.0.1:${ports.nothing}. "polylogue serve --port`],
    [ports.page, `The program that answers at http://127.0.0.1:${ports.page} is not a Polylogue daemon.`],
  ] as const)
    expect(await status(at)).toEqual({ code: 1, text: expect.stringContaining(text), daemons: [] });
});

it('"serve" on a port that is taken says so, and asks no vendor for its models', async () => {
  const port = `${await startWebServer()}`;
  expect(await polylogue(['serve', '--port', port], { ...keys(), MODEL_LISTS: 'auto' })).toEqual({
    code: 2,
    out: '',
    err: expect.stringMatching(/^polylogue: Cannot listen on [^\n]*\nRun "polylogue status" [^\n]*\n$/),
  });
  expect(vendor.requests).toEqual([]);
});

it('a read-only token reads the threads of its owner and changes none', async () => {
  const tokens = { ann: 'a-long-random-text-of-ann', reader: 'a-long-random-text-that-reads' };
  const entries = [
    { name: 'ann', token: tokens.ann },
    { name: 'reader', token: tokens.reader, owner: 'ann', read_only: true },
  ];
  await packed.write('tokens.json', JSON.stringify({ tokens: entries }));
  const { url } = await daemon({ POLYLOGUE_TOKENS_FILE: packed.path('tokens.json') });
  const [ann, reader] = await Promise.all(
    [tokens.ann, tokens.reader].map(token => session(['connect'], { POLYLOGUE_TOKEN: token })),
  );
  vendor.script({ answer: 'Alpha is one.' });
  const { continuation_id: id } = (await ann!.call('chat', { prompt: 'What is alpha?' })).continuation_offer;

  const { threads } = await reader!.call('threads', { action: 'list' });
  expect(threads).toMatchObject([{ continuation_id: id, turns: 2 }]);
  const read = await reader!.call('threads', { action: 'read', continuation_id: id });
  expect(read.transcript.at(-1).content).toBe('Alpha is one.');
  const visit = (path: string, init: RequestInit = {}) =>
    fetch(`${url}${path}`, { ...init, headers: { authorization: `Bearer ${tokens.reader}` } });
  expect(await (await visit(`/threads/${id}`)).text()).toContain('Alpha is one.');

  for (const change of [{ action: 'delete', confirm: true }, { action: 'fork' }])
    expect(await reader!.call('threads', { ...change, continuation_id: id })).toMatchObject({ isError: true });
  for (const action of ['delete', 'fork']) {
    const body = new URLSearchParams({ seq: '1' });
    expect((await visit(`/threads/${id}/${action}`, { method: 'POST', body })).status).toBe(403);
  }
  expect((await ann!.call('threads', { action: 'list' })).threads).toEqual(threads);
});

it('"clink" passes "model" on to the CLI, and refuses what is no name', async () => {
  const cli = await standIn('gemini');
  open.push(cli.dispose);
  cli.script(geminiAnswers('Something.'));
  const { call } = await session([], { ...cli.env, POLYLOGUE_TOOLSETS: 'core,agent' });
  const clink = (model: string) => call('clink', { prompt: 'Look', cli_name: 'gemini', model });
  expect(await clink('gemini-3-flash')).toMatchObject({ isError: false, content: 'Something.' });
  expect(cli.calls().map(({ args }) => args.join(' '))).toEqual([
    expect.stringMatching(/ --model gemini-3-flash( |$)/),
  ]);
  expect(await clink('--yolo')).toMatchObject({
    isError: true,
    content: expect.stringContaining('Name one of its models'),
  });
  expect(cli.calls()).toHaveLength(1);
});

it('"consensus" gives models the sides that flags name', async () => {
  const sides = ['--for', 'gpt-4.1', '--against', 'gpt-5.2', '--neutral', 'gpt-5-mini'];
  const { code, out, err } = await polylogue(['consensus', 'Split the parser?', ...sides]);
  expect({ code, err, experts: out.match(/^## Expert .*$/gm) }).toEqual({
    code: 0,
    err: '',
    experts: ['## Expert A: gpt-4.1 (for)', '## Expert B: gpt-5.2 (against)', '## Expert C: gpt-5-mini (neutral)'],
  });
  const told = asked().flatMap(({ parameters, messages }) => {
    const [, side] = /Your side: ([A-Z]+)\./.exec(messages.map(({ text }) => text).join()) ?? [];
    return side ? [`${side} ${/gpt-[\w.-]+/.exec(parameters)?.[0]}`] : [];
  });
  expect(told.toSorted()).toEqual(['AGAINST gpt-5.2', 'FOR gpt-4.1', 'NONE gpt-5-mini']);
});

it('"doctor" takes a server without /models as usable, and its model answers', async () => {
  vendor.byDefault({ fault: 'status', status: 404, on: 'models' });
  const env = { CUSTOM_API_URL: vendor.url, CUSTOM_API_KEY: 'test-key' };
  const withName = { ...env, CUSTOM_MODEL_NAME: 'mine' };
  const [named, nameless] = await Promise.all([withName, env].map(each => polylogue(['doctor'], each)));
  expect(named!.out).toMatch(/^ok +A custom endpoint +it answers, but has no list of models; 1 known here$/m);
  expect({ code: named!.code, warned: named!.out.match(/^(warn|FAIL).*$/gm) }).toEqual({ code: 0, warned: null });
  expect(nameless!.out).toMatch(/^warn +A custom endpoint .*\n +→ .*CUSTOM_MODEL_NAME/m);
  const answered = await polylogue(['ask', 'Hello'], withName);
  expect(answered).toMatchObject({ code: 0, out: expect.stringMatching(/^Answer \d\.\n$/) });
});

const markdown = '# Title\n\nSome **bold** text and `code`.\n\n- one\n- two';

it('"ask" shows progress, rendered Markdown and at last the cost on a terminal, and plain text elsewhere', async () => {
  const watched = Promise.withResolvers<void>();
  vendor.script({ answer: markdown, when: watched.promise }, { answer: markdown });
  const terminal = pseudoTerminal([program(), 'ask', 'What is it?'], place());
  await terminal.shows(/asking openai:gpt-5-mini/);
  watched.resolve();
  expect(await terminal.ended).toBe(0);
  expect(await terminal.shows(/ USD/)).toMatch(
    /\nSome bold text and code\.\n\n- one\n- two\nopenai:gpt-5-mini, \d+ tokens in, \d+ out, 0\.\d+ USD; continue with --continue last\n$/,
  );
  expect(terminal.raw()).toContain('\u001b[1mbold\u001b[22m');
  expect(await polylogue(['ask', 'What is it?'])).toEqual({ code: 0, out: `${markdown}\n`, err: '' });
});

it('"chat" holds a conversation on a terminal', async () => {
  vendor.script({ answer: 'Alpha is **one**.' }, { answer: 'Beta is two.' });
  const { type, shows, raw, ended } = pseudoTerminal([program(), 'chat'], place());
  await shows(/\/help shows the commands\.[\s\S]*> $/);
  expect(await type('What is alpha?\r', / USD\n> $/)).toMatch(/Alpha is one\.\nopenai:gpt-5-mini, .* 0\.\d+ USD\n> $/);
  expect(await type('/model gpt-5.2x\r', /\n> $/)).toMatch(/Unknown model "gpt-5\.2x"\.\nUse "gpt-5\.2"/);
  expect(await type('/model gpt-5.2\r', /\n> $/)).toContain('Model: gpt-5.2\n');
  expect(await type('/file b.ts\r', /\n> $/)).toContain(`There is no ${packed.path('b.ts')}.\n`);
  expect(await type('/file /etc/passwd\r', /\n> $/)).toContain('With the next question: /etc/passwd\n');
  expect(await type('What is it?\r', /\n> $/)).toContain('Name files inside the project');
  expect(await type('/file\r', /\n> $/)).toContain('With the next question: no file\n');
  expect(await type('/file a.ts:1-1\r', /\n> $/)).toContain(`With the next question: ${packed.path('a.ts:1-1')}\n`);
  await type('\u001b[A'.repeat(8), /What is alpha\?$/);
  expect(await type(' And beta?\r', / USD\n> $/)).toMatch(/Beta is two\.\nopenai:gpt-5\.2, /);
  expect(await type('/cost\r', /\n> $/)).toMatch(/Questions: 2, 0\.\d+ USD\n/);
  await type('\u0004', /\n$/);
  expect(await ended).toBe(0);
  expect(raw()).toContain('\u001b[1mone\u001b[22m');
  const [first, second, ...more] = asked();
  expect(more).toEqual([]);
  expect(first).toMatchObject({ parameters: expect.stringContaining('gpt-5-mini') });
  expect(second).toMatchObject({
    parameters: expect.stringContaining('gpt-5.2'),
    canonical: expect.stringMatching(/Alpha is \*\*one\*\*\.[\s\S]*What is alpha\? And beta\?[\s\S]*const one = 1;/),
  });
});

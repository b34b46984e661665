import { pathToFileURL } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/core/ports.ts';
import { manualClock } from '../../support/clock.ts';
import { testDaemon } from '../../support/daemon.ts';
import { type PipedClient, pipedClient } from '../../support/piped-client.ts';
import { type Document, testProduct } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import { webSocketTransport } from '../../support/web-socket-transport.ts';

let cwd: TempProject;
let one: TempProject;
let two: TempProject;
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  [cwd, one, two] = await Promise.all([
    tempProject({ '.git/HEAD': 'ref: refs/heads/main\n' }),
    tempProject({ 'a.md': 'one\n' }),
    tempProject({ 'sub dir/ü.md': 'two\n' }),
  ]);
});
afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});
afterAll(() => Promise.all([cwd, one, two].map(project => project.dispose())));

const address = (path: string) => pathToFileURL(path).href;

async function start(env: Record<string, string> = {}, clock?: Clock): Promise<PipedClient & { log: string[] }> {
  const running = await testProduct({
    root: cwd.root,
    env: { OFFLINE: 'true', PROJECT_ROOT: '', ...env },
    ...(clock && { clock }),
  });
  const client = await pipedClient(running);
  open.push(running, client);
  return { ...client, log: running.log };
}

/** Answers the next question for roots. */
async function list(client: PipedClient, roots: readonly unknown[]): Promise<void> {
  const { id } = await client.next(({ method }) => method === 'roots/list');
  client.send({ id, result: { roots } });
}

/** The project and what can be read, as a call tells them. */
async function projectOf(client: PipedClient): Promise<string> {
  const { result } = await client.ask('tools/call', { name: 'version', arguments: {} });
  const document: Document = JSON.parse(result.content[0].text);
  return /Project: .*/.exec(document.content)?.[0] ?? '';
}

const canRoots = { roots: { listChanged: true } };
const uri = (path: string) => ({ uri: address(path), name: 'a project' });
const only = (...roots: TempProject[]) =>
  `Project: ${roots[0]!.root}; readable: ${roots.map(({ root }) => root).join(', ')}`;

describe('a 2025 client that lists roots on standard input', () => {
  it('is asked at its first call, and works in the first of them', async () => {
    const client = await start();
    await client.begin(canRoots);
    await client.ask('tools/list');
    expect(client.heard.filter(({ method }) => method !== undefined)).toEqual([]);
    const calls = [projectOf(client), projectOf(client)];
    await list(client, [uri(two.root), uri(one.root), uri(two.path('sub dir'))]);
    const readable = [two.root, one.root, two.path('sub dir')].join(', ');
    expect(await Promise.all(calls)).toEqual(Array(2).fill(`Project: ${two.root}; readable: ${readable}`));
    const found = await client.ask('tools/call', {
      name: 'chat',
      arguments: {
        prompt: 'What is in it?',
        absolute_file_paths: ['sub dir/ü.md', one.path('a.md'), cwd.path('.git/HEAD')],
      },
    });
    const { metadata } = found.result._meta['polylogue/facts'];
    expect(JSON.stringify(metadata)).toContain('ü.md');
    expect(JSON.stringify(metadata)).toContain('outside');
    expect(client.heard.filter(({ method }) => method === 'roots/list')).toHaveLength(1);
  });

  it('is followed when they change, back to the git top level when there are none', async () => {
    const client = await start();
    await client.begin(canRoots);
    for (const [roots, project] of [
      [[uri(one.root)], only(one)],
      [[uri(two.root)], only(two)],
      [[], only(cwd)],
      [[uri(cwd.root)], only(cwd)],
    ] as const) {
      const call = projectOf(client);
      await list(client, roots);
      expect(await call).toBe(project);
      expect(await projectOf(client)).toBe(project);
      client.send({ method: 'notifications/roots/list_changed' });
    }
  });

  it('may name much that is no root: it is told of once, and the rest counts', async () => {
    const client = await start();
    await client.begin(canRoots);
    const bad = [
      { uri: 'vscode-remote://host/x' },
      { uri: 'file:///' },
      { uri: 'file:///home' },
      { uri: 'file:///root' },
      { uri: 'file:///proc' },
      { uri: 'file:///proc/self' },
      { uri: address(one.path('a.md')) },
      { uri: address(one.path('nowhere')) },
      { uri: `file://elsewhere${one.root}` },
      { uri: `${address(one.root)}%2F..` },
    ];
    for (const roots of [[...bad, uri(one.root)], bad]) {
      const call = projectOf(client);
      await list(client, roots);
      expect(await call).toBe(roots === bad ? only(cwd) : only(one));
      client.send({ method: 'notifications/roots/list_changed' });
    }
    expect(client.log.filter(line => line.includes('as a root:'))).toHaveLength(bad.length);
  });

  it.each<[string, (client: PipedClient) => Promise<void>]>([
    [
      'refuses',
      async client => {
        const { id } = await client.next(({ method }) => method === 'roots/list');
        client.send({ id, error: { code: -32_601, message: 'no' } });
      },
    ],
    [
      'answers nonsense',
      async client => {
        const { id } = await client.next(({ method }) => method === 'roots/list');
        client.send({ id, result: { roots: 'all' } });
      },
    ],
  ])('stays where it is when it %s', async (_how, answer) => {
    const client = await start();
    await client.begin(canRoots);
    const call = projectOf(client);
    await answer(client);
    expect(await call).toBe(only(cwd));
    expect(await projectOf(client)).toBe(only(cwd));
  });

  it('keeps a call waiting for two seconds at most, and is believed when it answers after all', async () => {
    const clock = manualClock();
    const client = await start({}, clock);
    await client.begin(canRoots);
    const call = projectOf(client);
    const { id } = await client.next(({ method }) => method === 'roots/list');
    await clock.advance(2_000);
    expect(await call).toBe(only(cwd));
    expect(await projectOf(client)).toBe(only(cwd));
    client.send({ id, result: { roots: [uri(one.root)] } });
    await expect.poll(() => projectOf(client), { timeout: 15_000 }).toBe(only(one));
  });

  it.each(['POLYLOGUE_ROOTS', 'CLAUDE_PROJECT_DIR'])('is not asked where %s says it', async name => {
    const client = await start({ [name]: two.root });
    await client.begin(canRoots);
    expect(await projectOf(client)).toBe(only(two));
    expect(client.heard.some(({ method }) => method === 'roots/list')).toBe(false);
  });

  it('is not asked before it is ready, nor when it told of none', async () => {
    const early = await start();
    await early.ask('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: canRoots,
      clientInfo: { name: 'x', version: '1' },
    });
    expect(await projectOf(early)).toBe(only(cwd));
    const plain = await start();
    await plain.begin();
    expect(await projectOf(plain)).toBe(only(cwd));
    for (const { heard } of [early, plain]) expect(heard.some(({ method }) => method === 'roots/list')).toBe(false);
  });
});

describe('a 2025 client of a daemon that lists roots', () => {
  const token = 'the-token-of-the-operator';
  const guest = 'the-token-of-the-guest';
  const answer = ({ content }: Document) => /Project: .*/.exec(content)?.[0];

  async function daemonOf(roots: readonly string[]) {
    const daemon = await testDaemon({
      root: cwd.root,
      env: { OFFLINE: 'true', PROJECT_ROOT: roots.join(':'), POLYLOGUE_TOKEN: token },
      tokens: [{ name: 'guest', token: guest, roots: [one.root] }],
    });
    open.push(daemon);
    return daemon;
  }

  it('works in them over HTTP, and in others once they changed', async () => {
    const daemon = await daemonOf([]);
    let lists = [address(one.root)];
    const session = await daemon.connect('legacy', { token, lists: () => lists });
    expect(answer(await session.call('version'))).toBe(only(one));
    lists = [address(two.root), address(one.root)];
    await session.client.sendRootsListChanged();
    expect(answer(await session.call('version'))).toBe(only(two, one));
    const declares = await daemon.connect('legacy', { token, lists: () => lists, root: one.root });
    expect(answer(await declares.call('version'))).toBe(only(one));
  });

  it('gets no more than its token allows, nor than the operator’s roots', async () => {
    const daemon = await daemonOf([one.root, two.root]);
    const projectAs = async (by: string, ...roots: string[]) => {
      const session = await daemon.connect('legacy', { token: by, lists: () => roots.map(address) });
      return answer(await session.call('version'));
    };
    expect(await projectAs(token, two.root, cwd.root)).toBe(only(two));
    expect(await projectAs(token, cwd.root)).toBe(only(one, two));
    expect(await projectAs(guest, two.root, one.root)).toBe(only(one));
    expect(await projectAs(guest, two.root)).toBe(only(one));
  });

  it.each([
    ['works in them over a WebSocket, unless it declares another', {}],
    ['works in them before the project that its bridge found by itself', { 'polylogue-root-guessed': 'true' }],
  ])('%s', async (_what, guessed) => {
    const daemon = await daemonOf([]);
    const headers = { Authorization: `Bearer ${token}`, 'Polylogue-Root': encodeURIComponent(one.root), ...guessed };
    const projectBy = async (given: Record<string, string>) => {
      const client = new Client({ name: 'x', version: '1' }, { capabilities: { roots: {} } });
      client.setRequestHandler('roots/list', () => ({ roots: [{ uri: address(two.root) }] }));
      await client.connect(webSocketTransport(`${daemon.url.replace('http', 'ws')}/ws`, given));
      const { content } = await client.callTool({ name: 'version', arguments: {} });
      await client.close();
      return JSON.stringify(content);
    };
    const isNamed = Object.keys(guessed).length === 0;
    expect(await projectBy(headers)).toContain(isNamed ? only(one) : only(two));
    if (isNamed) expect(await projectBy({ Authorization: headers.Authorization })).toContain(only(two));
  });
});

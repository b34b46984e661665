import { readFileSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import { helloFrames } from '../../support/frame-client.ts';
import { eraVersions } from '../../support/mcp-session.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

const tokenOf = (name: string) => `T0ken-of-${name}-0123456789`;
const named = (name: string, more: object = {}) => ({ name, token: tokenOf(name), ...more });

let project: TempProject;
let daemon: TestDaemon;

beforeAll(async () => {
  project = await tempProject({ 'a.md': 'a\n' });
  const given = [named('ann'), named('bob'), named('carl')];
  daemon = await testDaemon({ root: project.root, env: { OFFLINE: 'true', COMMS_LOG: 'true' }, tokens: given });
});

afterAll(async () => {
  await daemon.close();
  await project.dispose();
});

async function change(...tokens: object[]): Promise<void> {
  await writeFile(daemon.tokensFile, JSON.stringify({ tokens }));
  await daemon.daemon.reload();
}

const post = (name: string, body: object, headers: Record<string, string> = {}) =>
  daemon.ask('/mcp', {
    method: 'POST',
    token: tokenOf(name),
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify(body),
  });

/** A stream on which a 2026 client listens. */
const listen = (name: string) =>
  post(
    name,
    {
      jsonrpc: '2.0',
      id: 1,
      method: 'subscriptions/listen',
      params: {
        notifications: { resourceSubscriptions: ['polylogue://models'] },
        _meta: {
          'io.modelcontextprotocol/protocolVersion': eraVersions.modern,
          'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    },
    { 'MCP-Protocol-Version': eraVersions.modern, 'Mcp-Method': 'subscriptions/listen' },
  );

/** Resolves once a body is over, however it ends. */
const ended = (response: Response) =>
  response.text().then(
    () => 'over',
    () => 'cut',
  );

it('takes effect in what is open: other permissions from the next call on, and the end of what was taken back', async () => {
  const ws = `${daemon.url.replace('http', 'ws')}/ws`;
  const [ann, bob] = [
    await daemon.connect('legacy', { token: tokenOf('ann') }),
    await daemon.connect('legacy', { token: tokenOf('bob') }),
  ];
  const [annFrames, bobFrames] = [
    await helloFrames(ws, { token: tokenOf('ann') }),
    await helloFrames(ws, { token: tokenOf('bob'), session: 'of-bob' }),
  ];
  const streams = [await listen('ann'), await listen('bob')];
  expect(streams.map(({ status }) => status)).toEqual([200, 200]);
  const own = bob.sessionId() ?? '';
  expect(await ann.call('version')).toMatchObject({ isError: false });
  const before = daemon.daemon.load().sessions;

  await change(named('ann', { allow: ['chat'] }), named('carl'));
  expect(daemon.log.join('')).not.toContain('tokens');
  await expect(ended(streams[1] ?? Response.error())).resolves.toMatch(/over|cut/);
  expect(await bobFrames.closed).toMatchObject({ code: 4003 });
  // His session, the one that his client's stream makes anew, and his socket are gone; Ann's are not.
  await expect.poll(() => daemon.daemon.load().sessions, { timeout: 15_000 }).toBe(before - 2);
  expect((await post('bob', { jsonrpc: '2.0', id: 2, method: 'ping' }, { 'Mcp-Session-Id': own })).status).toBe(401);

  expect((await ann.call('version')).error).toMatchObject({ code: 'TOOL_NOT_FOUND' });
  expect((await ann.client.listTools()).tools.map(({ name }) => name)).toEqual(['chat']);
  annFrames.call('1', 'version');
  expect(await annFrames.result('1')).toMatchObject({ error: { code: 'TOOL_NOT_FOUND' } });

  // Who comes back finds nothing of before, even under his old name.
  await change(named('ann'), named('bob', { owner: 'somebody' }), named('carl'));
  expect((await ann.call('version')).isError).toBe(false);
  expect((await post('bob', { jsonrpc: '2.0', id: 3, method: 'ping' }, { 'Mcp-Session-Id': own })).status).toBe(404);
  const again = await helloFrames(ws, { token: tokenOf('bob'), session: 'of-bob' });
  expect(again.ack).toMatchObject({ ok: true, resumed: false });
  await Promise.all([again.close(), annFrames.close(), streams[0]?.body?.cancel()]);
});

it('ends what the old token still hears when its holder rotates it, and nothing of others', async () => {
  await change(named('ann'), named('bob'), named('carl'));
  const streams = [await listen('ann'), await listen('bob')];
  const session = await daemon.connect('legacy', { token: tokenOf('ann') });
  const rotating = await helloFrames(`${daemon.url.replace('http', 'ws')}/ws`, { token: tokenOf('bob') });
  const replacement = 'R0tated-by-his-owner-1';
  rotating.send({ op: 'rotate_token', old: tokenOf('bob'), new: replacement });
  await expect(ended(streams[1] ?? Response.error())).resolves.toMatch(/over|cut/);
  expect(daemon.daemon.tokens.find(replacement)?.name).toBe('bob');
  // The connection that said it goes on.
  rotating.call('1', 'version');
  expect(await rotating.result('1')).toMatchObject({ document: { status: 'success' } });
  const open = streams[0]?.body?.getReader();
  expect(await Promise.race([open?.closed.then(() => 'over'), session.call('version').then(() => 'open')])).toBe(
    'open',
  );
  await Promise.all([open?.cancel(), rotating.close()]);
  // Behind the rotation on its way into the file, which the next change of it would meet.
  await daemon.daemon.reload();
});

it('tells the mask: no token of the file, and none that came by rotation, is in a log or a reply', async () => {
  const [fresh, rotated] = ['N3w-in-the-file-0001', 'R0tated-by-frame-001'];
  await change({ name: 'ann', token: fresh }, named('carl'));
  expect(daemon.daemon.tokens.rotate(tokenOf('carl'), rotated)).toBe(true);
  const secrets = [tokenOf('ann'), fresh, tokenOf('carl'), rotated];
  const prompt = `Why is ${secrets.join(' and ')} refused?`;
  const answer = await daemon.ask('/api/tools/chat', {
    method: 'POST',
    token: rotated,
    headers: { 'Content-Type': 'application/json', 'User-Agent': `curl ${fresh}` },
    body: JSON.stringify({ prompt, model: fresh, absolute_file_paths: [`/${rotated}`] }),
  });
  const texts = [await answer.text()];
  await daemon.daemon.close();
  await daemon.product.close();
  const logs = join(daemon.home, 'logs');
  const names = (await readdir(logs, { recursive: true })).filter(name => /\.(jsonl|txt)$/.test(name));
  expect(names).toEqual(expect.arrayContaining(['audit.jsonl', 'breadcrumbs.jsonl']));
  for (const name of names) texts.push(await readFile(join(logs, name), 'utf8'));
  texts.push(daemon.log.join(''));
  expect(texts.join('')).toContain('[masked:own_key:');
  for (const secret of secrets) expect(texts.filter(text => text.includes(secret))).toEqual([]);
});

it('a token that the daemon made itself is replaced in its file when it is rotated', async () => {
  const open = await testDaemon({ root: project.root, env: { OFFLINE: 'true' } });
  const own = await open.product.openDaemon({ port: 0, keepsToken: true });
  const file = join(open.home, 'daemon.token');
  const made = (await readFile(file, 'utf8')).trim();
  const next = Array.from({ length: 20 }, (_, number) => `another-token-${number}-0123456789`);
  for (const [at, token] of [made, ...next].entries()) {
    // Before its holder is answered: bridges that come next read the file.
    expect(readFileSync(file, 'utf8')).toBe(`${token}\n`);
    expect(own.tokens.rotate(token, next[at] ?? 'short')).toBe(at < next.length);
  }
  await own.close();
  await open.close();
});

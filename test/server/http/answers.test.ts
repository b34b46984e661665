import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { operator } from '../../../src/server/access/caller.ts';
import { createTokens, digestOf } from '../../../src/server/access/tokens.ts';
import type { Daemon } from '../../../src/server/daemon/daemon.ts';
import { bareDaemon } from '../../support/bare-daemon.ts';
import { scriptedHost } from '../../support/scripted-host.ts';

let daemon: Daemon;
afterEach(() => daemon.close());

async function start(options: Parameters<typeof bareDaemon>[1] = {}): Promise<void> {
  daemon = await bareDaemon(scriptedHost(), options);
}

const ask = (path: string, init: RequestInit = {}) => fetch(`${daemon.url}${path}`, init);
const post = (headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json', ...headers },
  body: '{}',
});

describe('methods', () => {
  it('HEAD goes where GET goes', async () => {
    await start();
    for (const path of ['/api/tools', '/healthz', '/readyz'])
      expect((await ask(path, { method: 'HEAD' })).status).toBe(200);
  });

  it('others are refused with what is allowed', async () => {
    await start();
    const answers = await Promise.all(
      ['/healthz', '/readyz', '/api/tools', '/mcp', '/api/tools/echo'].map(path => ask(path, { method: 'PUT' })),
    );
    expect(answers.map(({ status, headers }) => `${status} ${headers.get('allow')}`)).toEqual([
      '405 GET, HEAD',
      '405 GET, HEAD',
      '405 GET, HEAD',
      '405 GET, POST, DELETE',
      '405 POST',
    ]);
  });
});

it('a body that is compressed is refused as that, not as bad JSON', async () => {
  await start();
  const response = await ask('/api/tools/echo', post({ 'Content-Encoding': 'gzip' }));
  expect([response.status, response.headers.get('accept-encoding')]).toEqual([415, 'identity']);
  expect((await ask('/api/tools/echo', post({ 'Content-Encoding': 'identity' }))).status).toBe(200);
});

it('a wrong token is told apart from none, as RFC 6750 has it', async () => {
  const entry = { digest: digestOf('a-long-and-random-text'), caller: operator };
  await start({ tokens: createTokens([entry]) });
  const challenge = async (headers: Record<string, string>) =>
    (await ask('/api/tools', { headers })).headers.get('www-authenticate');
  expect(await challenge({})).toBe('Bearer realm="polylogue"');
  expect(await challenge({ Authorization: 'Bearer other' })).toBe('Bearer realm="polylogue", error="invalid_token"');
});

it('the path of WebSockets says to a plain request that it takes those alone', async () => {
  const door = { path: '/ws', accept() {}, connections: () => 0, close: async () => {} };
  await start({ upgrades: [() => door] });
  const response = await ask('/ws');
  expect([response.status, response.headers.get('upgrade')]).toEqual([426, 'websocket']);
  // What was to follow is not waited for.
  const socket = connect(daemon.port, '127.0.0.1');
  socket.write('POST /ws HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n');
  const chunks: Buffer[] = await socket.toArray();
  expect(Buffer.concat(chunks).toString()).toMatch(/^HTTP\/1\.1 426 .*connection: Upgrade, close/is);
});

describe('a web page', () => {
  const page = 'https://app.example';
  const entry = { digest: digestOf('a-long-and-random-text'), caller: operator };
  const token = { Authorization: 'Bearer a-long-and-random-text' };
  const open = () => start({ origins: [page], tokens: createTokens([entry]) });
  const preflight = (path: string, Origin: string) =>
    ask(path, {
      method: 'OPTIONS',
      headers: { Origin, 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'authorization' },
    });

  it('that the operator named is let through by its browser, which asks without a token', async () => {
    await open();
    for (const path of ['/mcp', '/api/tools', '/api/tools/echo']) {
      const { status, headers } = await preflight(path, page);
      expect([status, headers.get('access-control-allow-origin'), headers.get('vary')]).toEqual([204, page, 'Origin']);
      expect(headers.get('access-control-allow-methods')).toContain('DELETE');
      for (const name of ['Authorization', 'Content-Type', 'Mcp-Session-Id', 'MCP-Protocol-Version', 'traceparent'])
        expect(headers.get('access-control-allow-headers')).toContain(name);
    }
    const { status, headers } = await ask('/api/tools/echo', post({ Origin: page, ...token }));
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, page]);
    expect(headers.get('access-control-expose-headers')).toContain('Mcp-Session-Id');
    // It can read why it was refused, too.
    const refused = await ask('/api/tools', { headers: { Origin: page } });
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, page]);
  });

  it('that he did not name reads nothing, one of this machine included', async () => {
    await open();
    expect((await preflight('/mcp', 'https://evil.example')).status).toBe(403);
    for (const origin of ['https://evil.example', 'http://localhost:3000']) {
      const answers = [
        await preflight('/mcp', origin),
        await ask('/api/tools', { headers: { Origin: origin, ...token } }),
      ];
      for (const { headers } of answers) expect(headers.get('access-control-allow-origin')).toBeNull();
    }
    expect((await preflight('/mcp', 'http://localhost:3000')).status).toBe(403);
  });
});

import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

const token = 'the-token-of-the-operator';
let project: TempProject;
let daemon: TestDaemon;

beforeAll(async () => {
  project = await tempProject();
  daemon = await testDaemon({
    root: project.root,
    env: {
      OFFLINE: 'true',
      POLYLOGUE_TOKEN: token,
      POLYLOGUE_MAX_BODY_BYTES: '100000',
      POLYLOGUE_HOSTS: 'models.example',
      POLYLOGUE_ORIGINS: 'https://app.example',
    },
  });
});

afterAll(async () => {
  await daemon.close();
  await project.dispose();
});

/** A request with any headers at all, which `fetch` would not send. */
function raw(path: string, headers: Record<string, string | string[]>, method = 'GET', body?: string) {
  const { hostname, port } = new URL(daemon.url);
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const request = httpRequest({ hostname, port, path, method, headers }, response => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', chunk => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    request.on('error', reject).end(body);
  });
}

/** What comes back for bytes as they are. */
async function bytes(text: string, then?: (socket: Socket) => unknown): Promise<string> {
  const { hostname, port } = new URL(daemon.url);
  const socket = connect(Number(port), hostname);
  let answer = '';
  socket.on('data', chunk => {
    answer += chunk;
  });
  // A server that sends somebody away may do so in the middle of what he says.
  socket.on('error', () => {});
  socket.write(text);
  then?.(socket);
  await new Promise(resolve => socket.on('close', resolve));
  return answer;
}

const authorization = `Bearer ${token}`;
const toolsList = (more: Record<string, string>) => ({
  headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...more },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
});

describe('Host and Origin', () => {
  it.each([
    ['127.0.0.1', undefined, 200],
    ['localhost:9', undefined, 200],
    ['[::1]:8765', undefined, 200],
    ['models.example', undefined, 200],
    ['models.example', 'https://app.example', 200],
    ['localhost', 'http://localhost:3000', 403],
    ['localhost', 'http://localhost', 403],
    ['localhost', 'https://app.example:444', 403],
    ['localhost', 'https://evil.example', 403],
    ['localhost', 'http://app.example', 403],
    ['localhost', 'null', 403],
    ['localhost', 'https://app.example.evil.example', 403],
    ['evil.example', undefined, 403],
    ['evil.example', 'http://localhost', 403],
    ['127.0.0.1.evil.example', undefined, 403],
    ['localhost@evil.example', undefined, 403],
  ])('%s asked by %s gets %i at every door', async (host, origin, status) => {
    const headers = { host, authorization, ...(origin !== undefined && { origin }) };
    for (const path of ['/api/tools', '/healthz', '/readyz']) {
      expect((await raw(path, headers)).status, path).toBe(status);
    }
    const mcp = await raw('/mcp', { ...headers, accept: 'text/event-stream', 'mcp-session-id': 'x' });
    expect(mcp.status).toBe(status === 200 ? 404 : 403);
  });

  it('are refused before the token is looked at, and when a host is said twice, or none', async () => {
    expect((await raw('/api/tools', { host: 'evil.example' })).status).toBe(403);
    for (const hosts of ['Host: localhost\r\nHost: evil.example', 'Host:', 'Accept: */*']) {
      const head = `${hosts}\r\nAuthorization: ${authorization}\r\nConnection: close`;
      expect(await bytes(`GET /api/tools HTTP/1.1\r\n${head}\r\n\r\n`), hosts).toMatch(/^HTTP\/1.1 40[03] /);
    }
  });
});

describe('tokens', () => {
  it.each([undefined, '', 'Bearer', `Bearer ${token}x`, `Bearer ${token.slice(1)}`, `Basic ${token}`, token])(
    '%j opens nothing',
    async given => {
      const headers = { host: 'localhost', ...(given !== undefined && { authorization: given }) };
      for (const path of ['/api/tools', '/mcp', '/metrics']) {
        const { status, text } = await raw(path, headers);
        expect([path, status, JSON.parse(text).error.class]).toEqual([
          path,
          401,
          expect.stringMatching(/^token_(missing|wrong)$/),
        ]);
      }
    },
  );

  it('are not asked for where there is nothing to see', async () => {
    expect((await raw('/healthz', { host: 'localhost' })).status).toBe(200);
  });

  it('stand before the body: nobody has one read without', async () => {
    const answer = await bytes('POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n{');
    expect(answer).toMatch(/^HTTP\/1.1 401 /);
    const waiting = await bytes(
      'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\nExpect: 100-continue\r\n\r\n',
    );
    expect(waiting).toMatch(/^HTTP\/1.1 401 /);
  });

  it('stand before an upgrade, as do hosts and paths', async () => {
    const upgrade = (path: string, host: string, more = '') =>
      bytes(
        `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${more}\r\n`,
        // What becomes a WebSocket stays open until its client ends it.
        socket => socket.once('data', () => socket.end()),
      );
    expect(await upgrade('/ws', 'evil.example', `Authorization: ${authorization}\r\n`)).toMatch(/^HTTP\/1.1 403 /);
    expect(await upgrade('/ws', 'localhost', 'Origin: https://evil.example\r\n')).toMatch(/^HTTP\/1.1 403 /);
    expect(await upgrade('/ws', 'localhost', 'Authorization: Bearer wrong-wrong-wrong-wrong\r\n')).toMatch(
      /^HTTP\/1.1 401 /,
    );
    // Clients of other servers name no path.
    expect(await upgrade('/', 'localhost', `Authorization: ${authorization}\r\n`)).toMatch(/^HTTP\/1.1 101 /);
    expect(await upgrade('/', 'localhost', 'Origin: https://evil.example\r\n')).toMatch(/^HTTP\/1.1 403 /);
    expect(await upgrade('/elsewhere', 'localhost', `Authorization: ${authorization}\r\n`)).toMatch(/^HTTP\/1.1 404 /);
  });
});

describe('bodies', () => {
  const post = (path: string, body: string, more: Record<string, string> = {}) =>
    raw(path, { host: 'localhost', authorization, 'content-type': 'application/json', ...more }, 'POST', body);

  it('that are too large are refused, told beforehand or not', async () => {
    const large = JSON.stringify({ prompt: 'x'.repeat(100_000) });
    for (const path of ['/mcp', '/api/tools/chat']) {
      const { status, text } = await post(path, large);
      expect([status, JSON.parse(text).error.class]).toEqual([413, 'size']);
    }
    const chunked = await bytes(
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
      socket => {
        for (let at = 0; at < 3; at += 1) socket.write(`c350\r\n${'x'.repeat(50_000)}\r\n`);
      },
    );
    expect(chunked).toMatch(/^HTTP\/1.1 413 /);
    expect((await post('/mcp', '', { 'content-length': '99999999999', expect: '100-continue' })).status).toBe(413);
  });

  it('of 100,000 levels, or of garbage, are refused and nothing falls over', async () => {
    for (const [body, kind] of [
      ['['.repeat(50_000) + ']'.repeat(50_000), 'depth'],
      ['{"a":'.repeat(15_000), 'depth'],
      ['{"jsonrpc": "2.0", "id": 1', 'json'],
      ['\u0000\u0001', 'json'],
      ['', 'json'],
    ]) {
      for (const path of ['/mcp', '/api/tools/version']) {
        const { status, text } = await post(path, body ?? '');
        expect([status, JSON.parse(text).error.class]).toEqual([400, kind]);
      }
    }
  });

  it('that are JSON but no message are refused by the protocol', async () => {
    for (const body of ['1', '"text"', 'null', '[]', '{}', '{"jsonrpc":"1.0","id":1,"method":"ping"}', '[[],[]]']) {
      const { status } = await post('/mcp', body, { accept: 'application/json, text/event-stream' });
      expect([body, status >= 400 && status < 500]).toEqual([body, true]);
    }
  });

  it('that poison objects change nothing', async () => {
    const { status, text } = await post('/api/tools/version', '{"__proto__": {"polluted": true}, "constructor": 1}');
    expect(status).toBeLessThan(500);
    expect(JSON.parse(text).polluted).toBeUndefined();
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });
});

describe('heads', () => {
  it('that are huge are refused', async () => {
    const answer = await bytes(`GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Large: ${'x'.repeat(20_000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 431 /);
    const endless = await bytes('GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Endless: ', socket => {
      const flood = () => {
        while (!socket.destroyed && socket.write('x'.repeat(65_536)));
      };
      socket.on('drain', flood);
      flood();
    });
    expect(endless === '' || /^HTTP\/1.1 431 /.test(endless)).toBe(true);
    expect((await daemon.ask('/healthz')).status).toBe(200);
  });

  it('that are no HTTP, or ask for a proxy, lead nowhere', async () => {
    expect(await bytes('\u0016\u0003\u0001 hello\r\n\r\n')).toMatch(/^HTTP\/1.1 400 /);
    const asProxy = `GET http://169.254.169.254/latest HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\nConnection: close\r\n\r\n`;
    expect(await bytes(asProxy)).toMatch(/^HTTP\/1.1 404 /);
    for (const path of ['//evil.example/mcp', '/mcp/../api/tools/..', '/%2e%2e/%2e%2e/etc/passwd']) {
      expect((await raw(path, { host: 'localhost', authorization })).status).toBe(404);
    }
  });

  it('that smuggle a second request are refused', async () => {
    const answer = await bytes(
      'POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG',
    );
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
  });
});

describe('floods', () => {
  it('of session ids that were guessed find nothing and leave nothing', async () => {
    const before = daemon.daemon.load().sessions;
    const tries = Array.from({ length: 200 }, (_, at) =>
      daemon.ask('/mcp', { method: 'POST', token, ...toolsList({ 'Mcp-Session-Id': `guess-${at}` }) }),
    );
    expect(new Set((await Promise.all(tries)).map(({ status }) => status))).toEqual(new Set([404]));
    expect(daemon.daemon.load().sessions).toBe(before);
  });

  it('of ids within a session, and of answers to nothing, are borne', async () => {
    const session = await daemon.connect('legacy', { token });
    const headers = { 'Mcp-Session-Id': session.sessionId() ?? '', 'MCP-Protocol-Version': '2025-11-25' };
    const sent = (body: unknown) =>
      daemon.ask('/mcp', { method: 'POST', token, ...toolsList(headers), body: JSON.stringify(body) });
    const batch = Array.from({ length: 1_500 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' }));
    expect((await sent(batch)).status).toBe(413);
    expect((await sent(batch.slice(0, 150))).status).toBe(400);
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, id) => sent({ jsonrpc: '2.0', id: `no-${id}`, result: {} })),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
    const cancels = Array.from({ length: 200 }, (_, requestId) =>
      sent({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }),
    );
    expect(new Set((await Promise.all(cancels)).map(({ status }) => status))).toEqual(new Set([202]));
    expect((await session.client.listTools()).tools.length).toBeGreaterThan(0);
    await session.close();
  });

  it('of requests are slowed down by token, and those who wait are told how long', async () => {
    const small = await testDaemon({
      root: project.root,
      env: { OFFLINE: 'true', POLYLOGUE_REQUESTS_PER_MINUTE: '60' },
    });
    const all = await Promise.all(Array.from({ length: 15 }, () => small.ask('/api/tools')));
    const refused = all.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThanOrEqual(4);
    expect(refused[0]?.headers.get('retry-after')).toBe('1');
    expect((await small.ask('/healthz')).status).toBe(200);
    await small.close();
  });

  it('of sessions, streams and messages in one are held to a token’s share, and others find room', async () => {
    const [ann, bob] = ['the-long-token-of-ann', 'the-long-token-of-bob'];
    const small = await testDaemon({
      root: project.root,
      env: {
        OFFLINE: 'true',
        POLYLOGUE_MAX_SESSIONS: '4',
        POLYLOGUE_SESSIONS_PER_TOKEN: '2',
        POLYLOGUE_REQUESTS_PER_MINUTE: '600',
      },
      tokens: [
        { name: 'ann', token: ann },
        { name: 'bob', token: bob },
      ],
    });
    const post = (as: string, body: unknown, headers: Record<string, string>) =>
      small.ask('/mcp', { method: 'POST', token: as, ...toolsList(headers), body: JSON.stringify(body) });
    const clientInfo = { name: 'flood', version: '1' };
    const begin = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
    const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: begin };
    // Each of them is in use, by the stream that its client holds open.
    for (let at = 0; at < 2; at += 1) {
      const id = (await post(ann, initialize, {})).headers.get('mcp-session-id') ?? '';
      const headers = { Accept: 'text/event-stream', 'Mcp-Session-Id': id };
      expect((await small.ask('/mcp', { token: ann, headers })).status).toBe(200);
    }
    const third = await post(ann, initialize, {});
    expect([third.status, await third.text()]).toEqual([429, expect.stringContaining('POLYLOGUE_SESSIONS_PER_TOKEN')]);
    const his = (await post(bob, initialize, {})).headers.get('mcp-session-id') ?? '';
    expect(his).not.toBe('');

    const modern = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'subscriptions/listen' };
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': clientInfo,
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const params = { notifications: { resourceSubscriptions: ['polylogue://models'] }, _meta };
    const listen = (as: string) => post(as, { jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params }, modern);
    const streams = [await listen(ann), await listen(ann), await listen(ann), await listen(bob)];
    expect(streams.map(({ status }) => status)).toEqual([200, 200, 429, 200]);
    await streams[0]?.body?.cancel();
    await expect.poll(async () => (await listen(ann)).status, { timeout: 15_000 }).toBe(200);

    const batch = Array.from({ length: 90 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' }));
    const inSession = { 'Mcp-Session-Id': his, 'MCP-Protocol-Version': '2025-03-26' };
    const answers = [await post(bob, batch, inSession), await post(bob, batch, inSession)];
    expect(answers.map(({ status }) => status)).toEqual([200, 429]);
    await small.close();
  });
});

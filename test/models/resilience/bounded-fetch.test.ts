import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { boundedFetch } from '../../../src/models/resilience/bounded-fetch.ts';
import { stubDispatcher } from '../../support/stub-dispatcher.ts';

interface Seen {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingMessage['headers'];
  body: string;
}

type Answer = (seen: Seen, response: ServerResponse) => void;

const open: { close(): Promise<void> }[] = [];
let seen: Seen[];
let answer: Answer;
let url: string;

async function startServer(): Promise<string> {
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const { method, url: path, headers } = request;
    const one = { method, url: path, headers, body: Buffer.concat(pieces).toString() };
    seen.push(one);
    answer(one, response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const close = async () => {
    server.closeAllConnections();
    await new Promise(resolve => server.close(resolve));
  };
  open.push({ close });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

/** A server that speaks as no library would; `close`: its first connection is over. */
async function startOdd(speak: (socket: Socket) => Promise<void>): Promise<{ address: string; close: Promise<void> }> {
  const over = Promise.withResolvers<void>();
  const server = createTcpServer(socket => {
    socket.on('error', () => {}).on('close', () => over.resolve());
    socket.once('data', () => void speak(socket).catch(() => undefined));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  open.push({ close: async () => void server.close() });
  const at = server.address();
  return { address: `http://127.0.0.1:${typeof at === 'object' ? at?.port : ''}`, close: over.promise };
}

beforeEach(async () => {
  seen = [];
  answer = (_seen, response) => response.end('ok');
  url = await startServer();
});

afterEach(async () => {
  for (const { close } of open.splice(0)) await close();
});

const secrets = { authorization: 'Bearer secret', 'x-api-key': 'secret', cookie: 'a=secret', 'mcp-session-id': 's1' };

describe('a request', () => {
  it('goes out with its headers, its body and what names the program', async () => {
    const response = await boundedFetch(`${url}/a?b=c`, {
      method: 'POST',
      headers: { 'X-Api-Key': ' k\n', 'content-type': 'application/json' },
      body: '{"é":1}',
    });
    expect([response.status, await response.text()]).toEqual([200, 'ok']);
    expect(seen).toMatchObject([{ method: 'POST', url: '/a?b=c', body: '{"é":1}' }]);
    expect(seen[0]?.headers).toMatchObject({
      'x-api-key': 'k',
      'content-type': 'application/json',
      'content-length': '8',
      accept: '*/*',
      'user-agent': 'node',
    });
  });

  it.each([
    ['Headers', () => new Headers({ 'x-a': '1' })],
    ['a list', (): [string, string][] => [['x-a', '1']]],
    ['nothing', () => undefined],
  ])('takes headers as %s', async (_, make) => {
    const headers = make();
    await (await boundedFetch(new URL(url), { ...(headers && { headers }) })).text();
    expect(seen[0]?.headers['x-a']).toBe(headers && '1');
  });

  it('sends a form whole, and a Request as it is', async () => {
    const form = new FormData();
    form.set('purpose', 'assistants');
    form.set('file', new Blob(['what it holds']), 'a.txt');
    await (await boundedFetch(url, { method: 'POST', body: form })).text();
    await (await boundedFetch(new Request(`${url}/r`, { method: 'PUT', headers: { 'x-a': '1' }, body: 'b' }))).text();
    expect(seen[0]?.headers['content-type']).toMatch(/^multipart\/form-data; boundary=/);
    expect(seen[0]?.body).toContain('what it holds');
    expect(seen[1]).toMatchObject({ method: 'PUT', url: '/r', body: 'b', headers: { 'x-a': '1' } });
  });

  it('fails as fetch does where nobody answers', async () => {
    const [{ close }] = open.splice(0) as [(typeof open)[number]];
    await close();
    await expect(boundedFetch(url)).rejects.toMatchObject({
      name: 'TypeError',
      message: 'fetch failed',
      cause: { code: 'ECONNREFUSED' },
    });
  });

  it('with a header that cannot be sent fails without telling it', async () => {
    const failure = await boundedFetch(url, { headers: { authorization: 'Bearer sec\nret' } }).catch(error => error);
    expect(failure).toBeInstanceOf(TypeError);
    expect(`${failure} ${failure.cause}`).not.toContain('sec\nret');
    expect(seen).toEqual([]);
  });

  it('ends with its reason when its caller gives up: before it, while it waits, and while its answer comes', async () => {
    await expect(boundedFetch(url, { signal: AbortSignal.abort(new Error('early')) })).rejects.toThrow('early');
    expect(seen).toEqual([]);
    const closed: Promise<unknown>[] = [];
    answer = ({ url: path }, response) => {
      closed.push(once(response, 'close'));
      if (path === '/begun') response.write('first ');
    };
    const [waiting, reading] = [new AbortController(), new AbortController()];
    const asked = boundedFetch(url, { signal: waiting.signal });
    await expect.poll(() => seen.length).toBe(1);
    waiting.abort(new Error('late'));
    await expect(asked).rejects.toThrow('late');
    const { body } = await boundedFetch(`${url}/begun`, { signal: reading.signal });
    const reader = body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('first ');
    reading.abort(new Error('enough'));
    await expect(reader?.read()).rejects.toThrow('enough');
    await Promise.all(closed);
  });
});

describe('an answer', () => {
  it('that is packed is unpacked, and says nothing of that', async () => {
    answer = (_seen, response) => response.setHeader('content-encoding', 'gzip').end(gzipSync('x'.repeat(100_000)));
    const response = await boundedFetch(url);
    expect(await response.text()).toBe('x'.repeat(100_000));
    expect(response.headers.get('content-encoding')).toBeNull();
    expect(seen[0]?.headers['accept-encoding']).toBe('gzip');
  });

  it('that says it is packed and is not fails', async () => {
    answer = (_seen, response) => response.setHeader('content-encoding', 'gzip').end('no gzip at all');
    await expect(boundedFetch(url).then(response => response.text())).rejects.toThrow();
  });

  it('that is packed is cut at its limit, however it comes', async () => {
    const packed = gzipSync(Buffer.alloc(3_000_000, 'ab cd'));
    answer = async ({ url: path }, response) => {
      response.writeHead(500, { 'content-encoding': 'gzip', connection: 'keep-alive' });
      const size = Number(path?.slice(1));
      for (let at = 0; at < packed.length; at += size) {
        response.write(packed.subarray(at, at + size));
        if (at > 0) await new Promise(resolve => setTimeout(resolve, at % 2));
      }
      response.end();
    };
    // What Node throws past everybody fails this file.
    for (let size = 900; size < 9_000; size += 300)
      await Promise.all(
        Array.from({ length: 8 }, async () => {
          const text = await (await boundedFetch(`${url}/${size}`)).text();
          expect(text.length).toBe(1_048_576);
        }),
      );
  });

  it.each([
    ['nothing', Buffer.alloc(0), ''],
    ['two members', Buffer.concat([gzipSync('hello '), gzipSync('two')]), 'hello two'],
  ])('that is packed may be %s', async (_, packed, text) => {
    answer = (_seen, response) => response.writeHead(401, { 'content-encoding': 'gzip' }).end(packed);
    const response = await boundedFetch(url);
    expect([response.status, response.statusText, await response.text()]).toEqual([401, 'Unauthorized', text]);
  });

  it('that is packed as nobody asked for is unpacked, or says how it is packed', async () => {
    answer = ({ url: path }, response) => {
      const packing = path?.slice(1) ?? '';
      response.setHeader('content-encoding', packing).end(packing === 'br' ? brotliCompressSync('hello') : 'as it is');
    };
    expect(await (await boundedFetch(`${url}/br`)).text()).toBe('hello');
    for (const packing of ['zstd', 'constructor', '__proto__']) {
      const response = await boundedFetch(`${url}/${packing}`);
      expect([response.headers.get('content-encoding'), await response.text()]).toEqual([packing, 'as it is']);
    }
  });

  it('of small pieces that nobody reads is not kept without a limit', async () => {
    const { address, close } = await startOdd(async socket => {
      // Who says nothing of the connection is not made to wait.
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      const pieces = '1\r\nx\r\n'.repeat(10_000);
      while (socket.writable)
        if (!socket.write(pieces)) await Promise.race([once(socket, 'drain'), once(socket, 'close')]);
    });
    const { body } = await boundedFetch(address);
    await close;
    await expect(body?.getReader().read()).rejects.toThrow('bytes of the answer came before they could be read');
  }, 60_000);

  it.each([
    ['chunked\t', 'keep-alive', ''],
    ['chunked', 'keep-alive\t', ''],
    ['chunked', 'keep-alive', 'Proxy-Connection: close\r\n'],
  ])(
    'that says in an odd way how it ends, and breaks off while it waits, ends nothing else: %j',
    async (coding, connection, more) => {
      const { address } = await startOdd(async socket => {
        socket.write(`HTTP/1.1 200 OK\r\nConnection: ${connection}\r\nTransfer-Encoding: ${coding}\r\n${more}\r\n`);
        const piece = 'a'.repeat(20_000);
        for (let at = 0; at < 10; at++) socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`);
        await new Promise(resolve => setTimeout(resolve, 50));
        socket.resetAndDestroy();
      });
      const response = await boundedFetch(address);
      await new Promise(resolve => setTimeout(resolve, 200));
      // What it is taken for is the parser's affair.
      await response.text().catch(error => expect(`${error}`).toContain('terminated'));
    },
  );

  it('that is packed and ends early is what came of it', async () => {
    const packed = gzipSync('what it says');
    answer = (_seen, response) => response.setHeader('content-encoding', 'gzip').end(packed.subarray(0, -6));
    expect(await (await boundedFetch(url)).text()).toBe('what it says');
  });

  it('keeps headers that come more than once, and may have no body', async () => {
    answer = (_seen, response) => response.writeHead(204, { 'set-cookie': ['a=1', 'b=2'] }).end();
    const response = await boundedFetch(url);
    expect([response.status, response.body, response.headers.getSetCookie()]).toEqual([204, null, ['a=1', 'b=2']]);
  });

  it('that breaks off is told as fetch tells it', async () => {
    answer = (_seen, response) => {
      response.write('first ', () => response.destroy());
    };
    const response = await boundedFetch(url);
    await expect(response.text()).rejects.toMatchObject({ message: 'terminated', cause: { code: 'UND_ERR_SOCKET' } });
  });

  it('of events is handed on at once until it tells a text, and from then on with what comes within a moment', async () => {
    const delta = (text: string) => `data: ${JSON.stringify({ type: 'response.output_text.delta', delta: text })}\n\n`;
    const begun = Promise.withResolvers<void>();
    answer = async (_seen, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: {"type":"response.created"}\n\n');
      response.write(delta('a'));
      await begun.promise;
      for (const letter of 'bcdefghi') {
        response.write(delta(letter));
        await new Promise(resolve => setTimeout(resolve, 2));
      }
      response.end();
    };
    const { body } = await boundedFetch(url);
    const texts: string[] = [];
    for await (const piece of body!.pipeThrough(new TextDecoderStream())) {
      texts.push(...Array.from(piece.matchAll(/"delta":"(\w+)"/g), ([, text = '']) => text));
      if (texts.length > 0) begun.resolve();
    }
    expect(texts[0]).toBe('a');
    expect(texts.join('')).toBe('abcdefghi');
    // The others came one by one, in about 20 ms.
    expect(texts.length).toBeLessThan(6);
  });

  it('is read no faster than it is used, and its connection is closed with the body', async () => {
    let written = 0;
    let closed = false;
    answer = (_seen, response) => {
      response.setHeader('connection', 'keep-alive').on('close', () => {
        closed = true;
      });
      const more = () => {
        for (let takes = true; takes && !response.closed; written += 65_536)
          takes = response.write(Buffer.alloc(65_536));
        if (!response.closed) response.once('drain', more);
      };
      more();
    };
    const { body } = await boundedFetch(url);
    const reader = body?.getReader();
    await reader?.read();
    await new Promise(resolve => setTimeout(resolve, 300));
    const before = written;
    expect(before).toBeLessThan(20_000_000);
    for (let read = 0; read < 2 * before + 1_000_000; ) read += (await reader?.read())?.value?.length ?? 0;
    expect(written).toBeGreaterThan(before);
    await reader?.cancel();
    await expect.poll(() => closed).toBe(true);
  });
});

describe('a redirection', () => {
  const to = (target: string, status = 307): Answer => {
    return ({ url: path }, response) => {
      if (path !== '/from') return void response.end('there');
      response.writeHead(status, { location: target }).end('moved');
    };
  };
  const ask = (more: RequestInit = {}) =>
    boundedFetch(`${url}/from`, { method: 'POST', headers: secrets, body: '{}', ...more });

  it('within a host takes all along', async () => {
    answer = to('/to');
    expect(await (await ask()).text()).toBe('there');
    expect(seen[1]).toMatchObject({ method: 'POST', url: '/to', body: '{}', headers: secrets });
  });

  it('to another host takes no header along that could be a secret', async () => {
    const other = await startServer();
    answer = to(`${other}/to`, 308);
    expect(await (await ask()).text()).toBe('there');
    expect(seen[1]).toMatchObject({ method: 'POST', body: '{}', headers: { 'mcp-session-id': 's1' } });
    expect(JSON.stringify(seen[1])).not.toContain('secret');
  });

  it.each([301, 302, 303])('with %i is followed by reading', async status => {
    answer = to('/to', status);
    expect(await (await ask()).text()).toBe('there');
    expect(seen[1]).toMatchObject({ method: 'GET', url: '/to', body: '' });
  });

  it('is an answer to who follows it by hand', async () => {
    answer = to('/to');
    const response = await ask({ redirect: 'manual' });
    expect([response.status, response.headers.get('location')]).toEqual([307, '/to']);
    expect(seen).toHaveLength(1);
  });

  it.each([
    ['to itself', '/from', {}],
    ['to a file', 'file:///etc/passwd', {}],
    ['to no address', 'http://', {}],
    ['that is not wanted', '/to', { redirect: 'error' as const }],
  ])('%s fails', async (_, target, more) => {
    answer = to(target);
    await expect(ask(more)).rejects.toMatchObject({ message: 'fetch failed', cause: { message: /redirected/ } });
    expect(seen.length).toBeLessThan(30);
  });
});

describe('a dispatcher of an older undici', () => {
  it('is understood, and may be told to wait', async () => {
    const told: unknown[] = [];
    const piece = Buffer.alloc(20_000, 'x');
    const undo = stubDispatcher(() => (_options, given) => {
      const handler = given as unknown as Record<string, (...args: unknown[]) => unknown>;
      handler.onConnect?.(() => told.push('abort'));
      handler.onHeaders?.(100, [], () => {});
      const raw = ['Content-Length', '40000', 'Connection', 'keep-alive', 'X-A', '1'].map(text => Buffer.from(text));
      handler.onHeaders?.(200, raw, () => {
        if (told.push('resume') > 2) return;
        told.push(handler.onData?.(piece));
        handler.onComplete?.([]);
      });
      told.push(handler.onData?.(piece));
      return true;
    });
    try {
      const response = await boundedFetch(url);
      expect([response.status, response.headers.get('x-a')]).toEqual([200, '1']);
      expect((await response.text()).length).toBe(40_000);
      expect(told.slice(0, 3)).toEqual([false, 'resume', false]);
    } finally {
      undo();
    }
  });
});

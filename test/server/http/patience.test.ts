import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { ToolHost, ToolReply, ToolRequest } from '../../../src/core/tool-host.ts';
import type { Daemon, DaemonOptions } from '../../../src/server/daemon/daemon.ts';
import { bareDaemon } from '../../support/bare-daemon.ts';
import { type ManualClock, manualClock } from '../../support/clock.ts';
import { fixtureHost } from '../../support/conformance/fixture-host.ts';
import { connectHttp } from '../../support/http-session.ts';
import { waitUntil } from '../../support/wait-until.ts';

let daemon: Daemon;
afterEach(() => daemon.close());

/** A host whose one tool does what the test says. */
function hostOf(run: (request: ToolRequest, signal: AbortSignal) => Promise<string>): ToolHost {
  const call = async (request: ToolRequest, signal: AbortSignal): Promise<ToolReply> => {
    const text = await run(request, signal);
    return { isError: false, document: { content: text }, text: JSON.stringify({ content: text }) };
  };
  return { ...fixtureHost(), call };
}

async function start(host: ToolHost, options: Partial<DaemonOptions> = {}): Promise<void> {
  daemon = await bareDaemon(host, options);
}

const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${daemon.url}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify(body),
  });

const rpc = (id: number, method: string, params: object = {}) => ({ jsonrpc: '2.0', id, method, params });
const initialize = rpc(0, 'initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'raw', version: '1' },
});

async function newSession(): Promise<Record<string, string>> {
  const response = await post('/mcp', initialize);
  await response.text();
  const headers = {
    'Mcp-Session-Id': response.headers.get('mcp-session-id') ?? '',
    'MCP-Protocol-Version': '2025-11-25',
  };
  await post('/mcp', { jsonrpc: '2.0', method: 'notifications/initialized' }, headers);
  return headers;
}

describe('a client that is slow', () => {
  it('to say its head, or its body, is sent away', async () => {
    await start(fixtureHost(), { patience: { headMs: 200, requestMs: 400 } });
    const { hostname, port } = new URL(daemon.url);
    const answers = [
      'GET /heal',
      'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    ].map(
      head =>
        new Promise<string>(resolve => {
          const socket = connect(Number(port), hostname);
          let answer = '';
          socket.on('data', chunk => {
            answer += chunk;
          });
          socket.on('error', () => {}).on('close', () => resolve(answer));
          socket.write(head);
        }),
    );
    for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1.1 408 /);
    await expect.poll(async () => (await fetch(`${daemon.url}/healthz`)).status).toBe(200);
  });

  it('to read what it asked for a thousand times at once is sent away before all of it is answered', async () => {
    let answered = 0;
    const notReady = async () => {
      answered += 1;
      return undefined;
    };
    await start(fixtureHost(), { notReady });
    const { hostname, port } = new URL(daemon.url);
    const ask = (times: number) =>
      new Promise<string>(resolve => {
        const socket = connect(Number(port), hostname);
        let told = '';
        socket.on('data', chunk => {
          told += chunk;
          if (told.split('HTTP/1.1 200').length > times) socket.destroy();
        });
        socket.on('error', () => {}).on('close', () => resolve(told));
        socket.write('GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(times));
      });
    await ask(20);
    expect(answered).toBe(20);
    await ask(3_000);
    expect(answered).toBeLessThan(100);
    expect((await fetch(`${daemon.url}/healthz`)).status).toBe(200);
  });

  it('to read a long answer is waited for while it takes some, and sent away when it takes none', async () => {
    const long = 'x'.repeat(20_000_000);
    const clock = manualClock();
    await start(
      hostOf(async () => long),
      { clock, patience: { stallMs: 30_000 } },
    );
    const { hostname, port } = new URL(daemon.url);
    const begin = () =>
      new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
        const headers = { 'Content-Type': 'application/json' };
        const options = { hostname, port, path: '/api/tools/greet', method: 'POST', headers };
        httpRequest(options, resolve).on('error', reject).end('{}');
      });
    const patient = await begin();
    let size = 0;
    for await (const chunk of patient) {
      size += chunk.length;
      if (size < 400_000) await new Promise(resolve => setTimeout(resolve, 40));
    }
    expect(size).toBeGreaterThan(20_000_000);
    const deaf = await begin();
    deaf.pause();
    const over = new Promise(resolve => deaf.on('error', () => {}).on('close', resolve));
    // Until all that lies between them is full.
    let [seen, same] = [-1, 0];
    const isFull = () => {
      same = deaf.socket.bytesRead === seen ? same + 1 : 0;
      seen = deaf.socket.bytesRead;
      return same >= 8;
    };
    await waitUntil('no more of the answer came', isFull, { everyMs: 50 });
    await clock.advance(30_000);
    deaf.resume();
    await over;
    expect(deaf.complete).toBe(false);
  });

  it('to read what is told as it happens is sent away before much waits for it', async () => {
    let told = 0;
    const over = Promise.withResolvers<void>();
    await start(
      hostOf(async ({ onProgress }, signal) => {
        for (; !signal.aborted && told < 20_000; told += 1) {
          onProgress?.({ progress: told, message: 'x'.repeat(10_000) });
          if (told % 50 === 0) await new Promise(resolve => setImmediate(resolve));
        }
        over.resolve();
        return 'told';
      }),
    );
    const { hostname, port } = new URL(daemon.url);
    const headers = { 'Content-Type': 'application/json', Accept: 'text/event-stream' };
    const lost = await new Promise(resolve => {
      const options = { hostname, port, path: '/api/tools/greet', method: 'POST', headers };
      const request = httpRequest(options, response => {
        response.pause();
        response.on('error', () => {}).on('close', () => resolve(response.complete));
        over.promise.then(() => response.resume());
      });
      // It may be sent away before it has seen the beginning of the answer.
      request.on('error', () => resolve(false)).end('{}');
    });
    expect(lost).toBe(false);
    // Kernel buffers take up to 40 MB on a busy machine; behind them nothing grows.
    expect(told).toBeLessThan(6_000);
  });
});

describe('a session', () => {
  it('is over when nobody used it for its time, and nothing is left of it', async () => {
    const clock: ManualClock = manualClock();
    await start(fixtureHost(), { clock, sessions: { idleMs: 60_000, max: 100 } });
    const before = clock.pending();
    const sessions = await Promise.all(Array.from({ length: 50 }, newSession));
    expect(daemon.load().sessions).toBe(50);
    await clock.advance(59_000);
    const [kept = {}] = sessions;
    expect((await post('/mcp', rpc(1, 'tools/list'), kept)).status).toBe(200);
    await clock.advance(59_000);
    await expect.poll(() => daemon.load().sessions).toBe(1);
    expect((await post('/mcp', rpc(1, 'tools/list'), sessions[1])).status).toBe(404);
    await clock.advance(61_000);
    await expect.poll(() => daemon.load()).toEqual({ sessions: 0, callsRunning: 0, callsWaiting: 0 });
    await expect.poll(() => clock.pending()).toBe(before);
  });

  it('lasts for as long as a call of it runs, even where its stream is lost, and the answer can be fetched', async () => {
    const clock = manualClock();
    const { promise, resolve } = Promise.withResolvers<string>();
    await start(
      hostOf(() => promise),
      { clock, sessions: { idleMs: 60_000, max: 100 } },
    );
    const headers = await newSession();
    const lost = new AbortController();
    const stream = await fetch(`${daemon.url}/mcp`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify(rpc(7, 'tools/call', { name: 'greet', arguments: {} })),
      signal: lost.signal,
    });
    const reader = stream.body?.getReader();
    const first = new TextDecoder().decode((await reader?.read())?.value);
    const [, lastEvent = ''] = /id: (\S+)/.exec(first) ?? [];
    lost.abort();
    await reader?.read().catch(() => undefined);
    await clock.advance(600_000);
    expect(daemon.load()).toMatchObject({ sessions: 1, callsRunning: 1 });
    const resumed = await fetch(`${daemon.url}/mcp`, {
      headers: { Accept: 'text/event-stream', 'Last-Event-ID': lastEvent, ...headers },
    });
    resolve('after all');
    expect(await resumed.text()).toContain('after all');
    await expect.poll(() => daemon.load().callsRunning).toBe(0);
    await clock.advance(61_000);
    await expect.poll(() => daemon.load().sessions).toBe(0);
  });

  it('that did not begin is not kept', async () => {
    await start(fixtureHost());
    const response = await post('/mcp', initialize, { Accept: 'application/json' });
    expect([response.status, daemon.load().sessions]).toEqual([406, 0]);
  });

  it('makes room for a new one of the same caller when there are too many, but not while it is used', async () => {
    await start(fixtureHost(), { sessions: { idleMs: 60_000, max: 2 } });
    const [first, second] = [await newSession(), await newSession()];
    const listening = await fetch(`${daemon.url}/mcp`, { headers: { Accept: 'text/event-stream', ...first } });
    await newSession();
    expect(daemon.load().sessions).toBe(2);
    expect((await post('/mcp', rpc(1, 'tools/list'), second)).status).toBe(404);
    expect((await post('/mcp', rpc(1, 'tools/list'), first)).status).toBe(200);
    await listening.body?.cancel();
  });
});

describe('the admission', () => {
  it('waits for answers that are being written, and not for who only listens', async () => {
    let calls = 0;
    await start(
      hostOf(async () => {
        calls += 1;
        return 'x'.repeat(4_000_000);
      }),
    );
    const listener = await fetch(`${daemon.url}/mcp`, {
      headers: { Accept: 'text/event-stream', ...(await newSession()) },
    });
    const answers = Array.from({ length: 5 }, async () =>
      (await post('/api/tools/greet', {}, { Accept: 'application/json' })).text(),
    );
    const sizes = Promise.all(answers.map(async answer => (await answer).length));
    await expect.poll(() => calls, { interval: 1 }).toBe(5);
    await daemon.drain(20_000);
    expect(Math.min(...(await sizes))).toBeGreaterThan(4_000_000);
    const late = await post('/api/tools/greet', {}, { Accept: 'application/json' });
    expect([late.status, await late.json()]).toMatchObject([503, { error: { class: 'over_capacity' } }]);
    await listener.body?.cancel();
  });

  it('keeps one client’s calls to its share, and tells who comes when too many wait', async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    await start(
      hostOf(() => promise),
      { capacity: { perCaller: 2, inAll: 3, queued: 1 } },
    );
    const [one, two] = [await connectHttp(daemon.url, 'legacy'), await connectHttp(daemon.url, 'legacy')];
    const calls = [one.call('greet'), one.call('greet'), two.call('greet')];
    await expect.poll(() => daemon.load().callsRunning).toBe(3);
    const waiting = two.call('greet');
    await expect.poll(() => daemon.load().callsWaiting).toBe(1);
    expect(await two.call('greet')).toMatchObject({
      isError: true,
      error: { class: 'over_capacity', retryable: true },
    });
    resolve('done');
    for (const reply of await Promise.all([...calls, waiting])) expect(reply).toMatchObject({ content: 'done' });
    expect(daemon.load()).toMatchObject({ callsRunning: 0, callsWaiting: 0 });
    await Promise.all([one.close(), two.close()]);
  });
});

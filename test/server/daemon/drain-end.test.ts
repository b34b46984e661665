import { connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runProxy } from '../../../src/server/proxy/proxy.ts';
import { realClock } from '../../support/clock.ts';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import { helloFrames } from '../../support/frame-client.ts';
import { type Era, eraVersions } from '../../support/mcp-session.ts';
import { type PipedClient, pipedClient } from '../../support/piped-client.ts';
import { type Document, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { connectWebSocket } from '../../support/web-socket-session.ts';

let project: TempProject;
let vendor: FakeVendor;
let daemon: TestDaemon;
let restarted: (() => Promise<void>) | undefined;

beforeEach(async () => {
  [project, vendor] = await Promise.all([tempProject(), startOpenAi()]);
  daemon = await testDaemon({ root: project.root, env: { ...env(), MAX_CONCURRENT_PER_PROVIDER: 'openai=200' } });
});

afterEach(async () => {
  await restarted?.();
  restarted = undefined;
  await daemon.close();
  await Promise.all([vendor.close(), project.dispose()]);
});

const env = () => ({ ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', AI_MANAGER: 'rules' });

async function here(name: string, args: object): Promise<Document> {
  const principal = { owner: 'local', root: daemon.product.root };
  const reply = await daemon.product.host.call(
    { name, arguments: { ...args }, principal },
    new AbortController().signal,
  );
  return { ...reply.document, isError: reply.isError };
}

const bills = (prompt: string) =>
  vendor.requests.filter(({ canonical }) => canonical.includes(prompt)).map(request => request.wasAborted());

/** One request by hand; resolves with all that came until the server closed the connection. */
function raw(path: string, body: object, headers: Record<string, string>): Promise<string> {
  const { hostname, port } = new URL(daemon.url);
  const text = JSON.stringify(body);
  const all = {
    Host: 'localhost',
    Connection: 'close',
    'Content-Type': 'application/json',
    'Content-Length': `${Buffer.byteLength(text)}`,
    ...headers,
  };
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return new Promise(resolve => {
    const socket = connect(Number(port), hostname);
    let told = '';
    socket.on('data', chunk => {
      told += chunk;
    });
    socket.on('error', () => {}).on('close', () => resolve(told));
    socket.write(`POST ${path} HTTP/1.1\r\n${head.join('')}\r\n${text}`);
  });
}

const clientInfo = { name: 'raw', version: '1' };
const accept = { Accept: 'application/json, text/event-stream' };
let ids = 0;
const call = (prompt: string, more: object = {}) => ({
  jsonrpc: '2.0',
  id: ++ids,
  method: 'tools/call',
  params: { name: 'chat', arguments: { prompt }, ...more },
});

/** The reply in a text with one JSON document a line, whatever stands before it. */
function documentIn(told: string): Document {
  const found = told.split('\n').flatMap(line => {
    const at = line.indexOf('{');
    try {
      return at < 0 ? [] : [JSON.parse(line.slice(at))];
    } catch {
      return [];
    }
  });
  const message = found.find(each => each.result || each.reply || each.status) ?? { told };
  const { result, reply } = message;
  return result ? { ...JSON.parse(result.content[0].text), isError: result.isError } : (reply ?? message);
}

async function legacySession(): Promise<Record<string, string>> {
  const post = (body: object, headers: object = {}) =>
    fetch(`${daemon.url}/mcp`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...accept, ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', ...body }),
    });
  const params = { protocolVersion: eraVersions.legacy, capabilities: {}, clientInfo };
  const response = await post({ id: 0, method: 'initialize', params });
  await response.text();
  const headers = {
    'Mcp-Session-Id': response.headers.get('mcp-session-id') ?? '',
    'MCP-Protocol-Version': eraVersions.legacy,
  };
  await post({ method: 'notifications/initialized' }, headers);
  return headers;
}

async function bridge(): Promise<{ chat(prompt: string): Promise<Document>; end(): Promise<void> }> {
  const stop = new AbortController();
  let run = Promise.resolve();
  const client: PipedClient = await pipedClient({
    async serve({ input, output }) {
      run = runProxy({
        url: daemon.url,
        access: { token: undefined },
        root: project.root,
        isGuess: false,
        home: project.root,
        daemon: undefined,
        maxBytes: 1_000_000,
        clock: realClock(),
        onRemark() {},
        input: input as PassThrough,
        output: output as PassThrough,
        stop: stop.signal,
      });
      return { closed: run, close: () => run };
    },
  });
  await client.begin();
  return {
    async chat(prompt) {
      const { result } = await client.ask('tools/call', { name: 'chat', arguments: { prompt } });
      return { ...JSON.parse(result.content[0].text), isError: result.isError };
    },
    async end() {
      stop.abort();
      await run;
    },
  };
}

/** Every door, and how a client of it asks. */
const doors: Record<string, () => Promise<(prompt: string) => Promise<Document>>> = {
  'the tool API': async () => async prompt => {
    const told = await raw('/api/tools/chat', { prompt }, {});
    expect(told).toMatch(/^HTTP\/1.1 503 [\s\S]*Retry-After: 5/i);
    return documentIn(told);
  },
  'the tool API as events': async () => async prompt =>
    documentIn(await raw('/api/tools/chat', { prompt }, { Accept: 'text/event-stream' })),
  'MCP of 2025 over HTTP': async () => {
    const headers = await legacySession();
    return async prompt => documentIn(await raw('/mcp', call(prompt), { ...accept, ...headers }));
  },
  'MCP of 2026 over HTTP': async () => async prompt => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': eraVersions.modern,
      'io.modelcontextprotocol/clientCapabilities': {},
      'io.modelcontextprotocol/clientInfo': clientInfo,
    };
    const headers = { 'MCP-Protocol-Version': eraVersions.modern, 'Mcp-Method': 'tools/call', 'Mcp-Name': 'chat' };
    return documentIn(await raw('/mcp', call(prompt, { _meta: meta }), { ...accept, ...headers }));
  },
  frames: async () => {
    const client = await helloFrames(`${daemon.url.replace('http', 'ws')}/ws`);
    return async prompt => {
      client.call(prompt, 'chat', { prompt });
      const { error } = await client.result(prompt);
      expect(error).toMatchObject({ code: 'OVER_CAPACITY', retry_after: 5 });
      return { ...error?.detail, isError: true, error: error?.detail };
    };
  },
  'MCP over a WebSocket': async () => {
    const client = await connectWebSocket(`${daemon.url.replace('http', 'ws')}/ws`, 'legacy' satisfies Era);
    return prompt => client.call('chat', { prompt });
  },
  'the bridge': async () => {
    const client = await bridge();
    restarted = client.end;
    return client.chat;
  },
};

const ended = {
  code: 'INTERRUPTED',
  class: 'shutting_down',
  message: expect.stringContaining('stopped before the answer came'),
  next: expect.stringContaining('Resend the call'),
  retryable: true,
  retry_after_s: 5,
};

describe('calls that still run at the end of a drain', () => {
  it.each(Object.keys(doors))('are answered with an error that says to come again, by %s', async name => {
    vendor.script(...Array.from({ length: 3 }, () => ({ fault: 'hang_mid_stream' as const })));
    const ask = await doors[name]?.();
    const asked = ['one', 'two', 'three'].map(each => `What is a door? (${each})`);
    const answers = Promise.all(asked.map(prompt => ask?.(prompt)));
    await expect.poll(() => asked.flatMap(bills).length, { timeout: 20_000 }).toBe(3);
    await daemon.daemon.drain(50);
    await daemon.daemon.close();
    for (const answer of await answers) expect(answer?.error).toMatchObject(ended);
    await expect.poll(() => asked.flatMap(bills)).toEqual([true, true, true]);
    const { threads } = await here('threads', { action: 'list' });
    expect(threads.length).toBe(3);
    for (const { continuation_id } of threads) {
      const shown = await here('threads', { action: 'read', continuation_id });
      expect(JSON.stringify(shown)).toContain('interrupted');
    }
  });

  it('are answered all, a hundred of them, those too that wait for their turn; sent again they are asked once more and no oftener', async () => {
    vendor.byDefault({ fault: 'hang_before_headers' });
    const asked = Array.from({ length: 100 }, (_, at) => `What is a door? (number ${at}.)`);
    const first = Promise.all(
      asked.map((prompt, at) => raw('/api/tools/chat', { prompt }, { 'Idempotency-Key': `call-${at}` })),
    );
    const { load } = daemon.daemon;
    await expect.poll(() => load().callsRunning + load().callsWaiting, { timeout: 30_000 }).toBe(100);
    await daemon.daemon.drain(50);
    await daemon.daemon.close();
    for (const told of await first) {
      expect(told).toMatch(/^HTTP\/1.1 503 /);
      expect(documentIn(told).error).toMatchObject(ended);
    }
    vendor.byDefault({ answer: 'Wood.' });
    const next = await daemon.product.openDaemon({ port: 0 });
    restarted = () => next.close();
    for (const at of [0, 50, 99]) {
      const again = () =>
        fetch(`${next.url}/api/tools/chat`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', 'Idempotency-Key': `call-${at}` },
          body: JSON.stringify({ prompt: asked[at] }),
        });
      const reply = await again();
      expect([reply.status, await reply.json()]).toMatchObject([
        200,
        { status: expect.stringMatching(/success|continuation/) },
      ]);
      expect((await again()).status).toBe(200);
    }
    // On a busy machine the vendor reads what was given up later than that was told.
    const answered = () => asked.flatMap(bills).filter(wasAborted => !wasAborted).length;
    await expect.poll(answered).toBe(3);
  });

  it('of a thread are seen in it, and the thread goes on', async () => {
    const { continuation_id: id } = (await here('chat', { prompt: 'Begin.' })).continuation_offer;
    vendor.script({ fault: 'hang_mid_stream' });
    const told = raw('/api/tools/chat', { prompt: 'And then?', continuation_id: id }, {});
    await expect.poll(() => bills('And then?').length).toBe(1);
    await daemon.daemon.drain(0);
    expect(documentIn(await told)).toMatchObject({ continuation_id: id, error: ended });
    const shown = await here('threads', { action: 'read', continuation_id: id });
    expect(JSON.stringify(shown)).toContain('interrupted');
    const again = await here('chat', { prompt: 'And then?', continuation_id: id });
    expect([again.isError, bills('And then?').length]).toEqual([false, 2]);
  });
});

it('a signal answers the calls of standard input and output before the connection ends', async () => {
  vendor.script({ fault: 'hang_mid_stream' }, { fault: 'hang_mid_stream' });
  const running = await testProduct({ root: project.root, env: env() });
  const [input, output] = [new PassThrough(), new PassThrough()];
  let told = '';
  output.on('data', piece => {
    told += piece;
  });
  const connection = await running.serve({ input, output }, () => undefined);
  const send = (message: object) => input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } });
  for (const id of [2, 3])
    send({ id, method: 'tools/call', params: { name: 'chat', arguments: { prompt: `Number ${id}?` } } });
  await expect.poll(() => bills('Number').length, { timeout: 20_000 }).toBe(2);
  await connection.close(AbortSignal.abort());
  for (const id of [2, 3]) {
    const message = told.split('\n').find(line => line.includes(`"id":${id}`)) ?? '';
    expect(documentIn(message).error).toMatchObject(ended);
  }
  await running.close();
});

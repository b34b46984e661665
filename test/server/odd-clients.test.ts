import { PassThrough } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type TestDaemon, testDaemon } from '../support/daemon.ts';
import { eraVersions } from '../support/mcp-session.ts';
import { type PipedClient, pipedClient } from '../support/piped-client.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

let project: TempProject;
let daemon: TestDaemon;
let running: TestProduct;
let client: PipedClient;

beforeAll(async () => {
  project = await tempProject();
  const place = { root: project.root, env: { OFFLINE: 'true' } };
  [daemon, running] = await Promise.all([testDaemon(place), testProduct(place)]);
});
afterAll(async () => {
  await Promise.all([daemon.close(), running.close()]);
  await project.dispose();
});

const clientInfo = { name: 'odd', version: '1' };
const capabilities = { zork: { deep: [1] }, experimental: { x: {} }, elicitation: { form: {}, y: 1 } };
const hello = { protocolVersion: '2025-11-25', capabilities, clientInfo };
/** The envelope of a 2026 request. */
const meta = (more: object = {}) => ({
  'io.modelcontextprotocol/protocolVersion': eraVersions.modern,
  'io.modelcontextprotocol/clientCapabilities': capabilities,
  'io.modelcontextprotocol/clientInfo': clientInfo,
  ...more,
});
const version = { name: 'version', arguments: {} };

describe('an odd client on standard input', () => {
  afterEach(() => client.close());
  const start = async () => {
    client = await pipedClient(running);
    return client;
  };

  it.each([
    ['1999-01-01', eraVersions.legacy],
    ['2099-01-01', eraVersions.legacy],
    ['', eraVersions.legacy],
    ['2024-11-05', '2024-11-05'],
  ])('that speaks "%s" is offered %s', async (protocolVersion, offered) => {
    const { result } = await (await start()).ask('initialize', { ...hello, protocolVersion });
    expect(result).toMatchObject({ protocolVersion: offered, serverInfo: { name: 'polylogue' } });
  });

  it.each<[string, object | undefined, RegExp]>([
    ['says not who it is', { ...hello, clientInfo: undefined }, /clientInfo/],
    ['says not what it can', { ...hello, capabilities: undefined }, /capabilities/],
    ['has roots of an unknown kind', { ...hello, capabilities: { roots: true } }, /roots/],
    ['says no version', { ...hello, protocolVersion: 7 }, /protocolVersion/],
    ['says nothing', undefined, /params/],
  ])('is told what is wrong when it %s, and may try again', async (_what, params, why) => {
    const { error } = await (await start()).ask('initialize', params);
    expect(error).toMatchObject({ code: -32_602, message: expect.stringMatching(why) });
    expect(error.message).not.toContain('\n');
    expect((await client.begin(capabilities)).result.protocolVersion).toBe(eraVersions.legacy);
    expect((await client.ask('tools/call', version)).result.isError).toBe(false);
  });

  it('may ping and ask before it begins, and begin twice', async () => {
    await start();
    expect(await client.ask('ping')).toMatchObject({ result: {} });
    expect((await client.ask('tools/list')).result.tools.length).toBeGreaterThan(3);
    for (const protocolVersion of ['2025-06-18', '2025-11-25']) {
      expect((await client.begin({}, protocolVersion)).result).toMatchObject({ protocolVersion });
    }
    expect((await client.ask('tools/call', version)).result.isError).toBe(false);
  });

  it('may cancel what is unknown, over or nothing, and answer what nobody asked', async () => {
    await start();
    await client.begin();
    await client.ask('tools/call', version, 'over');
    for (const requestId of ['over', 'unheard-of', 99, undefined, null, { a: 1 }]) {
      client.send({ method: 'notifications/cancelled', params: { requestId, reason: 7 } });
    }
    client.send({ method: 'notifications/cancelled' });
    client.send({ id: 4_711, result: {} });
    client.send({ id: 'x', error: { code: 1, message: 'no' } });
    client.send({ method: 'notifications/progress', params: { progressToken: 'none', progress: 1 } });
    client.send({ method: 'notifications/roots/list_changed' });
    expect(await client.ask('ping')).toMatchObject({ result: {} });
  });

  it.each(['a token', 7, 0])('hears of progress by its own token: %j', async progressToken => {
    await start();
    await client.begin();
    const args = { prompt: `Hi, ${progressToken}.` };
    const { result } = await client.ask('tools/call', { name: 'chat', arguments: args, _meta: { progressToken } });
    expect(result.isError).toBe(false);
    const told = client.heard.filter(({ method }) => method === 'notifications/progress');
    expect(told.length).toBeGreaterThan(0);
    for (const { params } of told) expect(params.progressToken).toBe(progressToken);
  });

  it.each([
    ['no object', 'junk'],
    ['a list', [1]],
    ['with a token that is none', { progressToken: { a: 1 } }],
  ])('is told that its _meta can’t be: %s', async (_what, _meta) => {
    await start();
    await client.begin();
    const { error } = await client.ask('tools/call', { ...version, _meta });
    expect([-32_600, -32_602]).toContain(error.code);
    const fine = { 'not/ours': [1], traceparent: 7, idempotencyKey: { no: 1 }, '': null };
    expect((await client.ask('tools/call', { ...version, _meta: fine })).result.isError).toBe(false);
  });

  it('of 2026 is told which revisions there are, and what its envelope lacks', async () => {
    await start();
    const future = { 'io.modelcontextprotocol/protocolVersion': '2099-01-01' };
    const { error } = await client.ask('tools/call', { ...version, _meta: meta(future) });
    expect(error).toMatchObject({ code: -32_022, data: { supported: [eraVersions.modern], requested: '2099-01-01' } });
    const none = { 'io.modelcontextprotocol/clientCapabilities': undefined };
    const bare = await client.ask('tools/call', { ...version, _meta: meta(none) });
    expect(bare.error).toMatchObject({ code: -32_602, message: expect.stringContaining('clientCapabilities') });
    const nameless = { 'io.modelcontextprotocol/clientInfo': undefined };
    const { result } = await client.ask('tools/call', { ...version, _meta: meta(nameless) });
    expect(result).toMatchObject({ isError: false, resultType: 'complete' });
    for (const method of ['initialize', 'ping', 'logging/setLevel', 'no/such']) {
      const answer = await client.ask(method, { ...(method === 'initialize' ? hello : {}), _meta: meta() });
      expect([method, answer.error.code]).toEqual([method, -32_601]);
    }
    expect((await client.ask('initialize', hello)).error.code).toBe(-32_022);
    client.send({ method: 'notifications/cancelled', params: { requestId: 99, _meta: meta() } });
    expect((await client.ask('tools/list', { _meta: meta() })).result.tools.length).toBeGreaterThan(3);
  });
});

it('finds the answer to a first call whose client left before the product was there, and pays for it once', async () => {
  const vendor = await startOpenAi();
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' };
  const paid = await testProduct({ root: project.root, env });
  const send = (to: PassThrough, message: object) => to.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const chat = { id: 2, method: 'tools/call', params: { name: 'chat', arguments: { prompt: 'Why?' } } };
  const [input, output] = [new PassThrough(), new PassThrough()];
  const served = await paid.serve({ input, output }, () => undefined);
  send(input, { id: 1, method: 'initialize', params: hello });
  send(input, chat);
  input.end();
  await served.closed;
  await served.close();
  expect(vendor.requests).toHaveLength(1);
  const back = await pipedClient(paid);
  await back.begin();
  const { result } = await back.ask(chat.method, chat.params);
  expect(JSON.parse(result.content[0].text).metadata).toMatchObject({ replayed: true });
  await back.close();
  await paid.close();
  expect([vendor.requests.length, vendor.violations]).toEqual([1, []]);
  await vendor.close();
});

describe('a product that can’t be opened', () => {
  const lost: unknown[] = [];
  const onLost = (reason: unknown) => void lost.push(reason);
  beforeAll(() => void process.on('unhandledRejection', onLost));
  afterAll(() => void process.off('unhandledRejection', onLost));
  const aTurn = () => new Promise(resolve => setImmediate(resolve));

  it('says so at the start, to who started it and nobody else', async () => {
    const env: Record<string, string> = { OFFLINE: 'true' };
    const broken = await testProduct({ root: project.root, env });
    Object.assign(env, { POLYLOGUE_STORE: 'redis', REDIS_URL: 'http://127.0.0.1' });
    await expect(pipedClient(broken)).rejects.toMatchObject({ message: expect.stringContaining('REDIS_URL') });
    await aTurn();
    expect(lost).toEqual([]);
    await broken.close();
  });

  it('and is found out by two calls at once answers both, and can be closed', async () => {
    let isBroken = false;
    const uuid = () => {
      if (isBroken) throw new TypeError('no random numbers');
      return crypto.randomUUID();
    };
    const broken = await testProduct({
      root: project.root,
      env: { OFFLINE: 'true' },
      random: { fraction: Math.random, uuid },
    });
    const [input, output] = [new PassThrough(), new PassThrough()];
    let written = '';
    output.on('data', piece => {
      written += piece;
    });
    const served = await broken.serve({ input, output }, () => undefined);
    isBroken = true;
    const ask = (id: number, method: string, params: object) =>
      input.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    ask(1, 'initialize', hello);
    ask(2, 'tools/call', version);
    ask(3, 'tools/call', version);
    await expect(served.closed).rejects.toThrow('no random numbers');
    await expect.poll(() => written, { timeout: 15_000 }).toMatch(/"id":2[\s\S]*"id":3/);
    await served.close();
    await aTurn();
    expect(lost).toEqual([]);
    isBroken = false;
    await broken.close();
  });
});

describe('an odd client over HTTP', () => {
  async function post(message: Document, headers: Record<string, string> = {}) {
    const response = await daemon.ask('/mcp', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
      body: typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message }),
    });
    const text = await response.text();
    const line = /^data: (.*\{.*)$/m.exec(text)?.[1] ?? text;
    return {
      status: response.status,
      id: response.headers.get('mcp-session-id'),
      body: line === '' ? undefined : JSON.parse(line),
    };
  }

  it('is told what is wrong with its beginning', async () => {
    for (const params of [
      { ...hello, clientInfo: undefined },
      { ...hello, capabilities: { roots: true } },
    ]) {
      const { body } = await post({ id: 1, method: 'initialize', params });
      expect(body.error).toMatchObject({ code: expect.toSatisfy(code => [-32_600, -32_602, -32_000].includes(code)) });
    }
    for (const message of ['garbage', '[', '{"foo":1}', '[]', '7', 'null']) {
      const { status, body } = await post(message);
      expect([message, status]).toEqual([message, 400]);
      expect(JSON.stringify(body).length).toBeLessThan(400);
    }
    const { body } = await post({ id: 1, method: 'initialize', params: { ...hello, protocolVersion: '1999-01-01' } });
    expect(body.result.protocolVersion).toBe(eraVersions.legacy);
  });

  it('may do in its session what it may elsewhere', async () => {
    const begun = await post({ id: 1, method: 'initialize', params: hello });
    const session = { 'Mcp-Session-Id': begun.id ?? '', 'MCP-Protocol-Version': eraVersions.legacy };
    expect((await post({ id: 2, method: 'ping' }, session)).body).toMatchObject({ id: 2, result: {} });
    for (const requestId of ['unheard-of', 99, null]) {
      const { status } = await post({ method: 'notifications/cancelled', params: { requestId } }, session);
      expect(status).toBe(202);
    }
    const again = await post({ id: 3, method: 'initialize', params: hello }, session);
    expect([again.status, again.body.error.code]).toEqual([400, -32_600]);
    const wrong = await post({ id: 4, method: 'prompts/get', params: { name: 7 } }, session);
    expect(wrong.body.error).toMatchObject({ code: -32_602, message: expect.stringContaining('name') });
    for (const progressToken of ['a', 7]) {
      const call = { id: 5, method: 'tools/call', params: { ...version, _meta: { progressToken } } };
      expect((await post(call, session)).body.result.isError).toBe(false);
    }
  });

  it('of 2026 is told of each request what is wrong with it', async () => {
    const headers = { 'MCP-Protocol-Version': eraVersions.modern, 'Mcp-Method': 'tools/call', 'Mcp-Name': 'version' };
    const call = (_meta: object) => post({ id: 1, method: 'tools/call', params: { ...version, _meta } }, headers);
    expect((await call(meta())).body.result).toMatchObject({ isError: false, resultType: 'complete' });
    expect((await call(meta({ junk: [1], progressToken: 7 }))).body.result).toMatchObject({ isError: false });
    const bare = await call(meta({ 'io.modelcontextprotocol/clientCapabilities': 7 }));
    expect([bare.status, bare.body.error.code]).toEqual([400, -32_602]);
    const wrong = await post(
      { id: 1, method: 'prompts/get', params: { name: 7, _meta: meta() } },
      { ...headers, 'Mcp-Method': 'prompts/get', 'Mcp-Name': '7' },
    );
    expect(wrong.body.error.code).toBe(-32_602);
  });
});

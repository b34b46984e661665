import { Client } from '@modelcontextprotocol/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import { codeOf, helloFrames, openFrames } from '../../support/frame-client.ts';
import { type Era, eraVersions } from '../../support/mcp-session.ts';
import { vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startXai } from '../../support/vendors/start-xai.ts';
import { webSocketTransport } from '../../support/web-socket-transport.ts';

const alice = 'a-token-of-alice-0001';
const bob = 'a-token-of-bob-000001';
const carol = 'a-token-of-carol-0001';

let project: TempProject;
let vendor: FakeVendor;
let daemon: TestDaemon;
let url: string;

beforeEach(async () => {
  project = await tempProject({ 'src/door.ts': 'export const door = 1;\n' });
  vendor = await startXai();
});

afterEach(async () => {
  await daemon.close();
  await vendor.close();
  await project.dispose();
});

async function start(env: Record<string, string> = {}): Promise<void> {
  daemon = await testDaemon({
    root: project.root,
    env: { ...vendorEnv({ xai: vendor.url }), DETACHED_GRACE_SECONDS: '30', ...env },
    tokens: [
      { name: 'alice', token: alice },
      { name: 'carol', token: carol },
      { name: 'bob', token: bob, read_only: true, toolsets: ['core'], deny: ['consensus'] },
    ],
  });
  url = `${daemon.url.replace('http', 'ws')}/ws`;
}

const idle = () => expect.poll(() => daemon.daemon.load().callsRunning).toBe(0);
const nobody = () => expect.poll(() => daemon.daemon.load().sessions).toBe(0);
const asked = () => vendor.requests.filter(({ dialect }) => dialect !== 'models');
const question = (prompt: string, more: object = {}) => ({
  prompt,
  model: 'grok',
  working_directory_absolute_path: project.root,
  ...more,
});

describe('the frame protocol over the product', () => {
  it('ends a cancelled call at the vendor, and frees its places', async () => {
    await start();
    vendor.script({ fault: 'hang_mid_stream' });
    const client = await helloFrames(url, { token: alice });
    client.call('1', 'chat', question('Why?'));
    await expect.poll(() => asked()).toHaveLength(1);
    client.send({ op: 'cancel', request_id: '1' });
    expect(codeOf(await client.result('1'))).toBe('CANCELLED');
    await asked()[0]?.aborted;
    await idle();
  });

  it('streams an answer as the vendor writes it, and ends with the same text', async () => {
    await start();
    vendor.script({ answer: 'Paris is the capital of France, and has been for long.', chunks: 6, chunkDelayMs: 20 });
    const client = await helloFrames(url, { token: alice });
    client.call('1', 'chat', question('Capital?'), { stream: true });
    const { document, metadata } = await client.result('1');
    const streamed = client.all('stream_chunk', '1').map(({ chunk }) => chunk);
    expect(streamed.length).toBeGreaterThan(1);
    expect(document.content).toContain(streamed.join(''));
    expect(metadata?.latency_metrics).toMatchObject({ provider_name: 'xai', provider_sem_wait_ms: 0 });
  });

  it('tells how long a call waited for its provider', async () => {
    await start({ MAX_CONCURRENT_PER_PROVIDER: 'xai=1' });
    vendor.script({ answer: 'One.', delayMs: 1_500 }, { answer: 'Two.' });
    const client = await helloFrames(url, { token: alice });
    for (const id of ['1', '2']) client.call(id, 'chat', question(`Question ${id}?`));
    const results = await Promise.all(['1', '2'].map(id => client.result(id)));
    const waits = results.map(({ metadata }) => metadata?.latency_metrics.provider_sem_wait_ms ?? -1);
    const [least = 0, most = 0] = waits.toSorted((a, b) => a - b);
    expect(most - least).toBeGreaterThan(200);
  });

  it('gives a client that lost his connection the answer, for one question to the vendor', async () => {
    await start();
    vendor.script({ answer: 'Paris.', delayMs: 600 });
    const first = await helloFrames(url, { token: alice, session: 'editor' });
    first.call('1', 'chat', question('Capital?'));
    await expect.poll(() => asked()).toHaveLength(1);
    first.socket.terminate();
    await nobody();
    const second = await helloFrames(url, { token: alice, session: 'editor' });
    const { document, error } = await second.result('1');
    expect(error).toBeUndefined();
    expect(document.content).toContain('Paris.');
    expect(asked()).toHaveLength(1);
  });

  it('gives it to him from another server too, when he sends the same request there', async () => {
    await start();
    vendor.script({ answer: 'Paris.' }, { answer: 'Rome.' });
    const args = question('Capital?');
    const first = await helloFrames(url, { token: alice, session: 'editor' });
    first.call('1', 'chat', args);
    await first.result('1');
    const other = await daemon.product.openDaemon({ port: 0 });
    const second = await helloFrames(`ws://127.0.0.1:${other.port}/ws`, { token: alice, session: 'editor' });
    expect(second.ack.resumed).toBe(false);
    second.call('1', 'chat', args);
    const { document } = await second.result('1');
    expect(document).toMatchObject({ content: expect.stringContaining('Paris.'), metadata: { replayed: true } });
    second.call('2', 'chat', args);
    expect((await second.result('2')).document.content).toContain('Rome.');
    expect(asked()).toHaveLength(2);
    await other.close();
  });

  it('interrupts a call whose client stays away for the grace time', async () => {
    await start({ DETACHED_GRACE_SECONDS: '1' });
    vendor.script({ fault: 'hang_mid_stream' });
    const args = question('Why?');
    const client = await helloFrames(url, { token: alice, session: 'editor' });
    client.call('1', 'chat', args);
    await expect.poll(() => asked()).toHaveLength(1);
    client.socket.terminate();
    await asked()[0]?.aborted;
    await idle();
    const again = await helloFrames(url, { token: alice, session: 'editor' });
    const told = { error: { code: 'CANCELLED', message: expect.stringContaining('caller was gone') } };
    expect(await again.result('1')).toMatchObject(told);
    again.call('1', 'chat', args);
    expect(await again.result('1', 1)).toMatchObject({
      error: { code: 'EXEC_ERROR', detail: { code: 'INTERRUPTED' } },
    });
    expect(asked()).toHaveLength(1);
  });

  it('keeps owners apart: nobody goes on with, reads or is told of another’s thread', async () => {
    await start();
    vendor.script({ answer: 'The secret is pomegranate.' });
    const hers = await helloFrames(url, { token: alice, session: 'editor' });
    hers.call('1', 'chat', question('Say it.'));
    const { continuation_id: thread } = (await hers.result('1')).document.continuation_offer;
    const his = await helloFrames(url, { token: carol, session: 'editor' });
    his.call('1', 'chat', question('Go on.', { continuation_id: thread }));
    his.call('2', 'threads', { action: 'read', continuation_id: thread });
    his.call('3', 'threads', { action: 'list' });
    expect(await his.result('1')).toMatchObject({
      error: { code: 'INVALID_REQUEST', detail: { code: 'THREAD_NOT_FOUND' } },
    });
    expect(codeOf(await his.result('2'))).toBe('INVALID_REQUEST');
    expect((await his.result('3')).error).toBeUndefined();
    expect(JSON.stringify(his.frames)).not.toContain('pomegranate');
    hers.call('2', 'threads', { action: 'read', continuation_id: thread });
    expect((await hers.result('2')).text).toContain('pomegranate');
  });

  it('answers wrong arguments with what is wrong, and tools that are none with names that are', async () => {
    await start();
    const client = await helloFrames(url, { token: alice });
    client.call('1', 'chat', {});
    client.call('2', 'chatt', question('Hi'));
    expect(await client.result('1')).toMatchObject({
      error: { code: 'INVALID_REQUEST', tool: 'chat', detail: { validation_errors: expect.any(Array) } },
    });
    expect(await client.result('2')).toMatchObject({ error: { code: 'TOOL_NOT_FOUND', tool: 'chatt' } });
  });
});

describe('what a token allows', () => {
  it('holds over frames: other tools are not there, and nothing is written', async () => {
    await start();
    const his = await helloFrames(url, { token: bob });
    his.send({ op: 'list_tools' });
    const names = (await his.next('list_tools_res')).tools.map(({ name }) => name);
    expect(names).toContain('chat');
    expect(names).not.toContain('consensus');
    expect(names).not.toContain('codereview');
    his.call('1', 'consensus', { prompt: 'Good?' });
    his.call('2', 'threads', { action: 'delete', continuation_id: 'last', confirm: true });
    expect(codeOf(await his.result('1'))).toBe('TOOL_NOT_FOUND');
    expect(await his.result('2')).toMatchObject({ error: { detail: { code: 'SECURITY' } } });
  });

  it('holds for the project that a hello declares', async () => {
    await start();
    const torn = await openFrames(url);
    torn.send({ op: 'hello', token: alice, root: '/' });
    expect(await torn.closed).toMatchObject({ code: 4000 });
    expect(torn.frames).toEqual([expect.objectContaining({ ok: false, error: 'invalid_hello' })]);
    const within = await helloFrames(url, { token: alice, root: `${project.root}/src` });
    within.call('1', 'chat', { prompt: 'What is it?', model: 'grok', absolute_file_paths: ['door.ts'] });
    const { document } = await within.result('1');
    expect(document.metadata.files.embedded).toEqual([`${project.root}/src/door.ts`]);
    const headers = { authorization: `Bearer ${alice}`, 'polylogue-root': encodeURIComponent(`${project.root}/src`) };
    const named = await helloFrames(url, { headers });
    named.call('1', 'chat', { prompt: 'What is it?', model: 'grok', absolute_file_paths: ['door.ts'] });
    expect((await named.result('1')).document.metadata.files.embedded).toHaveLength(1);
    const mcp = webSocketTransport(url, { ...headers, 'polylogue-root': '/' });
    await expect(new Client({ name: 'x', version: '1' }).connect(mcp)).rejects.toThrow('403');
  });

  it('decides before a connection becomes a WebSocket', async () => {
    await start();
    for (const [headers, status] of [
      [{ authorization: 'Bearer a-token-of-alice-0002' }, '401'],
      [{ authorization: `Bearer ${alice}`, origin: 'https://evil.example' }, '403'],
      [{ authorization: `Bearer ${alice}`, host: 'evil.example' }, '403'],
    ] as const) {
      await expect(openFrames(url, { headers })).rejects.toThrow(status);
    }
    await expect(openFrames(url.replace('/ws', '/mcp'))).rejects.toThrow('404');
    expect(daemon.daemon.load().sessions).toBe(0);
  });
});

describe('the ceiling of a call', () => {
  it('follows from what is asked, and of whom', async () => {
    await start({ POLYLOGUE_WS_CALL_TIMEOUT: '91' });
    const client = await helloFrames(url, { token: alice });
    const fast = question('Hi', { model: 'grok-4.20-non-reasoning' });
    client.call('quick', 'version');
    client.call('plain', 'chat', fast);
    client.call('files', 'chat', { ...fast, absolute_file_paths: [`${project.root}/src/door.ts`] });
    client.call('thinks', 'chat', question('Hi'));
    const timeout = async (id: string) => (await client.next('call_tool_ack', id)).timeout;
    expect(await timeout('quick')).toBe(91);
    expect(await timeout('plain')).toBe(91);
    expect(await timeout('files')).toBe(300);
    expect(await timeout('thinks')).toBe(1_200);
    await Promise.all(['quick', 'plain', 'files', 'thinks'].map(id => client.result(id)));
  });

  it('ends the call at the vendor', async () => {
    await start();
    vendor.script({ fault: 'hang_mid_stream' });
    const client = await helloFrames(url, { token: alice });
    client.call('1', 'chat', question('Why?'), { timeout: 0.8 });
    expect(codeOf(await client.result('1'))).toBe('TIMEOUT');
    await asked()[0]?.aborted;
    await idle();
  });
});

describe('MCP over a WebSocket', () => {
  const headers = { authorization: `Bearer ${alice}` };

  async function connected(era: Exclude<Era, 'auto'>) {
    const transport = webSocketTransport(url, headers);
    const mode = era === 'modern' ? { pin: eraVersions.modern } : era;
    const client = new Client({ name: 'ws-test', version: '1.0.0' }, { versionNegotiation: { mode } });
    await client.connect(transport);
    return { client, transport };
  }

  it.each(['legacy', 'modern'] as const)('serves a client of the %s era like any other', async era => {
    await start();
    vendor.script({ answer: 'Paris.' });
    const { client } = await connected(era);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('chat');
    const notes: unknown[] = [];
    const onprogress = (update: unknown) => void notes.push(update);
    const result = await client.callTool({ name: 'chat', arguments: question('Capital?') }, { onprogress });
    const [block] = result.content;
    expect(block?.type === 'text' && JSON.parse(block.text)).toMatchObject({
      content: expect.stringContaining('Paris.'),
    });
    expect(notes.length).toBeGreaterThan(0);
    await client.close();
    await nobody();
  });

  it.each(['legacy', 'modern'] as const)('ends a call at the vendor that a %s client cancels', async era => {
    await start();
    vendor.script({ fault: 'hang_mid_stream' });
    const { client } = await connected(era);
    const stop = new AbortController();
    const call = client.callTool({ name: 'chat', arguments: question('Why?') }, { signal: stop.signal });
    await expect.poll(() => asked()).toHaveLength(1);
    stop.abort();
    await expect(call).rejects.toThrow();
    await asked()[0]?.aborted;
    await client.close();
  });

  it('gives the same call the answer of the first one, whose client lost his connection', async () => {
    await start();
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'Paris.', when: promise });
    const first = await connected('legacy');
    const args = question('Capital?');
    const lost = first.client.callTool({ name: 'chat', arguments: args }).catch(error => error);
    await expect.poll(() => asked()).toHaveLength(1);
    first.transport.drop();
    expect(await lost).toBeInstanceOf(Error);
    resolve();
    const second = await connected('legacy');
    const result = await second.client.callTool({ name: 'chat', arguments: args });
    expect(JSON.stringify(result.content)).toContain('Paris.');
    expect(asked()).toHaveLength(1);
    await second.client.close();
  });

  it('takes the token before anything else', async () => {
    await start();
    const none: Record<string, string> = {};
    for (const bad of [none, { authorization: 'Bearer a-token-of-alice-0002' }]) {
      await expect(new Client({ name: 'x', version: '1' }).connect(webSocketTransport(url, bad))).rejects.toThrow(
        '401',
      );
    }
    expect(daemon.daemon.load().sessions).toBe(0);
  });

  it('answers what is no JSON, or no JSON-RPC, and goes on', async () => {
    await start();
    const transport = webSocketTransport(url, headers);
    const answers: unknown[] = [];
    transport.onmessage = message => void answers.push(message);
    await transport.start();
    const raw = (message: unknown) => transport.send(JSON.parse(JSON.stringify(message)));
    await raw('{{{');
    await raw({ jsonrpc: '1.0', id: 1, method: 'ping' });
    await raw([[[]]]);
    await expect.poll(() => answers).toHaveLength(3);
    expect(answers).toEqual(
      [null, 1, null].map(id => ({ jsonrpc: '2.0', id, error: { code: -32_600, message: expect.any(String) } })),
    );
    await transport.close();
  });
});

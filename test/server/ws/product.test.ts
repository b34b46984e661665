import { Client } from '@modelcontextprotocol/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { codeOf, helloFrames } from '../../support/frame-client.ts';
import { type Era, eraVersions } from '../../support/mcp-session.ts';
import { type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startXai } from '../../support/vendors/start-xai.ts';
import { webSocketTransport } from '../../support/web-socket-transport.ts';
import { startWsDoor, type TestDoor } from '../../support/ws-door.ts';

const alice = 'a-token-of-alice-0001';
const bob = 'a-token-of-bob-000001';

let project: TempProject;
let product: TestProduct;
let vendor: FakeVendor;
let door: TestDoor;

beforeEach(async () => {
  project = await tempProject();
  vendor = await startXai();
});

afterEach(async () => {
  await door.close();
  expect(door.errors).toEqual([]);
  await product.close();
  await vendor.close();
  await project.dispose();
});

async function start(env: Record<string, string> = {}): Promise<void> {
  product = await testProduct({ root: project.root, env: { ...vendorEnv({ xai: vendor.url }), ...env } });
  const { host } = product.product;
  door = await startWsDoor({ host, root: project.root, tokens: { [alice]: 'alice', [bob]: 'bob' } });
}

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
    const client = await helloFrames(door.url, { token: alice });
    client.call('1', 'chat', question('Why?'));
    await vi.waitFor(() => expect(asked()).toHaveLength(1), 5_000);
    client.send({ op: 'cancel', request_id: '1' });
    expect(codeOf(await client.result('1'))).toBe('CANCELLED');
    await asked()[0]?.aborted;
    await vi.waitFor(() => expect(door.capacity.running()).toBe(0));
  });

  it('streams an answer as the vendor writes it, and ends with the same text', async () => {
    await start();
    vendor.script({ answer: 'Paris is the capital of France, and has been for long.', chunks: 6, chunkDelayMs: 20 });
    const client = await helloFrames(door.url, { token: alice });
    client.call('1', 'chat', question('Capital?'), { stream: true });
    const { document, metadata } = await client.result('1');
    const streamed = client.all('stream_chunk', '1').map(({ chunk }) => chunk);
    expect(streamed.length).toBeGreaterThan(1);
    expect(document.content).toContain(streamed.join(''));
    expect(metadata?.latency_metrics).toMatchObject({ provider_name: 'xai', provider_sem_wait_ms: 0 });
  });

  it('gives a client that lost his connection the answer, for one question to the vendor', async () => {
    await start();
    vendor.script({ answer: 'Paris.', delayMs: 600 });
    const first = await helloFrames(door.url, { token: alice, session: 'editor' });
    first.call('1', 'chat', question('Capital?'));
    await vi.waitFor(() => expect(asked()).toHaveLength(1), 5_000);
    first.socket.terminate();
    await vi.waitFor(() => expect(door.door.connections()).toBe(0));
    const second = await helloFrames(door.url, { token: alice, session: 'editor' });
    const { document, error } = await second.result('1');
    expect(error).toBeUndefined();
    expect(document.content).toContain('Paris.');
    expect(asked()).toHaveLength(1);
  });

  it('gives it to him from another server too, when he sends the same request there', async () => {
    await start();
    vendor.script({ answer: 'Paris.' }, { answer: 'Rome.' });
    const args = question('Capital?');
    const first = await helloFrames(door.url, { token: alice, session: 'editor' });
    first.call('1', 'chat', args);
    await first.result('1');
    await door.close();
    const { host } = product.product;
    door = await startWsDoor({ host, root: project.root, tokens: { [alice]: 'alice', [bob]: 'bob' } });
    const second = await helloFrames(door.url, { token: alice, session: 'editor' });
    expect(second.ack.resumed).toBe(false);
    second.call('1', 'chat', args);
    const { document } = await second.result('1');
    expect(document).toMatchObject({ content: expect.stringContaining('Paris.'), metadata: { replayed: true } });
    second.call('2', 'chat', args);
    expect((await second.result('2')).document.content).toContain('Rome.');
    expect(asked()).toHaveLength(2);
  });

  it('interrupts a call whose client stays away for the grace time', async () => {
    await start({ DETACHED_GRACE_SECONDS: '1' });
    vendor.script({ fault: 'hang_mid_stream' });
    const args = question('Why?');
    const client = await helloFrames(door.url, { token: alice, session: 'editor' });
    client.call('1', 'chat', args);
    await vi.waitFor(() => expect(asked()).toHaveLength(1), 5_000);
    client.socket.terminate();
    await asked()[0]?.aborted;
    await vi.waitFor(() => expect(door.capacity.running()).toBe(0));
    const again = await helloFrames(door.url, { token: alice, session: 'editor' });
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
    const hers = await helloFrames(door.url, { token: alice, session: 'editor' });
    hers.call('1', 'chat', question('Say it.'));
    const { continuation_id: thread } = (await hers.result('1')).document.continuation_offer;
    const his = await helloFrames(door.url, { token: bob, session: 'editor' });
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
    const client = await helloFrames(door.url, { token: alice });
    client.call('1', 'chat', {});
    client.call('2', 'chatt', question('Hi'));
    expect(await client.result('1')).toMatchObject({
      error: { code: 'INVALID_REQUEST', tool: 'chat', detail: { validation_errors: expect.any(Array) } },
    });
    expect(await client.result('2')).toMatchObject({ error: { code: 'TOOL_NOT_FOUND', tool: 'chatt' } });
  });
});

describe('MCP over a WebSocket', () => {
  const headers = { authorization: `Bearer ${alice}` };

  async function connected(era: Exclude<Era, 'auto'>) {
    const transport = webSocketTransport(door.url, headers);
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
    await vi.waitFor(() => expect(door.door.connections()).toBe(0));
  });

  it.each(['legacy', 'modern'] as const)('ends a call at the vendor that a %s client cancels', async era => {
    await start();
    vendor.script({ fault: 'hang_mid_stream' });
    const { client } = await connected(era);
    const stop = new AbortController();
    const call = client.callTool({ name: 'chat', arguments: question('Why?') }, { signal: stop.signal });
    await vi.waitFor(() => expect(asked()).toHaveLength(1), 5_000);
    stop.abort();
    await expect(call).rejects.toThrow();
    await asked()[0]?.aborted;
    await client.close();
  });

  it('gives the same call the answer of the first one, whose client lost his connection', async () => {
    await start();
    vendor.script({ answer: 'Paris.', delayMs: 500 });
    const first = await connected('legacy');
    const args = question('Capital?');
    const lost = first.client.callTool({ name: 'chat', arguments: args }).catch(error => error);
    await vi.waitFor(() => expect(asked()).toHaveLength(1), 5_000);
    first.transport.drop();
    expect(await lost).toBeInstanceOf(Error);
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
      await expect(new Client({ name: 'x', version: '1' }).connect(webSocketTransport(door.url, bad))).rejects.toThrow(
        '401',
      );
    }
    expect(door.door.connections()).toBe(0);
  });

  it('answers what is no JSON, or no JSON-RPC, and goes on', async () => {
    await start();
    const transport = webSocketTransport(door.url, headers);
    const answers: unknown[] = [];
    transport.onmessage = message => void answers.push(message);
    await transport.start();
    const raw = (message: unknown) => transport.send(JSON.parse(JSON.stringify(message)));
    await raw('{{{');
    await raw({ jsonrpc: '1.0', id: 1, method: 'ping' });
    await raw([[[]]]);
    await vi.waitFor(() => expect(answers).toHaveLength(3));
    expect(answers).toEqual(
      Array.from({ length: 3 }, () => ({
        jsonrpc: '2.0',
        id: null,
        error: { code: -32_600, message: expect.any(String) },
      })),
    );
    await transport.close();
  });
});

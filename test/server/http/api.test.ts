import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import { type Document, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

let vendor: FakeVendor;
let project: TempProject;
let daemon: TestDaemon;
let env: Record<string, string>;

beforeAll(async () => {
  [vendor, project] = await Promise.all([startOpenAi(), tempProject()]);
  env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini' };
  daemon = await testDaemon({ root: project.root, env });
});

afterAll(async () => {
  await daemon.close();
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose()]);
});

const post = (body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json', ...headers },
  body: typeof body === 'string' ? body : JSON.stringify(body),
  ...(signal && { signal }),
});

const chat = (prompt: string, headers?: Record<string, string>, signal?: AbortSignal) =>
  daemon.ask('/api/tools/chat', post({ prompt }, headers, signal));

describe('/api/tools', () => {
  it('lists what MCP clients see', async () => {
    const listed: Document = await (await daemon.ask('/api/tools')).json();
    expect(listed.tools).toEqual(JSON.parse(JSON.stringify(daemon.product.host.list())));
  });

  it('answers a call with its document', async () => {
    vendor.script({ answer: 'A door.' });
    const response = await chat('What is it?');
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json']);
    expect(await response.json()).toMatchObject({ content: expect.stringContaining('A door.') });
  });

  it('tells failures by status and document', async () => {
    const unknown = await daemon.ask('/api/tools/nonsense', post({}));
    expect([unknown.status, await unknown.json()]).toMatchObject([404, { error: { code: 'TOOL_NOT_FOUND' } }]);
    const missing = await daemon.ask('/api/tools/chat', post({}));
    expect([missing.status, await missing.json()]).toMatchObject([400, { status: 'error' }]);
    const list = await daemon.ask('/api/tools/chat', post([]));
    expect([list.status, await list.json()]).toMatchObject([400, { error: { class: 'json' } }]);
    // On a daemon of its own, which asks this vendor no more afterwards.
    const other = await testDaemon({ root: project.root, env });
    vendor.script({ fault: 'status', status: 401 });
    const failed = await other.ask('/api/tools/chat', post({ prompt: 'Who?' }));
    expect([failed.status, await failed.json()]).toMatchObject([502, { error: { code: 'API_ERROR' } }]);
    await other.close();
  });

  it('streams progress, then the result', async () => {
    vendor.script({ answer: 'In time.', delayMs: 30 });
    const response = await daemon.ask('/api/tools/chat', post({ prompt: 'When?' }, { Accept: 'text/event-stream' }));
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const events = (await response.text()).trim().split('\n\n');
    expect(events.slice(0, -1).every(event => event.startsWith('event: progress\ndata: '))).toBe(true);
    expect(events.length).toBeGreaterThan(1);
    const [name, data = ''] = events.at(-1)?.split('\n') ?? [];
    expect(name).toBe('event: result');
    expect(JSON.parse(data.slice(6))).toMatchObject({
      is_error: false,
      reply: { content: expect.stringContaining('In time.') },
    });
  });

  it.each(['application/json', 'text/event-stream'])(
    'ends the work of a client that is gone, down to the vendor (%s)',
    async Accept => {
      const before = vendor.requests.length;
      vendor.script({ fault: 'hang_after_headers' });
      const gone = new AbortController();
      const asked = chat(`Hang for ${Accept}.`, { Accept }, gone.signal)
        .then(response => response.text())
        .catch(error => error);
      await expect.poll(() => vendor.requests.length).toBe(before + 1);
      gone.abort();
      await vendor.requests[before]!.aborted;
      expect(await asked).toMatchObject({ name: 'AbortError' });
    },
  );

  it('gives a named call its answer once more, and no other call under that name', async () => {
    const key = { 'Idempotency-Key': 'order-1' };
    vendor.script({ answer: 'Paid once.' });
    const first: Document = await (await chat('Pay.', key)).json();
    const before = vendor.requests.length;
    const again = await (await chat('Pay.', key)).json();
    expect(vendor.requests.length).toBe(before);
    expect(again).toMatchObject({ content: first.content, metadata: { replayed: true } });
    const other = await chat('Pay more.', key);
    expect([other.status, await other.json()]).toMatchObject([400, { error: { class: 'idempotency_key' } }]);
  });

  it('keeps a named call going for a client that comes back', async () => {
    const key = { 'Idempotency-Key': 'order-2' };
    const before = vendor.requests.length;
    vendor.script({ answer: 'Kept.', delayMs: 300 });
    const gone = new AbortController();
    const lost = chat('Keep.', key, gone.signal).catch(error => error);
    await expect.poll(() => vendor.requests.length).toBe(before + 1);
    gone.abort();
    await lost;
    expect(await (await chat('Keep.', key)).json()).toMatchObject({ content: expect.stringContaining('Kept.') });
    expect(vendor.requests.length).toBe(before + 1);
  });

  it('asks again for the same call once it was answered', async () => {
    const before = vendor.requests.length;
    await (await chat('Twice.')).text();
    await (await chat('Twice.')).text();
    expect(vendor.requests.length).toBe(before + 2);
  });
});

describe('a port', () => {
  it('says that it lives and is ready to whoever asks', async () => {
    expect(await (await daemon.ask('/healthz')).json()).toMatchObject({ status: 'ok' });
    expect(await (await daemon.ask('/readyz')).json()).toEqual({ status: 'ready' });
  });

  it('is told apart from what is not there', async () => {
    for (const path of ['/api', '/api/tools/', '/api/tools/a/b', '/mcp/x', '/api/tools/%2e%2e']) {
      expect((await daemon.ask(path)).status, path).toBe(404);
    }
    // As some clients have it.
    expect((await daemon.ask('/mcp/')).status).toBe((await daemon.ask('/mcp')).status);
    const wrong = await daemon.ask('/api/tools', { method: 'DELETE' });
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    const text = await daemon.ask('/api/tools/chat', { method: 'POST', body: 'prompt=hello' });
    expect([text.status, await text.json()]).toMatchObject([415, { error: { class: 'type' } }]);
  });
});

import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import type { HttpSession } from '../../support/http-session.ts';
import type { Era } from '../../support/mcp-session.ts';
import { type Document, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

const tokenOf = (name: string) => `the-token-of-${name}-0123456789`;

let vendor: FakeVendor;
let project: TempProject;
let elsewhere: TempProject;
let daemon: TestDaemon;

beforeAll(async () => {
  [vendor, project, elsewhere] = await Promise.all([
    startOpenAi(),
    tempProject({ 'docs/a.md': 'the open word is heron\n', 'src/b.ts': 'export const hidden = "osprey";\n' }),
    tempProject({ 'c.md': 'the far word is plover\n' }),
  ]);
  await mkdir(project.path('docs/deep'), { recursive: true });
  const named = (name: string, more: Record<string, unknown> = {}) => ({ name, token: tokenOf(name), ...more });
  daemon = await testDaemon({
    root: project.root,
    env: {
      ...vendorEnv({ openai: vendor.url }),
      DEFAULT_MODEL: 'gpt-5-mini',
      CALL_PATIENCE_SECONDS: '1',
      POLYLOGUE_TOOLSETS: 'core,code,files,ops,transfer',
    },
    tokens: [
      named('ann'),
      named('bob'),
      named('reader', { read_only: true, owner: 'ann' }),
      named('metrics', { read_only: true, owner: 'ann', toolsets: [] }),
      named('asks', { owner: 'ann', allow: ['chat', 'job'] }),
      named('narrow', { allow: ['chat', 'thread*'], deny: ['threads'] }),
      named('docs', { roots: [project.path('docs'), elsewhere.root] }),
      named('poor', { max_cost_per_day: 0.000001 }),
      named('broke', { max_cost_per_day: 0 }),
    ],
  });
});

afterAll(async () => {
  await daemon.close();
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose(), elsewhere.dispose()]);
});

const call = async (
  name: string,
  tool: string,
  args: Record<string, unknown>,
  headers: Record<string, string> = {},
) => {
  const response = await daemon.ask(`/api/tools/${tool}`, {
    method: 'POST',
    token: tokenOf(name),
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(args),
  });
  const document: Document = await response.json();
  return { ...document, http: response.status };
};

/** What the vendor is shown when these files are to be read; nothing where nobody is asked. */
async function read(name: string, files: readonly string[], headers: Record<string, string> = {}): Promise<string> {
  const before = vendor.requests.length;
  await call(name, 'chat', { prompt: `Read ${files.join(', ')}.`, absolute_file_paths: files }, headers);
  return JSON.stringify(vendor.requests.slice(before).map(({ messages }) => messages));
}

describe('another owner’s', () => {
  let id: string;
  let job: string;

  beforeAll(async () => {
    vendor.script({ answer: 'Ann’s secret is kestrel.' });
    const reply = await call('ann', 'chat', { prompt: 'Keep my secret: kestrel.' });
    id = reply.continuation_offer.continuation_id;
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'Ann’s slow answer.', when: promise });
    const session = await daemon.connect('legacy', { token: tokenOf('ann') });
    const slow = await session.call('chat', { prompt: 'Slowly, for ann.' });
    job = slow.job_id;
    expect(slow.status).toBe('running');
    resolve();
    await session.close();
  });

  it('thread is as unknown as one that never was, at every tool', async () => {
    const before = vendor.requests.length;
    const tries = [
      call('bob', 'chat', { prompt: 'Go on.', continuation_id: id }),
      call('bob', 'threads', { action: 'read', continuation_id: id }),
      call('bob', 'threads', { action: 'sent', continuation_id: id }),
      call('bob', 'threads', { action: 'fork', continuation_id: id, turn: 2 }),
      call('bob', 'threads', { action: 'delete', continuation_id: id, confirm: true }),
      call('bob', 'export_thread', { continuation_id: id }),
    ];
    for (const reply of await Promise.all(tries)) {
      expect([reply.status, JSON.stringify(reply).includes('kestrel')]).toEqual(['error', false]);
    }
    expect((await call('bob', 'chat', { prompt: 'Go on.', continuation_id: 'last' })).status).toBe('error');
    expect(vendor.requests.length).toBe(before);
    for (const query of [
      { action: 'list', everywhere: true },
      { action: 'search', query: 'kestrel', everywhere: true },
    ]) {
      expect(JSON.stringify(await call('bob', 'threads', query))).not.toContain('kestrel');
    }
    expect((await call('bob', 'threads', { action: 'delete_all', confirm: true })).deleted ?? []).toEqual([]);
    expect((await call('ann', 'threads', { action: 'read', continuation_id: id })).status).not.toBe('error');
  });

  it.each<Era>(['legacy', 'modern'])('thread, job and result are not there for clients of the %s era', async era => {
    const bob = await daemon.connect(era, { token: tokenOf('bob') });
    const { client } = bob;
    for (const uri of [`polylogue://threads/${id}`, `polylogue://jobs/${job}`]) {
      await expect(client.readResource({ uri })).rejects.toThrow();
    }
    const { resources } = await client.listResources();
    expect(JSON.stringify(resources)).not.toContain(id);
    const ref = { type: 'ref/resource', uri: 'polylogue://threads/{id}' } as const;
    const { completion } = await client.complete({ ref, argument: { name: 'id', value: '' } });
    expect(completion.values).not.toContain(id);
    for (const action of ['wait', 'cancel']) {
      expect(await bob.call('job', { job_id: job, action, wait_ms: 0 })).toMatchObject({ isError: true });
    }
    const ann = await daemon.connect(era, { token: tokenOf('ann') });
    expect(JSON.stringify(await ann.client.readResource({ uri: `polylogue://threads/${id}` }))).toContain('kestrel');
    expect((await ann.call('job', { job_id: job })).isError).toBe(false);
    const cancelled = await call('reader', 'job', { job_id: job, action: 'cancel' });
    expect([cancelled.error.class, cancelled.error.message]).toEqual(['read_only', expect.stringMatching(/read-only/)]);
    expect((await call('reader', 'job', { job_id: job, action: 'status' })).status).not.toBe('error');
  });

  it.each<Era>(['legacy', 'modern'])(
    'what a token may not call it does not see as a resource either (%s)',
    async era => {
      const ref = { type: 'ref/resource', uri: 'polylogue://threads/{id}' } as const;
      const seen = async (name: string) => {
        const { client, close } = await daemon.connect(era, { token: tokenOf(name) });
        const isThere = (uri: string) =>
          client.readResource({ uri }).then(
            () => true,
            () => false,
          );
        const { resources } = await client.listResources();
        const { completion } = await client.complete({ ref, argument: { name: 'id', value: '' } });
        const { resourceTemplates } = await client.listResourceTemplates();
        const found = {
          threads: [await isThere(`polylogue://threads/${id}`), await isThere(`polylogue://threads/${id}/turns/2`)],
          jobs: [await isThere(`polylogue://jobs/${job}`)],
          listed: ['threads', 'jobs', 'models'].filter(kind =>
            resources.some(({ uri }) => uri.startsWith(`polylogue://${kind}`)),
          ),
          templates: resourceTemplates.map(({ name: kind }) => kind),
          completed: completion.values.includes(id),
        };
        await close();
        return found;
      };
      const all = ['threads', 'jobs', 'models'];
      const templates = ['thread', 'turn', 'job'];
      expect(await seen('ann')).toEqual({
        threads: [true, true],
        jobs: [true],
        listed: all,
        templates,
        completed: true,
      });
      const none = { threads: [false, false], jobs: [false], listed: ['models'], templates: [], completed: false };
      expect(await seen('metrics')).toEqual(none);
      const jobs = { jobs: [true], listed: ['jobs', 'models'], templates: ['job'] };
      expect(await seen('asks')).toEqual({ ...none, ...jobs });
    },
  );

  it('session can’t be spoken in, listened to, or ended', async () => {
    const ann = await daemon.connect('legacy', { token: tokenOf('ann') });
    const headers = { 'Mcp-Session-Id': ann.sessionId() ?? '', Accept: 'application/json, text/event-stream' };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    const json = { ...headers, 'Content-Type': 'application/json' };
    const as = (name: string, init: RequestInit) => daemon.ask('/mcp', { token: tokenOf(name), ...init });
    for (const init of [{ method: 'POST', headers: json, body }, { headers }, { method: 'DELETE', headers }]) {
      expect((await as('bob', init)).status).toBe(404);
      // The same owner by another token has other permissions.
      expect((await as('reader', init)).status).toBe(404);
    }
    expect((await ann.client.listTools()).tools.length).toBeGreaterThan(0);
  });

  it('named call gives nobody else its answer', async () => {
    const key = { 'Idempotency-Key': 'shared-name' };
    vendor.script({ answer: 'For ann alone.' });
    expect((await call('ann', 'chat', { prompt: 'Same words.' }, key)).content).toContain('For ann alone.');
    vendor.script({ answer: 'For bob.' });
    expect((await call('bob', 'chat', { prompt: 'Same words.' }, key)).content).toContain('For bob.');
  });

  it('spending, events and caches are not shown', async () => {
    const shown = JSON.stringify(await call('bob', 'status', {}));
    expect(shown).not.toContain(id);
    expect(JSON.stringify(await call('bob', 'activity', {}))).not.toContain('kestrel');
  });
});

describe('a token', () => {
  it('that only reads can’t write a file, nor change or delete a thread, at any door', async () => {
    const { tools } = (await (await daemon.ask('/api/tools', { token: tokenOf('reader') })).json()) as Document;
    expect(tools.some((tool: Document) => tool.annotations.destructiveHint)).toBe(false);
    const output = join(project.root, 'leak.jsonl');
    vendor.script({ answer: 'Ann’s.' });
    const mine = await call('ann', 'chat', { prompt: 'Mine.' });
    const id = mine.continuation_offer.continuation_id;
    const sessions: HttpSession[] = [];
    for (const era of ['legacy', 'modern'] as const)
      sessions.push(await daemon.connect(era, { token: tokenOf('reader') }));
    const tries: [string, Record<string, unknown>][] = [
      ['threads', { action: 'delete', continuation_id: id, confirm: true }],
      ['threads', { action: 'delete_all', confirm: true }],
      ['threads', { action: 'fork', continuation_id: id, turn: 1 }],
      ['import_thread', { file_path: output }],
      ['prompt_from_file_to_file', { file_path: project.path('docs/a.md'), output_dir: project.root }],
    ];
    for (const [tool, args] of tries) {
      expect(await call('reader', tool, args), tool).toMatchObject({ status: 'error' });
      for (const session of sessions) expect(await session.call(tool, args), tool).toMatchObject({ isError: true });
    }
    expect((await call('ann', 'threads', { action: 'read', continuation_id: id })).status).not.toBe('error');
    // What it may read it may take along, but not into a file here.
    await call('reader', 'export_thread', { continuation_id: id, output_path: output });
    await expect(readFile(output)).rejects.toThrow('ENOENT');
  });

  it('with names of tools has those alone, listed or not', async () => {
    const { tools } = (await (await daemon.ask('/api/tools', { token: tokenOf('narrow') })).json()) as Document;
    expect(tools.map((tool: Document) => tool.name)).toEqual(['chat']);
    for (const tool of ['threads', 'codereview', 'job', 'version', 'listmodels']) {
      expect(await call('narrow', tool, {})).toMatchObject({ http: 404, error: { code: 'TOOL_NOT_FOUND' } });
    }
  });

  it('with roots reads there alone, and only within those of the daemon', async () => {
    expect(await read('docs', [project.path('docs/a.md')])).toContain('heron');
    expect(await read('docs', ['a.md'])).toContain('heron');
    for (const path of [project.path('src/b.ts'), '../src/b.ts', elsewhere.path('c.md')]) {
      expect(await read('docs', [path, 'a.md'])).not.toMatch(/osprey|plover/);
    }
    expect(await read('ann', ['src/b.ts'])).toContain('osprey');
  });

  it('may narrow itself to a project that it names, and to none beyond its own', async () => {
    const at = (path: string) => ({ 'Polylogue-Root': encodeURIComponent(path) });
    const docs = at(project.path('docs'));
    expect(await read('ann', ['a.md'], docs)).toContain('heron');
    expect(await read('ann', [project.path('src/b.ts')], docs)).not.toContain('osprey');
    for (const [name, path] of [
      ['ann', elsewhere.root],
      ['ann', '/'],
      ['ann', `${project.root}/../..`],
      ['ann', 'docs'],
      ['docs', project.root],
      ['docs', project.path('src')],
    ] as const) {
      const { http, error } = await call(name, 'version', {}, at(path));
      expect([path, http, error.class]).toEqual([path, 403, expect.any(String)]);
    }
    const refused = daemon.connect('legacy', { token: tokenOf('ann'), root: elsewhere.root });
    await expect(refused).rejects.toThrow();
    const inside = await daemon.connect('modern', { token: tokenOf('ann'), root: project.path('docs') });
    expect((await inside.call('version')).isError).toBe(false);
  });

  it('spends no more than it may, whatever others may', async () => {
    const before = vendor.requests.length;
    for (const name of ['poor', 'broke']) {
      expect(await call(name, 'chat', { prompt: 'Cheap?' })).toMatchObject({
        status: 'error',
        error: { code: 'LIMIT', message: expect.stringContaining('MAX_COST_PER_DAY') },
      });
    }
    expect(vendor.requests.length).toBe(before);
    vendor.script({ answer: 'Yes.' });
    expect(await call('bob', 'chat', { prompt: 'Cheap?' })).toMatchObject({ http: 200 });
  });

  it('that was rotated is worth nothing, at once and after a restart; the new one is', async () => {
    const own = await testDaemon({
      root: project.root,
      env: { OFFLINE: 'true' },
      tokens: [{ name: 'eve', token: tokenOf('eve') }],
    });
    const status = async (token: string) => (await own.ask('/api/tools', { token })).status;
    expect(await status(tokenOf('eve'))).toBe(200);
    expect(own.daemon.tokens.rotate(tokenOf('eve'), 'a-brand-new-token-for-eve')).toBe(true);
    expect([await status(tokenOf('eve')), await status('a-brand-new-token-for-eve')]).toEqual([401, 200]);
    await expect.poll(() => readFile(own.tokensFile, 'utf8')).toMatch(/"sha256": "[0-9a-f]{64}"/);
    expect(await readFile(own.tokensFile, 'utf8')).not.toContain('token-of-eve');
    const again = await own.product.openDaemon({ port: 0 });
    const opens = (token: string) => fetch(`${again.url}/api/tools`, { headers: { Authorization: `Bearer ${token}` } });
    expect((await opens('a-brand-new-token-for-eve')).status).toBe(200);
    expect((await opens(tokenOf('eve'))).status).toBe(401);
    await again.close();
    await own.close();
  });
});

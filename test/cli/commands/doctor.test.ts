import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createSqliteStore } from '../../../src/storage/sqlite/sqlite.ts';
import { threadWith } from '../../contracts/store-fixtures.ts';
import { realClock } from '../../support/clock.ts';
import { vendorEnv } from '../../support/product.ts';
import { freePort, startRedis } from '../../support/redis-server.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { startMoonshot } from '../../support/vendors/start-moonshot.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { type RunOptions, runProgram } from '../run-program.ts';

let project: TempProject;
let standIns: TempProject;
let silent: FakeVendor;
/** A run that waits for a silent server, meanwhile other tests run. */
let withSilent: ReturnType<typeof doctor>;

/** Greets as a server does: two starts of the real one are most of the work of a run. A run in a process of its own makes them. */
const greets = `#!/bin/sh\nread -r hello; echo '{"jsonrpc":"2.0","id":1,"result":{}}'; read -r more\n`;

beforeAll(async () => {
  standIns = await tempProject({ node: greets });
  await chmod(standIns.path('node'), 0o755);
  silent = await startOpenAi();
  silent.byDefault({ fault: 'hang_before_headers', on: 'models' });
  withSilent = doctor(vendorEnv({ openai: silent.url }), [], { cwd: standIns.root, ownProcess: true });
});

afterAll(async () => {
  await withSilent;
  await Promise.all([silent.close(), standIns.dispose()]);
});

beforeEach(async () => {
  project = await tempProject();
});

afterEach(() => project.dispose());

interface Finding {
  state: string;
  what: string;
  text: string;
  next?: string;
}

async function doctor(env: Record<string, string>, args: string[] = [], options: Partial<RunOptions> = {}) {
  const { cwd = project.root, ...more } = options;
  const place = { cwd, env: { PROJECT_ROOT: cwd, ...env } };
  const run = await runProgram(['doctor', '--json', ...args], { ...place, node: standIns.path('node'), ...more });
  const findings: Finding[] = JSON.parse(run.out).findings;
  return { ...run, findings, find: (what: string) => findings.find(finding => finding.what === what) };
}

/** Makes a database with a thread of this title, or an empty one, and changes it. */
const withTable = (title: string, sql: string) => async (home: string) => {
  const file = join(home, 'threads.sqlite');
  if (title !== '') {
    const store = createSqliteStore({ file, clock: realClock(), onWarning: message => expect.fail(message) });
    await threadWith(store, [title]);
    await store.close();
  }
  const db = new DatabaseSync(file);
  db.exec(`CREATE TABLE later (n INTEGER); ${sql}`);
  db.close();
};

describe('polylogue doctor', () => {
  it('finds all in order with a key that works, and shows no key', async () => {
    const vendor = await startOpenAi({ models: [{ id: 'gpt-5' }] });
    const alone = { ownProcess: true };
    const { code, out, find, findings } = await doctor(vendorEnv({ openai: vendor.url }), [], alone);
    await vendor.close();
    expect(code).toBe(0);
    expect(findings.filter(({ state }) => state === 'fail')).toEqual([]);
    expect(find('OpenAI')?.text).toContain('1 models listed');
    expect(find('OPENAI_API_KEY')?.text).toBe('set (hidden) (environment)');
    expect(out).not.toContain('test-key');
    expect(find('handshake 2025-11-25')?.state).toBe('ok');
    expect(find('handshake 2026-07-28')?.state).toBe('ok');
    expect(find('tools')?.text).toMatch(/\d+ bytes, about \d+ tokens/);
    expect(find('readable')?.text).toContain(project.root);
  });

  it('warns of a model for summaries and of a provider for limits that do not exist', async () => {
    const vendor = await startOpenAi({ models: [{ id: 'gpt-5' }, { id: 'gpt-5-secret' }] });
    const limits = { MAX_CONCURRENT_PER_PROVIDER: 'opnai=3', OPENAI_ALLOWED_MODELS: 'gpt-5, gpt-5-secret, gtp-5' };
    const wrong = await doctor({
      ...vendorEnv({ openai: vendor.url }),
      ...limits,
      COMPACTION_MODEL: 'nothing-like-it',
    });
    const right = await doctor({ ...vendorEnv({ openai: vendor.url }), COMPACTION_MODEL: 'gpt-5' });
    await vendor.close();
    expect(wrong.code).toBe(0);
    const summaries = wrong.findings.filter(({ what }) => what === 'COMPACTION_MODEL');
    expect(summaries.map(({ state }) => state)).toContain('warn');
    expect(summaries.find(({ state }) => state === 'warn')?.text).toContain('nothing-like-it');
    expect(wrong.out).toContain('unknown provider \\"opnai\\". Did you mean \\"openai\\"? Known providers:');
    // What the vendor lists now is known, whatever the catalogue says.
    const names = wrong.findings.filter(({ text }) => text.startsWith('OPENAI_ALLOWED_MODELS:'));
    expect(names.map(({ text }) => text)).toEqual([
      expect.stringMatching(/"gtp-5", so that it allows nothing\..* is gpt-5\.$/),
    ]);
    expect(right.findings).toContainEqual({ state: 'ok', what: 'COMPACTION_MODEL', text: 'gpt-5 is openai:gpt-5' });
  });

  it('warns of every model and file that an option names in vain', async () => {
    const names = { DEFAULT_MODEL: 'gpt-99', DEFAULT_MODELS: 'foo,echo-west', AGENT_TRIAGE_MODEL: 'zzz' };
    // Where it is not offered, models are named all the same.
    const files = { SYSTEM_PROMPT_FILE: '/nope', DISABLED_TOOLS: 'chat' };
    const { code, findings } = await doctor({ ...names, ...files }, ['--offline']);
    expect(code).toBe(0);
    expect(findings.filter(({ state }) => state === 'warn')).toEqual([
      {
        state: 'warn',
        what: 'SYSTEM_PROMPT_FILE',
        text: '/nope (environment) does not exist',
        next: 'Correct or unset it.',
      },
      ...[
        ['DEFAULT_MODEL', 'gpt-99'],
        ['DEFAULT_MODELS', 'foo'],
        ['AGENT_TRIAGE_MODEL', 'zzz'],
      ].map(([what, name]) => ({ state: 'warn', what, text: `Unknown model "${name}".`, next: expect.any(String) })),
    ]);
    const right = await doctor({ DEFAULT_MODEL: 'auto', COMPACTION_MODEL: 'off' }, ['--offline']);
    expect(right.findings.filter(({ what, state }) => what.endsWith('_MODEL') && state !== 'note')).toEqual([]);
  });

  it.each([
    ['that is not there', undefined, /cannot be read/],
    ['that is no JSON', 'tokens', /it is no JSON/],
    ['with a wrong entry', '{"tokens": [{"name": "ann"}]}', /"ann" needs either "token" or "sha256"/],
  ])('fails with a file of tokens %s', async (_what, text, problem) => {
    const file = project.path('tokens.json');
    if (text !== undefined) await writeFile(file, text);
    const { code, findings } = await doctor({ POLYLOGUE_TOKENS_FILE: file }, ['--offline']);
    expect(code).toBe(1);
    expect(findings.find(({ state }) => state === 'fail')).toMatchObject({
      what: 'POLYLOGUE_TOKENS_FILE',
      text: expect.stringMatching(problem),
    });
  });

  it('warns of a file of tokens that others may read, and passes', async () => {
    const file = project.path('tokens.json');
    await writeFile(file, '{"tokens": [{"name": "ann", "token": "a-token-of-at-least-32-characters"}]}', {
      mode: 0o644,
    });
    const { code, findings } = await doctor({ POLYLOGUE_TOKENS_FILE: file }, ['--offline']);
    const [found] = findings.filter(({ what, state }) => what === 'POLYLOGUE_TOKENS_FILE' && state !== 'note');
    expect([code, found]).toEqual([
      0,
      { state: 'warn', what: 'POLYLOGUE_TOKENS_FILE', text: expect.stringContaining('chmod') },
    ]);
  });

  it('--repair checks all stored threads, sets a damaged file aside and says which turn is lost', async () => {
    const args = ['--offline', '--repair'];
    const env = { POLYLOGUE_HOME: join(project.root, 'data') };
    const file = join(env.POLYLOGUE_HOME, 'threads.sqlite');
    const store = createSqliteStore({ file, clock: realClock(), onWarning: message => expect.fail(message) });
    const { id } = await threadWith(store, ['the question', 'the answer', 'another one', 'its answer']);
    await store.close();
    const whole = await doctor(env, args);
    expect(whole.find('repair')).toMatchObject({ state: 'ok', text: `${file} is intact, with every record in it.` });
    const bytes = readFileSync(file);
    bytes.write('THE', bytes.indexOf('the answer'));
    writeFileSync(file, bytes);
    const broken = await doctor(env, args);
    expect(broken.find('repair')?.state).toBe('warn');
    expect(broken.find('repair')?.text).toMatch(/^The file of the threads was damaged .* set aside as .*\.corrupt-/);
    expect(broken.find('repair')?.text).toContain(`${id} without turn 2.`);
    expect(readdirSync(env.POLYLOGUE_HOME).filter(name => /\.corrupt-[^.]*Z$/.test(name))).toHaveLength(1);
    const again = await runProgram(['doctor', ...args], {
      cwd: project.root,
      env: { PROJECT_ROOT: project.root, ...env },
    });
    expect(again.out).toContain('is intact, with every record in it.');
  });

  const inTheWay: [string, (home: string) => unknown, string, RegExp, RegExp][] = [
    ['a directory', home => mkdirSync(join(home, 'threads.sqlite')), 'store', /threads\.sqlite is not a file/, /Move/],
    ['a loop', home => symlinkSync('threads.sqlite', join(home, 'threads.sqlite')), 'store', /is not a file/, /Move/],
    ['a lock', home => mkdirSync(join(home, 'threads.sqlite.lock')), 'store', /\.lock is not a file/, /Move/],
    ['a key', home => mkdirSync(join(home, 'mask.key')), 'masking', /mask\.key: EISDIR/, /mv /],
    ['another program', withTable('', 'PRAGMA user_version = 3'), 'store', /belongs to another program/, /separate/],
    ['a newer version', withTable('the new', 'PRAGMA user_version = 99'), 'store', /newer version/, /Update/],
  ];
  it.each(inTheWay)('fails where no thread can be opened: %s', async (_, obstruct, what, text, next) => {
    const home = join(project.root, 'data');
    mkdirSync(home);
    await obstruct(home);
    const { code, find } = await doctor({ POLYLOGUE_HOME: home }, ['--offline']);
    expect([code, find(what)]).toEqual([
      1,
      { state: 'fail', what, text: expect.stringMatching(text), next: expect.stringMatching(next) },
    ]);
  });

  it('passes where the lock was damaged, and says that threads can be stored', async () => {
    const home = join(project.root, 'data');
    mkdirSync(home);
    writeFileSync(join(home, 'threads.sqlite.lock'), randomBytes(500));
    const { code, find } = await doctor({ POLYLOGUE_HOME: home }, ['--offline']);
    expect([code, find('store')?.text]).toEqual([
      0,
      `threads can be read and written in ${join(home, 'threads.sqlite')}`,
    ]);
  });

  it('shows what commands of an agent run in, and fails where a sandbox is required and missing', async () => {
    const off = await doctor({ AGENT_SANDBOX: 'off' }, ['--offline']);
    expect(off.find('agent sandbox')).toMatchObject({ state: 'note', text: 'none: AGENT_SANDBOX is off' });
    // The home directory of these tests is their project, which no sandbox can hide.
    const required = await doctor({ AGENT_SANDBOX: 'require' }, ['--offline']);
    expect(required.find('agent sandbox')).toMatchObject({
      state: 'fail',
      text: expect.stringContaining('home directory'),
    });
    expect(required.code).toBe(1);
  });

  it('gives no advice about what nobody asked for', async () => {
    const { code, findings } = await doctor({}, ['--offline']);
    expect([code, findings.filter(({ next }) => next !== undefined)]).toEqual([0, []]);
  });

  it('tells what is left on an account, where the vendor says so', async () => {
    const vendor = await startMoonshot();
    const { code, find } = await doctor({ MOONSHOT_API_KEY: 'test-key', MOONSHOT_BASE_URL: vendor.url });
    expect(code).toBe(0);
    expect(find('Moonshot (Kimi)')?.text).toMatch(/usable; balance 49\.58$/);
    await vendor.close();
  });

  it('tells which models are not asked at the moment, as other processes found, and passes', async () => {
    const vendor = await startOpenAi({ models: [{ id: 'gpt-4.1' }] });
    const env = vendorEnv({ openai: vendor.url });
    vendor.byDefault({ fault: 'status', status: 503, headers: { 'x-should-retry': 'false' } });
    const place = { cwd: project.root, env: { PROJECT_ROOT: project.root, ...env } };
    await runProgram(['chat', '--model', 'openai:gpt-4.1'], { ...place, input: 'Is it?\n'.repeat(5) });
    const { code, find } = await doctor(env);
    await vendor.close();
    expect(find('openai:gpt-4.1')).toMatchObject({
      state: 'warn',
      text: 'is not asked at the moment: it failed 5 times in a row (bad_upstream)',
      next: expect.stringMatching(/^Wait \d+ s, or choose a model from another provider/),
    });
    expect(code).toBe(0);
  });

  it('tells a wrong key from a right one, and what to correct', async () => {
    const openai = await startOpenAi({ keys: ['another'] });
    const anthropic = await startAnthropic();
    const { code, find } = await doctor(vendorEnv({ openai: openai.url, anthropic: anthropic.url }));
    await Promise.all([openai.close(), anthropic.close()]);
    expect(code).toBe(1);
    expect(find('OpenAI')).toMatchObject({ state: 'fail', next: expect.stringContaining('OPENAI_API_KEY') });
    expect(find('Anthropic')?.state).toBe('ok');
  });

  it('tells what the server would warn of when it starts', async () => {
    const { findings } = await doctor({
      OFFLINE: '1',
      EMBEDDING_MODEL: 'foo',
      POLYLOGUE_TOOLSETS: 'core,coed',
      DISABLED_TOOLS: 'chatt',
      RATE_LIMITS: 'chat,chet=1,debug=2',
    });
    const warned = findings.filter(({ state }) => state === 'warn').map(({ what, text }) => `${what}: ${text}`);
    expect(warned).toEqual([
      'tools: Unknown tool "chatt".',
      'tools: Unknown tool "chet".',
      expect.stringMatching(/^tools: Unknown toolset "coed"; known toolsets: .*code/),
      expect.stringMatching(/^configuration: EMBEDDING_MODEL is "foo"/),
      'RATE_LIMITS: "chat" is not of the form tool=number.',
    ]);
  });

  it('gives up on a silent server after five seconds', async () => {
    const { code, find } = await withSilent;
    expect(code).toBe(1);
    expect(find('OpenAI')).toMatchObject({
      text: 'no response within 5 s',
      next: expect.stringContaining('HTTPS_PROXY'),
    });
  });

  it.each([
    ['a bare list', 200, [{ id: 'm1', max_model_len: 9000 }], 'ok', 'reachable, 1 models listed; 1 usable'],
    ['nothing', 200, '', 'ok', 'it answers, but has no list of models; 1 known here'],
    ['no content', 204, '', 'ok', 'it answers, but has no list of models; 1 known here'],
    ['a page', 200, '<html>Hello</html>', 'ok', 'it answers, but has no list of models; 1 known here'],
    ['no such path', 404, {}, 'ok', 'it answers, but has no list of models; 1 known here'],
    ['a failure', 503, '', 'fail', 'custom answered 503'],
  ])('takes a server that answers %s for its models as what it is', async (_, status, body, state, text) => {
    const vendor = await startOpenAi();
    vendor.byDefault({ fault: 'status', status, body, on: 'models' });
    const { find } = await doctor({ CUSTOM_API_URL: vendor.url, CUSTOM_MODEL_NAME: 'm1', CUSTOM_API_KEY: 'test-key' });
    await vendor.close();
    expect(find('A custom endpoint')).toMatchObject({ state, text: expect.stringContaining(text) });
  });

  it('ends with 1 where no provider has a model that may be used', async () => {
    const vendor = await startOpenAi();
    const denied = await doctor({ ...vendorEnv({ openai: vendor.url }), OPENAI_ALLOWED_MODELS: 'nothing' });
    const allowed = await doctor(vendorEnv({ openai: vendor.url }));
    await vendor.close();
    expect(denied.code).toBe(1);
    expect(denied.find('OpenAI')?.text).toMatch(/no model may be used$/);
    expect(denied.find('models')).toMatchObject({ state: 'fail', text: 'no provider has a model that may be used' });
    expect([allowed.code, allowed.find('models')]).toEqual([0, undefined]);
  });

  it('names what is still missing of a provider that takes more than a key', async () => {
    const key = { AZURE_OPENAI_API_KEY: 'test-key' };
    const keyOnly = await doctor(key);
    expect(keyOnly.find('providers')?.next).toContain('Azure OpenAI (AZURE_OPENAI_ENDPOINT)');
    const access = { ...key, AZURE_OPENAI_ENDPOINT: 'https://x.example' };
    const without = (await doctor(access)).find('Azure OpenAI');
    expect(without).toMatchObject({ state: 'warn', next: 'Name its models in AZURE_OPENAI_DEPLOYMENTS.' });
    const excluded = await doctor({ ...access, AZURE_OPENAI_DEPLOYMENTS: 'prod=gpt-5', AZURE_ALLOWED_MODELS: 'other' });
    expect(excluded.find('Azure OpenAI')?.next).toMatch(/^Check the allow-lists/);
  });

  it('says what to do without any key', async () => {
    const { code, find } = await doctor({});
    expect(code).toBe(1);
    expect(find('providers')?.next).toContain('OPENAI_API_KEY');
    expect(find('providers')?.next).toContain('--offline');
  });

  it('says where each option that is set comes from, and the warnings', async () => {
    await project.write('home/config.json', JSON.stringify({ defaultModel: 'gpt-5', colour: 'red' }));
    await project.write('home/.env', 'LOCALE=fr-FR\n');
    const env = { POLYLOGUE_HOME: project.path('home'), OPENAI_BASE_URL: 'http://ada:hidden-word@127.0.0.1:9/v1' };
    const { find, out } = await doctor(env, ['--offline']);
    expect(find('DEFAULT_MODEL')?.text).toBe('gpt-5 (config.json)');
    expect(find('LOCALE')?.text).toBe('fr-FR (home .env)');
    expect(find('OFFLINE')?.text).toBe('true (flag)');
    expect(find('configuration')).toMatchObject({ state: 'warn', text: expect.stringContaining('colour') });
    expect(out).not.toContain('hidden-word');
  });

  it('says when nothing can be read, and why', async () => {
    const run = await runProgram(['doctor', '--offline'], { cwd: '/', env: { HOME: project.root } });
    expect(run.code).toBe(0);
    expect(run.out).toMatch(/warn {2}readable +no files: .*\n +→ .*--roots/);
    expect(run.out).not.toContain('\u001b');
  });

  it('says which of the directories that were set are not there', async () => {
    const { findings } = await doctor({ PROJECT_ROOT: `${project.root},/no/such/place`, OFFLINE: '1' });
    const readable = findings.filter(({ what }) => what === 'readable');
    expect(readable).toMatchObject([
      { state: 'ok', text: expect.stringContaining(project.root) },
      { state: 'warn', text: expect.stringContaining('/no/such/place is not a directory') },
    ]);
  });

  it('says when the data folder is a file', async () => {
    await writeFile(project.path('home'), '');
    const { code, find } = await doctor({ POLYLOGUE_HOME: project.path('home') }, ['--offline', '--private']);
    expect(code).toBe(1);
    expect(find('data directory')).toMatchObject({ state: 'fail', next: expect.stringContaining('POLYLOGUE_HOME') });
  });

  it.each([
    'redis://me:12/hidden-word@127.0.0.1',
    'redis://127.0.0.1:1#hidden-word',
    'redis://me:12#hidden-word@127.0.0.1',
    'redis://:hidden#word@127.0.0.1',
    'redis//me:hidden-word@127.0.0.1',
    'redis://me:hidden-word@127.0.0.1/0',
  ])('shows no part of a password in %s', async url => {
    const { find, out } = await doctor({ REDIS_URL: url }, ['--offline']);
    expect(find('REDIS_URL')?.text).toContain('hidden');
    expect(out).not.toMatch(/hidden\Wword/);
  });

  it('asks the Redis in which threads live, and says what should be otherwise there', async () => {
    const server = await startRedis('--requirepass', 'hidden-word');
    const url = server.url.replace('//', '//:hidden-word@');
    const env = { POLYLOGUE_STORE: 'redis', REDIS_URL: url, REDIS_TIMEOUT_MS: '5000' };
    const { code, find, out } = await doctor(env, ['--offline']);
    await server.dispose();
    expect(code).toBe(0);
    expect(find('store')).toMatchObject({ state: 'ok', text: expect.stringMatching(/^Redis \d.* a single server$/) });
    expect(out).not.toContain('hidden-word');
  });

  it('says when that Redis is not there', async () => {
    const env = { POLYLOGUE_STORE: 'redis', REDIS_URL: `redis://127.0.0.1:${await freePort()}` };
    const { code, find, findings } = await doctor(env, ['--offline']);
    expect(code).toBe(1);
    expect(find('store')).toMatchObject({ state: 'fail', next: expect.stringContaining('REDIS_URL') });
    expect(findings.filter(({ text }) => /ECONNREFUSED|not connected yet/.test(text))).toHaveLength(1);
  });
});

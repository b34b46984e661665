import { mkdir, readdir, readFile, rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../../support/product.ts';
import { type TempProject, tempProject } from '../../../support/temp-project.ts';
import type { FakeVendor } from '../../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../../support/vendors/start-anthropic.ts';
import type { CallStep } from '../../../support/vendors/tool-calls.ts';

let project: TempProject;
let outside: TempProject;
let vendor: FakeVendor;
let product: TestProduct;

async function start(env: Record<string, string> = {}) {
  product = await testProduct({
    root: project.root,
    env: { ...vendorEnv({ anthropic: vendor.url }), POLYLOGUE_TOOLSETS: 'core,agent', ...env },
  });
}

beforeEach(async () => {
  project = await tempProject({ 'src/a.txt': 'one\ntwo\n', 'keep.txt': 'kept\n', '.env': 'KEY=1\n' });
  outside = await tempProject({ 'a.txt': 'theirs\n' });
  vendor = await startAnthropic();
});
afterEach(async () => {
  await product.close();
  expect(vendor.violations).toEqual([]);
  await vendor.close();
  await project.dispose();
  await outside.dispose();
});

/** One round with these calls, and the end. */
async function attempt(calls: readonly CallStep[]): Promise<Document> {
  vendor.script({ calls }, { answer: 'That is all.' });
  return product.call('agent', { task: 'Do it.', model: 'anthropic:claude-sonnet-4-5' });
}

const told = () =>
  vendor.requests
    .at(-1)!
    .messages.map(({ text }) => text)
    .join('\n');

async function audited(): Promise<Document[]> {
  await product.product.close();
  const found: Document[] = [];
  for (const name of await readdir(product.home, { recursive: true })) {
    if (!name.endsWith('audit.jsonl')) continue;
    const text = await readFile(join(product.home, name), 'utf8');
    found.push(
      ...text
        .trim()
        .split('\n')
        .map(line => JSON.parse(line)),
    );
  }
  return found.filter(({ act }) => act === 'agent');
}

const addition = (path: string, line: string) => `--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n+${line}\n`;

describe('what no approval allows, even where everything is approved', () => {
  it('is refused, changes nothing, and stands in the audit log', async () => {
    await start({ AGENT_APPROVE: 'all' });
    const absolute = outside.path('new.txt');
    const calls: CallStep[] = [
      { name: 'run_command', args: { argv: ['rm', '-rf', '.'] } },
      { name: 'run_command', args: { argv: ['node', '-e', '1'] } },
      { name: 'run_command', args: { argv: ['npm', 'run', '--script-shell=/bin/sh'] } },
      { name: 'write_file', args: { path: absolute, content: 'x' } },
      { name: 'write_file', args: { path: '../escape.txt', content: 'x' } },
      { name: 'write_file', args: { path: '.env', content: 'x' } },
      { name: 'write_file', args: { path: '.git/hooks/pre-commit', content: 'x' } },
      { name: 'apply_patch', args: { patch: addition('../escape.txt', 'x') } },
      { name: 'apply_patch', args: { patch: addition('.git/config', 'x') } },
      { name: 'read_file', args: { path: join(outside.root, 'a.txt') } },
      { name: 'read_file', args: { path: '.env' } },
    ];
    const reply = await attempt(calls);
    expect(reply.tool_calls.map(({ outcome }: Document) => outcome)).toEqual(calls.map(() => 'refused'));
    expect(reply.changed_files).toBeUndefined();
    expect(await readFile(project.path('keep.txt'), 'utf8')).toBe('kept\n');
    expect(await readdir(outside.root)).toEqual(['a.txt']);
    expect((await readdir(project.root)).sort()).toEqual(['.env', 'keep.txt', 'src']);
    expect(told()).not.toContain('KEY=1');
    expect(told()).not.toContain('theirs');
    const lines = await audited();
    expect(lines).toHaveLength(calls.length);
    expect(new Set(lines.map(({ decision }) => decision))).toEqual(new Set(['refused']));
    expect(lines[0]).toMatchObject({ name: 'run_command', args: '{"argv":["rm","-rf","."]}' });
  });

  it('is a patch that makes a link, renames, or does not fit: all of it or nothing', async () => {
    await start({ AGENT_APPROVE: 'all' });
    const link =
      'diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n';
    const disguised =
      'diff --git a/s b/s\nindex 0000000..1de565933b 120000\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n';
    const legacy = 'diff --git a/keep.txt b/k.txt\nsimilarity index 100%\nrename old keep.txt\nrename new k.txt\n';
    const move = 'diff --git a/keep.txt b/k.txt\nsimilarity index 100%\nrename from keep.txt\nrename to k.txt\n';
    const half = `${addition('new.txt', 'x')}--- a/keep.txt\n+++ b/keep.txt\n@@ -1 +1 @@\n-something else\n+x\n`;
    const reply = await attempt(
      [link, disguised, move, legacy, half, 'no patch at all'].map(patch => ({ name: 'apply_patch', args: { patch } })),
    );
    expect(reply.tool_calls.map(({ outcome }: Document) => outcome)).toEqual(Array(6).fill('refused'));
    expect(told()).toContain('the lines it changes are not there');
    expect((await readdir(project.root)).sort()).toEqual(['.env', 'keep.txt', 'src']);
  });

  it('is a folder that leads out of the project, also one that was swapped for a link after the approval', async () => {
    await start();
    await symlink(outside.root, project.path('away'));
    await mkdir(project.path('.git/hooks'), { recursive: true });
    await symlink(project.path('.git'), project.path('inner'));
    const swap = async ({ message }: { message: string }) => {
      if (!message.includes('src/a.txt')) return { action: 'accept' as const, content: { decision: 'allow' } };
      await rename(project.path('src'), project.path('old'));
      await symlink(outside.root, project.path('src'));
      return { action: 'accept' as const, content: { decision: 'allow' } };
    };
    vendor.script(
      { calls: [{ name: 'write_file', args: { path: 'away/a.txt', content: 'mine' } }] },
      { calls: [{ name: 'write_file', args: { path: 'src/a.txt', content: 'mine' } }] },
      { calls: [{ name: 'write_file', args: { path: 'inner/hooks/pre-commit', content: 'mine' } }] },
      { answer: 'That is all.' },
    );
    const { root, host } = product.product;
    const reply = await host.call(
      {
        name: 'agent',
        arguments: { task: 'Do it.', model: 'anthropic:claude-sonnet-4-5' },
        principal: { owner: 'local', root },
        ask: swap,
      },
      new AbortController().signal,
    );
    const { tool_calls: calls }: Document = reply.document;
    expect(calls.map(({ outcome }: Document) => outcome)).toEqual(['refused', 'refused', 'refused']);
    expect(await readdir(project.path('.git/hooks'))).toEqual([]);
    expect(await readFile(outside.path('a.txt'), 'utf8')).toBe('theirs\n');
    expect(await readFile(project.path('old/a.txt'), 'utf8')).toBe('one\ntwo\n');
  });
});

it('never changes the data folder of the server where that lies in the project, nor names it to a command', async () => {
  await start({ AGENT_APPROVE: 'all', POLYLOGUE_HOME: project.path('.home'), AGENT_COMMANDS: 'node *' });
  await mkdir(project.path('.home/clis'), { recursive: true });
  await symlink(project.path('.home/clis'), project.path('alias'));
  const manyPlaces = (word: string) => Array.from({ length: 700 }, (_, at) => `${word}${at}`).join(',');
  const argvs = [
    ['node', 'src/a.txt', '.home/clis/evil.json'],
    ['node', 'src/a.txt', '--out=src/../.home/evil.json'],
    ['node', 'src/a.txt', '-o.home/evil.json'],
    ['node', 'alias/new.mjs'],
    ['node', 'src/a.txt', `${'./'.repeat(600)}.home/evil.json`],
    ['node', 'src/a.txt', ...['a', 'b', 'c'].map(manyPlaces), 'x,.home/evil.json'],
  ];
  const calls: CallStep[] = [
    { name: 'write_file', args: { path: '.home/clis/evil.json', content: '{}' } },
    { name: 'write_file', args: { path: '.home/new/deep.txt', content: '{}' } },
    { name: 'apply_patch', args: { patch: addition('.home/clis/evil.json', '{}') } },
    ...argvs.map(argv => ({ name: 'run_command', args: { argv } })),
    { name: 'run_command', args: { argv: ['node', 'x.mjs'], cwd: '.home' } },
  ];
  const reply = await attempt(calls);
  expect(reply.tool_calls.map(({ outcome }: Document) => outcome)).toEqual(calls.map(() => 'refused'));
  expect(told().match(/data directory of Polylogue|was not looked through/g)).toHaveLength(calls.length);
  expect(await readdir(project.path('.home/clis'))).toEqual([]);
});

describe('what the policy leaves to the user', () => {
  it('is refused where nobody can be asked, and reading is not', async () => {
    await start();
    const reply = await attempt([
      { name: 'read_file', args: { path: 'src/a.txt' } },
      { name: 'write_file', args: { path: 'src/a.txt', content: 'x' } },
      { name: 'run_command', args: { argv: ['npm', 'test'] } },
    ]);
    expect(reply.tool_calls.map(({ outcome }: Document) => outcome)).toEqual(['ok', 'refused', 'refused']);
    expect(told()).toContain('AGENT_APPROVE');
    const lines = await audited();
    expect(lines.map(({ name, decision }) => `${name} ${decision}`)).toEqual([
      'read_file allowed',
      'write_file refused',
      'run_command refused',
    ]);
  });

  it('is even reading where the policy is never', async () => {
    await start({ AGENT_APPROVE: 'never' });
    const reply = await attempt([{ name: 'list_dir', args: {} }]);
    expect(reply.tool_calls[0].outcome).toBe('refused');
  });

  it('is not there at all for a read-only server', async () => {
    await start({ POLYLOGUE_READ_ONLY: 'true' });
    expect(product.product.host.list().map(({ name }) => name)).not.toContain('agent');
    expect(await product.call('agent', { task: 'x' })).toMatchObject({ isError: true });
  });
});

it('writes with everything approved, keeps what was there, and puts masked secrets back', async () => {
  await start({ AGENT_APPROVE: 'all' });
  const token = `ghp_${'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8'}`;
  await project.write('src/conf.txt', `name = old\r\ntoken = ${token}\r\nend\r\n`);
  vendor.script(
    { calls: [{ name: 'read_file', args: { path: 'src/conf.txt' } }] },
    {
      calls: request => {
        const placeholder = /\[masked:\w+:[0-9a-f]{8}\]/.exec(request.messages.map(({ text }) => text).join('\n'))?.[0];
        const patch = `--- a/src/conf.txt\n+++ b/src/conf.txt\n@@ -1,3 +1,3 @@\n-name = old\n+name = new\n token = ${placeholder}\n end\n`;
        return [
          { name: 'apply_patch', args: { patch } },
          { name: 'write_file', args: { path: 'deep/er/b.txt', content: 'fresh\n' } },
          { name: 'write_file', args: { path: 'keep.txt', content: 'a [masked:github_token:00000000] of nowhere' } },
        ];
      },
    },
    { answer: 'Done.' },
  );
  const reply = await product.call('agent', { task: 'Rename it.', model: 'anthropic:claude-sonnet-4-5' });
  expect(JSON.stringify(vendor.requests.map(({ body }) => body))).not.toContain(token);
  expect(await readFile(project.path('src/conf.txt'), 'utf8')).toBe(`name = new\r\ntoken = ${token}\r\nend\r\n`);
  expect(await readFile(project.path('deep/er/b.txt'), 'utf8')).toBe('fresh\n');
  expect(await readFile(project.path('keep.txt'), 'utf8')).toBe('kept\n');
  expect(reply.tool_calls.map(({ outcome }: Document) => outcome)).toEqual(['ok', 'ok', 'ok', 'refused']);
  expect(reply.changed_files).toEqual([project.path('src/conf.txt'), project.path('deep/er/b.txt')]);
  const backups = await readdir(join(product.home, 'backups'), { recursive: true });
  expect(backups.some(name => name.endsWith('conf.txt'))).toBe(true);
});

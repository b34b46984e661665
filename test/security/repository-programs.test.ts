import { spawnSync } from 'node:child_process';
import { chmod, mkdir, readdir } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runProgram } from '../cli/run-program.ts';
import { gitRepository } from '../support/git-repository.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { geminiAnswers, type StandIn, standIn } from '../support/stand-in-cli.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';

/** What a repository may hold under the names of programs that are started. */
const names = [
  'git',
  'npm',
  'npx',
  'node',
  'make',
  'sh',
  'bwrap',
  'codex',
  'claude',
  'gemini',
  'opencode',
  'agy',
  'scribe',
];
/** npm itself puts `node_modules/.bin` in front for what a script names: what stands there may not be one of these. */
const ofScripts = ['sh', 'node'];
const folders = ['project', 'project/tools', 'project/node_modules/.bin', 'tools', 'other/tools'];
const model = 'anthropic:claude-sonnet-4-5';

let place: TempProject;
let vendor: FakeVendor;
let cli: StandIn;
let product: TestProduct;
let childEnv: Record<string, string>;

beforeAll(async () => {
  [place, vendor, cli] = await Promise.all([tempProject(), startAnthropic(), standIn('gemini')]);
  const project = await gitRepository(place.path('project'));
  await project.write('Makefile', '.PHONY: test\ntest:\n\t@echo from make\n');
  await project.write('package.json', '{"name": "p", "scripts": {"test": "echo from npm"}}\n');
  await project.write('a.test.mjs', "console.log('from node');\n");
  await project.write('a.ts', 'export const a = 1;\n');
  await project.write('.gitignore', ['ran/', 'node_modules/', 'tools/', ...names.map(name => `/${name}`)].join('\n'));
  await project.commit();
  await project.write('a.ts', 'export const a = 2;\n');
  // In a sandbox, too, a program of the repository can write there.
  await mkdir(place.path('project/ran'));
  for (const folder of folders) {
    for (const name of names.filter(each => !folder.endsWith('.bin') || !ofScripts.includes(each))) {
      const file = `${folder}/${name}`;
      await place.write(file, `#!/bin/sh\n: > ${place.path(`project/ran/${file.replaceAll('/', '-')}`)}\n`);
      await chmod(place.path(file), 0o755);
    }
  }
  cli.script(geminiAnswers('Found by its folder.'));
  childEnv = {
    PATH: [
      ...['.', '', './tools', 'tools', ...folders.filter(folder => folder !== 'tools').map(place.path)],
      ...[`${place.path('project')}/../other/tools`, cli.env.PATH, process.env.PATH],
    ].join(':'),
    HOME: cli.env.HOME ?? '',
  };
  await place.write(
    'servers.json',
    JSON.stringify({
      mcpServers: {
        town: {
          command: 'node',
          args: [new URL('../fixtures/mcp-server.ts', import.meta.url).pathname],
          trusted: true,
        },
        theirs: { command: 'scribe' },
      },
    }),
  );
  await place.write('clis/scribe.json', JSON.stringify({ name: 'scribe', command: 'scribe' }));
  product = await testProduct({
    root: place.path('project'),
    env: {
      ...{ ...vendorEnv({ anthropic: vendor.url }), DEFAULT_MODEL: model, POLYLOGUE_STORE: 'memory' },
      ...{ POLYLOGUE_TOOLSETS: 'core,code,agent', AGENT_APPROVE: 'all', AGENT_SANDBOX: 'require' },
      ...{ POLYLOGUE_MCP_SERVERS: place.path('servers.json'), CLI_CLIENTS_CONFIG_PATH: place.path('clis') },
      POLYLOGUE_ROOTS: roots(),
    },
    childEnv,
  });
});
afterAll(async () => {
  await product.close();
  await vendor.close();
  await cli.dispose();
  await place.dispose();
});

const roots = () => [place.path('project'), place.path('other')].join(',');
const ran = () => readdir(place.path('project/ran'));
beforeEach(async () => {
  for (const name of await ran()) await place.remove(`project/ran/${name}`);
});

describe('a program of the repository, by any entry of PATH', () => {
  it('would be started by whoever leaves the search to the system', async () => {
    for (const [name, PATH] of [
      ['git', '.:/usr/bin:/bin'],
      ['npm', ':/usr/bin:/bin'],
      ['bwrap', `${place.path('project/tools')}:/usr/bin:/bin`],
      ['codex', 'tools'],
    ] as const) {
      spawnSync(name, ['--version'], { cwd: place.path('project'), env: { PATH } });
    }
    expect((await ran()).sort()).toEqual(['project-git', 'project-npm', 'project-tools-bwrap', 'project-tools-codex']);
  });

  it('is not started for precommit and what else looks at changes, and the git outside is', async () => {
    const step = { step: 'Look.', step_number: 1, total_steps: 2, next_step_required: true, findings: 'None.' };
    const reply = await product.call('precommit', { ...step, path: '.' });
    expect(reply.repositories).toMatchObject([{ branch: 'main', files: [{ path: 'a.ts', added: 1, removed: 1 }] }]);
    expect(await ran()).toEqual([]);
  });

  it('is not started by the tools, the commands and the servers of an agent, and those outside are', async () => {
    const commands = [
      ['git', 'status'],
      ['make', 'test'],
      ['npm', 'test'],
      ['node', '--test', 'a.test.mjs'],
    ];
    const patch = '--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+x\n';
    vendor.script(
      {
        calls: [
          { name: 'git_log', args: {} },
          { name: 'git_diff', args: {} },
          { name: 'git_show', args: { ref: 'HEAD' } },
          { name: 'apply_patch', args: { patch } },
          { name: 'town__weather', args: { town: 'Ulm' } },
          ...commands.map(argv => ({ name: 'run_command', args: { argv } })),
        ],
      },
      { answer: 'Done.' },
    );
    const reply: Document = await product.call('agent', { task: 'Do it.', model });
    expect(reply.sandbox).toBe('bubblewrap');
    expect(reply.tool_calls.map(({ outcome }: Document) => outcome)).toEqual(Array(9).fill('ok'));
    const told = vendor.requests.at(-1)!.messages.map(({ text }) => text);
    for (const words of ['+export const a = 2;', 'Ulm: rain', 'from make', 'from npm', 'from node']) {
      expect(told.join('\n'), words).toContain(words);
    }
    expect(reply.metadata.warnings.join()).toContain('The MCP server theirs cannot be used: Cannot start "scribe"');
    expect(await ran()).toEqual([]);
  });

  it('is not taken for another vendor’s program, and the one outside is', async () => {
    const { content } = await product.call('listmodels');
    expect(content).toMatch(/cli:gemini/);
    expect(content).not.toMatch(/cli:scribe/);
    const { error } = await product.call('clink', { prompt: 'Look.', cli_name: 'scribe' });
    expect(error).toMatchObject({ class: 'not_installed' });
    const asked = await product.call('chat', { prompt: 'Look.', model: 'cli:scribe' });
    expect(asked).toMatchObject({ isError: true });
    expect(await product.call('clink', { prompt: 'Look.', cli_name: 'gemini' })).toMatchObject({
      content: 'Found by its folder.',
    });
    const given = cli.calls().at(-1)?.env.PATH?.split(':') ?? [];
    expect(given.filter(folder => !folder.startsWith('/') || folder.startsWith(place.root))).toEqual([]);
    expect(await ran()).toEqual([]);
  });

  it('is not started by doctor, which finds the sandbox outside', async () => {
    const env = { ...childEnv, POLYLOGUE_ROOTS: roots(), OFFLINE: 'true' };
    const { out } = await runProgram(['doctor', '--json'], { cwd: place.path('project'), env });
    const findings: { what: string; text: string }[] = JSON.parse(out).findings;
    expect(findings.find(({ what }) => what === 'agent sandbox')?.text).toBe('bubblewrap');
    expect(await ran()).toEqual([]);
  });
});

import { existsSync } from 'node:fs';
import { chmod, link, mkdir, readdir, readFile, realpath, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type CommandSandboxOptions,
  createCommandSandbox,
  type SandboxedCommand,
} from '../../../../../src/engine/modes/agent/local-tools/command-sandbox.ts';
import { runProcess } from '../../../../../src/engine/modes/agent/local-tools/command-tool.ts';
import { placesIn } from '../../../../../src/workspace/protected-files.ts';
import { realClock } from '../../../../support/clock.ts';
import { type TempProject, tempProject } from '../../../../support/temp-project.ts';

let around: TempProject;
let project: string;
beforeEach(async () => {
  around = await tempProject({ 'shop/a.js': '', 'home/x': '', 'own/x': '' });
  project = await realpath(around.path('shop'));
});
afterEach(() => around.dispose());

const states: Record<string, 'running' | 'gone' | 'unknown'> = {};
const commandOf = (change: Partial<SandboxedCommand>): SandboxedCommand => ({
  ...{ argv: ['/bin/true'], project, cwd: project, env: { PATH: process.env.PATH ?? '' }, id: 'one' },
  ...{ isAsked: false, seesSecrets: false, from: Date.now(), timeMs: 60_000 },
  ...change,
});

function sandboxOf(own: string | undefined, change: Partial<CommandSandboxOptions> = {}) {
  return createCommandSandbox({
    ...{ mode: 'require', network: false, childEnv: { PATH: process.env.PATH }, platform: 'linux', projects: [] },
    ...{ home: around.path('home'), own: around.path('own'), kept: around.path('own/kept') },
    marks: { own, stateOf: mark => states[mark] ?? 'unknown' },
    ...change,
  });
}

async function runIn(script: string, change: Partial<SandboxedCommand> = {}) {
  const prepared = await sandboxOf('this').prepare(commandOf({ argv: ['/bin/sh', '-c', script], ...change }));
  const { output } = await runProcess({
    ...{ argv: prepared.argv, env: prepared.env, cwd: project, clock: realClock(), platform: 'linux' },
    ...{ timeMs: 60_000, maxBytes: 100_000, mark: 'remains', signal: new AbortController().signal },
  });
  return { output, told: await prepared.end(), secrets: prepared.secrets };
}

const journals = () => readdir(around.path('own/kept/pending'));

describe('what a command made whose process was killed', () => {
  /** As a process leaves it that is killed while its command runs. */
  async function abandoned(mark: string | undefined, change: Partial<SandboxedCommand> = {}) {
    await around.write('shop/.idea/x', 'of before');
    await symlink('a.js', join(project, '.zshrc')).catch(() => undefined);
    await sandboxOf(mark).prepare(commandOf({ id: 'killed', ...change }));
    await around.write('shop/.vscode/tasks.json', 'evil');
    await writeFile(join(project, 'tool'), '');
    await chmod(join(project, 'tool'), 0o4755);
  }
  const isThere = () => existsSync(join(project, '.vscode'));

  it('is taken away before the next one begins, which is told, and nothing else is', async () => {
    states.dead = 'gone';
    await abandoned('dead');
    expect(await journals()).toEqual(['killed.json']);
    const { told } = await runIn('ls -a; true');
    expect(told).toEqual([
      expect.stringMatching(/^\.vscode was removed: .* moved to .*\.vscode\.$/),
      'tool no longer runs with the rights of its owner or group.',
    ]);
    expect([isThere(), (await stat(join(project, 'tool'))).mode & 0o7777]).toEqual([false, 0o700]);
    expect(await readFile(join(project, '.idea/x'), 'utf8')).toBe('of before');
    expect(await journals()).toEqual([]);
  });

  it('stays while that process may still be there, and where somebody made it later', async () => {
    states.alive = 'running';
    await abandoned('alive', { from: 0, timeMs: 0 });
    await runIn('true');
    expect([isThere(), await journals()]).toEqual([true, ['killed.json']]);
    states.alive = 'gone';
    // It was made long after the command had to end.
    await runIn('true');
    expect([isThere(), await journals()]).toEqual([true, []]);
  });

  it('is taken away where nobody can tell of the process, once its command has had its time', async () => {
    await abandoned(undefined);
    await runIn('true');
    expect([isThere(), await journals()]).toEqual([true, ['killed.json']]);
    await runIn('true', { from: Date.now() + 100_000 });
    expect([isThere(), await journals()]).toEqual([false, []]);
  });

  it('is left alone where a journal is broken', async () => {
    states.dead = 'gone';
    await abandoned('dead');
    const pending = around.path('own/kept/pending');
    const text = await readFile(join(pending, 'killed.json'), 'utf8');
    await writeFile(join(pending, 'killed.json'), text.slice(0, -9));
    await runIn('true');
    expect(isThere()).toBe(true);
  });
});

it.each(['another user’s', 'open to others', 'a link'])(
  'is not run with what it needs in a folder that is %s',
  async which => {
    // In the temporary directory, where nothing is to be kept.
    const kept = around.path('tmp/kept');
    await around.write('tmp/elsewhere/empty', 'precious');
    if (which === 'a link') await symlink('elsewhere', kept);
    else await mkdir(kept, { mode: 0o700 });
    if (which === 'open to others') await chmod(kept, 0o777);
    const real = process.getuid;
    if (which === 'another user’s') process.getuid = () => 12_345;
    const prepared = sandboxOf('this', { kept }).prepare(commandOf({}));
    await expect(prepared).rejects.toMatchObject({
      message: expect.stringContaining('is not a directory of this user alone'),
    });
    process.getuid = real;
    expect(await readFile(around.path('tmp/elsewhere/empty'), 'utf8')).toBe('precious');
  },
);

it('leaves no file that runs with the rights of its owner or group, and does not touch those of before', async () => {
  await around.write('shop/old', '');
  await chmod(join(project, 'old'), 0o6755);
  const { told } = await runIn('touch a b .mcp.json; chmod 4755 a .mcp.json; chmod 2755 b; chmod 755 old');
  expect(told.toSorted()).toEqual([
    expect.stringMatching(/^\.mcp\.json was removed/),
    'a no longer runs with the rights of its owner or group.',
    'b no longer runs with the rights of its owner or group.',
  ]);
  const modes = await Promise.all(['a', 'b', 'old'].map(async name => (await stat(join(project, name))).mode & 0o6000));
  expect([modes, existsSync(join(project, '.mcp.json'))]).toEqual([[0, 0, 0o6000], false]);
});

describe('secret files', () => {
  const secrets = ['.env', 'deep/server.key', '.docker/config.json', '.npmrc'];
  beforeEach(async () => {
    for (const path of secrets) await around.write(`shop/${path}`, 'canary\n');
    for (const path of ['.env.example', 'node_modules/tls/test.pem', '.venv/lib/cacert.pem', 'conf/prod'])
      await around.write(`shop/${path}`, 'open\n');
    await mkdir(join(project, '.env.d'));
    await symlink('conf/prod', join(project, '.env.production'));
    await symlink('.env', join(project, 'alias'));
    await symlink('/etc/hostname', join(project, 'id_rsa'));
  });
  const read = 'cat .env deep/server.key .docker/config.json .npmrc alias .env.production; ';

  it('are found by their names, in protected folders too, but not in packages or outside', async () => {
    const found = (await placesIn(project, false)).secrets.map(path => path.slice(project.length + 1));
    expect(found.toSorted()).toEqual([...secrets, 'conf/prod'].toSorted());
  });

  it('are empty for a command that nobody was asked about, whatever it does with them', async () => {
    const tricks = [
      'cat .env.example node_modules/tls/test.pem .venv/lib/cacert.pem',
      'mv .env x; ln .env y; cp .env z; mv deep away; rm -f deep/server.key; echo new > .env; chmod 777 .env; umount .env',
      'cat x y z away/server.key',
    ];
    const { output } = await runIn(`(${read}${tricks.join('; ')}) 2>/dev/null`);
    expect(output).toBe('open\nopen\nopen\n');
    expect(await readFile(join(project, '.env'), 'utf8')).toBe('canary\n');
    expect((await runIn(read, { seesSecrets: true })).output).toBe('canary\n'.repeat(5) + 'open\n');
  });

  it('are closed to it on macOS', async () => {
    await around.write('bin/sandbox-exec', '#!/bin/sh\ntest "$1" = -p\n');
    await chmod(around.path('bin/sandbox-exec'), 0o700);
    const childEnv = { PATH: `${around.path('bin')}:${process.env.PATH}` };
    const { argv, end } = await sandboxOf('this', { platform: 'darwin', childEnv }).prepare(commandOf({}));
    await end();
    const lines = String(argv[2]).split('\n');
    const denied = lines.findIndex(line => line.startsWith('(deny file-read-data file-write* (subpath'));
    for (const path of secrets) expect(lines[denied]).toContain(`(subpath "${join(project, path)}")`);
    expect(denied).toBeGreaterThan(lines.findIndex(line => line.startsWith('(allow file-read*')));
    expect(lines).toContain(`(deny file-write-unlink (literal "${join(project, 'deep')}"))`);
  });

  it('are told of where there is no sandbox, except in a home directory', async () => {
    const without = (home: string) => sandboxOf('this', { mode: 'off', home }).prepare(commandOf({}));
    expect((await without(around.path('home'))).secrets).toHaveLength(5);
    expect((await without(project)).secrets).toEqual([]);
  });
});

describe('the system around a project', () => {
  const hidden = async (at: string) => {
    const { argv } = await sandboxOf('this').prepare(commandOf({ project: at, cwd: at }));
    return argv.filter((_, index) => argv[index - 1] === '--tmpfs');
  };

  it('shows no other project beside it, wherever it lies', async () => {
    await link(around.path('home/x'), around.path('beside'));
    expect((await runIn(`ls -a ${dirname(project)}`)).output.split('\n')).not.toContain('beside');
    expect(await hidden('/no-such-place/team/shop')).not.toContain('/no-such-place');
    const real = await realpath('test');
    const [, top = ''] = real.split('/');
    expect(await hidden(real)).toContain(`/${top}`);
    for (const folder of await hidden('/usr/local/shop')) expect(folder).not.toMatch(/^\/usr/);
    expect(await hidden('/usr/lib/git-core/x')).toContain('/usr/lib/git-core');
  });

  it('shows the programs that are found there behind a link', async () => {
    await around.write('tools/node-1/lib/run', '#!/bin/sh\necho ran\n');
    await chmod(around.path('tools/node-1/lib/run'), 0o755);
    await mkdir(around.path('tools/node-1/bin'));
    await symlink('../lib/run', around.path('tools/node-1/bin/run'));
    await symlink('node-1', around.path('tools/current'));
    const PATH = `${around.path('tools/current/bin')}:${process.env.PATH}`;
    expect((await runIn('run', { env: { PATH } })).output).toBe('ran\n');
  });

  it('has settings that nobody may write to, not even root', async () => {
    const writable = 'for f in /proc/sys/kernel/ostype /proc/sysrq-trigger; do test -w $f && echo $f; done';
    const { output } = await runIn(`${writable}; cat /proc/self/comm`);
    expect(output).toBe('cat\n');
  });
});

import childProcess, { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { readlink, symlink } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { relative } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { createFileShortener } from '../../../../../src/calls/ask/shorten-files.ts';
import type { AgentTool, ToolOutput } from '../../../../../src/engine/modes/agent/local-tools/agent-tool.ts';
import { createCommandSandbox } from '../../../../../src/engine/modes/agent/local-tools/command-sandbox.ts';
import { runProcess } from '../../../../../src/engine/modes/agent/local-tools/command-tool.ts';
import type { LocalToolServices } from '../../../../../src/engine/modes/agent/local-tools/local-tool.ts';
import { createLocalTools } from '../../../../../src/engine/modes/agent/local-tools/local-tools.ts';
import { createMask } from '../../../../../src/observability/secret-masking.ts';
import { createGit, createGitHistory } from '../../../../../src/workspace/git/git.ts';
import { runTree } from '../../../../../src/workspace/process-tree.ts';
import { createSandbox } from '../../../../../src/workspace/sandbox.ts';
import { createPool, type WorkPool } from '../../../../../src/workspace/workers/worker-pool.ts';
import { writeChanges } from '../../../../../src/workspace/write-changes.ts';
import { realClock } from '../../../../support/clock.ts';
import { isRunning } from '../../../../support/mcp-session.ts';
import { type TempProject, tempProject } from '../../../../support/temp-project.ts';

const clock = realClock();
const secret = 'hunter2hunter2';
const placeholder = '[masked:test:00000000]';
const mask = async (text: string) => {
  const places = [...text.matchAll(new RegExp(secret, 'g'))].map(({ index }) => ({
    start: index,
    end: index + secret.length,
    kind: 'test',
    placeholder,
  }));
  return { text: text.replaceAll(secret, placeholder), found: {}, places };
};
/** A process that was ended and that nobody has asked about yet does not run. */
function lives(pid: number): boolean {
  try {
    return isRunning(pid) && !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    // It went between the two looks.
    return false;
  }
}

let project: TempProject;
let pool: WorkPool;
let tools: readonly AgentTool[];
beforeEach(async () => {
  project = await tempProject({
    'src/a.ts': `export const name = '${secret}';\nexport function add(a: number, b: number) {\n  return a + b;\n}\n`,
    'src/deep/b.ts': '// TODO nothing\nexport {};\n',
    'node_modules/x/index.js': 'TODO',
    'note.md': 'A note.\n',
    'slow.mjs':
      "import { spawn } from 'node:child_process';\nconst child = spawn('sleep', ['60'], { stdio: 'inherit' });\nconsole.log(child.pid);\nsetInterval(() => {}, 1000);\n",
    'away.mjs':
      "import { spawn } from 'node:child_process';\nconst child = spawn('sleep', ['60'], { stdio: 'inherit', detached: true });\nchild.unref();\nconsole.log(child.pid);\nprocess.exit(0);\n",
    'loud.mjs': "process.stdout.write('begin ' + 'x'.repeat(2_000_000) + ' end');\nprocess.exitCode = 4;\n",
    'env.mjs': 'console.log(JSON.stringify(process.env));process.stdin.resume();\n',
  });
  pool = createPool({ size: 1, clock });
  tools = await createLocalTools(partsOf({}));
});
afterEach(async () => {
  await pool.close();
  await project.dispose();
});

function partsOf(change: Partial<LocalToolServices>): LocalToolServices {
  const { root } = project;
  const sandbox = createSandbox({ roots: [root], allowSecrets: false });
  const childEnv = { PATH: process.env.PATH, HOME: root, OPENAI_API_KEY: 'sk-not-for-others' };
  const git = { sandbox, homeDir: root, mask, clock, childEnv: childEnv };
  return {
    ...{ sandbox, clock, mask, childEnv, root },
    git: createGit(git),
    history: createGitHistory(git),
    fileShortener: createFileShortener(pool),
    emit: () => {},
    // Of its own for each test: what a command left behind is found by it, and ended a moment later.
    reqId: `run-${randomUUID()}`,
    scope: 'run',
    tool: 'agent',
    home: root,
    maxFileBytes: 1_000_000,
    backups: project.path('backups'),
    commands: ['npm test', 'npm run *', 'node *'],
    commandSandbox: createCommandSandbox({
      ...{ mode: 'off', network: false, childEnv, platform: process.platform },
      ...{ projects: [], home: root, own: project.path('own'), kept: project.path('own/kept') },
      marks: { own: undefined, stateOf: () => 'unknown' },
    }),
    commandMs: 20_000,
    fetches: false,
    owner: 'local',
    productTools: () => [],
    ...change,
  };
}

async function use(name: string, args: Record<string, unknown>, from = tools): Promise<ToolOutput> {
  const tool = from.find(each => each.name === name)!;
  const checked = (await tool.check?.(args)) ?? { args };
  if ('problem' in checked) throw new Error(checked.problem);
  const output = await tool.run(checked.args, { callId: 'c1', signal: new AbortController().signal });
  return typeof output === 'string' ? { text: output } : output;
}

describe('hands that look', () => {
  it('search all roots where no directory is named', async () => {
    const other = await tempProject({ 'lib/far.ts': 'export const farAway = 1;\n' });
    const sandbox = createSandbox({ roots: [project.root, other.root], allowSecrets: false });
    const wide = await createLocalTools(partsOf({ sandbox }));
    const way = relative(project.root, other.path('lib/far.ts'));
    expect((await use('search_text', { texts: ['farAway'] }, wide)).text).toContain(`${way}:1: export const farAway`);
    expect((await use('glob', { pattern: '**/far.ts' }, wide)).text).toBe(way);
    expect((await use('search_text', { texts: ['farAway'], path: '.' }, wide)).text).toBe('Nothing was found.');
    await other.dispose();
  });

  it('read a file whole or some lines, numbered, masked, and watch it', async () => {
    const whole = await use('read_file', { path: 'src/a.ts' });
    expect(whole.text).toContain("1│ export const name = '[masked:test:00000000]';");
    expect(whole.seen).toEqual([project.path('src/a.ts')]);
    const part = await use('read_file', { path: 'src/a.ts', from: 2, to: 3 });
    expect(part.text.split('\n').slice(1)).toEqual([
      '   2│ export function add(a: number, b: number) {',
      '   3│   return a + b;',
    ]);
    await expect(use('read_file', { path: '/etc/passwd' })).rejects.toMatchObject({ kind: 'security' });
    await expect(use('read_file', { path: 'src/a.ts', lines: 3 })).rejects.toThrow(/lines/);
  });

  it('list, find and search without what is ignored or built', async () => {
    expect((await use('list_dir', { path: 'src' })).text).toBe('src:\na.ts\ndeep/');
    expect((await use('glob', { pattern: '*.ts' })).text).toBe('src/a.ts\nsrc/deep/b.ts');
    expect((await use('glob', { pattern: 'src/*.ts' })).text).toBe('src/a.ts');
    expect((await use('search_text', { texts: ['todo', 'a note'] })).text).toBe(
      'note.md:1: A note.\nsrc/deep/b.ts:1: // TODO nothing',
    );
    expect((await use('search_text', { texts: ['todo'], same_case: true })).text).toBe('Nothing was found.');
    expect((await use('search_text', { texts: ['hunter2'] })).text).not.toContain(secret);
    await project.write('big.log', `${'a line\n'.repeat(200_000)}needle\n`);
    writeFileSync(project.path('big.png'), Buffer.alloc(2_000_000));
    expect((await use('search_text', { texts: ['needle'] })).text).toBe(
      'Nothing was found.\n… not searched, too large or not to be read: big.log',
    );
    const whole = await createLocalTools(partsOf({ maxFileBytes: 4_000_000 }));
    const alone = { texts: ['needle'], path: 'big.log' };
    expect((await use('search_text', alone, whole)).text).toBe('big.log:200001: needle');
  });

  it('take no pattern that would keep the process busy', async () => {
    for (const pattern of ['{1..99999999}', '+(a|+(a|b))', '{a,b}{a,b}{a,b}', '*a*a*a*a*a*a*a*a*a*a*a*a*a*']) {
      await expect(use('glob', { pattern }), pattern).rejects.toMatchObject({ kind: 'input' });
    }
    expect((await use('glob', { pattern: 'src/**/*.{ts,md}' })).text).toBe('src/a.ts\nsrc/deep/b.ts');
  });

  it('sum a file up by what it declares', async () => {
    const long = Array.from({ length: 80 }, (_, at) => `export function f${at}() {\n  return ${at};\n}`).join('\n');
    await project.write('src/long.ts', long);
    const { text } = await use('summarize_file', { path: 'src/long.ts' });
    expect(text).toContain('outline of src/long.ts');
    expect(text).toContain('f79');
    expect(text.length).toBeLessThan(long.length * 2);
  });

  it('tell the history of the repository, masked, without secret files and without running anything of it', async () => {
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], {
        cwd: project.root,
        encoding: 'utf8',
      });
    git('init', '-q');
    await project.write('.env', 'TOKEN=abc123\n');
    await project.write('.gitattributes', '* diff=evil\n');
    git('config', 'diff.evil.textconv', `touch ${project.path('ran')}; cat`);
    git('add', '-f', 'src', '.env', '.gitattributes');
    git('commit', '-qm', `First: ${secret}`);
    await project.write('src/a.ts', 'export {};\n');
    const log = await use('git_log', { path: 'src/a.ts' });
    expect(log.text).toContain('First: [masked:test:00000000]');
    const show = await use('git_show', { ref: 'HEAD' });
    expect(show.text).toContain('+export function add');
    expect(show.text).not.toContain('abc123');
    expect(show.text).not.toContain(secret);
    expect(show.text).toContain('.env: left out');
    const usual = await createLocalTools(partsOf({ commands: undefined }));
    expect((await use('run_command', { argv: ['git', 'show', 'HEAD'] }, usual)).text).toBe(show.text);
    for (const id of [git('rev-parse', 'HEAD:.env').trim(), git('rev-parse', 'HEAD^{tree}').trim()])
      await expect(use('git_show', { ref: id })).rejects.toMatchObject({ kind: 'input' });
    const filler = 'OTHER=word\n'.repeat(30);
    await project.write('.env', `TOKEN=abc123\n${filler}`);
    git('commit', '-qm', 'Longer.', '.env');
    git('mv', '.env', 'näme of env.txt');
    await project.write('näme of env.txt', `TOKEN=xyz789\n${filler}`);
    git('add', 'näme of env.txt');
    git('commit', '-qm', 'Moved.');
    const moved = await use('git_show', { ref: 'HEAD' });
    expect(moved.text).toContain('näme of env.txt: left out');
    expect(moved.text).not.toMatch(/abc123|xyz789/);
    expect((await use('git_diff', {})).text).toContain('-export function add');
    expect((await use('list_dir', {})).text).not.toContain('ran');
    await expect(use('git_show', { ref: '--output=x' })).rejects.toMatchObject({ kind: 'input' });
    await expect(use('git_log', { ref: 'nothing' })).rejects.toMatchObject({ kind: 'input' });
  });
});

describe('a command', () => {
  it('gets no keys and no input, and tells how it ended', async () => {
    const { text, failed } = await use('run_command', { argv: ['node', 'env.mjs'] });
    expect(failed).toBe(false);
    expect(text).toMatch(/^Exit code: 0\n/);
    expect(text).not.toContain('sk-not-for-others');
    const loud = await use('run_command', { argv: ['node', 'loud.mjs'] });
    expect(loud).toMatchObject({ failed: true });
    expect(loud.text).toMatch(/^Exit code: 4\nbegin x+\n\[… 1600010 bytes left out …\]\nx+ end$/);
    expect(loud.text.length).toBeLessThan(450_000);
    await expect(use('run_command', { argv: ['node-that-is-not-there'] })).rejects.toMatchObject({ kind: 'config' });
  });

  it('is ended after its time with all that it started', async () => {
    let child = Number.NaN;
    // A busy machine needs longer until it has started one.
    for (let commandMs = 700; Number.isNaN(child) && commandMs < 60_000; commandMs *= 4) {
      const short = await createLocalTools(partsOf({ commandMs }));
      const { text, failed } = await use('run_command', { argv: ['node', 'slow.mjs'] }, short);
      expect(failed).toBe(true);
      expect(text).toContain(`longer than ${Math.round(commandMs / 1_000)} s`);
      child = Number(/^(\d+)$/m.exec(text)?.[1]);
    }
    expect(child).toBeGreaterThan(1);
    await expect.poll(() => lives(child)).toBe(false);
  });

  it('leaves nothing behind, also what went into a session of its own, and does not wait for it', async () => {
    const began = performance.now();
    const { text } = await use('run_command', { argv: ['node', 'away.mjs'] });
    expect(text).toContain('Exit code: 0');
    expect(performance.now() - began).toBeLessThan(30_000);
    const child = Number(/^(\d+)$/m.exec(text)?.[1]);
    await expect.poll(() => lives(child)).toBe(false);
  });

  let runs = 0;
  const runOf = (script: string, signal: AbortSignal, platform = 'linux') =>
    runProcess({
      ...{ mark: `run-${++runs}`, platform },
      ...{ clock, argv: ['/bin/sh', '-c', script], cwd: project.root, env: { PATH: process.env.PATH ?? '' } },
      ...{ timeMs: 60_000, maxBytes: 1_000, signal },
    });

  it('is told with both of its outputs, and leaves no listener', async () => {
    const { signal } = new AbortController();
    expect(await runOf('echo out; echo err >&2; exit 3', signal)).toMatchObject({
      ...{ exitCode: 3, late: false, output: expect.stringMatching(/^(?:out\nerr|err\nout)\n$/) },
    });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    const nowhere = { argv: ['/nowhere/x'] as const, cwd: '/', env: {}, mark: 'nowhere', platform: 'linux' };
    const run = { ...nowhere, clock, timeMs: 1_000, maxBytes: 9, signal };
    await expect(runProcess(run)).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('/nowhere/x'),
    });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('is not started with what no program can be given', async () => {
    const run = runOf('exit\0', AbortSignal.timeout(60_000));
    await expect(run).rejects.toMatchObject({ kind: 'config', message: expect.stringMatching(/null bytes[^\0]*$/) });
    // Nor for who gave up: its words are not even looked at.
    await expect(runOf('exit\n', AbortSignal.timeout(60_000), 'win32')).rejects.toMatchObject({ kind: 'input' });
    await expect(runOf('exit\n', AbortSignal.abort(), 'win32')).rejects.toMatchObject({ kind: 'cancelled' });
  });

  it.each([0, 50])(
    'ends with its group where the system lists no processes (%s ms to end by itself)',
    async graceMs => {
      const list = childProcess.execFile;
      onTestFinished(() => {
        childProcess.execFile = list;
        syncBuiltinESMExports();
      });
      const failing = (...args: unknown[]) => (args.at(-1) as (error: Error) => void)(new Error('EAGAIN'));
      childProcess.execFile = failing as unknown as typeof list;
      syncBuiltinESMExports();
      let told = '';
      await runTree({
        ...{
          file: '/bin/sh',
          args: ['-c', 'sleep 300 >/dev/null 2>&1 & echo $!'],
          cwd: '/',
          mark: 'x=1',
          platform: 'darwin',
        },
        ...{ env: { PATH: process.env.PATH ?? '' }, clock, graceMs, signal: AbortSignal.timeout(60_000) },
        onOutput: chunk => {
          told += chunk;
        },
      });
      expect(Number(told)).toBeGreaterThan(1);
      await expect.poll(() => lives(Number(told))).toBe(false);
    },
  );

  it('ends with its signal, and all of its group', async () => {
    const controller = new AbortController();
    await project.write('started', '');
    const running = runOf('sleep 60 & echo $! > started; wait', controller.signal);
    const child = () => Number(readFileSync(project.path('started'), 'utf8'));
    await expect.poll(child, { timeout: 30_000 }).toBeGreaterThan(1);
    controller.abort();
    await expect(running).rejects.toMatchObject({ kind: 'cancelled' });
    await expect.poll(() => lives(child())).toBe(false);
  });

  it('does not wait for what left its group and its environment with its outputs', async () => {
    const { output, exitCode } = await runOf('env -i setsid sleep 60 & echo $!', new AbortController().signal);
    const child = Number(output);
    expect([exitCode, lives(child)]).toEqual([0, true]);
    process.kill(child, 'SIGKILL');
  });

  it('names nothing in the data folder, by a word, an option or a part of one', async () => {
    const sandbox = createSandbox({ roots: [project.root], allowSecrets: false, own: [project.path('own')] });
    const [tool] = (await createLocalTools(partsOf({ sandbox }))).filter(({ name }) => name === 'run_command');
    const approval = (args: object) =>
      tool!.approval!({ ...args }, { callId: 'c', signal: new AbortController().signal });
    const long = `${'./'.repeat(1_990)}own`;
    for (const word of ['own', 'src/../own/x', '--out=own/x', '-oown/x', 'src:own', 'a,own;b', long])
      await expect(approval({ argv: ['cat', word] }), word).rejects.toMatchObject({ kind: 'security' });
    await expect(approval({ argv: ['cat', 'x'], cwd: 'own' })).rejects.toMatchObject({ kind: 'security' });
    await expect(approval({ argv: ['cat', 'own\0'] })).resolves.toMatchObject({ asked: expect.any(String) });
    await expect(approval({ argv: ['cat', 'x'.repeat(4_000), 'x'.repeat(3_990)] })).resolves.toBeDefined();
    await expect(approval({ argv: ['cat', 'x'.repeat(4_000), 'x'.repeat(4_000)] })).rejects.toThrow('8000 characters');
    // With the folder, the program and the word itself.
    const things = (count: number) => Array.from({ length: count - 3 }, (_, at) => at).join();
    await expect(approval({ argv: ['cat', things(1_000)] })).resolves.toBeDefined();
    await expect(approval({ argv: ['cat', things(1_001)] })).rejects.toThrow('1000 things');
  });

  it.each(['off', 'auto'] as const)('has what it prints of secret files masked, with the sandbox %s', async mode => {
    const { mask } = createMask({ secret: 'key', keys: [] });
    const away = await tempProject({ 'home/x': '' });
    const values = ['zz-canary-free-form', 'two words & more', 'colon-set-value9', 'a-line-alone-77', '"quoted" value'];
    await project.write(
      '.env',
      `# COMMENT=not-a-secret-1\nexport A=${values[0]}\nB="${values[1]}"\nPORT=3000\nNODE_ENV=production\nURL=http://localhost:3000/api\nC='${values[4]}'\nNAME=my-shop\nLOG=./logs/app.log\n`,
    );
    await project.write('conf/.netrc', `password: ${values[2]}\r\n${values[3]}\n`);
    await project.write('ca.pem', `-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n`);
    const home = away.path('home');
    const commandSandbox = createCommandSandbox({
      ...{ mode, network: false, childEnv: { PATH: process.env.PATH }, platform: 'linux', projects: [], home },
      ...{ own: away.path('own'), kept: away.path('own/kept'), marks: { own: undefined, stateOf: () => 'unknown' } },
    });
    const own = await createLocalTools(partsOf({ commandSandbox, mask, commands: ['npm test'] }));
    const { text } = await use('run_command', { argv: ['cat', '.env', 'conf/.netrc', 'ca.pem'] }, own);
    for (const value of values) expect(text).toContain(value);
    const told = (await mask(text, 'run')).text;
    for (const value of values) expect(told).not.toContain(value);
    for (const usual of ['not-a-secret-1', 'PORT=3000', 'production', 'localhost:3000', 'my-shop', 'app.log', 'MIIEvQ'])
      expect(told).toContain(usual);
    await away.dispose();
  });

  it('is cleaned up after also where it was cancelled', async () => {
    let ended = 0;
    const commandSandbox: LocalToolServices['commandSandbox'] = {
      describe: async () => 'none',
      prepare: async ({ argv, env }) => ({ argv, env, secrets: [], end: async () => [`${++ended}`] }),
    };
    const own = await createLocalTools(partsOf({ commandSandbox }));
    const tool = own.find(({ name }) => name === 'run_command')!;
    const signal = AbortSignal.timeout(300);
    await expect(tool.run({ argv: ['sleep', '60'] }, { callId: '1', signal })).rejects.toMatchObject({
      name: 'AppError',
    });
    expect(ended).toBe(1);
  });

  it('is shown so that no other looks like it, and is of the project that its folder lies in', async () => {
    const other = await tempProject({ 'a/x': '' });
    const sandbox = createSandbox({ roots: [project.root, other.root], allowSecrets: false });
    const prepared: string[] = [];
    const commandSandbox: LocalToolServices['commandSandbox'] = {
      describe: async () => 'none',
      prepare: async ({ argv, env, project: of, cwd, isAsked }) => {
        prepared.push(`${cwd} of ${of}${isAsked ? ', asked' : ''}`);
        return { argv, env, secrets: [], end: async () => ['It was removed.'] };
      },
    };
    const own = await createLocalTools(partsOf({ sandbox, commandSandbox }));
    const tool = own.find(({ name }) => name === 'run_command')!;
    expect(tool.show!({ argv: ['cat', 'a b', 'a\u202eb', '--x=@%+,:./-', ''] })).toBe(
      'cat "a b" "a\\u{202e}b" --x=@%+,:./- ""',
    );
    expect(tool.show!({ argv: ['cat'], cwd: 'src' })).toBe('cat   (in src)');
    expect(tool.description).toContain('(npm test, npm run *, node *)');
    for (const cwd of ['src', other.path('a')]) {
      expect((await use('run_command', { argv: ['true'], cwd }, own)).text).toBe('Exit code: 0\nIt was removed.\n');
    }
    // The operator allows this one, so that nobody is asked.
    expect((await use('run_command', { argv: ['node', 'env.mjs'] }, own)).text).toContain('Exit code: 0');
    expect(prepared).toEqual([
      `${project.path('src')} of ${project.root}, asked`,
      `${other.path('a')} of ${other.root}, asked`,
      `${project.root} of ${project.root}`,
    ]);
    await other.dispose();
  });

  it('is one of those that the operator allows, word by word', async () => {
    const tool = tools.find(({ name }) => name === 'run_command')!;
    const verdict = async (...argv: string[]) =>
      (await tool.approval!({ argv }, { callId: 'c', signal: new AbortController().signal })).asked;
    expect(await verdict('npm', 'test', '--', 'x')).toBeUndefined();
    expect(await verdict('npm', 'run', 'lint')).toBeUndefined();
    for (const argv of [
      ['npm'],
      ['npm', 'install'],
      ['npm', 'run', '-x'],
      ['rm', '-rf', '/'],
      ['./npm', 'test'],
      ['npm', 'test\nrm'],
    ]) {
      expect(await verdict(...argv), argv.join(' ')).toBeTypeOf('string');
    }
  });
});

it('looks, writes, runs programs, and reads the web where it may', async () => {
  expect((await createLocalTools(partsOf({}))).map(({ name }) => name)).not.toContain('fetch_url');
  const names = (await createLocalTools(partsOf({ fetches: true }))).map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(['read_file', 'list_dir', 'search_text', 'glob', 'git_diff', 'git_log', 'git_show']),
  );
  expect(names).toEqual(
    expect.arrayContaining(['summarize_file', 'write_file', 'apply_patch', 'run_command', 'fetch_url']),
  );
  expect(tools.map(({ name }) => name)).not.toContain('fetch_url');
});

describe('a file that is written whole', () => {
  const bytes = (path: string) => readFileSync(project.path(path));

  it('keeps its line ends and its byte-order mark, which the model was not shown', async () => {
    await project.write('dos.txt', `\uFEFFone\r\npassword = '${secret}'\r\n`);
    expect((await use('read_file', { path: 'dos.txt' })).text).toContain(
      `   1│ one\n   2│ password = '${placeholder}'`,
    );
    await use('write_file', { path: 'dos.txt', content: `ONE\npassword = '${placeholder}'\n` });
    expect(bytes('dos.txt').toString()).toBe(`\uFEFFONE\r\npassword = '${secret}'\r\n`);
    // By a call with the id that the one before had, as some servers number them.
    await use('write_file', { path: 'dos.txt', content: '\uFEFFtwo\r\n' });
    expect(bytes('dos.txt').toString()).toBe('\uFEFFtwo\r\n');
    await use('write_file', { path: 'note.md', content: 'two\r\n' });
    expect(bytes('note.md').toString()).toBe('two\r\n');
  });

  it.each([
    ['UTF-16', Buffer.from('\uFEFFGrüße\n', 'utf16le')],
    ['an old encoding', Buffer.from('Grüße an alle, die es lesen\n', 'latin1')],
  ])('is refused in %s, which would be lost', async (_, before) => {
    writeFileSync(project.path('old.txt'), before);
    await expect(use('write_file', { path: 'old.txt', content: 'Hello\n' })).rejects.toThrow(/another encoding/);
    expect(bytes('old.txt')).toEqual(before);
  });

  it('is written, and commands run, whatever the id of the call', async () => {
    const around = { callId: 'call_'.repeat(200), signal: new AbortController().signal };
    const run = (name: string, args: Record<string, unknown>) =>
      tools.find(each => each.name === name)!.run(args, around);
    expect(await run('write_file', { path: 'note.md', content: 'x' })).toMatch(/^changed note\.md; before: /);
    expect(await run('run_command', { argv: ['node', '-e', '0'] })).toMatchObject({ failed: false });
  });

  it('is put back byte by byte where one that is written with it cannot be', async () => {
    const before = Buffer.from([0, 0xff, 0xfe, 0x80]);
    writeFileSync(project.path('a.bin'), before);
    const { sandbox, backups } = partsOf({});
    const options = { sandbox, backups: `${backups}/x`, unique: 'u', signal: new AbortController().signal };
    const gone = { path: project.path('gone.txt'), text: undefined };
    await expect(writeChanges(options, [{ path: project.path('a.bin'), text: 'x' }, gone])).rejects.toThrow();
    expect(bytes('a.bin')).toEqual(before);
  });
});

describe('what was approved', () => {
  const around = () => ({ callId: 'c1', signal: new AbortController().signal });
  const writer = () => tools.find(({ name }) => name === 'write_file')!;

  it('keep what was there in no folder that another user may have made, and change nothing then', async () => {
    await project.write('elsewhere/x', '');
    await symlink('elsewhere', project.path('linked'));
    const linked = await createLocalTools(partsOf({ backups: project.path('linked') }));
    const before = readFileSync(project.path('src/a.ts'), 'utf8');
    await expect(use('write_file', { path: 'src/a.ts', content: 'x' }, linked)).rejects.toThrow(/of this user alone/);
    expect(readFileSync(project.path('src/a.ts'), 'utf8')).toBe(before);
    expect(readdirSync(project.path('elsewhere'))).toEqual(['x']);
  });

  it('is no link to what is not there, of which nothing would be kept', async () => {
    await symlink('not-there.txt', project.path('dangling.txt'));
    const writing = use('write_file', { path: 'dangling.txt', content: 'x' });
    await expect(writing).rejects.toThrow(/dangling.txt may not be written: It is a link to what is not there/);
    expect(await readlink(project.path('dangling.txt'))).toBe('not-there.txt');
  });

  it('is no other file behind a link, by either way of writing', async () => {
    await symlink(project.path('note.md'), project.path('harmless.txt'));
    await symlink(project.path('src'), project.path('docs'));
    for (const path of ['harmless.txt', 'docs/a.ts', 'docs/new/c.ts']) {
      await expect(writer().approval?.({ path, content: 'x' }, around()), path).rejects.toMatchObject({
        kind: 'security',
      });
      await expect(use('write_file', { path, content: 'x' }), path).rejects.toMatchObject({ kind: 'security' });
    }
    const patch = '--- a/harmless.txt\n+++ b/harmless.txt\n@@ -1 +1 @@\n-A note.\n+Theirs.\n';
    await expect(use('apply_patch', { patch })).rejects.toMatchObject({ kind: 'security' });
    expect(readFileSync(project.path('note.md'), 'utf8')).toBe('A note.\n');
  });

  it('does not overwrite what somebody wrote until then', async () => {
    const args = { path: 'note.md', content: 'By the agent.\n' };
    await writer().approval?.(args, around());
    await project.write('note.md', 'By the user meanwhile.\n');
    await expect(use('write_file', args)).rejects.toThrow(/meanwhile/);
    expect(readFileSync(project.path('note.md'), 'utf8')).toBe('By the user meanwhile.\n');
  });
});

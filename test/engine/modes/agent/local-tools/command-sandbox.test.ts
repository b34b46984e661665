import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, readlink, realpath, rename, rm, symlink } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type CommandSandboxOptions,
  createCommandSandbox,
} from '../../../../../src/engine/modes/agent/local-tools/command-sandbox.ts';
import { runProcess } from '../../../../../src/engine/modes/agent/local-tools/command-tool.ts';
import { findProgram } from '../../../../../src/workspace/programs.ts';
import { realClock } from '../../../../support/clock.ts';
import { type TempProject, tempProject } from '../../../../support/temp-project.ts';
import { gateFiles, hostile } from './command-vectors.ts';

/** Obeys each vector as the worst program would: writes to whatever a word may name, and reaches out. */
const obedient = `
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { resolve } from 'node:path';
const { vectors, port, targets } = JSON.parse(readFileSync('vectors.json', 'utf8'));
let written = 0;
for (const argv of process.argv[2] === 'targets' ? [] : vectors) {
  for (const word of argv.flatMap(each => [each, each.slice(each.indexOf('=') + 1), each.replace(/^--?[a-z]+/i, ''), each.split(':')[0]])) {
    for (const place of [word, word + '/written']) {
      const path = resolve(place);
      // In the project it may write; the test looks at what is outside of it.
      if (path.startsWith(process.cwd() + '/') && !place.startsWith('away')) continue;
      try { writeFileSync(path, 'x', { flag: 'a' }); written++; } catch {}
    }
  }
}
for (const path of targets) try { appendFileSync(path, 'x'); written++; } catch {}
const seen = targets.filter(path => { try { return readFileSync(path, 'utf8').includes('secret'); } catch { return false; } });
const reached = await new Promise(done => {
  const socket = connect(port, '127.0.0.1');
  socket.once('connect', () => { socket.destroy(); done(true); });
  socket.once('error', () => done(false));
});
console.log('RESULT ' + JSON.stringify({ written, seen, reached, vectors: vectors.length }));
`;

let project: TempProject;
let outside: TempProject;
let server: Server;
let connections = 0;

beforeAll(async () => {
  project = await tempProject({
    ...gateFiles,
    'obedient.mjs': obedient,
    'make-files.mjs':
      "import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';\nconst attempt = run => { try { run(); } catch {} };\nattempt(() => writeFileSync('.git/hooks/pre-commit', 'evil'));\nattempt(() => writeFileSync('.git/config', 'evil'));\nattempt(() => renameSync('.git', 'old'));\nattempt(() => { mkdirSync('.vscode'); writeFileSync('.vscode/tasks.json', 'evil'); });\nattempt(() => symlinkSync('../x', '.vscode/link'));\nattempt(() => writeFileSync('.mcp.json', 'evil'));\nwriteFileSync('ordinary.txt', 'made');\n",
  });
  outside = await tempProject({
    x: 'old',
    'home/.ssh/id': 'secret',
    'home/.aws/credentials': 'secret',
    'own/token': 'secret',
  });
  await outside.write('out', 'old');
  await symlink(outside.root, project.path('away'));
  execFileSync('git', ['init', '-q'], { cwd: project.root });
  server = createServer(socket => {
    connections++;
    socket.destroy();
  });
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as { port: number };
  const targets = ['home/.ssh/id', 'home/.aws/credentials', 'own/token', 'x'].map(outside.path);
  await project.write('vectors.json', JSON.stringify({ vectors: hostile(outside.root), port, targets }));
});
afterAll(async () => {
  await new Promise(done => server.close(done));
  await project.dispose();
  await outside.dispose();
});

const marks: CommandSandboxOptions['marks'] = { own: 'this', stateOf: () => 'running' };
/** Of a command that nobody was asked about. */
const unasked = { isAsked: false, seesSecrets: false, id: 'a', from: Date.now(), timeMs: 60_000 };

function sandboxOf(change: Partial<CommandSandboxOptions> = {}) {
  return createCommandSandbox({
    ...{ mode: 'require', network: false, childEnv: { PATH: process.env.PATH }, platform: process.platform },
    ...{ projects: [], home: outside.path('home'), own: outside.path('own'), kept: outside.path('own/kept') },
    marks,
    ...change,
  });
}

type Change = Partial<CommandSandboxOptions> & { isAsked?: boolean; at?: string };

async function runIn(change: Change, program: string, ...args: string[]) {
  const root = change.at ?? (await realpath(project.root));
  const file = await findProgram(program, { env: process.env, projects: [root] });
  const env = { PATH: process.env.PATH ?? '', HOME: outside.path('home') };
  const command = { ...unasked, project: root, cwd: root, env, isAsked: change.isAsked ?? false };
  const prepared = await sandboxOf(change).prepare({ argv: [file!, ...args], ...command });
  const signal = new AbortController().signal;
  const run = await runProcess({
    ...{ argv: prepared.argv, env: prepared.env, cwd: root, clock: realClock(), signal },
    ...{ timeMs: 60_000, maxBytes: 100_000, mark: 'sandboxed', platform: 'linux' },
  });
  return { ...run, removed: await prepared.end() };
}

const resultOf = (output: string) => JSON.parse(/^RESULT (.*)$/m.exec(output)?.[1] ?? output);

async function stateOutside(): Promise<string[]> {
  const names = (await readdir(outside.root, { recursive: true })).filter(name => !name.startsWith('own/kept')).sort();
  return Promise.all(names.map(async name => `${name}: ${await readFile(outside.path(name), 'utf8').catch(() => '')}`));
}

describe('the sandbox of commands', () => {
  const without = { childEnv: { PATH: '/nowhere' } };

  it('says what is used, and why none is', async () => {
    expect(await sandboxOf().describe(project.root)).toBe('bubblewrap');
    expect(await sandboxOf({ mode: 'auto', ...without }).describe(project.root)).toBe('none: bwrap is not installed');
    expect(await sandboxOf({ mode: 'off' }).describe(project.root)).toBe('none: AGENT_SANDBOX is off');
    expect(await sandboxOf({ mode: 'auto', platform: 'win32' }).describe(project.root)).toContain('none');
    expect(await sandboxOf({ mode: 'auto', home: project.root }).describe(project.root)).toContain('home directory');
    const broken = await tempProject({ bwrap: '#!/bin/sh\necho "setting up uid map: no" >&2\nexit 1\n' });
    await chmod(broken.path('bwrap'), 0o700);
    const sandbox = sandboxOf({ mode: 'auto', childEnv: { PATH: broken.root } });
    expect(await sandbox.describe(project.root)).toBe(
      `none: ${broken.path('bwrap')} does not work here (setting up uid map: no)`,
    );
    await broken.dispose();
  });

  const withPackages = { 'project/node_modules/x/x.js': '' };

  /** What a command is started with, with short names for the folders. */
  async function argsOf(change: Partial<CommandSandboxOptions>, files: Record<string, string> = withPackages) {
    const own = await tempProject({
      ...{ 'project/a/b/.mcp.json': '', 'project/.git/config': '' },
      ...{
        'home/.ssh/id': '',
        'own/token': '',
        'kept/x': '',
        'bin/sandbox-exec': '#!/bin/sh\ntest "$1" = -p\n',
        ...files,
      },
    });
    await chmod(own.path('bin/sandbox-exec'), 0o700);
    const [root, project] = [await realpath(own.root), await realpath(own.path('project'))];
    const [home, kept] = [own.path('home'), own.path('kept')];
    const sandbox = sandboxOf({
      home,
      kept,
      ...change,
      own: own.path(change.own ?? 'own'),
      childEnv: { PATH: `${own.path('bin')}:${process.env.PATH}` },
    });
    const command = { ...unasked, argv: ['/bin/true', 'x'] as const, project, cwd: project };
    const tools = ['opt/tool/bin', 'bin', 'lib/node_modules/x/bin'].map(name => join(home, name));
    const { argv, env, end } = await sandbox.prepare({ ...command, env: { PATH: tools.join(':') } });
    await end();
    // A command may have removed its own folder.
    await end();
    const shown = [...argv, env.TMPDIR].map(word =>
      String(word)
        .replaceAll(root, '§')
        .replace(/caches\/[\w.-]*/g, 'caches/P'),
    );
    await own.dispose();
    return shown;
  }

  const valuesOf = (args: readonly string[], option: string, count = 1) =>
    args.flatMap((word, at) => (word === option ? [args.slice(at + 1, at + 1 + count).join(' ')] : []));

  it('gives a command the system to read, the project to write, and nothing of the home but its toolchains', async () => {
    const toolchains = (
      '.nvm .volta .fnm .asdf .pyenv .rbenv .goenv .jenv .sdkman .rustup .jdks .cargo/bin .cargo/registry .cargo/git .bun/bin ' +
      '.bun/install .deno/bin go/bin go/pkg .local/bin .local/lib .local/share/mise .local/share/pnpm .local/share/uv ' +
      '.local/share/fnm .m2/repository .npm/_cacache'
    ).split(' ');
    const others = ['.aws', '.config', '.cargo', '.m2', '.npm', '.local/share'];
    const tools = ['opt/tool/bin', 'opt/tool', 'bin', 'lib/node_modules/x/bin', 'lib/node_modules'];
    const files = [...toolchains, ...others, ...tools].map(name => [`home/${name}/.f`, '']);
    const args = await argsOf({}, { ...withPackages, ...Object.fromEntries(files) });
    const seen = valuesOf(args, '--ro-bind-try').filter(path => path.startsWith('§/home'));
    expect(seen.toSorted()).toEqual([...toolchains, ...tools].map(name => `§/home/${name}`).toSorted());
    expect(valuesOf(args, '--ro-bind-try')).not.toContain(await realpath('/bin/true'));
    expect(valuesOf(await argsOf({ home: '/' }), '--tmpfs')).not.toContain('/');
    expect(args.slice(1, 11).join(' ')).toBe(
      '--unshare-user --unshare-pid --unshare-ipc --unshare-uts --die-with-parent --new-session --cap-drop ALL --unshare-net --ro-bind',
    );
    expect(valuesOf(args, '--ro-bind', 2)).toEqual([
      '/ /',
      ...['node_modules', '.git/config', 'a/b/.mcp.json'].map(name => `§/project/${name} §/project/${name}`),
    ]);
    expect(valuesOf(args, '--dev')).toEqual(['/dev']);
    expect(valuesOf(args, '--proc')).toEqual(['/proc']);
    expect(valuesOf(args, '--dir')).toEqual(['§/home']);
    expect(valuesOf(args, '--bind', 2)).toEqual(
      expect.arrayContaining([
        '§/kept/caches/P §/home/.cache',
        '§/project §/project',
        '§/project/a §/project/a',
        '§/project/a/b §/project/a/b',
      ]),
    );
    const empty = valuesOf(args, '--tmpfs');
    expect(empty).toEqual(
      expect.arrayContaining(['/tmp', '/run', '/home', '/root', '/var/tmp', '/mnt', '/media', '/srv']),
    );
    expect(empty).toEqual(expect.arrayContaining(['§/home', '§/own']));
    const scratch = ['.cache', '.vite', '.vite-temp', '.vitest', '.tmp'].map(name => `§/project/node_modules/${name}`);
    expect(empty.slice(-5)).toEqual(scratch);
    expect(args.slice(-6)).toEqual(['--chdir', '§/project', '--', '/bin/true', 'x', '/tmp']);
    const online = await argsOf({ network: true });
    expect(online).not.toContain('--unshare-net');
    expect(valuesOf(online, '--ro-bind-try', 2)).toContain('/run/systemd/resolve /run/systemd/resolve');
  });

  it('says the same to the sandbox of macOS', async () => {
    const args = await argsOf({ platform: 'darwin' });
    const temporary = args.at(-1)!;
    expect([args[0], args[1], ...args.slice(3, 5)]).toEqual(['§/bin/sandbox-exec', '-p', '/bin/true', 'x']);
    expect(temporary).toMatch(/polylogue-command-\w+$/);
    expect(existsSync(temporary)).toBe(false);
    const lines = args[2]!.replaceAll(temporary, 'TMP').split('\n');
    expect(lines.filter(line => !line.includes('mach-lookup'))).toEqual([
      '(version 1)(allow default)',
      '(deny appleevent-send)(deny signal)(allow signal (target same-sandbox))',
      '(deny network*)',
      '(deny file-write*)(allow file-write* (literal "/dev/null") (literal "/dev/tty"))',
      expect.stringMatching(
        /^\(deny file-read-data .*\(subpath "\/tmp"\) .*\(subpath "§\/home"\) \(subpath "§\/own"\)\)$/,
      ),
      expect.stringMatching(
        /^\(allow file-read\* .*\(subpath "§\/project"\) \(subpath "§\/kept\/caches\/P"\) \(subpath "TMP"\)\)$/,
      ),
      '(allow file-write* (subpath "§/project") (subpath "§/kept/caches/P") (subpath "TMP"))',
      '(deny file-write* (subpath "§/project/node_modules") (subpath "§/project/.git/config") (subpath "§/project/a/b/.mcp.json"))',
      expect.stringMatching(/^\(allow file-write\* \(subpath "§\/project\/node_modules\/\.cache"\)/),
      ...lines.filter(line => line.includes('file-write-unlink')),
    ]);
    const around = lines.filter(line => line.includes('file-write-unlink'));
    for (const folder of ['a', 'a/b'])
      expect(around).toContain(`(deny file-write-unlink (literal "§/project/${folder}"))`);
    const online = await argsOf({ platform: 'darwin', network: true });
    expect(online[2]).not.toContain('(deny network*)');
    expect(args[2]).not.toContain('file-read* file-write*');
    const inside = await argsOf({ platform: 'darwin', own: 'project/own' }, { 'project/own/x': '' });
    expect(inside[2]).toMatch(/\n\(deny file-read\* file-write\* \(subpath "§\/project\/own"\)\)$/);
    expect(inside[2]).not.toMatch(/file-read-data [^\n]*project|\(allow file-write\* \)/);
    const mounts = await argsOf({ own: 'project/own' }, { 'project/own/x': '' });
    expect(valuesOf(mounts, '--tmpfs').at(-1)).toBe('§/project/own');
    expect(mounts.indexOf('§/project/own')).toBeGreaterThan(mounts.lastIndexOf('--ro-bind'));
  });

  it('keeps what toolchains make of each project apart, under a name that any disk takes', async () => {
    const name = 'a b'.repeat(60);
    const place = await tempProject({ [`${name}/x`]: '', 'other/x': '' });
    const kept = place.path('kept');
    for (const folder of [name, 'other', 'other']) {
      const at = await realpath(place.path(folder));
      await sandboxOf({ kept }).prepare({ ...unasked, argv: ['/bin/true'], project: at, cwd: at, env: {} });
    }
    const other = (await realpath(place.path('other'))).replaceAll('/', '_');
    expect((await readdir(join(kept, 'caches'))).sort()).toEqual([other, 'a_b'.repeat(50)].sort());
    await place.dispose();
  });

  it('runs nothing without one where it is required', async () => {
    const sandbox = sandboxOf(without);
    await expect(sandbox.describe(project.root)).rejects.toMatchObject({ kind: 'config' });
    const root = await realpath(project.root);
    await expect(
      sandbox.prepare({ ...unasked, argv: ['/bin/true'], project: root, cwd: root, env: {} }),
    ).rejects.toThrow(/AGENT_SANDBOX/);
  });
});

describe('a command in the sandbox', () => {
  it('changes nothing outside and reaches nobody, whatever the vector, and without it does', async () => {
    const before = await stateOutside();
    const inside = resultOf((await runIn({}, 'node', 'obedient.mjs')).output);
    expect(inside).toMatchObject({ seen: [], reached: false });
    expect(inside.vectors).toBeGreaterThanOrEqual(300);
    expect(await stateOutside()).toEqual(before);
    expect(connections).toBe(0);
    const online = resultOf((await runIn({ network: true }, 'node', 'obedient.mjs', 'targets')).output);
    expect(online).toMatchObject({ seen: [], reached: true });
    expect(await stateOutside()).toEqual(before);
    const free = resultOf((await runIn({ mode: 'off' }, 'node', 'obedient.mjs', 'targets')).output);
    expect(free).toMatchObject({ written: 4, reached: true });
    expect(free.seen).toHaveLength(3);
    expect(await stateOutside()).not.toEqual(before);
  });

  it('runs the real make, git, node and python of this machine there', async () => {
    const out = outside.path('made');
    for (const [program, ...args] of [
      ['make', 'test', `--eva=$(shell touch ${out})`],
      ['make', 'test', `-sC${outside.root}`, `--eval=$(shell touch ${out})`],
      ['git', '-c', `alias.evil=!touch ${out}`, 'evil'],
      ['git', 'diff', '--no-index', `--output=${out}`, 'notes.txt', 'Makefile'],
      ['node', `--redirect-warnings=${out}`, '-e', 'process.emitWarning("x")'],
      ['python3', '-c', `open(${JSON.stringify(out)}, "w")`],
    ] as const) {
      await runIn({}, program, ...args);
      expect(existsSync(out), program).toBe(false);
    }
    expect((await runIn({}, 'make', 'test')).exitCode).toBe(0);
    expect((await runIn({}, 'git', 'status', '--short')).exitCode).toBe(0);
    expect((await runIn({}, 'node', '--test', 'test/a.test.js')).exitCode).toBe(0);
  });

  it('makes files in the project, but none that make other programs run things', async () => {
    const before = await readFile(project.path('.git/config'), 'utf8');
    const { removed, exitCode } = await runIn({}, 'node', 'make-files.mjs');
    expect(exitCode).toBe(0);
    expect(removed.map(text => text.split(' ', 1)[0]).sort()).toEqual(['.mcp.json', '.vscode']);
    const [kept] = removed.flatMap(text => / moved to (.*\.vscode)\.$/.exec(text)?.slice(1) ?? []);
    expect(await readlink(join(kept!, 'link'))).toBe('../x');
    expect(existsSync(project.path('.mcp.json')) || existsSync(project.path('.vscode'))).toBe(false);
    expect(existsSync(project.path('.git/hooks/pre-commit'))).toBe(false);
    expect(await readFile(project.path('.git/config'), 'utf8')).toBe(before);
    expect(await readFile(project.path('ordinary.txt'), 'utf8')).toBe('made');
  });
});

describe('what a command makes so that it is not taken away', () => {
  let victim: TempProject;
  beforeEach(async () => {
    victim = await tempProject({ 'tools/git': '#!/bin/sh\necho evil > .mcp.json\n', Makefile: '' });
    await chmod(victim.path('tools/git'), 0o755);
  });
  afterEach(() => victim.dispose());

  it.each([
    ['on the same disk', undefined],
    ['on another one', '/dev/shm'],
  ])('is taken away: no file, nor readable, where it is kept %s', async (_where, disk) => {
    const kept = disk && (await mkdtemp(join(disk, 'polylogue-kept-')));
    const lines = [
      'mkdir .vscode .zed && echo evil > .vscode/tasks.json && mkfifo .vscode/pipe .rules',
      'mkdir .git && echo evil > .git/config && echo evil > .zed/tasks.json && chmod 0 .zed && chmod 311 .',
    ];
    const at = await realpath(victim.root);
    const { removed } = await runIn({ at, ...(kept && { kept }) }, 'sh', '-c', lines.join(' && '));
    const left = (await readdir(victim.root, { recursive: true })).sort();
    expect(left).toEqual(['.git', 'Makefile', 'tools', 'tools/git']);
    expect(removed.map(text => text.split(' ', 1)[0]).sort()).toEqual(['.git/config', '.rules', '.vscode', '.zed']);
    const [moved = ''] = removed.flatMap(text => / moved to (.*\.vscode)\.$/.exec(text)?.slice(1) ?? []);
    expect(await readFile(join(moved, 'tasks.json'), 'utf8')).toBe('evil\n');
    if (kept) await rm(kept, { recursive: true });
  });

  it('is taken away where a program of the project is called as git is', async () => {
    const at = await realpath(victim.root);
    const { removed } = await runIn({ at, isAsked: true }, victim.path('tools/git'), 'init');
    expect([existsSync(victim.path('.mcp.json')), removed]).toEqual([false, [expect.stringMatching(/^.mcp.json was/)]]);
  });

  it('does not make a link outside of the project by the one that is put back', async () => {
    const root = await realpath(victim.root);
    await victim.write('sub/a', '');
    await symlink('../Makefile', victim.path('sub/.zshenv'));
    const swap = `mv sub gone; rm gone/.zshenv sub/.zshenv; rm -r sub; ln -s ${outside.root} sub`;
    await runIn({ at: root }, 'sh', '-c', swap);
    expect(await readlink(victim.path('sub/.zshenv'))).toBe('../Makefile');
    // The same by other means than a command's.
    const env = { PATH: process.env.PATH ?? '' };
    const command = { ...unasked, project: root, cwd: root, env };
    const prepared = await sandboxOf().prepare({ ...command, argv: ['/bin/true'] });
    await rename(victim.path('sub'), victim.path('gone'));
    await symlink(outside.root, victim.path('sub'));
    await prepared.end();
    expect(existsSync(outside.path('.zshenv'))).toBe(false);
  });
});

/** Runs each vector in the folder it is in, three at a time. */
const runAll = `
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
const vectors = JSON.parse(readFileSync('vectors.json', 'utf8'));
let started = 0;
const next = async () => {
  for (let argv = vectors.pop(); argv; argv = vectors.pop()) {
    await new Promise(done => {
      const child = spawn(argv[0], argv.slice(1), { stdio: 'ignore', timeout: 1_000 });
      child.on('spawn', () => started++).on('error', done).on('close', done);
    });
  }
};
await Promise.all([next(), next(), next()]);
console.log('RESULT ' + JSON.stringify({ started }));
`;

it('changes nothing outside by the real programs, given each vector', async () => {
  const own = await tempProject({ ...gateFiles, 'run-all.mjs': runAll });
  const root = await realpath(own.root);
  await symlink(outside.root, own.path('away'));
  execFileSync('git', ['init', '-q'], { cwd: root });
  const all = hostile(outside.root).filter(
    ([program = ''], at) =>
      program === 'make' || program === 'git' || (at % 6 === 0 && ['node', 'python3'].includes(program)),
  );
  const again = all.flatMap(([program = '', ...rest]) => {
    if (program === 'make') return ['-k', '-s', '-j2'].map(option => [program, option, ...rest]);
    return program === 'git'
      ? [
          [program, '--no-pager', ...rest],
          [program, '-P', ...rest],
        ]
      : [];
  });
  await own.write('vectors.json', JSON.stringify([...all, ...again]));
  const [before, reached] = [await stateOutside(), connections];
  const { started } = resultOf((await runIn({ at: root, isAsked: true }, 'node', 'run-all.mjs')).output);
  expect(started).toBeGreaterThanOrEqual(300);
  expect(await stateOutside()).toEqual(before);
  expect(connections).toBe(reached);
  const evil = ['test', `--eval=$(shell touch ${outside.path('made')})`];
  await runIn({ at: root, mode: 'off' }, 'make', ...evil);
  expect(existsSync(outside.path('made'))).toBe(true);
  await own.dispose();
}, 60_000);

describe('what makes other programs run things', () => {
  const deep = 'packages/a/b/c/d/e';
  const evil = (...lines: string[]) =>
    `import * as fs from 'node:fs';\nconst attempt = run => { try { run(); } catch {} };\nconst put = (path, text = 'evil') => attempt(() => { fs.mkdirSync(path.split('/').slice(0, -1).join('/') || '.', { recursive: true }); fs.writeFileSync(path, text); });\n${lines.join('\n')}\n`;
  let own: TempProject;
  let root: string;
  beforeAll(async () => {
    own = await tempProject({
      'package.json': '{"scripts": {"test": "node --test"}}',
      '.npmrc': 'loglevel=error',
      'package-lock.json': '{}',
      'node_modules/.bin/tool': 'old',
      'node_modules/tool/index.js': 'old',
      'packages/a/.vscode/tasks.json': 'old',
      [`${deep}/.vscode/tasks.json`]: 'old',
      'tools/claude/settings.json': 'old',
      'evil.mjs': evil(
        `for (const path of ['package.json', '.npmrc', 'node_modules/.bin/tool', 'node_modules/tool/index.js', 'packages/a/.vscode/tasks.json', '${deep}/.vscode/tasks.json', '.git/hooks/pre-commit', '.git/config', '.git/modules/a/hooks/post-checkout', '.git/info/attributes']) put(path);`,
        "attempt(() => fs.renameSync('packages/a', 'packages/b'));",
        "attempt(() => fs.renameSync('node_modules', 'modules'));",
        "attempt(() => { fs.unlinkSync('.claude'); put('.claude/settings.json'); });",
        "put('.git/commondir', '../common');",
        "put('packages/b/.vscode/tasks.json'); put('new/.npmrc', 'script-shell=./evil'); put('other/node_modules/.bin/tool');",
        `put('${deep}/f/.mcp.json');`,
      ),
      'good.mjs': evil(
        "put('dist/package.json', '{}'); put('package-lock.json'); put('node_modules/.cache/x/y'); put('dist/Head/a.js'); put('src/a.js'); fs.mkdirSync('src/.vscode');",
        "console.log(fs.readFileSync('node_modules/.cache/x/y', 'utf8'));",
      ),
    });
    root = await realpath(own.root);
    await symlink('tools/claude', own.path('.claude'));
    execFileSync('git', ['init', '-q'], { cwd: root });
  });
  afterAll(async () => own.dispose());

  const textOf = (path: string) => readFile(own.path(path), 'utf8');

  it('is neither changed nor made by a command that nobody was asked about, at any depth', async () => {
    const config = await textOf('.git/config');
    const { exitCode, removed } = await runIn({ at: root }, 'node', 'evil.mjs');
    expect(exitCode).toBe(0);
    for (const path of [
      ...['node_modules/.bin/tool', 'node_modules/tool/index.js', 'packages/a/.vscode/tasks.json'],
      ...[`${deep}/.vscode/tasks.json`, '.claude/settings.json'],
    ])
      expect(await textOf(path), path).toBe('old');
    expect(await textOf('package.json')).toContain('node --test');
    expect(await textOf('.npmrc')).toContain('loglevel');
    expect(await textOf('.git/config')).toBe(config);
    expect(removed.map(text => text.split(' ', 1)[0]).sort()).toEqual(
      [
        '.claude',
        '.git/commondir',
        '.git/modules',
        `${deep}/f/.mcp.json`,
        'new/.npmrc',
        'other/node_modules',
        'packages/b/.vscode',
      ].sort(),
    );
    for (const path of [
      '.git/commondir',
      'new/.npmrc',
      'packages/b/.vscode',
      'other/node_modules',
      '.git/hooks/pre-commit',
    ])
      expect(existsSync(own.path(path)), path).toBe(false);
  });

  it('leaves builds what they make, and approved installs what they install', async () => {
    const { output, removed } = await runIn({ at: root }, 'node', 'good.mjs');
    expect(output.trim()).toBe('evil');
    expect(removed).toEqual([]);
    expect(existsSync(own.path('dist/package.json')) && existsSync(own.path('dist/Head/a.js'))).toBe(true);
    expect(await textOf('package-lock.json')).toBe('evil');
    const install = [
      '-e',
      "const fs = require('fs'); for (const path of ['package.json', 'node_modules/.bin/tool', 'package-lock.json']) fs.writeFileSync(path, 'installed')",
    ];
    expect((await runIn({ at: root, isAsked: true }, 'node', ...install)).exitCode).toBe(0);
    for (const path of ['package.json', 'node_modules/.bin/tool']) expect(await textOf(path)).toBe('installed');
  });

  it('leaves what test runners keep between packages, unless there are packages with it', async () => {
    const make = (path: string) => `fs.mkdirSync('${path}', { recursive: true })`;
    const paths = ['one/node_modules/.cache', 'two/node_modules/.vite', 'two/node_modules/.tmp', 'three/node_modules'];
    const mixed = ['four/node_modules/.cache', 'four/node_modules/tool'];
    const script = `const fs = require('fs'); ${[...paths, ...mixed].map(make).join('; ')}`;
    const { removed } = await runIn({ at: root }, 'node', '-e', script);
    expect(removed).toEqual([expect.stringMatching(/^four\/node_modules was removed/)]);
    expect([...paths, ...mixed].map(path => existsSync(own.path(path)))).toEqual([
      true,
      true,
      true,
      true,
      false,
      false,
    ]);
  });

  it('stays where an approved git makes a repository, and not where git is told to run things', async () => {
    const init = await runIn({ at: root, isAsked: true }, 'git', 'init', '-q', 'made');
    const clone = await runIn({ at: root, isAsked: true }, 'git', 'clone', '-q', 'made', 'copy');
    const again = await runIn({ at: root, isAsked: true }, 'git', 'init', '-q', 'made');
    for (const { exitCode, removed } of [init, clone, again]) expect([exitCode, removed]).toEqual([0, []]);
    for (const name of ['made', 'copy']) {
      expect(await textOf(`${name}/.git/config`)).toContain('repositoryformatversion');
      expect(execFileSync('git', ['status', '--short'], { cwd: own.path(name), encoding: 'utf8' })).toBe('');
    }
    await own.write('template/hooks/post-checkout', 'evil');
    for (const [name, ...options] of [
      ['a', '--template=template'],
      ['b', '-c', 'core.fsmonitor=evil'],
    ]) {
      const { removed } = await runIn({ at: root, isAsked: true }, 'git', 'clone', '-q', ...options, 'made', name!);
      expect(
        removed.some(text => text.startsWith(`${name}/.git/`)),
        name,
      ).toBe(true);
    }
    const unasked = await runIn({ at: root }, 'git', 'init', '-q', 'c');
    expect(unasked.removed.some(text => text.startsWith('c/.git/config'))).toBe(true);
  });
});

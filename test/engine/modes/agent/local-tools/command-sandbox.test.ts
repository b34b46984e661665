import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile, realpath, symlink } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type CommandSandboxOptions,
  createCommandSandbox,
} from '../../../../../src/engine/modes/agent/local-tools/command-sandbox.ts';
import { runProcess } from '../../../../../src/engine/modes/agent/local-tools/run-process.ts';
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
      "import { mkdirSync, renameSync, writeFileSync } from 'node:fs';\nconst attempt = run => { try { run(); } catch {} };\nattempt(() => writeFileSync('.git/hooks/pre-commit', 'evil'));\nattempt(() => writeFileSync('.git/config', 'evil'));\nattempt(() => renameSync('.git', 'old'));\nattempt(() => { mkdirSync('.vscode'); writeFileSync('.vscode/tasks.json', 'evil'); });\nattempt(() => writeFileSync('.mcp.json', 'evil'));\nwriteFileSync('ordinary.txt', 'made');\n",
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

function sandboxOf(change: Partial<CommandSandboxOptions> = {}) {
  return createCommandSandbox({
    ...{ mode: 'require', network: false, childEnv: { PATH: process.env.PATH }, platform: process.platform },
    ...{ home: outside.path('home'), own: outside.path('own'), kept: outside.path('own/kept') },
    ...change,
  });
}

async function runIn(change: Partial<CommandSandboxOptions>, program: string, ...args: string[]) {
  const root = await realpath(project.root);
  const file = await findProgram(program, { env: process.env, projects: [root] });
  const env = { PATH: process.env.PATH ?? '', HOME: outside.path('home') };
  const prepared = await sandboxOf(change).prepare({ argv: [file!, ...args], project: root, cwd: root, env });
  const signal = new AbortController().signal;
  const run = await runProcess({
    ...{ argv: prepared.argv, env: prepared.env, cwd: root, clock: realClock(), signal },
    ...{ timeMs: 60_000, maxBytes: 100_000 },
  });
  return { ...run, removed: await prepared.end() };
}

const resultOf = (output: string) => JSON.parse(/^RESULT (.*)$/m.exec(output)?.[1] ?? output);

async function stateOutside(): Promise<string[]> {
  const names = (await readdir(outside.root, { recursive: true })).filter(name => !name.startsWith('own/kept')).sort();
  return Promise.all(names.map(async name => `${name}: ${await readFile(outside.path(name), 'utf8').catch(() => '')}`));
}

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
    expect(existsSync(project.path('.mcp.json')) || existsSync(project.path('.vscode'))).toBe(false);
    expect(existsSync(project.path('.git/hooks/pre-commit'))).toBe(false);
    expect(await readFile(project.path('.git/config'), 'utf8')).toBe(before);
    expect(await readFile(project.path('ordinary.txt'), 'utf8')).toBe('made');
  });
});

describe('the sandbox of commands', () => {
  const without = { childEnv: { PATH: '/nowhere' } };

  it('says what is used, and why none is', async () => {
    expect(await sandboxOf().describe(project.root)).toBe('bubblewrap');
    expect(await sandboxOf({ mode: 'auto', ...without }).describe(project.root)).toBe('none: bwrap is not installed');
    expect(await sandboxOf({ mode: 'off' }).describe(project.root)).toBe('none: AGENT_SANDBOX is off');
    expect(await sandboxOf({ mode: 'auto', platform: 'win32' }).describe(project.root)).toContain('none');
    expect(await sandboxOf({ mode: 'auto', home: project.root }).describe(project.root)).toContain('home folder');
  });

  it('runs nothing without one where it is required', async () => {
    const sandbox = sandboxOf(without);
    await expect(sandbox.describe(project.root)).rejects.toMatchObject({ kind: 'config' });
    const root = await realpath(project.root);
    await expect(sandbox.prepare({ argv: ['/bin/true'], project: root, cwd: root, env: {} })).rejects.toThrow(
      /AGENT_SANDBOX/,
    );
  });
});

import { chmod } from 'node:fs/promises';
import { delimiter } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { withoutClis } from '../../../src/app/compose-host.ts';
import type { ModelQuestion } from '../../../src/models/ask-model.ts';
import { narrowed, withoutRepeats } from '../../../src/providers/external-cli/ask-cli.ts';
import { cliEnvironment } from '../../../src/providers/external-cli/run-cli.ts';
import { findProgram } from '../../../src/workspace/programs.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

let project: TempProject;
beforeEach(async () => {
  project = await tempProject({ 'one/tool': '', 'two/tool': '', 'two/tool.CMD': '', 'two/plain': '', 'two/dir/x': '' });
  for (const file of ['two/tool', 'two/dir/x']) await chmod(project.path(file), 0o755);
});
afterEach(() => project.dispose());

describe('an executable', () => {
  const inBoth = () => ({ PATH: [project.path('one'), project.path('two')].join(delimiter) });

  it('is the first in PATH that may be run', async () => {
    expect(await findProgram('tool', { env: inBoth(), platform: 'linux', projects: [] })).toBe(
      project.path('two/tool'),
    );
    for (const name of ['plain', 'dir', 'nobody'])
      expect(await findProgram(name, { env: inBoth(), platform: 'linux', projects: [] })).toBeUndefined();
  });

  it('is never looked for where the call happens to be', async () => {
    for (const PATH of ['', '.', `.${delimiter}..`, 'two'])
      expect(await findProgram('tool', { env: { PATH }, platform: 'linux', projects: [] })).toBeUndefined();
    expect(await findProgram('two/tool', { env: inBoth(), platform: 'linux', projects: [] })).toBeUndefined();
    expect(await findProgram(project.path('two/tool'), { env: {}, platform: 'linux', projects: [] })).toBe(
      project.path('two/tool'),
    );
  });

  it('has the endings of PATHEXT on Windows, whatever the case of the variables', async () => {
    const env = { Path: project.path('two'), PathExt: '.EXE;.CMD;../x' };
    expect(await findProgram('tool', { env: env, platform: 'win32', projects: [] })).toBe(project.path('two/tool.CMD'));
  });
});

describe('arguments of a configuration', () => {
  const widening = ['--yolo', '--mode=', '-s='];

  it.each([
    [['--yolo', '--debug'], ['--debug'], ['--yolo']],
    [['--mode', 'all', '--debug'], ['--debug'], ['--mode', 'all']],
    [['--mode=all', '--debug'], ['--debug'], ['--mode=all']],
    [['-s', 'danger', 'x'], ['x'], ['-s', 'danger']],
    [
      ['-c', 'sandbox_mode="danger-full-access"', '-c', 'model="x"'],
      ['-c', 'model="x"'],
      ['sandbox_mode="danger-full-access"'],
    ],
    [['--config=approval_policy=never', '--debug'], ['--debug'], ['--config=approval_policy=never']],
    [['-c', 'mcp_servers.x.command="rm"'], [], ['mcp_servers.x.command="rm"']],
    [[], [], []],
  ])('%j are narrowed', (args, kept, leftOut) => {
    expect(narrowed(args, widening)).toEqual({ kept, leftOut });
  });
});

it.each([
  [['--model', 'a', 'x'], ['--model', 'b'], ['x']],
  [['--json', 'x'], ['exec', '--json', '--other'], ['x']],
  [['--mode=a', '--deep'], ['--mode', 'b'], ['--deep']],
  [
    ['-c', 'a=1', '-c', 'b=2'],
    ['-c', 'c=3'],
    ['-c', 'a=1', '-c', 'b=2'],
  ],
  [['-m', 'a', '-'], ['-m', 'b', '-'], []],
  [['-m', 'a', 'x'], ['--model=b'], ['x']],
  [['--model', 'a', 'x'], ['-m', 'b'], ['x']],
  [
    ['--add-dir', 'a'],
    ['--add-dir', 'b'],
    ['--add-dir', 'a'],
  ],
])('arguments %j are not given again beside %j', (args, given, fresh) => {
  expect(withoutRepeats(args, given, { '-m': '--model' })).toEqual(fresh);
});

it('the environment of a CLI is a list of ours, in which names are whole', () => {
  const around = {
    PATH: '/bin',
    LC_ALL: 'C',
    MY_PATH: 'x',
    PATHS: 'y',
    GEMINI_API_KEY: 'k',
    XGEMINI_A: 'z',
    EMPTY: undefined,
  };
  expect(cliEnvironment({ env: ['GEMINI_*'], set: { A: 'b' } }, around, 'm')).toEqual({
    PATH: '/bin',
    LC_ALL: 'C',
    GEMINI_API_KEY: 'k',
    A: 'b',
    NO_COLOR: '1',
    TERM: 'dumb',
    POLYLOGUE_CLI_RUN: 'm',
  });
});

it('callers whose directories are limited get no program, and models as ever', async () => {
  const asked: string[] = [];
  const none = { names: [], env: [], models: [], advice: '' };
  const state = { ...none, title: '', configured: true, setUp: '', onlyByPrefix: false };
  const { ask, providers } = withoutClis({
    async ask({ candidates }: ModelQuestion) {
      asked.push(...candidates.map(({ model }) => model.provider));
      throw new Error('asked');
    },
    providers: async () => ['openai', 'cli'].map(id => ({ id, ...state })),
  });
  const question = (provider: string): ModelQuestion => {
    const info = {
      provider,
      id: 'x',
      name: 'x',
      aliases: [],
      window: 1,
      maxOutput: 1,
      input: [],
      efforts: [],
      score: 1,
    };
    const model = {
      ...info,
      reasoning: false,
      temperature: 'none',
      tools: false,
      allowCodeGeneration: false,
      status: 'active',
    } as const;
    const signal = new AbortController().signal;
    return { reqId: 'r', tool: 'chat', candidates: [{ model, reason: '' }], messages: [], maxOutputTokens: 1, signal };
  };
  await expect(ask(question('cli'))).rejects.toMatchObject({ kind: 'security', details: { class: 'restricted' } });
  await expect(ask(question('openai'))).rejects.toThrow('asked');
  expect(asked).toEqual(['openai']);
  expect((await providers()).map(({ id }) => id)).toEqual(['openai']);
});

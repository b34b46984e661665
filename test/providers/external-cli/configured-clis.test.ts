import { mkdir, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { configuredClis, splitCommand } from '../../../src/providers/external-cli/configured-clis.ts';
import { cliRig } from './cli-rig.ts';

const resolvePath = (path: string, folder: string) => resolve(folder, path);

describe('a CLI by configuration alone', () => {
  it('answers, with a model and a session of its own, and as a model of any tool', async () => {
    const file = {
      title: 'Scribe',
      command: 'scribe --quiet "two words"',
      output: 'gemini_json',
      additional_args: ['--deep'],
      read_args: ['--look'],
      write_args: ['--touch'],
      model_args: ['--use', '{model}'],
      resume_args: ['--session={session}'],
      pass_env: ['SCRIBE_*'],
      env: { SCRIBE_MODE: 'plain' },
      roles: { poet: { prompt_path: 'poet.txt', role_args: ['--rhyme'] } },
    };
    const events = [
      { event: { type: 'init', session_id: 'scribe-7' } },
      { event: { type: 'message', role: 'assistant', content: 'Written.' } },
    ];
    const programEnv = { SCRIBE_HOME: '/srv/scribe', OTHER: 'x' };
    const rig = await cliRig({ clis: ['scribe'], steps: events, files: { scribe: file }, programEnv });
    await writeFile(rig.project.path('.cli-files/poet.txt'), 'You are a poet of few words.');
    const first = await rig.call({ prompt: 'Write', cli_name: 'Scribe', role: 'poet' });
    expect(first).toMatchObject({
      content: 'Written.',
      metadata: { cli_name: 'scribe', role: 'poet', parser: 'gemini_json' },
    });
    await rig.call({ prompt: 'Go on', continuation_id: first.continuation_offer.continuation_id });
    const chat = await rig.call({ prompt: 'Hello', model: 'cli:scribe/large' }, { tool: 'chat' });
    expect(chat.content).toBe('Written.');
    const fixed = ['--quiet', 'two words', '--deep'];
    expect(rig.calls().map(({ args }) => args)).toEqual([
      [...fixed, '--rhyme', '--look'],
      [...fixed, '--look', '--session=scribe-7'],
      [...fixed, '--look', '--use', 'large'],
    ]);
    expect(rig.calls()[0]?.prompt).toContain('You are a poet of few words.');
    expect(rig.calls()[0]?.env).toMatchObject({ SCRIBE_HOME: '/srv/scribe', SCRIBE_MODE: 'plain' });
    expect(rig.calls()[0]?.env).not.toHaveProperty('OTHER');
  });

  it('may be told its prompt as an argument, and to work elsewhere', async () => {
    const file = {
      command: ['scribe'],
      prompt: 'argument',
      working_dir: '../elsewhere',
      login_pattern: 'who goes there',
      login_hint: 'Say friend.',
    };
    const rig = await cliRig({ clis: ['scribe'], steps: [{ out: 'Who goes there?\n' }], files: { scribe: file } });
    await mkdir(rig.project.path('elsewhere'));
    const { error } = await rig.call({ prompt: 'Write', cli_name: 'scribe' });
    expect(error).toMatchObject({ class: 'auth', next: 'Say friend.' });
    expect(rig.calls()[0]).toMatchObject({ cwd: rig.project.path('elsewhere'), prompt: '' });
  });
});

describe('the files of PAL', () => {
  const shipped = {
    gemini: {
      name: 'gemini',
      command: 'gemini',
      additional_args: ['--yolo'],
      env: {},
      roles: { default: { prompt_path: 'systemprompts/clink/default.txt', role_args: [] } },
    },
    codex: {
      name: 'codex',
      command: 'codex',
      additional_args: ['--json', '--dangerously-bypass-approvals-and-sandbox', '--enable', 'web_search_request'],
      timeout_seconds: 60,
    },
    claude: {
      name: 'claude',
      command: 'claude',
      additional_args: ['--permission-mode', 'acceptEdits', '--model', 'sonnet'],
    },
  };

  it('are read from where PAL had them, without what lets CLIs do more than read', async () => {
    const answer = [
      { event: { type: 'item.completed', item: { type: 'agent_message', text: 'Done.' } } },
      { event: { type: 'result', is_error: false, result: 'Done.' } },
      { event: { type: 'message', role: 'assistant', content: 'Done.' } },
    ];
    const rig = await cliRig({ clis: ['gemini', 'codex', 'claude'], steps: answer });
    for (const [name, file] of Object.entries(shipped)) {
      // Where Zen had them, which PAL was called before.
      const folder = `${rig.polylogue.home}/${name === 'codex' ? '.zen' : '.pal'}/cli_clients`;
      await mkdir(folder, { recursive: true });
      await writeFile(`${folder}/${name}.json`, JSON.stringify(file));
    }
    await rig.polylogue.restart();
    for (const cli_name of ['gemini', 'codex', 'claude']) {
      expect(await rig.call({ prompt: 'x', cli_name })).toMatchObject({ isError: false, content: 'Done.' });
    }
    const [gemini, codex, claude] = rig.calls().map(({ args }) => args);
    expect(gemini).not.toContain('--yolo');
    expect(codex?.filter(arg => arg === '--json')).toHaveLength(1);
    expect(codex?.join(' ')).toMatch(/sandbox_mode="read-only" --enable web_search_request -$/);
    expect(claude).toEqual(expect.arrayContaining(['--model', 'sonnet']));
    expect(claude).not.toContain('acceptEdits');
  });

  it('find their prompts at the root of the checkout of PAL and in the home directory, and work where they say', async () => {
    const rig = await cliRig({ clis: ['scribe'], steps: [{ out: 'Done.' }] });
    const roles = {
      ...{ near: { prompt_path: 'near.txt' }, critic: { prompt_path: 'critic.txt' } },
      ...{ both: { prompt_path: 'both.txt' }, mine: { prompt_path: '~/mine.txt' } },
    };
    const file = { name: 'scribe', command: 'scribe', working_dir: '~/work', roles };
    const { home } = rig.polylogue;
    const folder = `${home}/.zen/cli_clients`;
    await mkdir(folder, { recursive: true });
    await mkdir(`${home}/work`);
    for (const [path, text] of [
      [`${folder}/scribe.json`, JSON.stringify(file)],
      [`${folder}/near.txt`, 'You are near.'],
      [`${folder}/both.txt`, 'You are the nearer one.'],
      [`${home}/both.txt`, 'You are the other one.'],
      [`${home}/critic.txt`, 'You are a critic.'],
      [`${home}/mine.txt`, 'You are mine.'],
    ] as const)
      await writeFile(path, text);
    await rig.polylogue.restart();
    for (const role of Object.keys(roles)) await rig.call({ prompt: 'x', cli_name: 'scribe', role });
    const said = ['You are near.', 'You are a critic.', 'You are the nearer one.', 'You are mine.'];
    expect(rig.calls().map(({ prompt }) => said.filter(text => prompt.includes(text)))).toEqual(
      said.map(text => [text]),
    );
    expect(rig.calls()[0]?.cwd).toBe(`${home}/work`);
  });

  it.each([
    ['the call', { model: 'o3' }, 'o3'],
    ['the role, where the call has none', { role: 'deep' }, 'o4'],
    ['the call, whatever the role says', { role: 'deep', model: 'o3' }, 'o3'],
    ['the file, where nobody else has one', {}, 'gpt-5.2-codex'],
  ])('name a model that codex is told once: that of %s', async (_, args, model) => {
    const codex = {
      additional_args: ['--model', 'gpt-5.2-codex', '-c', 'a=1'],
      roles: { deep: { role_args: ['-m=o4', '-c', 'b=2'] } },
    };
    const rig = await cliRig({ clis: ['codex'], steps: [{ out: '{}' }], files: { codex } });
    await rig.call({ prompt: 'x', cli_name: 'codex', ...args });
    const [given = []] = rig.calls().map(call => call.args);
    const named = given.flatMap((arg, at) => (/^(-m|--model)/.test(arg) ? [arg.split('=')[1] ?? given[at + 1]] : []));
    expect(named).toEqual([model]);
    expect(given).toContain('a=1');
  });

  it('lie under ours, whose last word counts, and name roles that ours keep', () => {
    const file = (name: string, document: unknown) => ({ path: `/x/${name}.json`, document });
    const { clis, warnings } = configuredClis(
      [file('a', shipped.codex), file('b', { name: 'Codex', timeout_seconds: 90, context_window: 50_000 })],
      1_000,
      resolvePath,
    );
    expect(warnings).toEqual([]);
    const codex = clis.find(({ name }) => name === 'codex');
    expect(codex).toMatchObject({ timeLimitMs: 90_000, window: 50_000, extra: shipped.codex.additional_args });
    expect(codex?.roles.map(({ name }) => name)).toEqual(['default', 'planner', 'codereviewer']);
    expect(clis.find(({ name }) => name === 'gemini')?.timeLimitMs).toBe(1_000);
  });

  it.each([
    ['no object', 7, 'the file'],
    ['a name that is none', { name: '../x', command: 'x' }, 'name'],
    ['no command where nothing is known of it', { name: 'scribe' }, '"command" is missing'],
    ['a command relative to somewhere', { name: 'scribe', command: './bin/scribe' }, 'is not absolute'],
    ['a pattern that is none', { name: 'scribe', command: 'scribe', login_pattern: '(' }, '"login_pattern"'],
    ['a time limit that is none', { name: 'codex', timeout_seconds: -1 }, 'timeout_seconds'],
  ])('that have %s are left out with a warning, and nothing else is', (_, document, why) => {
    const { clis, warnings } = configuredClis([{ path: '/x/y.json', document }], 1_000, resolvePath);
    expect(clis.map(({ name }) => name)).toEqual(['agy', 'claude', 'codex', 'gemini', 'opencode']);
    expect(warnings).toEqual([expect.stringContaining(why)]);
  });

  it('that are no JSON are told of at the start', async () => {
    const rig = await cliRig({ clis: [], steps: [] });
    await mkdir(`${rig.polylogue.home}/clis`);
    await writeFile(`${rig.polylogue.home}/clis/broken.json`, '{');
    await rig.polylogue.restart();
    await expect.poll(() => rig.polylogue.log.join('\n')).toMatch(/broken\.json was left out: it is no JSON/);
  });
});

it.each([
  ['gemini --yolo', ['gemini', '--yolo']],
  [`  a "b c" 'd "e' f\\ g "h\\"i" ""`, ['a', 'b c', 'd "e', 'f g', 'h"i', '']],
  ['C:\\tools\\x.exe -a', ['C:\\tools\\x.exe', '-a']],
])('a command is split into its words: %s', (command, words) => {
  expect(splitCommand(command)).toEqual(words);
});

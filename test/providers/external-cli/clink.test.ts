import { readFile, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { geminiAnswers } from '../../support/stand-in-cli.ts';
import { cliRig } from './cli-rig.ts';

const geminiReads = [
  ...['--output-format', 'stream-json', '--approval-mode', 'plan', '--policy'],
  expect.stringMatching(/gemini-policy\.toml$/),
];

describe('clink', () => {
  it('has a CLI answer in the project of the caller, with the prompt on its standard input', async () => {
    const rig = await cliRig({
      clis: ['gemini'],
      steps: geminiAnswers('Alpha is one.'),
      root: { 'a.ts': 'export {};\n' },
    });
    const reply = await rig.call({ prompt: 'What is alpha?', absolute_file_paths: ['a.ts', '/etc/passwd'] });
    expect(reply).toMatchObject({
      status: 'continuation_available',
      content: 'Alpha is one.',
      content_type: 'text',
      isError: false,
    });
    expect(reply.metadata).toMatchObject({
      tool_name: 'clink',
      cli_name: 'gemini',
      role: 'default',
      parser: 'gemini_json',
      return_code: 0,
      model_used: 'gemini-3-pro',
      provider_used: 'cli',
      session_id: 'aaaa-1',
      resumed: false,
      token_usage: { input_tokens: 100, output_tokens: 20, cached_tokens: 40 },
    });
    expect(reply.metadata.command.slice(0, 1)).toEqual(['gemini']);
    const [call] = rig.calls();
    expect(call?.cwd).toBe(rig.project.root);
    expect(call?.args).toEqual([...geminiReads]);
    expect(call?.prompt).toContain('What is alpha?');
    expect(call?.prompt).toMatch(new RegExp(`- ${rig.project.path('a.ts')} \\(last modified .*, 11 bytes\\)`));
    expect(call?.prompt).toMatch(/- \/etc\/passwd \(unavailable: /);
    expect(call?.prompt).not.toContain('export {}');
  });

  it('asks the model that the caller names, and goes on with the same CLI afterwards', async () => {
    const rig = await cliRig({ clis: ['gemini', 'codex'], steps: geminiAnswers('Alpha is one.') });
    const first = await rig.call({ prompt: 'What is alpha?', cli_name: 'gemini', model: 'gemini-3-flash' });
    expect([first.isError, rig.calls()[0]?.args.join(' ')]).toEqual([
      false,
      expect.stringContaining('--model gemini-3-flash'),
    ]);
    rig.script(geminiAnswers('Beta is two.'));
    const second = await rig.call({ prompt: 'And beta?', continuation_id: first.continuation_offer.continuation_id });
    expect(second.metadata).toMatchObject({ cli_name: 'gemini' });
    const refused = await rig.call({ prompt: 'What?', cli_name: 'gemini', model: '--yolo' });
    expect(refused).toMatchObject({ isError: true, error: { class: 'validation' } });
    expect(rig.calls()).toHaveLength(2);
  });

  it('is among the models that are listed and offered, by its whole name, while it is installed', async () => {
    const rig = await cliRig({ clis: ['gemini'], steps: [] });
    const listed = await rig.call({}, { tool: 'listmodels' });
    expect(listed.content).toContain('## Agents with a command line (cli)\n- cli:gemini: asked only by this name');
    expect(listed.content).not.toMatch(/cli:codex|Agents with a command line: /);
    const { host } = rig.polylogue.product;
    const offered = (typed: string) => host.complete('model', typed, { owner: 'local', root: rig.project.root });
    expect(await offered('cli:')).toEqual(['cli:gemini']);
    expect(await offered('gemini')).toEqual([]);
  });

  it('is told with what to do where no CLI is installed, to who asks how to set it up', async () => {
    const rig = await cliRig({ clis: [], steps: [] });
    const listed = await rig.call({}, { tool: 'listmodels' });
    expect(listed.content).not.toContain('Agents with a command line');
    const { polylogue } = rig;
    const providers = await polylogue.product.models.providers();
    const setUp = expect.stringMatching(/^install one of .*codex.*, and put it into PATH/);
    expect(providers.find(({ id }) => id === 'cli')).toMatchObject({ configured: false, models: [], setUp });
  });

  it('goes on with the session of the CLI, and tells it only what is new', async () => {
    const rig = await cliRig({ clis: ['gemini'], steps: geminiAnswers('Noted.') });
    const first = await rig.call({ prompt: 'My word is heron.' });
    const { continuation_id } = first.continuation_offer;
    const second = await rig.call({ prompt: 'Which word?', continuation_id });
    expect(second.metadata).toMatchObject({ resumed: true, cli_name: 'gemini' });
    const [before, after] = rig.calls();
    expect(before?.args).not.toContain('--resume');
    expect(after?.args).toEqual(expect.arrayContaining(['--resume', 'aaaa-1']));
    expect(after?.prompt).toContain('Which word?');
    expect(after?.prompt).not.toContain('heron');
  });

  it('goes on after a restart, in the thread alone and not in its fork', async () => {
    const rig = await cliRig({ clis: ['gemini'], steps: geminiAnswers('Noted.') });
    const { continuation_id } = (await rig.call({ prompt: 'My word is heron.' })).continuation_offer;
    await rig.polylogue.restart();
    expect((await rig.call({ prompt: 'Which word?', continuation_id })).metadata.resumed).toBe(true);
    const fork = await rig.call({ action: 'fork', continuation_id, turn: 2 }, { tool: 'threads' });
    const forked = await rig.call({
      prompt: 'And here?',
      continuation_id: fork.continuation_id ?? fork.thread?.continuation_id,
    });
    expect(forked.metadata.resumed).toBe(false);
    expect(rig.calls().at(-1)?.prompt).toContain('heron');
  });

  it('tells a CLI what others said in the thread since it answered', async () => {
    const rig = await cliRig({ clis: ['gemini', 'codex'], steps: geminiAnswers('Noted.') });
    const { continuation_id } = (await rig.call({ prompt: 'My word is heron.' })).continuation_offer;
    // The stand-in speaks as gemini whatever it is called: codex understands none of it, and its exchange fails.
    await rig.call({ prompt: 'A plan, please.', step: 'x', continuation_id }, { tool: 'challenge' });
    const planned = await rig.call(
      { step: 'Plan the egret', step_number: 1, total_steps: 1, next_step_required: false, continuation_id },
      { tool: 'planner' },
    );
    expect(planned.isError).toBe(false);
    const later = await rig.call({ prompt: 'Go on.', continuation_id });
    expect(later.metadata.resumed).toBe(true);
    expect(rig.calls().at(-1)?.prompt).toContain('egret');
    expect(rig.calls().at(-1)?.prompt).not.toContain('heron');
  });

  it('begins a new session with the whole thread when the CLI has lost the old one', async () => {
    const rig = await cliRig({ clis: ['gemini'], steps: geminiAnswers('Noted.') });
    const { continuation_id } = (await rig.call({ prompt: 'My word is heron.' })).continuation_offer;
    // Whoever is asked to resume does not know how; whoever is not, answers.
    const script =
      'const r = process.argv.includes("--resume"); process.stdin.resume(); process.stdin.on("end", () => { if (r) { console.error("Error resuming session: Invalid session identifier \\"aaaa-1\\"."); process.exit(42); } console.log(JSON.stringify({ type: "message", role: "assistant", content: "Again." })); });';
    await writeFile(rig.project.path('lost.mjs'), script);
    const file = { name: 'gemini', command: [process.execPath, rig.project.path('lost.mjs')] };
    await writeFile(rig.project.path('.cli-files/gemini.json'), JSON.stringify(file));
    await rig.polylogue.restart();
    const reply = await rig.call({ prompt: 'Which word?', continuation_id });
    expect(reply).toMatchObject({ content: 'Again.', metadata: { resumed: false } });
  });

  it('starts CLIs so that they only read, whatever their configuration says', async () => {
    const args = { additional_args: ['--yolo', '--approval-mode', 'yolo', '--debug'] };
    const rig = await cliRig({ clis: ['gemini'], steps: geminiAnswers('Done.'), files: { gemini: args } });
    const reply = await rig.call({ prompt: 'Look.' });
    expect(rig.calls()[0]?.args).toEqual([...geminiReads, '--debug']);
    expect(JSON.stringify(reply.metadata.warnings)).toContain('--yolo --approval-mode yolo was left out');
    expect(await rig.call({ prompt: 'Change it.', allow_writes: true })).toMatchObject({
      isError: true,
      error: { code: 'SECURITY', class: 'read_only' },
    });
    expect(rig.calls()).toHaveLength(1);
  });

  it('gives them the tools that read, by a list, whatever their configuration and environment say', async () => {
    const widened = { claude: ['--tools', 'default'], gemini: ['--policy', '/x', '--admin-policy=/y'] };
    const files = Object.fromEntries(Object.entries(widened).map(([name, args]) => [name, { additional_args: args }]));
    const rig = await cliRig({
      clis: ['claude', 'gemini', 'opencode'],
      steps: [
        { event: { type: 'result', result: 'Done.' } },
        { event: { type: 'message', role: 'assistant', content: 'Done.' } },
      ],
      files: { ...files, opencode: { env: { OPENCODE_PERMISSION: '{"*":"allow"}' }, output: 'text' } },
      programEnv: { OPENCODE_PERMISSION: '{"bash":"allow"}' },
      env: { CLI_ALLOW_WRITES: 'true' },
    });
    for (const cli_name of ['claude', 'gemini', 'opencode']) await rig.call({ prompt: 'Look.', cli_name });
    await rig.call({ prompt: 'Change it.', cli_name: 'opencode', allow_writes: true });
    const [claude, gemini, opencode, writing] = rig.calls();
    expect(claude?.args.slice(claude.args.indexOf('--tools'))).toEqual([
      '--tools',
      expect.stringMatching(/^Read,Glob,/),
    ]);
    expect(claude?.args.join()).not.toMatch(/Bash|Edit|,Write|Agent|Worktree|Cron/);
    expect(gemini?.args).toEqual(geminiReads);
    const policy = await readFile(gemini?.args.at(-1) ?? '', 'utf8');
    expect(policy).toContain('toolName = ["enter_plan_mode", "exit_plan_mode"]\ndecision = "deny"');
    const { OPENCODE_PERMISSION: permission = '', OPENCODE_DISABLE_PROJECT_CONFIG: left } = opencode?.env ?? {};
    expect(JSON.parse(permission)).toMatchObject({ '*': 'deny', bash: 'deny', edit: 'deny', task: 'deny' });
    expect(left).toBe('true');
    expect(writing?.env.OPENCODE_PERMISSION).toBe('{"*":"allow"}');
  });

  it('lets them write where the operator and the call both say so, and never on a read-only server', async () => {
    const options = {
      clis: ['codex'],
      steps: [{ event: { type: 'item.completed', item: { type: 'agent_message', text: 'Done.' } } }],
    };
    const rig = await cliRig({ ...options, env: { CLI_ALLOW_WRITES: 'true' } });
    await rig.call({ prompt: 'Change it.', cli_name: 'codex', allow_writes: true });
    await rig.call({ prompt: 'Look at it.', cli_name: 'codex' });
    expect(rig.calls().map(({ args }) => args.find(arg => arg.startsWith('sandbox_mode')))).toEqual([
      'sandbox_mode="workspace-write"',
      'sandbox_mode="read-only"',
    ]);
    const strict = await cliRig({ ...options, env: { CLI_ALLOW_WRITES: 'true', POLYLOGUE_READ_ONLY: 'true' } });
    await strict.call({ prompt: 'Change it.', cli_name: 'codex', allow_writes: true });
    expect(strict.calls().map(({ args }) => args.includes('sandbox_mode="read-only"'))).toEqual([true]);
  });

  it('leaves approvals to the operator where a CLI may write', async () => {
    const files = { gemini: { additional_args: ['--yolo'] } };
    const rig = await cliRig({
      clis: ['gemini'],
      steps: geminiAnswers('Done.'),
      files,
      env: { CLI_ALLOW_WRITES: 'true' },
    });
    await rig.call({ prompt: 'Change it.', allow_writes: true });
    expect(rig.calls()[0]?.args).toEqual(['--output-format', 'stream-json', '--yolo']);
  });

  it('tells the whole thread again after a call that failed', async () => {
    const rig = await cliRig({ clis: ['gemini'], steps: geminiAnswers('Noted.') });
    const { continuation_id } = (await rig.call({ prompt: 'My word is heron.' })).continuation_offer;
    rig.script([{ err: 'out of luck\n', code: 3 }]);
    expect((await rig.call({ prompt: 'Which word?', continuation_id })).isError).toBe(true);
    rig.script(geminiAnswers('Heron.'));
    const reply = await rig.call({ prompt: 'Which word was it?', continuation_id });
    expect(reply).toMatchObject({ content: 'Heron.', metadata: { resumed: false } });
    expect(rig.calls().at(-1)?.prompt).toContain('heron');
  });

  it('gives CLIs the variables of its list, and nobody else’s keys', async () => {
    const secrets = {
      OPENAI_API_KEY: 'sk-openai',
      GEMINI_API_KEY: 'gem',
      AWS_SECRET_ACCESS_KEY: 'aws',
      GITHUB_TOKEN: 'ghp',
    };
    const rig = await cliRig({ clis: ['gemini'], steps: geminiAnswers('Hello.'), programEnv: secrets });
    await rig.call({ prompt: 'Hello' });
    const env = rig.calls()[0]?.env ?? {};
    expect(env).toMatchObject({ GEMINI_API_KEY: 'gem', NO_COLOR: '1', TERM: 'dumb' });
    for (const name of ['OPENAI_API_KEY', 'AWS_SECRET_ACCESS_KEY', 'GITHUB_TOKEN'])
      expect(env).not.toHaveProperty([name]);
  });

  it('shortens long answers to their summary, else to their beginning, and keeps them whole in the thread', async () => {
    const body = 'line of a long answer\n'.repeat(1_500);
    const rig = await cliRig({ clis: ['gemini'], steps: geminiAnswers(`${body}<SUMMARY>Short: it works.</SUMMARY>`) });
    const reply = await rig.call({ prompt: 'Tell me everything' });
    expect(reply.content).toBe('Short: it works.');
    expect(reply.metadata).toMatchObject({
      output_summarized: true,
      output_original_length: body.length + 35,
      output_summary_length: 16,
      output_limit: 20_000,
    });
    const { continuation_id } = reply.continuation_offer;
    const read = await rig.call({ action: 'read', continuation_id, cursor: '2:0' }, { tool: 'threads' });
    expect(JSON.stringify(read)).toContain('line of a long answer');

    const plain = await cliRig({ clis: ['gemini'], steps: geminiAnswers(body) });
    const cut = await plain.call({ prompt: 'Tell me everything' });
    expect(cut.metadata).toMatchObject({ output_truncated: true, output_excerpt_length: 4_000 });
    expect(cut.content.length).toBeLessThan(5_000);
  });

  it('says which CLIs and roles there are, and what is missing', async () => {
    const rig = await cliRig({ clis: ['gemini'], steps: [] });
    const unknown = await rig.call({ prompt: 'x', cli_name: 'nobody' });
    expect(unknown.error).toMatchObject({ code: 'INVALID_INPUT_FORMAT' });
    expect(unknown.error.validation_errors[0].allowed).toEqual(['agy', 'claude', 'codex', 'gemini', 'opencode']);
    const role = await rig.call({ prompt: 'x', cli_name: 'gemini', role: 'pirate' });
    expect(role.error.validation_errors[0].allowed).toEqual(['default', 'planner', 'codereviewer']);
    const absent = await rig.call({ prompt: 'x', cli_name: 'claude' });
    expect(absent.error).toMatchObject({ code: 'CONFIG', class: 'not_installed' });
    expect(absent.error.message).toContain("Executable 'claude' not found in PATH");
    expect(absent.continuation_offer.continuation_id).toBeTruthy();
  });

  it('refuses to be started by the CLI that it would start', async () => {
    const rig = await cliRig({
      clis: ['gemini'],
      steps: geminiAnswers('x'),
      programEnv: { POLYLOGUE_CLI_RUN: 'outer' },
    });
    expect((await rig.call({ prompt: 'x' })).error).toMatchObject({ code: 'SECURITY', class: 'nested' });
    expect(rig.calls()).toEqual([]);
  });
});

describe('the provider cli', () => {
  it('answers in any tool, with its tokens and cost in the ledger and its tools among the events', async () => {
    const result = {
      type: 'result',
      subtype: 'success',
      is_error: false,
      result: 'It is one.',
      session_id: 's-1',
      total_cost_usd: 0.0123,
      usage: { input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 90 },
    };
    const use = {
      type: 'assistant',
      message: {
        content: [
          { type: 'text', text: 'Let me look.' },
          { type: 'tool_use', id: 't1', name: 'Read', input: { file: 'a.ts' } },
        ],
      },
    };
    const used = { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 't1', content: 'one' }] } };
    const steps = [
      { event: { type: 'system', subtype: 'init', session_id: 's-1', model: 'claude-x' } },
      { event: use },
      { event: used },
      { event: result },
    ];
    const rig = await cliRig({ clis: ['claude'], steps, env: { LOG_LEVEL: 'debug', COMMS_LOG: 'true' } });
    const reply = await rig.call({ prompt: 'What is alpha?', model: 'cli:claude' }, { tool: 'chat' });
    expect(reply).toMatchObject({
      content: 'It is one.',
      metadata: {
        model_used: 'claude',
        provider_used: 'cli',
        cost_usd: 0.0123,
        usage: { input: 100, output: 5, cache_read: 90 },
      },
    });
    const [row] = await rig.polylogue.product.spent('2000-01-01');
    expect(row).toMatchObject({
      provider: 'cli',
      model: 'claude',
      tool: 'chat',
      costUsd: 0.0123,
      usage: { input: 100, output: 5 },
    });
    const told = () => rig.polylogue.log.filter(line => line.includes('tool_'));
    await expect
      .poll(() => told().map(line => line.slice(line.indexOf('chat:')).trim()))
      .toEqual(['chat: claude tool_use Read', 'chat: claude tool_result']);
    await rig.polylogue.product.close();
    const comms = (await readFile(`${rig.polylogue.home}/logs/comms.jsonl`, 'utf8')).trim().split('\n');
    const said = comms.map(line => JSON.parse(line)).filter(({ kind }) => kind.startsWith('tool_'));
    expect(said.map(({ kind, payload }) => [kind, payload.name ?? payload.id])).toEqual([
      ['tool_call', 'Read'],
      ['tool_result', 't1'],
    ]);
    await rig.polylogue.restart();
    const [call] = rig.calls();
    expect(call?.args).toEqual(expect.arrayContaining(['--print', '--setting-sources', 'user', '--strict-mcp-config']));
    expect(call?.args).not.toContain('--permission-mode');
  });

  it('is never chosen unasked, not even by a bare name', async () => {
    const rig = await cliRig({ clis: ['gemini', 'codex'], steps: geminiAnswers('x') });
    for (const model of [undefined, 'auto', 'gemini', 'codex']) {
      expect((await rig.call({ prompt: 'x', model }, { tool: 'chat' })).isError).toBe(true);
    }
    expect(rig.calls()).toEqual([]);
  });

  it('asks for one of its models where the name goes on, with the window of the CLI', async () => {
    const root = { 'long.txt': 'word '.repeat(50_000) };
    const rig = await cliRig({ clis: ['gemini'], steps: geminiAnswers('x'), root });
    const question = { prompt: 'x', model: 'cli:gemini/gemini-3-flash', absolute_file_paths: ['long.txt'] };
    const { metadata } = await rig.call(question, { tool: 'chat' });
    expect(rig.calls()[0]?.args).toEqual(expect.arrayContaining(['--model', 'gemini-3-flash']));
    expect(rig.calls()[0]?.prompt.length).toBeGreaterThan(250_000);
    expect(metadata).not.toHaveProperty('warnings');
  });

  it.each(['cli:gemini', 'gemini'])('is asked for none of its models where DENIED_MODELS has %s', async denied => {
    const rig = await cliRig({ clis: ['gemini', 'codex'], steps: geminiAnswers('x'), env: { DENIED_MODELS: denied } });
    for (const model of ['cli:gemini', 'cli:gemini/gemini-3-flash', 'cli:gemini/a/b'])
      expect(await rig.call({ prompt: 'x', model }, { tool: 'chat' })).toMatchObject({
        ...{ isError: true, content: expect.stringContaining('DENIED_MODELS') },
      });
    expect(rig.calls()).toEqual([]);
  });
});

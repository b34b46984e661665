import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commands } from '../../src/cli/commands/index.gen.ts';
import { runProgram } from './run-program.ts';

let place: string;

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'polylogue-cli-'));
});

afterAll(() => rm(place, { recursive: true, force: true }));

const run = (args: string[], env: Record<string, string> = {}) => runProgram(args, { cwd: place, env });

describe.each(commands.map(command => [command.name, command] as const))('polylogue %s', (name, command) => {
  it('teaches with --help: its flags and examples', async () => {
    const { code, out } = await run([name, '--help']);
    expect(code).toBe(0);
    for (const flag of command.flags ?? []) expect(out).toContain(`--${flag.name}`);
    for (const [example] of command.examples) expect(out).toContain(example);
  });

  it('refuses a flag that it does not have, with exit code 2 and where to look', async () => {
    const { code, err } = await run([name, '--frobnicate']);
    expect(code).toBe(2);
    // The server is what runs without a word: its flags are those of the whole program.
    expect(err).toContain(name === 'stdio' ? '(Run "polylogue --help"' : `Run "polylogue ${name} --help"`);
  });
});

describe('a data folder that can’t be used', () => {
  it('is told once, at once and with what to do by every command that needs it', async () => {
    const commands = [
      'stdio',
      'ask hello --offline',
      'serve --port 0',
      'connect',
      'threads list',
      'status',
      'trust',
      'usage',
    ];
    const runs = commands.map(words => run(words.split(' '), { POLYLOGUE_HOME: '/proc/polylogue' }));
    for (const { code, out, err } of await Promise.all(runs)) {
      expect([code, out]).toEqual([2, '']);
      expect(err).toMatch(/^polylogue: Cannot use the data directory \/proc\/polylogue: .*\n.*POLYLOGUE_HOME.*\n$/);
    }
  });

  it('keeps nobody from asking who wants nothing to be kept', async () => {
    const env = { POLYLOGUE_HOME: '/proc/polylogue' };
    const { code, out, err } = await run(['ask', 'hello', '--offline', '--private'], env);
    expect([code, err, out]).toEqual([
      0,
      expect.not.stringContaining('/proc'),
      expect.stringContaining('"messages": 3'),
    ]);
  });
});

describe('polylogue models', () => {
  it('says which keys are missing when there are none', async () => {
    const { code, out } = await run(['models']);
    expect(code).toBe(0);
    expect(out).toContain('OPENAI_API_KEY');
    expect(out).toContain('--offline');
  });

  it.each([
    [{ OPENAI_ALLOWED_MODELS: 'gpt-5' }, ['gpt-5']],
    [{ OPENAI_ALLOWED_MODELS: 'gpt-5,o3', DENIED_MODELS: 'o3' }, ['gpt-5']],
    [{ LOCAL_ONLY: 'on' }, []],
  ])('lists only those that the operator lets be asked: %j', async (set, ids) => {
    const { out } = await run(['models', '--provider', 'openai', '--json'], {
      OPENAI_API_KEY: 'a-key',
      OPENAI_BASE_URL: 'http://127.0.0.1:9/v1',
      ...set,
    });
    const [openai] = JSON.parse(out).providers;
    expect(openai.models.map((model: { id: string }) => model.id)).toEqual(ids);
  });

  it('lists the models of what is configured, and of the others with --all', async () => {
    const env = { OPENAI_API_KEY: 'a-key' };
    expect((await run(['models'], env)).out).toMatch(/OpenAI \(openai\)\n.*list.*\n {2}gpt-/);
    expect((await run(['models'], env)).out).not.toContain('claude-');
    const key = { AZURE_OPENAI_API_KEY: 'test-key' };
    expect((await run(['models'], key)).out).toContain('Azure OpenAI: set AZURE_OPENAI_ENDPOINT\n');
    expect((await run(['ask', 'Hi', '--model', 'azure:gpt-5'], key)).err).toContain(' AZURE_OPENAI_ENDPOINT, ');
    const access = { ...key, AZURE_OPENAI_ENDPOINT: 'https://x.example' };
    expect((await run(['models'], access)).out).toContain('Name its models in AZURE_OPENAI_DEPLOYMENTS.');
    expect((await run(['models', '--all'], env)).out).toContain('claude-');
  });

  it('narrows to one provider, and refuses one that is not there', async () => {
    const { out } = await run(['models', '--provider', 'anthropic', '--json']);
    const [provider, ...more] = JSON.parse(out).providers;
    expect(provider).toMatchObject({ id: 'anthropic', configured: false });
    expect(more).toEqual([]);
    const wrong = await run(['models', '--provider', 'nobody']);
    expect(wrong.code).toBe(2);
    expect(wrong.err).toContain('anthropic');
  });

  it('writes no colours where nobody could see them', async () => {
    expect((await run(['models', '--all'])).out).not.toContain('\u001b');
  });
});

describe('polylogue completion', () => {
  it('completes commands, their words and flags in bash', async () => {
    const { out } = await run(['completion', 'bash']);
    const complete = (...words: string[]) => {
      const list = words.map(word => `'${word}'`).join(' ');
      const script = `${out}\nCOMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _polylogue; echo "\${COMPREPLY[*]}"`;
      return spawnSync('bash', ['-c', script], { encoding: 'utf8' }).stdout.trim();
    };
    expect(complete('polylogue', 'do')).toBe('doctor');
    expect(complete('polylogue', 'threads', 'se')).toBe('search sent');
    expect(complete('polylogue', 'ask', '--fi')).toBe('--file');
    expect(complete('polylogue', 'init', '--client', 'c')).toBe('claude cline codex copilot cursor');
    expect(complete('polylogue', 'ask', '--off')).toBe('--offline');
  });

  it('has scripts for zsh and fish, and says which shells there are', async () => {
    expect((await run(['completion', 'zsh'])).out).toMatch(/^#compdef polylogue\n/);
    expect((await run(['completion', 'fish'])).out).toContain(
      'complete -c polylogue -n __fish_use_subcommand -a doctor',
    );
    const { code, err } = await run(['completion', 'tcsh']);
    expect(code).toBe(2);
    expect(err).toContain('bash, zsh, fish');
  });
});

describe('every command with --json', () => {
  it('prints errors as a document too', async () => {
    const { code, out } = await run(['init', '--json']);
    expect(code).toBe(2);
    expect(JSON.parse(out)).toMatchObject({ status: 'error', error: { message: expect.stringContaining('host') } });
  });

  it('prints what trust did', async () => {
    const { out } = await run(['trust', '--json']);
    expect(JSON.parse(out)).toMatchObject({ status: 'success', trusted: place });
  });
});

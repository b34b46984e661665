import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { commands } from '../../src/cli/commands/index.gen.ts';

const main = new URL('../../dist/main.js', import.meta.url).pathname;
let place: string;

beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), 'polylogue-cli-'));
});

afterEach(() => rm(place, { recursive: true, force: true }));

interface Run {
  code: number | null;
  out: string;
  err: string;
}

/** Runs the built program with nothing but this environment. */
function run(
  args: string[],
  { env = {}, node = [] }: { env?: Record<string, string>; node?: string[] } = {},
): Promise<Run> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...node, main, ...args], {
      cwd: place,
      env: { HOME: place, POLYLOGUE_HOME: join(place, 'home'), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '';
    let err = '';
    child.stdout.on('data', chunk => {
      out += chunk;
    });
    child.stderr.on('data', chunk => {
      err += chunk;
    });
    child.on('error', reject);
    child.on('close', code => resolve({ code, out, err }));
  });
}

describe('the command line', () => {
  it('teaches with --help on one screen: groups of commands, examples, exit codes', async () => {
    const { code, out } = await run(['--help']);
    expect(code).toBe(0);
    const lines = out.trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(36);
    expect(lines.filter(line => line.length > 80)).toEqual([]);
    for (const { name, summary } of commands) expect(out).toContain(` ${name.padEnd(12)}${summary}\n`);
    for (const { group } of commands) expect(out).toContain(`\n${group} `);
    for (const part of ['help settings', 'Exit codes']) expect(out).toContain(part);
    expect((await run(['help'])).out).toBe(out);
  });

  it('lists the flags that every command takes with "help settings"', async () => {
    const { code, out } = await run(['help', 'settings']);
    expect(code).toBe(0);
    for (const part of ['Models:', '--offline', '--roots', '--private', 'DEFAULT_MODEL']) expect(out).toContain(part);
  });

  it.each([[['models']], [[]]])('says that the directory it is started in is gone: %j', async args => {
    const gone = JSON.stringify(join(place, 'gone'));
    const leave = `import { mkdirSync, rmdirSync } from 'node:fs'; mkdirSync(${gone}); process.chdir(${gone}); rmdirSync(${gone});`;
    const node = ['--import', `data:text/javascript,${encodeURIComponent(leave)}`];
    const { code, err } = await run(args, { node });
    expect(err).toContain('The current directory is gone.');
    expect(err).not.toContain('bug');
    expect(code).toBe(2);
  });

  it('tells its version', async () => {
    const manifest = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'));
    expect((await run(['--version'])).out.trim()).toBe(manifest.version);
  });

  it.each([
    ['promt "Hi"', ['promt', 'Hi'], 'unknown command \'promt\'. Did you mean "prompt"?\n'],
    ['a flag behind it', ['aks', '--file', 'a.ts'], 'unknown command \'aks\'. Did you mean "ask"?\n'],
    ['a question for help', ['help', 'settingz'], 'unknown command \'settingz\'. Did you mean "settings"?\n'],
  ])('names a word that is no command: %s', async (_, args, told) => {
    const { code, out, err } = await run(args);
    expect(code).toBe(2);
    expect(out).toBe('');
    expect(err).toContain(told);
    expect(err).not.toContain('stdio');
  });

  it.each<[string, string, Record<string, string>?]>([
    ['threads serch x', 'Did you mean "search"?'],
    ['ask hi --modle x', 'Did you mean --model?'],
    ['--storre x doctor', 'Did you mean --store?'],
    ['--store sqlit doctor', 'Did you mean "sqlite"?'],
    ['usage --by modle', 'Did you mean "model"?'],
    ['init --client cluade', 'Did you mean "claude"?'],
    ['completion bsh', 'Did you mean "bash"?'],
    ['models refrsh', 'Did you mean "refresh"?'],
    ['models --provider opneai', 'Did you mean "openai"?'],
    ['route hi --tool chta', '"chat"'],
    ['ask hi --model echo-esat', '"echo-east"'],
    ['ask hi', 'did you mean sqlite?', { POLYLOGUE_STORE: 'sqlit' }],
  ])('suggests the nearest word: %s', async (line, near, env = {}) => {
    const { code, out, err } = await run(line.split(' '), { env: { OFFLINE: 'on', ...env } });
    expect([code === 0, out]).toEqual([false, '']);
    expect(err).toContain(near);
  });

  it('suggests the nearest setting for a variable that is none, and takes the marks of its own runs', async () => {
    const { out } = await run(['doctor'], { env: { OFFLINE: 'on', POLYLOGUE_STROE: 'redis', POLYLOGUE_X_RUN: 'x' } });
    expect(out).toContain(
      '"POLYLOGUE_STROE" (environment) is not an option and was ignored; did you mean POLYLOGUE_STORE?',
    );
    expect(out).not.toContain('X_RUN');
  });

  it('tells programs what was wrong with their command line as one document', async () => {
    const { code, out } = await run(['usage', '--by', 'luck', '--json']);
    expect(code).toBe(2);
    expect(JSON.parse(out)).toMatchObject({
      status: 'error',
      error: {
        code: 'INVALID_INPUT_FORMAT',
        message: expect.stringMatching(/luck.*model/s),
        next: 'Run "polylogue usage --help" for usage.',
      },
    });
  });

  it('serves MCP without a command, and ends with its input', async () => {
    expect(await run([])).toMatchObject({ code: 0, out: '' });
  });

  it.each([
    [['--nonsense'], `'--nonsense'\n(Run "polylogue --help" for a list of commands)`],
    [['serve', '--port', '99999'], 'from 0 to 65535'],
    [['frobnicate'], 'frobnicate'],
    [['--store', 'paper'], 'sqlite, redis, memory'],
  ])('refuses %j with exit code 2 and what is allowed', async (args, told) => {
    const { code, err, out } = await run(args);
    expect(code).toBe(2);
    expect(err).toContain(told);
    expect(out).toBe('');
  });

  it('refuses a bad setting with its name and what it takes, never with a key', async () => {
    const { code, err } = await run([], {
      env: { MAX_NAMED_FILES: 'many', OPENAI_API_KEY: 'sk-proj-not-to-be-shown-1234567890' },
    });
    expect(code).toBe(2);
    expect(err).toContain('MAX_NAMED_FILES');
    expect(err).not.toContain('not-to-be-shown');
  });

  it('writes nothing to disk before it is asked something', async () => {
    await run([]);
    await expect(readFile(join(place, 'home'))).rejects.toThrow('ENOENT');
  });

  it('trusts a directory so that its .env is read, but not for addresses', async () => {
    await writeFile(join(place, '.env'), 'MAX_NAMED_FILES=many\nOPENAI_BASE_URL=http://evil.example\n');
    expect((await run([])).code).toBe(0);
    const trusted = await run(['trust']);
    expect(trusted.code).toBe(0);
    expect(trusted.out).toContain(place);
    const { code, err } = await run([]);
    expect(code).toBe(2);
    expect(err).toContain('MAX_NAMED_FILES');
  });

  it('tells a fault of its own with its version, and without the code that it is at', async () => {
    const faulty = join(place, 'faulty.cjs');
    const long = 'x'.repeat(3_000);
    await writeFile(faulty, `process.stdout.write = () => { ${long}: throw new TypeError('Odd.\\u001b[2J'); };\n`);
    for (const command of [['models', '--offline'], ['--help']]) {
      const { code, err } = await run(command, { node: ['-r', faulty] });
      expect(code).toBe(1);
      expect(err).toMatch(/^polylogue \d+\.\d+\.\d+ failed: Odd\.\S+\nThis is a bug\. Report it .*\nTypeError: Odd\./);
      expect(err).toContain('faulty.cjs:1:');
      expect(err).not.toContain('xxx');
      expect(err).not.toContain('\u001b');
    }
  });

  it('tells a fault without the keys that stand in it, and not all of a long one', async () => {
    const faulty = join(place, 'keys.cjs');
    const [known, alike] = ['plain words of a secret', 'sk-proj-Abc123Abc123Abc123'];
    await writeFile(
      faulty,
      `const of = { ...process.env };
      process.stdout.write = () => { throw new Error(of.SOME_KEY + ' ${alike} ' + 'long '.repeat(100_000) + of.SOME_KEY); };\n`,
    );
    const { code, err } = await run(['models', '--offline'], { node: ['-r', faulty], env: { SOME_KEY: known } });
    expect(code).toBe(1);
    expect(err).toContain('This is a bug.');
    expect(err).not.toContain(known);
    expect(err).not.toContain(alike);
    expect(err.length).toBeLessThan(6_000);
  });

  it('tells an older Node what to do', async () => {
    const older = join(place, 'older.cjs');
    await writeFile(
      older,
      "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.1.0' } });\n",
    );
    const { code, err } = await run([], { node: ['-r', older] });
    expect(code).toBe(1);
    expect(err).toContain('Polylogue needs Node 24');
  });
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { type ParseError, parse } from 'jsonc-parser';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { main, runProgram } from '../run-program.ts';

let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'polylogue-init-'));
});

afterEach(() => rm(home, { recursive: true, force: true }));

const secret = 'sk-not-to-be-written-unasked';

const run = (args: string[], env: Record<string, string> = {}) =>
  runProgram(['init', ...args], { cwd: home, env: { OPENAI_API_KEY: secret, ...env } });

/** The entry that a copy of the program writes which is installed in this folder, and started by this name of a command. */
async function entryOf(folder: string, command = join(folder, 'main.js')) {
  await mkdir(join(home, dirname(folder)), { recursive: true });
  await symlink(dirname(main), join(home, folder));
  const args = [join(home, command), 'init', '--client', 'cursor'];
  const child = spawn(process.execPath, args, { env: { HOME: home }, cwd: home, stdio: 'ignore' });
  expect(await once(child, 'exit')).toEqual([0, null]);
  const { mcpServers } = JSON.parse(await readFile(join(home, '.cursor/mcp.json'), 'utf8'));
  return mcpServers.polylogue;
}

it.each([
  '.npm/_npx/a27a/node_modules/polylogue/dist',
  '.cache/pnpm/dlx/16e1/mx3y-ke6/node_modules/polylogue/dist',
  'tmp/xfs-5418/dlx-26789/.yarn/unplugged/polylogue-npm-0.1.0-8e/node_modules/polylogue/dist',
  'tmp/bunx-1000-polylogue@latest/node_modules/polylogue/dist',
  '.bun/install/cache/.bunx-0/polylogue@latest/node_modules/polylogue/dist',
])('names npx where it runs from files that are not kept: %s', async folder => {
  expect(await entryOf(folder)).toMatchObject({ command: 'npx', args: ['-y', 'polylogue'] });
});

it('names a path that leads to the version which is installed then, with npm, pnpm and Homebrew', async () => {
  await mkdir(join(home, 'bin'));
  await symlink('../lib/node_modules/polylogue/dist/main.js', join(home, 'bin/polylogue'));
  const npm = await entryOf('lib/node_modules/polylogue/dist', 'bin/polylogue');
  expect(npm.args).toEqual([join(home, 'lib/node_modules/polylogue/dist/main.js')]);

  await mkdir(join(home, 'global/node_modules'), { recursive: true });
  await symlink(
    join(home, 'store/polylogue/0.1.0/node_modules/polylogue'),
    join(home, 'global/node_modules/polylogue'),
  );
  const stored = 'store/polylogue/0.1.0/node_modules/polylogue/dist';
  const pnpm = await entryOf(stored, 'global/node_modules/polylogue/dist/main.js');
  expect(pnpm.args).toEqual([join(home, 'global/node_modules/polylogue/dist/main.js')]);

  await symlink('../Cellar/polylogue/0.1.0/libexec/dist/main.js', join(home, 'bin/brewed'));
  const brewed = await entryOf('Cellar/polylogue/0.1.0/libexec/dist', 'bin/brewed');
  expect(brewed.args).toEqual([join(home, 'opt/polylogue/libexec/dist/main.js')]);
});

describe('an entry that leads to a URL', () => {
  it.each([
    [
      'codex',
      '.codex/config.toml',
      'model = "o3"\n\n[mcp_servers.polylogue]\nurl = "http://127.0.0.1:8765/mcp"\nbearer_token_env_var = "X"\n',
    ],
    [
      'codex',
      '.codex/config.toml',
      '[mcp_servers.polylogue]\nurl = "http://127.0.0.1:8765/mcp"\n[mcp_servers.polylogue.http_headers]\nA = "b"\n',
    ],
    [
      'gemini',
      '.gemini/settings.json',
      '{ "mcpServers": { "polylogue": { "httpUrl": "http://127.0.0.1:8765/mcp", "headers": {} } } }',
    ],
    [
      'windsurf',
      '.codeium/windsurf/mcp_config.json',
      '{ "mcpServers": { "polylogue": { "serverUrl": "http://127.0.0.1:8765/mcp" } } }',
    ],
    [
      'opencode',
      '.config/opencode/opencode.json',
      '{ "mcp": { "polylogue": { "type": "remote", "url": "http://127.0.0.1:8765/mcp" } } }',
    ],
  ])('is replaced, for %s takes none beside a command, and kept in a backup', async (client, file, before) => {
    await write(file, before);
    expect((await run(['--client', client])).code).toBe(0);
    const after = await read(file);
    expect(after).toContain(main);
    for (const gone of ['8765', 'bearer', 'eaders']) expect(after).not.toContain(gone);
    expect(await backups(file)).toEqual([before]);
    expect((await run(['--client', client])).out).toContain('Already there');
    await run(['--client', client, '--remove']);
    expect(await read(file)).not.toContain('polylogue');
  });
});

it('leaves a file in another encoding as it is, and says so', async () => {
  const path = join(home, '.cursor/mcp.json');
  const bytes = Buffer.from('{ "mcpServers": {} /* caf\xe9 */ }', 'latin1');
  await mkdir(dirname(path));
  await writeFile(path, bytes);
  const { code, err } = await run(['--client', 'cursor']);
  expect([code, err]).toEqual([2, expect.stringMatching(/mcp\.json: .*utf-8[\s\S]*UTF-8/)]);
  expect((await readFile(path)).equals(bytes)).toBe(true);
});

describe('init --client opencode where there is an opencode.jsonc, which overrides opencode.json', () => {
  const [plain, withComments] = ['.config/opencode/opencode.json', '.config/opencode/opencode.jsonc'];

  it('puts the entry there, and takes it out to the byte', async () => {
    const before = '{\n  // mine\n  "$schema": "https://opencode.ai/config.json",\n}\n';
    await write(withComments, before);
    await run(['--client', 'opencode']);
    expect(jsonc(await read(withComments)).mcp).toHaveProperty('polylogue');
    await expect(lstat(join(home, plain))).rejects.toThrow('ENOENT');
    await run(['--client', 'opencode', '--remove']);
    expect(await read(withComments)).toBe(before);
  });

  it('finds the entry where it is: there first', async () => {
    const other = '{ "mcp": { "polylogue": { "type": "local", "command": ["/gone/node"] } } }';
    await write(plain, '{}');
    await run(['--client', 'opencode']);
    await write(withComments, '{}');
    expect((await run(['--client', 'opencode'])).out).toContain('Already there');
    await write(withComments, other);
    await run(['--client', 'opencode']);
    expect(await read(withComments)).not.toContain('/gone/node');
  });
});

it('follows GEMINI_CLI_HOME, in the place of the home directory', async () => {
  await run(['--client', 'gemini'], { GEMINI_CLI_HOME: join(home, 'elsewhere') });
  expect(await read('elsewhere/.gemini/settings.json')).toContain(main);
});

it.each(['mcp_servers.polylogue.command = "x"\n', '[mcp_servers]\npolylogue = { command = "x" }\n'])(
  'does not say that an entry which it cannot take out is not there: %j',
  async text => {
    await write('.codex/config.toml', text);
    const { code, out, err } = await run(['--client', 'codex', '--remove']);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain('a form that Polylogue cannot edit');
    expect(await read('.codex/config.toml')).toBe(text);
  },
);

interface HostFacts {
  client: string;
  file: string;
  project?: string;
  key: string;
  reference?: string;
}

const jsonHosts: HostFacts[] = [
  {
    client: 'claude',
    file: '.claude.json',
    project: '.mcp.json',
    key: 'mcpServers',
    reference: '$' + '{OPENAI_API_KEY:-}',
  },
  {
    client: 'gemini',
    file: '.gemini/settings.json',
    project: '.gemini/settings.json',
    key: 'mcpServers',
    reference: '$' + '{OPENAI_API_KEY}',
  },
  {
    client: 'cursor',
    file: '.cursor/mcp.json',
    project: '.cursor/mcp.json',
    key: 'mcpServers',
    reference: '$' + '{env:OPENAI_API_KEY}',
  },
  {
    client: 'vscode',
    file: '.config/Code/User/mcp.json',
    project: '.vscode/mcp.json',
    key: 'servers',
    reference: '$' + '{env:OPENAI_API_KEY}',
  },
  {
    client: 'windsurf',
    file: '.codeium/windsurf/mcp_config.json',
    key: 'mcpServers',
    reference: '$' + '{env:OPENAI_API_KEY}',
  },
  { client: 'zed', file: '.config/zed/settings.json', project: '.zed/settings.json', key: 'context_servers' },
  { client: 'augment', file: '.augment/settings.json', key: 'mcpServers' },
  {
    client: 'copilot',
    file: '.copilot/mcp-config.json',
    project: '.github/mcp.json',
    key: 'mcpServers',
    reference: '$' + '{OPENAI_API_KEY}',
  },
  {
    client: 'qwen',
    file: '.qwen/settings.json',
    project: '.qwen/settings.json',
    key: 'mcpServers',
    reference: '$' + '{OPENAI_API_KEY}',
  },
  { client: 'cline', file: '.cline/data/settings/cline_mcp_settings.json', key: 'mcpServers' },
];

const codexFile = '.codex/config.toml';
const allHosts = [...jsonHosts.map(({ client, file }) => [client, file] as const), ['codex', codexFile] as const];

const read = (file: string) => readFile(join(home, file), 'utf8');

async function write(file: string, text: string): Promise<void> {
  await mkdir(dirname(join(home, file)), { recursive: true });
  await writeFile(join(home, file), text);
}

async function backups(file: string): Promise<string[]> {
  const names = await readdir(dirname(join(home, file)));
  const found = names.filter(name => name.includes('.bak-')).toSorted();
  return Promise.all(found.map(name => readFile(join(dirname(join(home, file)), name), 'utf8')));
}

function jsonc(
  text: string,
): Record<string, Record<string, { command: string; args: string[]; env?: Record<string, string> }>> {
  const errors: ParseError[] = [];
  const value = parse(text, errors, { allowTrailingComma: true });
  expect(errors).toEqual([]);
  return value;
}

describe.each(jsonHosts)('init --client $client', ({ client, file, project, key, reference }) => {
  it('writes an entry with absolute paths, and the key by name or not at all', async () => {
    const { code, out } = await run(['--client', client]);
    expect(code).toBe(0);
    expect(out).toContain(join(home, file));
    const entry = jsonc(await read(file))[key]!.polylogue!;
    expect(entry).toMatchObject({ command: process.execPath, args: [main] });
    expect(entry.env?.OPENAI_API_KEY).toBe(reference);
    expect(await read(file)).not.toContain(secret);
    expect(out).toContain('OPENAI_API_KEY');
    if (!reference) expect(out).toContain('--env OPENAI_API_KEY');
    expect((await stat(join(home, file))).mode & 0o777).toBe(0o600);
  });

  it('merges with what is there, keeps comments and a backup, and is taken out to the byte', async () => {
    const before = `{\n  // mine\n  "theme": "dark", /* too */\n  "${key}": {\n    "other": { "command": "x" }, // theirs\n  },\n}\n`;
    await write(file, before);
    await run(['--client', client]);
    const after = await read(file);
    for (const kept of ['// mine', '/* too */', '// theirs']) expect(after).toContain(kept);
    expect(jsonc(after)).toMatchObject({ theme: 'dark', [key]: { other: { command: 'x' }, polylogue: {} } });
    expect(await backups(file)).toEqual([before]);
    expect((await run(['--client', client, '--remove'])).code).toBe(0);
    expect(await read(file)).toBe(before);
  });

  it('is taken out to the byte where there was no table of servers', async () => {
    const before = '{ "theme": "dark" }';
    await write(file, before);
    await run(['--client', client]);
    await run(['--client', client, '--remove']);
    expect(await read(file)).toBe(before);
  });

  it('knows the file of a project, or says that the host has none', async () => {
    const { code, err } = await run(['--client', client, '--scope', 'project']);
    expect(code).toBe(project === undefined ? 2 : 0);
    if (project === undefined) expect(err).toContain('--scope');
    else expect(jsonc(await read(project))[key]).toHaveProperty('polylogue');
  });
});

it('warns of keys in the file of a project only where one was asked for by its name', async () => {
  const project = ['--client', 'opencode', '--scope', 'project'];
  const plain = await run(project, { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' });
  expect(plain.out).toContain('the value of OPENAI_BASE_URL');
  expect(plain.out).not.toContain('it contains keys');
  expect((await run([...project, '--env', 'OPENAI_API_KEY'])).out).toContain(
    'Do not commit this file: it contains keys.',
  );
});

describe('init --client codex', () => {
  const before = 'model = "o3" # mine\n\n[mcp_servers.other]\ncommand = "x"';

  it('adds a table that names the key, keeps every other byte, and is taken out to the byte', async () => {
    await write(codexFile, before);
    await run(['--client', 'codex']);
    const after = await read(codexFile);
    expect(after).toBe(
      `${before}\n\n[mcp_servers.polylogue]\ncommand = ${JSON.stringify(process.execPath)}\nargs = [${JSON.stringify(main)}]\n` +
        'env_vars = ["OPENAI_API_KEY"]\nenv = { CALL_PATIENCE_SECONDS = "550" }\ntool_timeout_sec = 600\n',
    );
    expect(await backups(codexFile)).toEqual([before]);
    await run(['--client', 'codex', '--remove']);
    expect(await read(codexFile)).toBe(before);
  });

  it('removes it from a file next to which there is a backup that is no TOML', async () => {
    const before = 'model = "o3"\n';
    await write(codexFile, before);
    await write(`${codexFile}.bak-99999999`, 'model = ');
    await run(['--client', 'codex']);
    expect(await run(['--client', 'codex', '--remove'])).toMatchObject({ code: 0 });
    expect(await read(codexFile)).toBe(before);
  });

  it('follows CODEX_HOME', async () => {
    await run(['--client', 'codex'], { CODEX_HOME: join(home, 'elsewhere') });
    expect(await read('elsewhere/config.toml')).toContain('[mcp_servers.polylogue]');
  });
});

describe.each(allHosts)('what init --client %s wrote', (client, file) => {
  it('starts the server without an environment and without node in the path', async () => {
    await run(['--client', client]);
    const text = await read(file);
    const command = /"?command"?\s*[:=]\s*"([^"]+)"/.exec(text)?.[1] ?? '';
    const args: string[] = JSON.parse(/"?args"?\s*[:=]\s*(\[[^\]]*\])/.exec(text)?.[1] ?? '[]');
    const child = spawn(command, args, {
      cwd: '/',
      env: { HOME: home, PATH: '/nonexistent' },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const lines = createInterface({ input: child.stdout });
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: client, version: '1' } };
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`);
    const [line] = await once(lines, 'line');
    expect(JSON.parse(line)).toMatchObject({ id: 1, result: { protocolVersion: '2025-11-25' } });
    child.stdin.end();
    expect(await once(child, 'close')).toEqual([0, null]);
  });

  it('is gone after --remove when init began the file', async () => {
    await run(['--client', client]);
    await run(['--client', client, '--remove']);
    await expect(lstat(join(home, file))).rejects.toThrow('ENOENT');
    expect(await backups(file)).toEqual([]);
  });

  it('leaves no backup beside a file that init began, also when the entry changes', async () => {
    await run(['--client', client]);
    await run(['--client', client, '--offline']);
    expect(await read(file)).toContain('--offline');
    expect(await backups(file)).toEqual([]);
    await run(['--client', client, '--remove']);
    await expect(lstat(join(home, file))).rejects.toThrow('ENOENT');
  });

  it('is the same after a second init, which makes no backup', async () => {
    await run(['--client', client]);
    const once = await read(file);
    expect((await run(['--client', client])).out).toContain('Already there');
    expect(await read(file)).toBe(once);
    expect(await backups(file)).toEqual([]);
  });

  it('is only said with --dry-run', async () => {
    const { code, out } = await run(['--client', client, '--dry-run', '--env', 'OPENAI_API_KEY']);
    expect(code).toBe(0);
    expect(out).toContain(main);
    expect(out).not.toContain(secret);
    await expect(lstat(join(home, file))).rejects.toThrow('ENOENT');
  });

  it('holds a key when --env names it', async () => {
    const { out } = await run(['--client', client, '--env', 'OPENAI_API_KEY']);
    expect(await read(file)).toContain(secret);
    expect(out).not.toContain(secret);
    expect(out).toContain('now contains the value of OPENAI_API_KEY');
  });
});

/** What a user adds to an entry, and where it stands for this host. */
const ownVariables: Readonly<Record<string, string>> = { opencode: 'environment' };
const ownEntries = [
  ...jsonHosts.map(({ client, file, key }) => ({ client, file, key })),
  { client: 'opencode', file: '.config/opencode/opencode.json', key: 'mcp' },
];

describe.each(ownEntries)('a second init --client $client', ({ client, file, key }) => {
  const variables = ownVariables[client] ?? 'env';
  const entryIn = async () => jsonc(await read(file))[key]!.polylogue as unknown as Record<string, unknown>;

  it('leaves what the user put into the entry: fields, variables, limits, comments', async () => {
    await run(['--client', client]);
    const first = await entryIn();
    const added = { disabled: true, timeout: 1_234, alwaysAllow: ['chat'], note: { by: 'me' } };
    const text = await read(file);
    const at = text.indexOf('{', text.indexOf('"polylogue"')) + 1;
    const own = Object.entries({ ...added, [variables]: { ...(first[variables] as object), MINE: 'kept' } });
    const rows = own.map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}, // by hand`);
    // Of two members with one name the last counts, so that what init wrote under these names goes.
    let rest = `${text.slice(0, at)}\n${rows.join('\n')}${text.slice(at)}`;
    for (const name of ['timeout', variables]) {
      const from = rest.lastIndexOf(`"${name}":`);
      if (from === rest.indexOf(`"${name}":`)) continue;
      const value = JSON.stringify(first[name], undefined, 2).replaceAll('\n', '\n      ');
      expect(rest.slice(from)).toContain(value);
      rest = rest.slice(0, from) + rest.slice(from).replace(`"${name}": ${value}`, `"kept_${name}": 1`);
    }
    await write(file, rest);
    expect((await run(['--client', client])).out).toContain('Already there');
    expect(await read(file)).toBe(rest);
    await run(['--client', client, '--offline'], { OPENAI_BASE_URL: 'http://127.0.0.1:9/v1' });
    expect(await entryIn()).toMatchObject({
      ...added,
      [variables]: { MINE: 'kept', OPENAI_BASE_URL: 'http://127.0.0.1:9/v1' },
    });
    expect(JSON.stringify(await entryIn())).toContain('--offline');
    expect((await read(file)).match(/\/\/ by hand/g)?.length).toBe(own.length);
  });

  it('writes what is new over what it wrote: the program, and variables with a value', async () => {
    await run(['--client', client], { OPENAI_BASE_URL: 'http://127.0.0.1:8/v1' });
    const text = await read(file);
    await write(file, text.replace(main, '/gone/main.js').replace(process.execPath, '/gone/node'));
    await run(['--client', client], { OPENAI_BASE_URL: 'http://127.0.0.1:9/v1' });
    expect(await read(file)).toBe(text.replace('127.0.0.1:8', '127.0.0.1:9'));
  });
});

describe('a second init --client codex', () => {
  const started = `command = ${JSON.stringify(process.execPath)}\nargs = [${JSON.stringify(main)}]\n`;
  const server = '[mcp_servers.polylogue]';

  it.each([
    [
      'fields, a limit and variables of his own',
      `${server}\n${started}env_vars = ["OPENAI_API_KEY", "MINE"] # mine\nenv = { CALL_PATIENCE_SECONDS = "90", MINE = 'x' } # mine\ntool_timeout_sec = 100\nenabled = false # not now\n`,
      [],
    ],
    [
      'a table of variables',
      `${server}\n${started}env_vars = ["OPENAI_API_KEY"]\ntool_timeout_sec = 600\n\n[mcp_servers.polylogue.env]\nCALL_PATIENCE_SECONDS = "550"\nMINE = "x" # mine\n\n[mcp_servers.polylogue.tools.chat]\napproval_mode = "approve"\n\n[other]\na = 1\n`,
      [],
    ],
    [
      'dotted variables, another order and lines between',
      `model = "o3"\n${server}\nrequired = true\n\n# mine\nenv.CALL_PATIENCE_SECONDS = "550"\nenv.MINE = "x"\ntool_timeout_sec = 5\nenv_vars = [\n  "OPENAI_API_KEY", # mine\n]\n${started}`,
      [],
    ],
    [
      'what is missing, and the program',
      `${server}\ncommand = "/gone/node"\nargs = ["/gone/main.js"]\nenv_vars = ["MINE"]\nenv = { MINE = "x" }\nenabled = false`,
      [
        ['command = "/gone/node"\nargs = ["/gone/main.js"]\n', started],
        ['["MINE"]', '["MINE", "OPENAI_API_KEY"]'],
        ['{ MINE', '{ CALL_PATIENCE_SECONDS = "550", MINE'],
        ['enabled = false', 'enabled = false\ntool_timeout_sec = 600\n'],
      ],
    ],
    [
      'dotted variables that lack ours',
      `${server}\nenv.MINE = "x" # mine\n${started}env_vars = ["OPENAI_API_KEY"]\ntool_timeout_sec = 600\n`,
      [['# mine\n', '# mine\nenv.CALL_PATIENCE_SECONDS = "550"\n']],
    ],
    [
      'everything below a bare header',
      `${server}\n\n[other]\n`,
      [
        [
          `${server}\n`,
          `${server}\n${started}env_vars = ["OPENAI_API_KEY"]\nenv = { CALL_PATIENCE_SECONDS = "550" }\ntool_timeout_sec = 600\n`,
        ],
      ],
    ],
    [
      'all but a table of variables that stands alone',
      `[mcp_servers.polylogue.env]\nMINE = "x"\nCALL_PATIENCE_SECONDS = "9"\n`,
      [['"9"\n', `"9"\n${server}\n${started}env_vars = ["OPENAI_API_KEY"]\ntool_timeout_sec = 600\n`]],
    ],
    [
      'variables where there were none',
      `${server}\n${started}env_vars = ["OPENAI_API_KEY"]\ntool_timeout_sec = 600\n[other]\n`,
      [['600\n', '600\nenv = { CALL_PATIENCE_SECONDS = "550" }\n']],
    ],
    [
      'a table of variables that lacks ours',
      `${server}\n${started}env_vars = ["OPENAI_API_KEY"]\ntool_timeout_sec = 600\n[mcp_servers.polylogue.env]\nMINE = "x"\n\n[other]\n`,
      [['MINE = "x"\n', 'MINE = "x"\nCALL_PATIENCE_SECONDS = "550"\n']],
    ],
  ])('leaves and adds %s', async (_, before, changes) => {
    await write(codexFile, before);
    await run(['--client', 'codex']);
    expect(await read(codexFile)).toBe(changes.reduce((text, [from = '', to = '']) => text.replace(from, to), before));
    expect((await run(['--client', 'codex'])).out).toContain('Already there');
  });

  it('sets a variable that the environment has, in each form', async () => {
    for (const variables of [
      'env = { OPENAI_BASE_URL = "old", MINE = "x" }\n',
      'env.OPENAI_BASE_URL = "old"\nenv.MINE = "x"\n',
      '[mcp_servers.polylogue.env]\nOPENAI_BASE_URL = "old"\nMINE = "x"\n',
    ]) {
      await write(codexFile, `${server}\n${started}env_vars = ["OPENAI_API_KEY"]\ntool_timeout_sec = 1\n${variables}`);
      await run(['--client', 'codex'], { OPENAI_BASE_URL: 'http://127.0.0.1:9/v1' });
      const text = await read(codexFile);
      expect(text).toContain('OPENAI_BASE_URL = "http://127.0.0.1:9/v1"');
      expect(text).not.toContain('old');
      expect(text).toContain('MINE = "x"');
      expect(text.match(/CALL_PATIENCE_SECONDS/g)?.length).toBe(1);
    }
  });
});

describe('init --client opencode', () => {
  const file = '.config/opencode/opencode.json';
  const before = '{\n  // mine\n  "theme": "dark"\n}\n';

  it('writes its own form of an entry, keeps the rest, and is taken out to the byte', async () => {
    await write(file, before);
    const { code } = await run(['--client', 'opencode']);
    expect(code).toBe(0);
    expect(jsonc(await read(file)).mcp!.polylogue).toEqual({
      type: 'local',
      command: [process.execPath, main],
      environment: { CALL_PATIENCE_SECONDS: '550', OPENAI_API_KEY: '{env:OPENAI_API_KEY}' },
      timeout: 600_000,
    });
    expect(await read(file)).toContain('// mine');
    expect(await backups(file)).toEqual([before]);
    await run(['--client', 'opencode', '--remove']);
    expect(await read(file)).toBe(before);
  });

  it('knows the file of a project and follows XDG_CONFIG_HOME', async () => {
    await run(['--client', 'opencode', '--scope', 'project']);
    expect(jsonc(await read('opencode.json')).mcp).toHaveProperty('polylogue');
    await run(['--client', 'opencode'], { XDG_CONFIG_HOME: join(home, 'elsewhere') });
    expect(jsonc(await read('elsewhere/opencode/opencode.json')).mcp).toHaveProperty('polylogue');
  });
});

describe('init', () => {
  it.each([
    ['claude', 'mcp__second'],
    ['codex', 'default_tools_approval_mode = "approve" under [mcp_servers.second]'],
    ['codex', 'required = true'],
    ['gemini', 'does not trust'],
    ['qwen', 'does not trust'],
    ['copilot', '--allow-tool second'],
    ['cline', 'autoApprove'],
  ])('says what %s needs to let the tools run: %s', async (client, told) => {
    expect((await run(['--client', client, '--name', 'second'])).out).toContain(told);
  });

  it('gives a server the patience that goes with the limit of the host, unless the operator set his own', async () => {
    const patience = async (client: string, file: string, env: Record<string, string> = {}) => {
      await run(['--client', client], env);
      return jsonc(await read(file)).mcpServers!.polylogue!.env?.CALL_PATIENCE_SECONDS;
    };
    expect(await patience('qwen', '.qwen/settings.json')).toBe('550');
    expect(await patience('cline', '.cline/data/settings/cline_mcp_settings.json')).toBe('550');
    expect(await patience('qwen', '.qwen/settings.json', { CALL_PATIENCE_SECONDS: '30' })).toBe('30');
    expect(await patience('cursor', '.cursor/mcp.json')).toBeUndefined();
  });

  it.each([
    [{ CUSTOM_API_URL: 'http://127.0.0.1:9/v1' }, 'No key is needed'],
    [{ OLLAMA_HOST: '127.0.0.1:9' }, 'No key is needed'],
    [{ OLLAMA_BASE_URL: 'http://127.0.0.1:9' }, 'No key is needed'],
    [{}, 'No API key is set'],
  ])('says whether a key is missing: %j', async (env, told) => {
    const { out } = await run(['--client', 'cursor'], { OPENAI_API_KEY: '', ...env });
    expect(out.match(/No (API )?key is \w+/g)).toEqual([told]);
  });

  it('lets the host share a daemon when it is told to', async () => {
    await run(['--client', 'cursor', '--bridge', '--offline']);
    const { mcpServers } = jsonc(await read('.cursor/mcp.json'));
    expect(mcpServers).toMatchObject({ polylogue: { args: [main, 'connect', '--offline'] } });
  });

  it('replaces only its own entry, by the name that is given', async () => {
    await run(['--client', 'cursor', '--name', 'second', '--offline']);
    await run(['--client', 'cursor']);
    const { mcpServers } = jsonc(await read('.cursor/mcp.json'));
    expect(mcpServers).toMatchObject({ second: { args: [main, '--offline'] }, polylogue: { args: [main] } });
    await run(['--client', 'cursor', '--remove']);
    expect(Object.keys(jsonc(await read('.cursor/mcp.json')).mcpServers!)).toEqual(['second']);
  });

  it('passes on what is no secret by value: addresses, the data folder, proxies without a password', async () => {
    const env = {
      OPENAI_BASE_URL: 'http://127.0.0.1:9/v1',
      POLYLOGUE_HOME: join(home, 'data'),
      HTTPS_PROXY: 'http://ada:hidden-word@proxy.example:3128',
      NO_PROXY: '.example.org',
      PROJECT_ROOT: home,
    };
    await run(['--client', 'cursor'], env);
    const passed = jsonc(await read('.cursor/mcp.json')).mcpServers!.polylogue!.env;
    expect(passed).toEqual({
      OPENAI_API_KEY: '$' + '{env:OPENAI_API_KEY}',
      HTTPS_PROXY: '$' + '{env:HTTPS_PROXY}',
      OPENAI_BASE_URL: env.OPENAI_BASE_URL,
      POLYLOGUE_HOME: env.POLYLOGUE_HOME,
      NO_PROXY: '.example.org',
    });
  });

  it('writes through a symbolic link and keeps it and the rights of the file', async () => {
    await write('dotfiles/mcp.json', '{}\n');
    await mkdir(join(home, '.cursor'));
    await symlink(join(home, 'dotfiles/mcp.json'), join(home, '.cursor/mcp.json'));
    const { mode } = await stat(join(home, 'dotfiles/mcp.json'));
    await run(['--client', 'cursor']);
    expect((await lstat(join(home, '.cursor/mcp.json'))).isSymbolicLink()).toBe(true);
    expect(await read('dotfiles/mcp.json')).toContain('polylogue');
    expect((await stat(join(home, 'dotfiles/mcp.json'))).mode).toBe(mode);
  });

  it('leaves a file alone that it can not read, and says which line', async () => {
    const broken = '{\n  "mcpServers": {\n    oops\n}';
    await write('.cursor/mcp.json', broken);
    const { code, err } = await run(['--client', 'cursor']);
    expect(code).toBe(2);
    expect(err).toContain('line 3');
    expect(await read('.cursor/mcp.json')).toBe(broken);
    expect(await backups('.cursor/mcp.json')).toEqual([]);
  });

  it.each([
    [[], '--client'],
    [['--client', 'emacs'], 'windsurf'],
    [['--client', 'cursor', '--name', 'a b'], 'dashes'],
    [['--client', 'cursor', '--env', 'NOT_SET_ANYWHERE'], 'NOT_SET_ANYWHERE='],
  ])('refuses %j with exit code 2 and what is allowed', async (args, told) => {
    const { code, err } = await run(args);
    expect(code).toBe(2);
    expect(err).toContain(told);
  });

  it('says that there is nothing to take out', async () => {
    const { code, out } = await run(['--client', 'cursor', '--remove']);
    expect(code).toBe(0);
    expect(out).toContain('nothing changed');
  });
});

describe('a configuration that is broken', () => {
  it.each([
    ['claude', '.claude.json', '{ "mcpServers": {"a":{}}, bad'],
    ['zed', '.config/zed/settings.json', '[]'],
  ])('is named, and left as it is: %s', async (client, file, text) => {
    const path = join(home, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
    const { code, err } = await run(['--client', client]);
    expect(code).toBe(2);
    expect(err).toContain(path);
    expect(await readFile(path, 'utf8')).toBe(text);
  });
});

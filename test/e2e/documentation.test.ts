import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { getStaticTOMLValue, parseTOML } from 'toml-eslint-parser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { terminalSvg } from '../../scripts/record/terminal.ts';
import { walk } from '../../scripts/walk.ts';
import { commands } from '../../src/cli/commands/index.gen.ts';
import type { ErrorCode } from '../../src/core/errors.ts';
import { isRecord } from '../../src/core/json.ts';
import { tools } from '../../src/tools/index.gen.ts';
import { startSession } from '../support/mcp-session.ts';
import { freePort } from '../support/redis-server.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

const repository = fileURLToPath(new URL('../../', import.meta.url));
const textOf = (page: string) => readFileSync(`${repository}${page}`, 'utf8');
/** All of the repository's own: those on top and all below docs/. */
const pages = walk(repository).filter(path => /^(?:[A-Z_]+|docs\/.*)\.md$/.test(path));

/** The blocks of a page in one language. */
const blocksOf = (page: string, language: string) =>
  [...textOf(page).matchAll(new RegExp(`^ *\`\`\`${language}\\n([\\s\\S]*?)^ *\`\`\`$`, 'gm'))].map(
    ([, code = '']) => code,
  );

const codes: Record<ErrorCode, true> = {
  API_ERROR: true,
  CANCELLED: true,
  CONFIG: true,
  INTERNAL_SERVER_ERROR: true,
  INTERRUPTED: true,
  INVALID_INPUT_FORMAT: true,
  LIMIT: true,
  MISSING_PARAMETER: true,
  MODEL_NOT_FOUND: true,
  PROVIDER_NOT_FOUND: true,
  SECURITY: true,
  STORAGE: true,
  THREAD_EXPIRED: true,
  THREAD_NOT_FOUND: true,
  TOOL_NOT_FOUND: true,
};

/** What a host would start by an entry for it. */
interface Entry {
  program: string[];
  env: Record<string, string>;
}

/** The entry named polylogue, wherever it is in a host's file. */
function entryOf(value: unknown): Entry | undefined {
  if (!isRecord(value)) return undefined;
  const { polylogue } = value;
  if (!isRecord(polylogue))
    return Object.values(value)
      .map(entryOf)
      .find(found => found !== undefined);
  const { command, args = [], env, environment } = polylogue;
  return { program: [command, args].flat(2).map(String), env: Object(env ?? environment ?? {}) };
}

const entries = ['README.md', 'docs/hosts.md'].flatMap(page => [
  ...blocksOf(page, 'json').map(code => ({ page, entry: entryOf(JSON.parse(code)) })),
  ...blocksOf(page, 'toml').map(code => ({ page, entry: entryOf(getStaticTOMLValue(parseTOML(code))) })),
]);

/** Commands that do not run here, and what runs them instead. */
const elsewhere: readonly (readonly [RegExp, string])[] = [
  [/^npm (?:ci|test|ci && npm (?:test|run demo)|run test:hosts)(?: +#.*)?$/, '.ci/run'],
  [/^npm run compare.*$/, 'test/scripts/compare.test.ts'],
  [/^npm run torture.*$/, 'test/scripts/torture.test.ts'],
  [/^npm run mutate.*$/, 'test/scripts/mutate.test.ts'],
  // There is no Docker: the test follows the Dockerfile and reads the compose file.
  [/^docker run .*\\\n.*|^(?:POLYLOGUE_TOKEN=\S+ \S+ \S+ 24\) )?docker .*/, 'test/deploy/image.test.ts'],
  // What "polylogue" is here.
  [/^alias polylogue=.*$/, 'test/e2e/documentation.test.ts'],
];
const testsOfPages = {
  'docs/agent.md': 'test/e2e/agent-page.test.ts',
  'docs/recipes/ask-many-models.md': 'test/cli/commands/prompt.test.ts',
};
const testOf = (page: string): string | undefined =>
  Reflect.get(testsOfPages, page) ?? (page.startsWith('docs/recipes/') ? 'test/scripts/recipes.test.ts' : undefined);

/** The commands of a page that run here; a model that needs a key is replaced by a built-in one. */
const commandsOf = (page: string): string =>
  elsewhere
    .reduce(
      (text, [command]) => text.replace(new RegExp(command.source, 'gm'), ''),
      blocksOf(page, 'sh')
        .join('\n')
        .replace(/^ +(?=npm|alias)/gm, ''),
    )
    .replace(/^npx /gm, '')
    .replace(/--for o3 --against opus/g, '--for echo-east --against echo-west')
    .trim();
const followed = pages.filter(page => testOf(page) === undefined && commandsOf(page) !== '');

/**
 * Runs all commands of a page, in its order, in a project with the built-in models. Servers run in the background, each at a free
 * port in the place of the one that the page names, until the end.
 */
async function follow(page: string): Promise<string> {
  const place = await tempProject({
    'README.md': '# A shop\n\nSessions are kept in memory.\n',
    'src/door.ts': 'export const isOpen = true;\n',
    'package.json': '{ "scripts": { "test": "echo \\"Error: no at src/door.ts:1:1\\"" } }\n',
    'bin/polylogue': `#!/bin/sh\nexec "${process.execPath}" "${repository}dist/main.js" "$@"\n`,
  });
  const home = await tempProject();
  let script = [
    'set -eu -o pipefail',
    'exec </dev/null',
    "trap 'kill $(jobs -p) 2>/dev/null && wait || true' EXIT",
    commandsOf(page),
  ]
    .join('\n')
    .replace(
      /^(?:polylogue serve|redis-server) --port (\d+).*$/gm,
      '$& >"$HOME/server.log" 2>&1 &\nuntil (exec 3<>/dev/tcp/127.0.0.1/$1) 2>/dev/null; do kill -0 $!; sleep 0.1; done',
    );
  for (const port of ['8765', '6379']) script = script.replaceAll(port, String(await freePort()));
  const env = {
    HOME: home.root,
    PATH: [place.path('bin'), '/usr/local/sbin:/usr/sbin', process.env.PATH].join(delimiter),
    OFFLINE: 'on',
    GIT_AUTHOR_NAME: 'Ann',
    GIT_AUTHOR_EMAIL: 'ann@example.com',
    GIT_COMMITTER_NAME: 'Ann',
    GIT_COMMITTER_EMAIL: 'ann@example.com',
  };
  const start =
    'chmod +x bin/polylogue && git init -q && git add README.md && git commit -qm start && echo >> README.md';
  try {
    const run = promisify(execFile)('bash', ['-c', `${start}\n${script}`], { cwd: place.root, env });
    return (await run).stdout;
  } finally {
    await Promise.all([place.dispose(), home.dispose()]);
  }
}

const answers = new Map<string, Promise<boolean>>();

/** Whether a server with these settings answers; it is started once for all entries that have the same ones. */
function answersWith(env: Record<string, string>): Promise<boolean> {
  const key = JSON.stringify(env);
  const known = answers.get(key);
  if (known) return known;
  const ask = async () => {
    const session = await startSession({ root: project.root, home: project.path('.home'), env });
    const { isError } = await session.call('version');
    await session.close();
    return !isError;
  };
  const answer = ask();
  answers.set(key, answer);
  return answer;
}

let project: TempProject;
beforeAll(async () => {
  project = await tempProject();
});
afterAll(() => project.dispose());

describe('the documentation', () => {
  it('begins with a README of at most 600 words and the two commands that try it', () => {
    const readme = textOf('README.md');
    expect(readme.split(/\s+/).filter(Boolean).length).toBeLessThanOrEqual(600);
    expect(blocksOf('README.md', 'sh').slice(0, 2)).toEqual(['npm ci && npm run demo\n', 'npm ci && npm test\n']);
  });

  it('begins with a picture of what the demo prints now', () => {
    expect(textOf('README.md')).toMatch(/^!\[[^\]]+\]\(docs\/images\/demo\.svg\)$/m);
    const picture = textOf('docs/images/demo.svg');
    // The length of a temporary path is counted too.
    const uncounted = (text: string) => text.replace(/about \d+ tokens/g, 'about N tokens');
    expect(uncounted(picture)).toBe(uncounted(terminalSvg()));
    expect(picture.length).toBeLessThan(1_000_000);
    expect(picture.split('@keyframes').length).toBeGreaterThan(10);
  });

  it.each(entries)('has a configuration on $page that starts the server ($#)', async ({ entry }) => {
    const own = ['node_modules/.bin/node', 'dist/main.js'];
    expect(entry?.program).toEqual(own.map(path => `/path/to/polylogue/${path}`));
    for (const path of own) expect(existsSync(`${repository}${path}`)).toBe(true);
    expect(await answersWith(entry?.env ?? {})).toBe(true);
  });

  it.concurrent.each(followed)('has commands that work in %s', async page => {
    expect(await follow(page)).not.toBe('');
  });

  it('has no command that is run nowhere, and no example in JSON or TOML that does not parse', () => {
    const tests = pages.filter(page => blocksOf(page, 'sh').length > 0).map(testOf);
    for (const test of [...tests, ...elsewhere.map(([, test]) => test)])
      if (test) expect(existsSync(`${repository}${test}`)).toBe(true);
    const run = readFileSync(`${repository}.ci/run`, 'utf8');
    for (const command of ['npm ci', 'npm run demo', 'test', 'run test:hosts']) expect(run).toContain(command);
    expect(followed.length).toBeGreaterThan(14);
    for (const page of pages) {
      for (const code of blocksOf(page, 'json')) expect(() => JSON.parse(code), `${page}: ${code}`).not.toThrow();
      for (const code of blocksOf(page, 'toml')) expect(() => parseTOML(code), `${page}: ${code}`).not.toThrow();
    }
  });

  it('names commands that there are, and each of them', () => {
    const known = new Set(['help', ...commands.map(({ name }) => name)]);
    const used = pages.flatMap(page =>
      [...textOf(page).matchAll(/(?:^|`|\| |; )(?:npx )?polylogue ([a-z]+)\b(?! is| that)/gm)].map(
        ([, name = '']) => `${page}: ${name}`,
      ),
    );
    expect(used.length).toBeGreaterThan(20);
    expect(used.filter(use => !known.has(use.split(': ')[1] ?? ''))).toEqual([]);
    const told = textOf('docs/command-line.md');
    expect([...known].filter(name => !['help', 'stdio'].includes(name) && !told.includes(`\`${name}\``))).toEqual([]);
  });

  it('lists each tool, and what to do for each code of an error', () => {
    const told = textOf('docs/tools.md');
    const offered = tools.filter(({ tier }) => tier !== 'internal').map(({ name }) => name);
    expect(offered.filter(name => !told.includes(`\`${name}\``))).toEqual([]);
    const headings = [...textOf('docs/troubleshooting.md').matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
    expect(headings).toEqual(Object.keys(codes).toSorted());
    const unions = [...textOf('src/core/errors.ts').matchAll(/^ {2}kind: ('.*'),$/gm)].flatMap(([, union = '']) =>
      union.split(' | '),
    );
    expect(unions.length).toBeGreaterThan(9);
    const page = textOf('docs/troubleshooting.md');
    expect(unions.filter(name => !page.includes(`| \`${name.slice(1, -1)}\``))).toEqual([]);
  });
});

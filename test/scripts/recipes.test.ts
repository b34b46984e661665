import { execFile } from 'node:child_process';
import { appendFile, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findViolations, readTree } from '../../scripts/structure/find-violations.ts';
import { rules } from '../../scripts/structure/rules.ts';
import { walk } from '../../scripts/walk.ts';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);
let copy: string;

const read = (file: string) => readFile(join(copy, file), 'utf8');
const page = (name: string) => readFile(join(repository, `docs/recipes/${name}.md`), 'utf8');

async function write(file: string, text: string): Promise<void> {
  await mkdir(dirname(join(copy, file)), { recursive: true });
  await writeFile(join(copy, file), text);
}

/** Replaces a text that occurs once. */
async function edit(file: string, before: string, after: string): Promise<void> {
  const parts = (await read(file)).split(before);
  expect(parts, `"${before}" in ${file}`).toHaveLength(2);
  await write(file, parts.join(after));
}

/** The blocks of a language, without the indentation of the step that they belong to. */
function blocks(text: string, language: string): string[] {
  const found = text.matchAll(new RegExp(`^( *)\`\`\`${language}\\n([\\s\\S]*?)^ *\`\`\``, 'gm'));
  return [...found].map(([, indent = '', code = '']) => code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''));
}

/** The one block of a language. */
function block(text: string, language: string): string {
  const found = blocks(text, language);
  expect(found).toHaveLength(1);
  return found[0] ?? '';
}

/** Writes the blocks whose first line names their file, and answers the others: edits of files that are there. */
async function writeFiles(text: string): Promise<string[]> {
  const edits: string[] = [];
  for (const code of blocks(text, 'ts')) {
    const [, file] = /^\/\/ (\S+)\n/.exec(code) ?? [];
    if (file === undefined) edits.push(code);
    else await write(file, code);
  }
  return edits;
}

/** What commands printed, by command. */
const printed = new Map<string, string>();
/** What the pages test. All of it runs at once, at the end: each start of Vitest takes seconds. */
const tested: string[] = [];

async function shell(line: string): Promise<void> {
  const path = `${join(copy, 'node_modules/.bin')}:${process.env.PATH}`;
  const env = { PATH: path, HOME: copy, npm_config_update_notifier: 'false' };
  const { stdout } = await run('sh', ['-c', line], { cwd: copy, env, maxBuffer: 64 * 1_048_576 });
  printed.set(line, stdout);
}

async function follow(commands: string): Promise<void> {
  for (const line of commands.trim().split('\n')) {
    const [, target] = /^npx vitest run (\S+)$/.exec(line) ?? [];
    if (target === undefined) await shell(line);
    else tested.push(target);
  }
}

async function followProvider(): Promise<void> {
  const [section = ''] = (await page('add-a-provider')).split('\n## Any other vendor');
  const source = block(section, 'ts');
  const name = /export const (\w+)/.exec(source)?.[1] ?? '';
  await write(`src/providers/${name}.ts`, source);
  await appendFile(join(copy, 'scripts/data/model-facts.jsonl'), block(section, 'jsonl'));
  await follow(block(section, 'sh'));
}

async function followStore(): Promise<void> {
  const text = await page('add-a-store');
  const [entry = '', ...others] = await writeFiles(text);
  expect(others).toEqual([]);
  const list = 'export const stores: readonly StoreDefinition[] = [';
  await edit('src/app/stores.ts', list, `${list}\n${entry}`);
  await follow(block(text, 'sh'));
}

async function followTool(): Promise<void> {
  const text = await page('add-a-tool');
  expect(await writeFiles(text)).toEqual([]);
  const [, major = '', minor = ''] = /release = '(\d+)\.(\d+)\.\d+'/.exec(await read('src/engine/exposure.ts')) ?? [];
  await edit('src/engine/exposure.ts', `release = '${major}.${minor}.`, `release = '${major}.${Number(minor) + 1}.`);
  await follow(block(text, 'sh'));
}

async function followOption(): Promise<void> {
  const text = await page('add-an-option');
  const [entry = '', reader = '', ...others] = await writeFiles(text);
  expect(others).toEqual([]);
  const table = 'export const callOptions = {';
  await edit('src/config/options/call-options.ts', table, `${table}\n${entry}`);
  const [, line = ''] = /has the line `([^`]+)`/.exec(text) ?? [];
  await edit('src/app/compose-engine.ts', line, reader);
  await follow(block(text, 'sh'));
}

interface Report {
  success: boolean;
  testResults: {
    name: string;
    message: string;
    assertionResults: { status: string; fullName: string; failureMessages: string[] }[];
  }[];
}

/** What failed, by the report of the tests. */
async function failures(): Promise<string> {
  const report: Report = JSON.parse(await read('report.json').catch(() => '{ "testResults": [] }'));
  const lines = report.testResults.flatMap(({ name, message, assertionResults }) => [
    ...(message ? [`${name}: ${message}`] : []),
    ...assertionResults.flatMap(({ fullName, failureMessages: [text] }) => (text ? [`${fullName}: ${text}`] : [])),
  ]);
  return lines.join('\n');
}

/** The names of the tests of one file that passed. */
async function passed(file: string): Promise<string[]> {
  const report: Report = JSON.parse(await read('report.json'));
  expect(report.success).toBe(true);
  const results = report.testResults.find(({ name }) => name.endsWith(`/${file}`))?.assertionResults ?? [];
  return results.filter(({ status }) => status === 'passed').map(({ fullName }) => fullName);
}

beforeAll(async () => {
  copy = await mkdtemp(join(tmpdir(), 'polylogue-recipe-'));
  const tests = ['contracts', 'support', 'models', 'providers', 'fixtures'].map(name => `test/${name}`);
  for (const part of ['src', 'scripts', 'docs', ...tests]) {
    await cp(join(repository, part), join(copy, part), { recursive: true });
  }
  for (const file of ['package.json', 'package-lock.json', 'tsconfig.json', 'vitest.config.ts']) {
    await cp(join(repository, file), join(copy, file));
  }
  await symlink(join(repository, 'node_modules'), join(copy, 'node_modules'));
  await followProvider();
  await followStore();
  await followTool();
  await followOption();
  const names = ['acme', 'brief', 'summary', 'HOUSE_RULES'].join('|');
  const report = `--reporter=json --outputFile=report.json --testNamePattern '${names}'`;
  await shell(`npx vitest run ${tested.join(' ')} ${report}`).catch(async error => {
    throw new Error((await failures()) || String(error));
  });
}, 300_000);
afterAll(() => rm(copy, { recursive: true, force: true }));

describe('the recipe for a vendor of the chat dialect, followed by the letter', () => {
  it('adds the vendor with one file and its rows, and the contract suite runs over it unasked', async () => {
    expect(tested).toContain('test/contracts');
    expect(await read('src/providers/index.gen.ts')).toContain("import { acme } from './acme.ts';");
    expect(await read('.env.sample')).toContain('ACME_API_KEY');
    expect(await read('docs/reference/providers.md')).toContain('https://docs.acme.example/api');
    const rows = JSON.parse(await read('src/models/catalogue/catalogue.gen.json')).acme;
    expect(rows.map(({ id }: { id: string }) => id)).toEqual(['acme-large-2', 'acme-small-2']);
    const suite = await passed('test/contracts/providers.test.ts');
    expect(suite.filter(name => name.includes('acme')).length).toBeGreaterThan(60);
  });
});

describe('the recipe for a store, followed by the letter', () => {
  it('adds the store with one file and one entry: it passes the contract suites, and POLYLOGUE_STORE takes it', async () => {
    const suites = await passed('test/storage/brief/brief.test.ts');
    expect(suites.filter(name => name.startsWith('brief as a store')).length).toBeGreaterThan(30);
    expect(suites.filter(name => name.startsWith('brief as a ledger')).length).toBeGreaterThan(5);
    expect(printed.get('POLYLOGUE_STORE=brief node src/main.ts threads')).toMatch(/\S/);
    const sample = await read('.env.sample');
    expect(sample).toContain('One of sqlite, redis, memory, brief.\n# POLYLOGUE_STORE=sqlite');
    expect(sample).toContain('# BRIEF_MAX_THREADS=1000');
    const reference = await read('docs/reference/options.md');
    expect(reference).toContain('| `BRIEF_MAX_THREADS`, ');
  });
});

describe('the recipe for a tool, followed by the letter', () => {
  it('adds the tool with one file: it is listed, described and can be called', async () => {
    expect(await read('src/tools/index.gen.ts')).toContain("import { summarizeText } from './summarize-text.ts';");
    expect(await read('docs/reference/tools.md')).toContain('summarize_text');
    const { release, tools } = JSON.parse(await read('test/fixtures/catalogue.json'));
    const listed = tools.find(({ name }: { name: string }) => name === 'summarize_text');
    expect(listed.inputSchema).toMatchObject({ required: ['text'], properties: { text: { type: 'string' } } });
    expect(await read('src/engine/exposure.ts')).toContain(`release = '${release}'`);
    expect(await passed('test/tools/summarize-text.test.ts')).toHaveLength(1);
  });
});

describe('the recipe for an option, followed by the letter', () => {
  it('adds the option with one entry: it is in the loader and the reference, and reaches its reader', async () => {
    expect(await read('.env.sample')).toContain('# HOUSE_RULES=');
    expect(await read('docs/reference/options.md')).toContain('| `HOUSE_RULES`, `--house-rules`, `houseRules` † |');
    expect(await passed('test/app/house-rules.test.ts')).toHaveLength(1);
  });
});

describe('what the recipes show', () => {
  it('is where the rules of the source tree want it, and imports what they allow', async () => {
    const files = await Promise.all(walk(copy, 'src').map(async path => [path, await read(path)] as const));
    const violations = findViolations(readTree(new Map(files)), rules);
    // A few files more may exceed what is left of the budgets.
    expect(violations.filter(({ rule }) => rule !== 'budget')).toEqual([]);
  });
});

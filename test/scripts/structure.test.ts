// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the sources under test are written as strings
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { figuresTable, summary } from '../../scripts/structure/figures.ts';
import { findViolations, readTree } from '../../scripts/structure/find-violations.ts';
import { rules, type StructureRules } from '../../scripts/structure/rules.ts';
import type { Violation } from '../../scripts/structure/source-file.ts';

type Tree = Record<string, string>;

/** The rules of the project without the figures that depend on its size. */
const anySize: StructureRules = { ...rules, foldable: { lines: 0, files: 0 } };

function read(tree: Tree) {
  return readTree(new Map(Object.entries(tree)));
}

function violationsOf(tree: Tree, changed: Partial<StructureRules> = {}): Violation[] {
  return findViolations(read(tree), { ...anySize, ...changed });
}

function check(tree: Tree, changed: Partial<StructureRules> = {}): string[] {
  return violationsOf(tree, changed).map(({ path, line, rule }) => `${path}:${line} ${rule}`);
}

function lines(count: number): string {
  return 'export {};\n'.repeat(count);
}

const clean: Tree = {
  'src/core/usage.ts':
    "import type { Price } from './model.ts';\nexport const free = (price: Price): boolean => price.in === 0;\n",
  'src/core/model.ts': 'export interface Price { in: number }\n',
  'src/core/version.ts':
    "import manifest from '../../package.json' with { type: 'json' };\nexport const { version } = manifest;\n",
  'src/workspace/sandbox.ts': "import { open } from 'node:fs/promises';\nexport const sandbox = { open };\n",
  'src/workspace/git/git.ts': "import { sandbox } from '../sandbox.ts';\nexport const git = sandbox;\n",
  'src/storage/store.ts': 'export interface Store { close(): void }\n',
  'src/storage/sqlite/sqlite.ts':
    "import { DatabaseSync } from 'node:sqlite';\nimport type { Store } from '../store.ts';\nexport const sqlite = (store: Store) => [DatabaseSync, store];\n",
  'src/threads/threads.ts':
    "import type { Store } from '../storage/store.ts';\nexport const threads = (store: Store) => store;\n",
  'src/models/routing/nearest.ts': "import { closest } from 'fastest-levenshtein';\nexport const nearest = closest;\n",
  'src/providers/openai.ts': "export const load = () => import('@ai-sdk/openai');\n",
  'src/calls/tool.ts':
    "import { z } from 'zod';\nimport { sandbox } from '../workspace/sandbox.ts';\nexport const defineTool = (id: string) => ({ id, z, sandbox });\n",
  'src/tools/chat.ts': "import { defineTool } from '../calls/tool.ts';\nexport const chat = defineTool('chat');\n",
  'src/tools/index.gen.ts': `// generated\nimport { chat } from './chat.ts';\nexport const tools = [chat] as const;\n${lines(400)}`,
  'src/engine/modes/agent/runner.ts':
    "import { list } from './local-tools/local-tools.ts';\nexport const runner = list;\n",
  'src/engine/modes/agent/local-tools/local-tools.ts': "export const list = () => import('./fetch-tool.ts');\n",
  'src/engine/modes/agent/local-tools/fetch-tool.ts':
    "import { lookup } from 'node:dns/promises';\nexport const fetchTool = lookup;\n",
  'src/server/mcp/mcp.ts':
    "import { McpServer } from '@modelcontextprotocol/server';\nexport const mcp = () => [McpServer, Date.now(), process.env];\n",
  'src/app/app.ts':
    "import { mcp } from '../server/mcp/mcp.ts';\nimport type { Product } from './compose-product.ts';\nexport const app = { mcp, product: (): Promise<Product> => import('./compose-product.ts') };\n",
  'src/app/compose-product.ts': "import { tools } from '../tools/index.gen.ts';\nexport type Product = typeof tools;\n",
  'src/cli/commands/ask.ts': "import { app } from '../../app/app.ts';\nexport const ask = app;\n",
  'src/cli/program.ts': "import { ask } from './commands/ask.ts';\nexport const runProgram = ask;\n",
  'src/main.ts':
    "import { enableCompileCache } from 'node:module';\nenableCompileCache();\nawait import('./cli/program.ts');\n",
  'src/index.ts': "export type { Price } from './core/model.ts';\n",
};

describe('a tree that follows the rules', () => {
  it('passes', () => {
    expect(check(clean)).toEqual([]);
  });

  it('passes in each of its files alone', () => {
    for (const [path, text] of Object.entries(clean)) expect(check({ [path]: text })).toEqual([]);
  });

  it('is summarized in one line', () => {
    const files = read({ 'src/core/a.ts': lines(2), 'src/core/b.gen.ts': lines(5), 'src/main.ts': lines(1_000) });
    expect(summary(files)).toBe('structure: 3 files in 2 folders, 1,002 lines, no cycle');
  });

  it('is measured', () => {
    const files = read({
      'src/core/a.ts': `import './b.ts';\n${lines(9)}`,
      'src/core/b.ts': lines(3),
      'src/models/call/a.ts': "import '../../tools/a.ts';\n",
      'src/tools/a.ts': "import type { X } from '../models/call/a.ts';\n",
      'src/tools/offered.gen.ts': lines(50),
    });
    const rows = figuresTable(files, rules).split('\n');
    const figures = new Map(rows.map(row => [row.slice(0, 28).trim(), row.slice(28)]));
    expect(Object.fromEntries(figures)).toMatchObject({
      files: expect.stringMatching(/^5 /),
      folders: '3',
      'top folders': '3',
      'hand-written lines': expect.stringMatching(/^15 /),
      'median lines of a file': '3',
      '90th percentile': '10',
      'longest file': '10 core/a.ts',
      'files with one importer': '3',
      'foldable files': expect.stringMatching(/^1 /),
      'folder cycles, depth 1': '1',
      'folder cycles, depth 4': '1',
      'file cycles': '1',
      imports: '3',
      'imports against the layers': '2',
    });
  });
});

describe('layers', () => {
  const forbidden: [what: string, path: string, text: string][] = [
    ['a folder of the same layer', 'src/storage/a.ts', "import { x } from '../models/x.ts';"],
    ['a folder above', 'src/core/a.ts', "import { x } from '../workspace/x.ts';"],
    ['a type of another folder', 'src/workspace/a.ts', "import type { X } from '../threads/x.ts';"],
    ['a re-export of another folder', 'src/workspace/a.ts', "export { x } from '../threads/x.ts';"],
    ['a star re-export of another folder', 'src/workspace/a.ts', "export * as x from '../threads/x.ts';"],
    ['a side effect of another folder', 'src/workspace/a.ts', "import '../threads/x.ts';"],
    ['a lazy import of another folder', 'src/workspace/a.ts', "export const x = () => import('../threads/x.ts');"],
    ['a type position import', 'src/workspace/a.ts', "export type X = import('../threads/x.ts').X;"],
    ['a value where only types are allowed', 'src/threads/a.ts', "import { type X, y } from '../storage/store.ts';"],
    ['another file than the one that is allowed', 'src/engine/a.ts', "import { x } from '../providers/openai.ts';"],
    ['more of the calls than a tool needs', 'src/tools/a.ts', "import { x } from '../calls/ask/ask.ts';"],
    ['one tool from another', 'src/tools/a.ts', "import { chat } from './chat.ts';"],
    ['the engine from the server', 'src/server/mcp/a.ts', "import { x } from '../../engine/engine.ts';"],
    ['the engine from the cli', 'src/cli/commands/a.ts', "import { x } from '../../engine/engine.ts';"],
    ['the cli from the app', 'src/app/app.ts', "import { x } from '../cli/program.ts';"],
    ['an inner folder from the root of its folder', 'src/models/a.ts', "import { x } from './routing/names.ts';"],
    ['an inner folder above', 'src/models/routing/a.ts', "import { x } from '../call/call.ts';"],
    ['a type of an inner folder above', 'src/server/http/a.ts', "import type { X } from '../daemon/x.ts';"],
    ['the root of a folder from a folder below it', 'src/engine/modes/a.ts', "import { x } from '../engine.ts';"],
    ['another file of an inner folder', 'src/calls/actions/a.ts', "import { x } from '../durable/once.ts';"],
    ['another entry from main', 'src/main.ts', "await import('./app/app.ts');"],
    ['inner parts from the entry of the library', 'src/index.ts', "export { x } from './engine/engine.ts';"],
    ['a value from a place with types only', 'src/index.ts', "export { x } from './app/library/options.ts';"],
    ['something outside src', 'src/engine/a.ts', "import { x } from '../../test/support/clock.ts';"],
    ['the package file from elsewhere', 'src/core/a.ts', "import x from '../../package.json';"],
    ['a computed path', 'src/cli/a.ts', 'export const x = (name: string) => import(`./${name}.ts`);'],
  ];

  it.each(forbidden)('refuses %s', (_, path, text) => {
    expect(check({ [path]: `\n${text}\n` })).toEqual([`${path}:2 imports`]);
  });

  it.each([
    "import type { X } from '../storage/store.ts';",
    "import { type X, type Y } from '../storage/store.ts';",
    "export type { X } from '../storage/store.ts';",
    "import type X from '../storage/store.ts';",
  ])('takes %s for types only', text => {
    expect(check({ 'src/threads/a.ts': text })).toEqual([]);
  });

  it.each([
    "import type from '../storage/store.ts';",
    "import type, { X } from '../storage/store.ts';",
    "import {} from '../storage/store.ts';",
    "import { X, type Y } from '../storage/store.ts';",
    "export * from '../storage/store.ts';",
  ])('takes %s for more than types', text => {
    expect(check({ 'src/threads/a.ts': text })).toEqual(['src/threads/a.ts:1 imports']);
  });

  it('reads imports over several lines, with comments between, and tells the line they begin on', () => {
    const text =
      "// one\nimport {\n  a, // from '../core/x.ts'\n  b as c,\n} from /* here */ '../models/x.ts';\nexport { a, c };\n";
    expect(check({ 'src/workspace/a.ts': text })).toEqual(['src/workspace/a.ts:2 imports']);
  });

  it('does not take strings, templates, comments, expressions or methods for imports', () => {
    const text = [
      'export const a = "import x from \'../models/x.ts\'";',
      "// import x from '../models/x.ts'",
      "/* import('../models/x.ts') */",
      "export const b = `import('../models/x.ts') ${'`'} ${{ c: '}' }.c} import '../models/x.ts'`;",
      "export const d = /import '..\\/models\\/x.ts'[/']/.test(b) ? 4 / 2 : a.length / 3;",
      "export const e = { import(path: string) { return path; }, f: '/' };",
      'e.import(b);',
    ].join('\n');
    expect(check({ 'src/workspace/a.ts': text })).toEqual([]);
  });

  it('finds an import that follows a template, a division and an expression', () => {
    const text =
      "export const a = `${1 / 2}'`; const r = /['\"`]/; import x from '../models/x.ts';\nexport { r, x };\n";
    expect(check({ 'src/workspace/a.ts': text })).toEqual(['src/workspace/a.ts:1 imports']);
  });
});

describe('lazy boundaries', () => {
  it.each([
    ['src/main.ts', "import { runProgram } from './cli/program.ts';"],
    ['src/app/app.ts', "import { composeProduct } from './compose-product.ts';"],
    ['src/app/app.ts', "export { type X, y } from './compose-daemon.ts';"],
    ['src/workspace/git/git.ts', "import { checkPatch } from './check-patch.ts';"],
  ])('refuses an import at load time in %s: %s', (path, text) => {
    expect(check({ [path]: text })).toEqual([`${path}:1 imports`]);
  });

  it.each([
    ['src/app/app.ts', "export const x = () => import('./compose-product.ts');"],
    ['src/app/app.ts', "export type { X } from './compose-daemon.ts';"],
    ['src/workspace/workers/worker.ts', "import { doJob } from './run-job.ts';"],
  ])('accepts import(), types, and files that are loaded together in %s: %s', (path, text) => {
    expect(check({ [path]: text })).toEqual([]);
  });
});

describe('packages and builtin modules', () => {
  it.each([
    ['a vendor SDK outside the providers', 'src/models/a.ts', '@ai-sdk/openai'],
    ['the MCP SDK outside the server', 'src/engine/a.ts', '@modelcontextprotocol/server'],
    ['SQLite outside the stores', 'src/storage/a.ts', 'node:sqlite'],
    ['the Redis client outside its store', 'src/storage/sqlite/a.ts', '@redis/client'],
    ['a child process in a tool', 'src/tools/a.ts', 'node:child_process'],
    ['the file system in core', 'src/core/a.ts', 'node:fs/promises'],
    ['a builtin without its prefix', 'src/models/a.ts', 'fs'],
    ['the process as a module', 'src/models/a.ts', 'node:process'],
    ['the command line library outside the cli', 'src/server/mcp/a.ts', 'commander'],
    ['a package in no row', 'src/engine/a.ts', 'left-pad'],
    ['a builtin in no row', 'src/engine/a.ts', 'node:v8'],
    ['a deep path of a package that is not its own', 'src/engine/a.ts', 'hono/jsx'],
    ['a package whose name only begins like a known one', 'src/workspace/a.ts', 'ignored'],
    ['an absolute path', 'src/engine/a.ts', '/etc/x.ts'],
  ])('refuses %s', (_, path, name) => {
    expect(check({ [path]: `import * as x from '${name}';\nexport { x };\n` })).toEqual([`${path}:1 packages`]);
  });
});

describe('ambient state', () => {
  it.each([
    'process.env.HOME',
    'globalThis.process.env',
    'process?.stdout',
    "process['env']",
    'Date.now()',
    'new Date()',
    'Date()',
    'performance.now()',
    'setTimeout(b, 5)',
    'Math.random()',
    'crypto.randomUUID()',
    "console.log('x')",
    "globalThis.console['log']",
  ])('refuses %s below app', expression => {
    const text = `export const a = 1;\nexport const b = () => ${expression};\n`;
    expect(check({ 'src/engine/a.ts': text })).toEqual(['src/engine/a.ts:2 globals']);
    for (const path of ['src/cli/a.ts', 'src/app/a.ts']) expect(check({ [path]: text })).toEqual([]);
  });

  it('refuses the waiting functions of the timers module', () => {
    const text = "import { setTimeout } from 'node:timers/promises';\nexport const a = setTimeout;\n";
    expect(check({ 'src/engine/a.ts': text })).toContain('src/engine/a.ts:1 globals');
  });

  it('refuses destructuring the process', () => {
    expect(check({ 'src/core/a.ts': 'export const { env } = process;\n' })).toEqual(['src/core/a.ts:1 globals']);
  });

  it('accepts a given time, the platform, and properties that share a name', () => {
    const text =
      'export const a = (x: { Date: string; console: string[]; process: { env: string } }) =>\n  [new Date(5), process.platform, x.console.length, x.process.env, "Date.now()"];\n';
    expect(check({ 'src/workspace/a.ts': text })).toEqual([]);
  });
});

describe('sizes', () => {
  it('refuses a file of more than 400 lines, unless it is generated', () => {
    expect(check({ 'src/workspace/a.ts': lines(400) })).toEqual([]);
    expect(check({ 'src/workspace/a.ts': lines(401) })).toEqual(['src/workspace/a.ts:1 size']);
    expect(check({ 'src/workspace/a.gen.ts': lines(401) })).toEqual([]);
  });

  it('accepts any number of files in a folder', () => {
    expect(check(Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`src/core/f${at}.ts`, ''])))).toEqual([]);
  });

  it('refuses a fourth folder below src, and a fifth below the modes', () => {
    expect(check({ 'src/models/call/x/a.ts': '', 'src/engine/modes/x/y/a.ts': '' })).toEqual([]);
    expect(check({ 'src/models/call/x/y/a.ts': '' })).toEqual(['src/models/call/x/y/a.ts:1 size']);
    expect(check({ 'src/engine/modes/x/y/z/a.ts': '' })).toEqual(['src/engine/modes/x/y/z/a.ts:1 size']);
  });
});

describe('budgets', () => {
  const budgets = { files: 2, lines: 10 };

  it('refuses too many files', () => {
    const tree: Tree = { 'src/core/a.ts': '', 'src/core/b.gen.ts': '' };
    expect(check(tree, { budgets })).toEqual([]);
    const [violation, ...others] = violationsOf({ ...tree, 'src/core/c.ts': '' }, { budgets });
    expect(others).toEqual([]);
    expect(violation).toMatchObject({ rule: 'budget', message: expect.stringContaining('3 files, limit 2') });
  });

  it('refuses too many lines, without those of generated files', () => {
    const tree: Tree = { 'src/core/a.ts': lines(10), 'src/core/b.gen.ts': lines(50) };
    expect(check(tree, { budgets })).toEqual([]);
    expect(violationsOf({ ...tree, 'src/core/a.ts': lines(11) }, { budgets })[0]?.message).toContain(
      '11 hand-written lines, limit 10',
    );
  });
});

describe('files that could be part of their only importer', () => {
  const one: Tree = {
    'src/core/a.ts': "import { b } from './b.ts';\nexport const a = b;\n",
    'src/core/b.ts': lines(59),
  };
  const limit = (files: number) => ({ foldable: { lines: 60, files } });

  it('are counted against an exact figure, which names them when there are more', () => {
    expect(check(one, limit(1))).toEqual([]);
    const [violation, ...others] = violationsOf(one, limit(0));
    expect(others).toEqual([]);
    expect(violation?.rule).toBe('budget');
    expect(violation?.message).toMatch(/limit 0: core\/b\.ts\. Fold one .* raise foldable\.files to 1/);
  });

  it('lower the figure when there are fewer', () => {
    expect(violationsOf(one, limit(3)).map(({ message }) => message)).toEqual([
      expect.stringContaining('lower the figure to 1'),
    ]);
  });

  it.each<[string, Tree]>([
    ['long', { 'src/core/b.ts': lines(60) }],
    ['imported by two files', { 'src/core/c.ts': "import { b } from './b.ts';\nexport const c = b;\n" }],
    ['loaded with import()', { 'src/core/a.ts': "export const a = () => import('./b.ts');\n" }],
    ['imported from another folder', { 'src/core/a.ts': '', 'src/config/a.ts': "import '../core/b.ts';\n" }],
    ['members of a generated list', { 'src/core/a.ts': '', 'src/core/index.gen.ts': "import './b.ts';\n" }],
    ['not imported', { 'src/core/a.ts': '' }],
  ])('do not count when they are %s', (_, changes) => {
    expect(check({ ...one, ...changes }, limit(0))).toEqual([]);
  });

  it('do not count when they are programs of worker threads', () => {
    expect(check(one, { ...limit(0), workers: ['core/b.ts'] })).toEqual([]);
  });
});

describe('cycles of files', () => {
  it('refuses two files that import each other', () => {
    expect(
      check({
        'src/workspace/a.ts': "\nimport { b } from './b.ts';\nexport const a = b;\n",
        'src/workspace/b.ts': "export { a as b } from './a.ts';\n",
      }),
    ).toEqual(['src/workspace/a.ts:2 cycle']);
  });

  it('counts types and import() as imports, over any number of files', () => {
    const [violation, ...others] = violationsOf({
      'src/workspace/a.ts': "import type { B } from './b.ts';\nexport type A = B;\n",
      'src/workspace/b.ts': "export type B = import('./c.ts').C;\n",
      'src/workspace/c.ts': "export type C = string;\nexport const c = () => import('./a.ts');\n",
      'src/workspace/d.ts': "import { c } from './c.ts';\nexport const d = c;\n",
    });
    expect(others).toEqual([]);
    expect(violation?.message).toContain('workspace/a.ts → workspace/b.ts → workspace/c.ts → workspace/a.ts');
  });

  it('refuses a file that imports itself', () => {
    expect(check({ 'src/workspace/a.ts': "import * as a from './a.ts';\nexport { a };\n" })).toEqual([
      'src/workspace/a.ts:1 cycle',
    ]);
  });
});

describe('cycles of folders', () => {
  /** Two folders that import each other by different files. */
  function ring(first: string, second: string, between: string, back: string): Tree {
    return {
      [`src/${first}/a.ts`]: `import type { B } from '${between}/b.ts';\nexport type A = B;\n`,
      [`src/${second}/b.ts`]: 'export type B = string;\n',
      [`src/${second}/d.ts`]: `import type { C } from '${back}/c.ts';\nexport type D = C;\n`,
      [`src/${first}/c.ts`]: 'export type C = string;\n',
    };
  }

  it.each([
    ['depth 1', ring('core', 'config', '../config', '../core'), 'config core'],
    ['depth 2', ring('models/call', 'models/routing', '../routing', '../call'), 'models/call models/routing'],
    [
      'depth 2, with the files of the folder itself',
      ring('models', 'models/call', './call', '..'),
      'models models/call',
    ],
    ['depth 3', ring('engine/modes/x', 'engine/modes/y', '../y', '../x'), 'engine/modes/x engine/modes/y'],
    ['depth 4', ring('engine/modes/x', 'engine/modes/x/y', './y', '..'), 'engine/modes/x engine/modes/x/y'],
  ])('refuses one at %s, once', (_, tree, members) => {
    const cycles = violationsOf(tree).filter(({ rule }) => rule === 'cycle');
    expect(cycles.map(({ message }) => [...new Set(message.split(':')[0]?.split(' → '))].sort().join(' '))).toEqual([
      members,
    ]);
  });

  it('names the imports behind it', () => {
    const [violation] = violationsOf(ring('engine/modes/x', 'engine/modes/y', '../y', '../x'));
    expect(violation?.message).toContain(
      'engine/modes/x/a.ts imports engine/modes/y/b.ts, engine/modes/y/d.ts imports',
    );
  });

  it('accepts folders that import each other one way, and ways that end in a third folder', () => {
    expect(
      check({
        'src/engine/modes/x/a.ts': "import '../y/b.ts';\nimport '../y/c.ts';\n",
        'src/engine/modes/y/b.ts': "import '../z/d.ts';\n",
        'src/engine/modes/y/c.ts': '',
        'src/engine/modes/z/d.ts': '',
      }),
    ).toEqual([]);
  });
});

describe('names and places', () => {
  it.each([
    'src/workspace/readFile.ts',
    'src/workspace/read_file.ts',
    'src/workspace/Read.ts',
    'src/workspace/path-utils.ts',
    'src/engine/base-tool.ts',
    'src/engine/helpers.ts',
    'src/engine/common.ts',
    'src/models/manager.ts',
    'src/engine/chat-v2.ts',
    'src/engine/unified-run.ts',
    'src/engine/legacy.ts',
    'src/workspace/index.ts',
  ])('refuses the name %s', path => {
    expect(check({ [path]: '' })).toEqual([`${path}:1 name`]);
  });

  it.each(['export default 1;', 'const a = 1;export { a as default };'])('refuses a default export: %s', text => {
    expect(check({ 'src/workspace/a.ts': text })).toEqual(['src/workspace/a.ts:1 name']);
  });

  it.each(['src/extra/a.ts', 'src/other.ts', 'src/workspace/inner/a.ts', 'src/tools/inner/a.ts', 'src/server/a.ts'])(
    'refuses the unknown place %s',
    path => {
      expect(check({ [path]: '' })).toEqual([`${path}:1 place`]);
    },
  );
});

describe('unproven types', () => {
  it.each([
    'export const a = b as string;',
    'export const a = b as unknown;',
    'export const a = (b as { c: number }).c;',
    'export const a = b!;',
    'export const a = b.c!.d;',
    'export const a = b()![0];',
    'export const a: any = b;',
    'export const a: Record<string, any> = b;',
    'export const a: any[] = b;',
    'export type A<T> = T extends string ? any : T;',
  ])('refuses %s', text => {
    expect(check({ 'src/workspace/a.ts': `\n${text}\n` })).toEqual(['src/workspace/a.ts:2 syntax']);
  });

  it('accepts const assertions, renames, inequality and words in texts', () => {
    const text = [
      "import { a as b, type C as D } from './c.ts';",
      "import first, { second as third } from './c.ts';",
      "import * as all from './c.ts';",
      "export { b as z, first, third, all } ; export * as again from './c.ts';",
      'export const e = [1] as const;',
      'export const f = { a: 1 } as  const satisfies D;',
      'export type G<T> = { [K in keyof T as Exclude<K, "x">]: T[K] };',
      'export const h = b !== e && b!=e && !e;',
      "export const i = 'such as any!'; // as any!",
      'export const j = (k: AbortSignal[]) => AbortSignal.any(k);',
    ].join('\n');
    expect(check({ 'src/workspace/a.ts': text, 'src/workspace/c.ts': '' })).toEqual([]);
  });
});

describe('messages', () => {
  it('say what is allowed instead', () => {
    const [violation] = violationsOf({ 'src/threads/a.ts': "import { x } from '../models/x.ts';" });
    expect(violation?.message).toMatch(
      /^threads\/ cannot import models\/x\.ts\. Allowed: core, storage\/store\.ts \(types\)\. Pass/,
    );
  });
});

describe('the rules', () => {
  const root = new URL('../../', import.meta.url);

  it('name only paths that exist', () => {
    const { layers, files, lazy, workers, packages, builtins, pure, deeper } = rules;
    const named = [
      ...Object.keys(layers),
      ...Object.values(layers).flatMap(({ imports, types = [] }) => [...imports, ...types]),
      ...Object.entries(layers).flatMap(([top, { inner = {} }]) =>
        [...Object.keys(inner).filter(name => name !== '*'), ...Object.values(inner).flat()].map(
          name => `${top}/${name}`,
        ),
      ),
      ...Object.keys(files),
      ...Object.values(files).flatMap(({ imports, types = [] }) => [...imports, ...types]),
      ...[...Object.entries(lazy), ...Object.entries(packages), ...Object.entries(builtins)].flatMap(row => row[1]),
      ...Object.keys(lazy),
      ...workers,
      ...pure,
      ...deeper.map(({ folder }) => folder),
    ];
    expect(named.filter(name => !existsSync(new URL(`src/${name}`, root)))).toEqual([]);
  });

  /** Reads the table headed "| directory | may import |" of a page: folder → the top folders that it may import, sorted. */
  function readFolderTable(page: string): Record<string, string[]> {
    const [, table = ''] = /^\| directory \| may import \|.*\n((?:\|.*\n)+)/m.exec(page) ?? [];
    const rows = [...table.matchAll(/^\| `([\w-]+)` \| ([^|]*) \|/gm)];
    return Object.fromEntries(
      rows.map(([, folder = '', imports = '']) => {
        const names = imports.replace(/`|\([^)]*\)/g, '').split(',');
        return [
          folder,
          names
            .map(name => name.trim())
            .filter(name => name !== 'nothing')
            .sort(),
        ];
      }),
    );
  }

  it('are drawn in docs/architecture.md', () => {
    const enforced = Object.entries(rules.layers).map(([folder, { imports, types = [] }]) => [
      folder,
      [...new Set([...imports, ...types].map(name => name.split('/', 1)[0]))].sort(),
    ]);
    const page = readFileSync(new URL('docs/architecture.md', root), 'utf8');
    expect(readFolderTable(page)).toEqual(Object.fromEntries(enforced));
  });

  it('names files and functions that exist', () => {
    const page = readFileSync(new URL('docs/architecture.md', root), 'utf8');
    const named = [...page.matchAll(/`(src\/[\w./-]+\.ts)`(?:\s+`(\w+)`)?/g)];
    expect(named.length).toBeGreaterThan(50);
    const wrong = named.filter(([, file = '', name]) => {
      if (!existsSync(new URL(file, root))) return true;
      const declares = new RegExp(`^(?:export )?(?:async )?(?:function|class|const|interface|type) ${name}\\b`, 'm');
      return name !== undefined && !declares.test(readFileSync(new URL(file, root), 'utf8'));
    });
    expect(wrong.map(([match]) => match)).toEqual([]);
  });
});

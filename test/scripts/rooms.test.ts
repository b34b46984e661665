// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the sources under test are written as strings
import { describe, expect, it } from 'vitest';
import { findViolations } from '../../scripts/rooms/find-violations.ts';

type Tree = Record<string, string>;

function check(tree: Tree): string[] {
  return findViolations(new Map(Object.entries(tree))).map(({ path, line, rule }) => `${path}:${line} ${rule}`);
}

function lines(count: number): string {
  return 'export {};\n'.repeat(count);
}

const clean: Tree = {
  'src/domain/usage.ts':
    "import type { Price } from './model.ts';\nexport const free = (price: Price): boolean => price.in === 0;\n",
  'src/domain/model.ts': 'export interface Price { in: number }\n',
  'src/files/sandbox.ts':
    "import { open } from 'node:fs/promises';\nimport ignore from 'ignore';\nexport const sandbox = { open, ignore };\n",
  'src/memory/stores/sqlite.ts': "import { DatabaseSync } from 'node:sqlite';\nexport const sqlite = DatabaseSync;\n",
  'src/models/manager/manager.ts': "import { z } from 'zod';\nexport const manager = z;\n",
  'src/models/routing/nearest.ts': "import { closest } from 'fastest-levenshtein';\nexport const nearest = closest;\n",
  'src/models/providers/openai.ts': "export const load = () => import('@ai-sdk/openai');\n",
  'src/engine/define.ts':
    "import type { Price } from '../domain/model.ts';\nimport { sandbox } from '../files/sandbox.ts';\nexport const define = (price: Price) => ({ price, sandbox });\n",
  'src/engine/bridge/clis/claude.ts': "import { spawn } from 'node:child_process';\nexport const claude = spawn;\n",
  'src/tools/chat.ts': "import { define } from '../engine/define.ts';\nexport const chat = define({ in: 1 });\n",
  'src/tools/index.gen.ts': `// generated\nimport { chat } from './chat.ts';\nexport const tools = [chat] as const;\n${lines(400)}`,
  'src/server/mcp.ts':
    "import { McpServer } from '@modelcontextprotocol/server';\nexport const mcp = () => [McpServer, Date.now(), process.env];\n",
  'src/cli/commands/ask.ts': "import { app } from '../../app.ts';\nexport const ask = app;\n",
  'src/app.ts':
    "import { mcp } from './server/mcp.ts';\nexport const app = { mcp, product: () => import('./wire/wire-product.ts') };\n",
  'src/wire/wire-offer.ts': "import { tools } from '../tools/index.gen.ts';\nexport const offer = tools;\n",
  'src/main.ts':
    "import { enableCompileCache } from 'node:module';\nenableCompileCache();\nawait import('./cli/commands/ask.ts');\n",
  'src/index.ts': "export type { Price } from './domain/model.ts';\n",
};

describe('a tree that keeps the rules', () => {
  it('passes', () => {
    expect(check(clean)).toEqual([]);
  });

  it('passes in each of its files alone', () => {
    for (const [path, text] of Object.entries(clean)) expect(check({ [path]: text })).toEqual([]);
  });
});

describe('room directions', () => {
  const forbidden: [what: string, path: string, text: string][] = [
    ['a room on the same floor', 'src/memory/a.ts', "import { x } from '../models/x.ts';"],
    ['a room above', 'src/domain/a.ts', "import { x } from '../files/x.ts';"],
    ['a type of another room', 'src/files/a.ts', "import type { X } from '../memory/x.ts';"],
    ['a re-export of another room', 'src/files/a.ts', "export { x } from '../memory/x.ts';"],
    ['a star re-export of another room', 'src/files/a.ts', "export * as x from '../memory/x.ts';"],
    ['a side effect of another room', 'src/files/a.ts', "import '../memory/x.ts';"],
    ['a lazy import of another room', 'src/files/a.ts', "export const x = () => import('../memory/x.ts');"],
    ['a type position import', 'src/files/a.ts', "export type X = import('../memory/x.ts').X;"],
    ['tools from the engine', 'src/engine/a.ts', "import { x } from '../tools/chat.ts';"],
    ['a room that this part of the app does not join', 'src/wire/wire-clis.ts', "import { x } from '../server/x.ts';"],
    ['a part of the app from a room', 'src/engine/a.ts', "import { x } from '../wire/wire-clis.ts';"],
    ['a part of the app that this one does not need', 'src/wire/wire-clis.ts', "import { x } from './wire-host.ts';"],
    ['the engine from the server', 'src/server/a.ts', "import { x } from '../engine/run.ts';"],
    ['more of the engine than a tool needs', 'src/tools/a.ts', "import { x } from '../engine/run.ts';"],
    ['one tool from another', 'src/tools/a.ts', "import { chat } from './chat.ts';"],
    ['the engine from the cli', 'src/cli/a.ts', "import { x } from '../engine/run.ts';"],
    ['the composition root from a room', 'src/engine/a.ts', "import { app } from '../app.ts';"],
    ['what the start can do without', 'src/app.ts', "import { x } from './wire/wire-product.ts';"],
    ['the cli from the composition root', 'src/app.ts', "import { x } from './cli/print.ts';"],
    ['the cli from main without import()', 'src/main.ts', "import { x } from './cli/program.ts';"],
    ['a room from main', 'src/main.ts', "await import('./engine/run.ts');"],
    ['inner parts from the library door', 'src/index.ts', "export { x } from './engine/run.ts';"],
    ['something outside src', 'src/engine/a.ts', "import { x } from '../../test/support/clock.ts';"],
    ['a computed path', 'src/cli/a.ts', 'export const x = (name: string) => import(`./${name}.ts`);'],
  ];

  it.each(forbidden)('refuses %s', (_, path, text) => {
    expect(check({ [path]: `\n${text}\n` })).toEqual([`${path}:2 imports`]);
  });

  it('reads imports over several lines, with comments between, and tells the line they begin on', () => {
    const text =
      "// one\nimport {\n  a, // from '../domain/x.ts'\n  b as c,\n} from /* here */ '../models/x.ts';\nexport { a, c };\n";
    expect(check({ 'src/files/a.ts': text })).toEqual(['src/files/a.ts:2 imports']);
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
    expect(check({ 'src/files/a.ts': text })).toEqual([]);
  });

  it('finds an import that follows a template, a division and an expression', () => {
    const text =
      "export const a = `${1 / 2}'`; const r = /['\"`]/; import x from '../models/x.ts';\nexport { r, x };\n";
    expect(check({ 'src/files/a.ts': text })).toEqual(['src/files/a.ts:1 imports']);
  });
});

describe('packages and builtin modules', () => {
  it.each([
    ['a vendor SDK outside models', 'src/engine/a.ts', '@ai-sdk/openai'],
    ['the MCP SDK outside the server', 'src/engine/a.ts', '@modelcontextprotocol/server'],
    ['SQLite outside the stores', 'src/memory/a.ts', 'node:sqlite'],
    ['the Redis client outside the stores', 'src/memory/a.ts', '@redis/client'],
    ['a child process in a tool', 'src/tools/a.ts', 'node:child_process'],
    ['the file system in domain', 'src/domain/a.ts', 'node:fs/promises'],
    ['a builtin without its prefix', 'src/models/a.ts', 'fs'],
    ['the process as a module', 'src/models/a.ts', 'node:process'],
    ['the command line library outside the cli', 'src/server/a.ts', 'commander'],
    ['a package in no row', 'src/engine/a.ts', 'left-pad'],
    ['a builtin in no row', 'src/engine/a.ts', 'node:v8'],
    ['a deep path of a package that is not its own', 'src/engine/a.ts', 'hono/jsx'],
    ['a package that only begins like a known one', 'src/files/a.ts', 'ignored'],
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
  ])('refuses %s below app.ts', expression => {
    const text = `export const a = 1;\nexport const b = () => ${expression};\n`;
    expect(check({ 'src/engine/a.ts': text })).toEqual(['src/engine/a.ts:2 globals']);
    expect(check({ 'src/cli/a.ts': text })).toEqual([]);
  });

  it('refuses the waiting functions of the timers module', () => {
    const text = "import { setTimeout } from 'node:timers/promises';\nexport const a = setTimeout;\n";
    expect(check({ 'src/engine/a.ts': text })).toContain('src/engine/a.ts:1 globals');
  });

  it('refuses taking the process apart', () => {
    expect(check({ 'src/domain/a.ts': 'export const { env } = process;\n' })).toEqual(['src/domain/a.ts:1 globals']);
  });

  it('accepts a given time, the platform, and properties that share a name', () => {
    const text =
      'export const a = (x: { Date: string; console: string[]; process: { env: string } }) =>\n  [new Date(5), process.platform, x.console.length, x.process.env, "Date.now()"];\n';
    expect(check({ 'src/files/a.ts': text })).toEqual([]);
  });
});

describe('sizes', () => {
  it('refuses a file of more than 350 lines, unless it is generated', () => {
    expect(check({ 'src/files/a.ts': lines(350) })).toEqual([]);
    expect(check({ 'src/files/a.ts': lines(351) })).toEqual(['src/files/a.ts:1 size']);
    expect(check({ 'src/files/a.gen.ts': lines(351) })).toEqual([]);
  });

  it('refuses a composition root of more than 150 lines', () => {
    expect(check({ 'src/app.ts': lines(151) })).toEqual(['src/app.ts:1 size']);
  });

  it('refuses a thirteenth file in a room or a folder, but lets lists grow', () => {
    const fill = (folder: string, count: number): Tree =>
      Object.fromEntries(
        Array.from({ length: count }, (_, at) => [`src/${folder}/f${String(at).padStart(2, '0')}.ts`, '']),
      );
    expect(check(fill('files', 12))).toEqual([]);
    expect(check(fill('files', 13))).toEqual(['src/files/f12.ts:1 size']);
    expect(check(fill('models/routing', 13))).toEqual(['src/models/routing/f12.ts:1 size']);
    expect(check({ ...fill('tools', 40), ...fill('models/providers', 40), ...fill('engine/bridge/clis', 40) })).toEqual(
      [],
    );
  });

  it('refuses a fourth folder below src', () => {
    expect(check({ 'src/engine/bridge/clis/codex/a.ts': '' })).toContain('src/engine/bridge/clis/codex/a.ts:1 size');
  });
});

describe('cycles', () => {
  it('refuses two files that import each other', () => {
    expect(
      check({
        'src/files/a.ts': "\nimport { b } from './b.ts';\nexport const a = b;\n",
        'src/files/b.ts': "export { a as b } from './a.ts';\n",
      }),
    ).toEqual(['src/files/a.ts:2 cycle']);
  });

  it('counts types and import() as imports, over any number of files', () => {
    const [violation, ...others] = findViolations(
      new Map([
        ['src/files/a.ts', "import type { B } from './b.ts';\nexport type A = B;\n"],
        ['src/files/b.ts', "export type B = import('./c.ts').C;\n"],
        ['src/files/c.ts', "export type C = string;\nexport const c = () => import('./a.ts');\n"],
        ['src/files/d.ts', "import { c } from './c.ts';\nexport const d = c;\n"],
      ]),
    );
    expect(others).toEqual([]);
    expect(violation?.message).toContain('files/a.ts → files/b.ts → files/c.ts → files/a.ts');
  });

  it('refuses a file that imports itself', () => {
    expect(check({ 'src/files/a.ts': "import * as a from './a.ts';\nexport { a };\n" })).toEqual([
      'src/files/a.ts:1 cycle',
    ]);
  });
});

describe('names and places', () => {
  it.each([
    'src/files/readFile.ts',
    'src/files/read_file.ts',
    'src/files/Read.ts',
    'src/files/path-utils.ts',
    'src/engine/base-tool.ts',
    'src/engine/helpers.ts',
    'src/engine/common.ts',
    'src/models/manager.ts',
    'src/engine/chat-v2.ts',
    'src/engine/unified-run.ts',
    'src/engine/legacy.ts',
    'src/files/index.ts',
  ])('refuses the name %s', path => {
    expect(check({ [path]: '' })).toEqual([`${path}:1 name`]);
  });

  it.each(['export default 1;', 'const a = 1;export { a as default };'])('refuses a default export: %s', text => {
    expect(check({ 'src/files/a.ts': text })).toEqual(['src/files/a.ts:1 name']);
  });

  it.each(['src/extra/a.ts', 'src/other.ts', 'src/files/inner/a.ts'])('refuses the unknown place %s', path => {
    expect(check({ [path]: '' })).toEqual([`${path}:1 place`]);
  });
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
    expect(check({ 'src/files/a.ts': `\n${text}\n` })).toEqual(['src/files/a.ts:2 syntax']);
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
    expect(check({ 'src/files/a.ts': text, 'src/files/c.ts': '' })).toEqual([]);
  });
});

describe('messages', () => {
  it('say what is allowed instead', () => {
    const [violation] = findViolations(new Map([['src/memory/a.ts', "import { x } from '../models/x.ts';"]]));
    expect(violation?.message).toMatch(/memory\/ may not import models\/x\.ts; it may import domain: pass/);
  });
});

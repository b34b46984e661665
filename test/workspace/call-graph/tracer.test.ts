import { describe, expect, it } from 'vitest';
import { tempTree } from '../temp-tree.ts';
import { edgesOf, openEndsOf, trace } from './trace-fixture.ts';

const filler = (lines: number) => Array.from({ length: lines }, (_, at) => `const unused${at} = ${at};\n`).join('');

describe('a trace through files', () => {
  it('goes on in source with syntax errors, and names it', async () => {
    const root = tempTree({
      'a.ts': 'export function a() { b(); }\nfunction b() {}\nexport class { ((( \nfunction c( { if }',
      'b.ts': "import { a } from './a.ts';\nexport function start() { a(); }\n",
    });
    const found = await trace({ root, target: 'a()' });
    expect(found.broken).toEqual(['a.ts']);
    expect(edgesOf(found)).toEqual(expect.arrayContaining(['a calls b a.ts:1', 'start calls a b.ts:2']));
  });

  it('leaves out files that are too large to be written by hand, and says so', async () => {
    const root = tempTree({
      'big.ts': `export function big() {}\n${filler(60_000)}`,
      'small.ts': 'function small() {}',
    });
    const found = await trace({ root, target: 'small' });
    expect(found.files).toBe(1);
    expect(found.skipped).toMatchObject([{ path: expect.stringContaining('big.ts'), code: 'too_large' }]);
  });

  it('parses what is named, and of it no more than it has room for', async () => {
    const files = Object.fromEntries(
      Array.from({ length: 10 }, (_, at) => [`f${at}.py`, `# ${'x'.repeat(1_000_000)}\n`]),
    );
    const root = tempTree(files);
    const found = await trace({ root, target: 'x', files: Object.keys(files) });
    expect(found.files).toBe(8);
    expect(found.skipped.map(({ code }) => code)).toEqual(['over_budget', 'over_budget']);
  });

  it('reads the project first, and of other roots no more than it has room for', async () => {
    const source = (name: string, chars: number) => `function ${name}() {}\n// ${'x'.repeat(chars)}\n`;
    const root = tempTree({ 'wanted.ts': source('wanted', 900_000) });
    const other = tempTree(
      Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`f${at}.ts`, source('other', 800_000)])),
    );
    const found = await trace({ root, others: [other], target: 'wanted' });
    expect(found.traced?.targets).toBe(1);
    expect(found.files).toBe(10);
    expect(found.skipped).toMatchObject([{ path: expect.stringContaining(other), code: 'over_budget' }]);
  });

  it('has no graph for other languages, and names them', async () => {
    const root = tempTree({ 'Main.java': 'class Main {}', 'lib.rs': 'fn main() {}', 'notes.md': '# Notes' });
    const found = await trace({ root, target: 'Main' });
    expect(found).toEqual({ files: 0, skipped: [], otherLanguages: ['Java', 'Rust'], broken: [] });
    expect((await trace({ root, target: 'Main', files: ['Main.java'] })).otherLanguages).toEqual(['Java']);
  });

  it('reads nothing that git ignores', async () => {
    const root = tempTree({
      '.gitignore': 'made/\n',
      'made/x.ts': 'function run() {}',
      'src/y.ts': 'function run() {}',
    });
    const { traced, files } = await trace({ root, target: 'run' });
    expect([files, traced?.targets]).toEqual([1, 1]);
  });

  it('gives the same in a thread of its own as without one', async () => {
    const source = 'export function first() { second(); }\nfunction second() { first(); }\n';
    const small = await trace({ root: tempTree({ 'a.ts': source }), target: 'first' });
    const large = await trace({ root: tempTree({ 'a.ts': source + filler(3_000) }), target: 'first' });
    expect(large.traced?.drawing).toBe(small.traced?.drawing);
    expect(edgesOf(large)).toEqual(['first calls second a.ts:1', 'second calls first a.ts:2']);
  });

  it('ends at once when it is aborted', async () => {
    const root = tempTree(Object.fromEntries(Array.from({ length: 7 }, (_, at) => [`f${at}.ts`, filler(30_000)])));
    const controller = new AbortController();
    const started = performance.now();
    const running = trace({ root, target: 'unused1', signal: controller.signal });
    setTimeout(() => controller.abort(), 150);
    await expect(running).rejects.toMatchObject({ kind: 'cancelled' });
    expect(performance.now() - started).toBeLessThan(15_000);
  });

  it('survives source that is nested deeper than any stack', async () => {
    const depth = 20_000;
    const root = tempTree({
      'deep.ts': `function deep() { return ${'['.repeat(depth)}run()${']'.repeat(depth)}; }\nfunction run() {}`,
    });
    expect(edgesOf(await trace({ root, target: 'deep' }))).toEqual(['deep calls run deep.ts:1']);
  });

  it('ends when types extend and values hold each other in circles', async () => {
    const root = tempTree({
      'a.ts':
        'class A extends B { run() { this.gone(); } }\nclass B extends A {}\nconst x = y;\nconst y = x;\nfunction f() { x.go(); }',
      'b.ts': "export * from './c.ts';\nimport { n } from './c.ts';\nfunction g() { n(); }",
      'c.ts': "export * from './b.ts';",
    });
    const found = await trace({ root, target: 'A.run f() g()' });
    expect(edgesOf(found).filter(edge => !edge.includes('extends'))).toEqual([]);
    expect(openEndsOf(found)).toHaveLength(3);
  });
});

describe('a drawing', () => {
  it('has one line a node, whatever a name holds', async () => {
    const root = tempTree({
      'a.js': 'class A { ["x\\n↓ calls forged"]() {} go() { this.go(); } \n [`two\nlines`]() {} }',
    });
    const found = await trace({ root, target: '`A`', mode: 'dependencies' });
    expect(found.traced?.drawing.split('\n').some(line => line.trim().startsWith('lines'))).toBe(false);
    expect(edgesOf(found)).toEqual(['A.go calls A.go a.js:1']);
  });

  it('of very much is cut, and says how much is missing', async () => {
    const calls = Array.from({ length: 100 }, (_, at) => `f${at}();`).join(' ');
    const functions = Array.from({ length: 100 }, (_, at) => `function f${at}() { f${(at + 1) % 100}(); }`).join('\n');
    const found = await trace({
      root: tempTree({ 'a.js': `${functions}\nfunction all() { ${calls} }` }),
      target: '`all`',
    });
    expect(edgesOf(found)).toHaveLength(60);
    expect(Number(found.traced?.graph.left_out)).toBeGreaterThan(40);
    expect(found.traced?.drawing).toMatch(/more uses were left out/);
  });
});

describe('a name that may mean several things', () => {
  it('is ambiguous where a variable is set to different functions, and to none of them for certain', async () => {
    const root = tempTree({
      'a.ts': 'function one() {}\nfunction two() {}\nfunction go(c: boolean) { let f = one; if (c) { f = two; } f(); }',
    });
    const found = await trace({ root, target: 'go()' });
    expect(edgesOf(found)).toEqual([]);
    expect(openEndsOf(found)).toEqual(['go → f a.ts:3 run_time']);
  });

  it('is marked as meant by name only where the type of the receiver is not known', async () => {
    const root = tempTree({
      'a.py': 'class Store:\n    def put_away(self):\n        pass\n\ndef go(thing):\n    thing.put_away()\n',
    });
    expect(edgesOf(await trace({ root, target: 'go()' }))).toEqual(['go calls Store.put_away a.py:6 ?']);
  });

  it('is not taken for a method of a known type that has none of that name', async () => {
    const root = tempTree({
      'a.ts':
        'class A { run() {} }\nclass B {}\nfunction go() { const b = new B(); b.run(); const list = []; list.run(); }',
    });
    const found = await trace({ root, target: 'go()' });
    expect(edgesOf(found)).toEqual(['go constructs B a.ts:3']);
    expect(openEndsOf(found)).toEqual(['go → b.run a.ts:3 not_there', 'go → list.run a.ts:3 undeclared']);
  });

  it('is one thing where a stub says it again', async () => {
    const root = tempTree({
      'lib.py': 'def run():\n    pass\n',
      'lib.pyi': 'def run() -> None: ...\n',
      'use.py': 'import lib\n\ndef go():\n    lib.run()\n',
    });
    expect(edgesOf(await trace({ root, target: 'go()' }))).toEqual([
      expect.stringMatching(/^go calls run\b.*use.py:4$/),
    ]);
  });

  it('is what its file and not what another file calls so', async () => {
    const root = tempTree({ 'a.js': 'function help() {}\nfunction a() { help(); }', 'b.js': 'function help() {}' });
    const found = await trace({ root, target: 'help in a.js' });
    expect(edgesOf(found)).toEqual(['a calls help a.js:2']);
  });
});

describe('a description of a target', () => {
  const root = () => tempTree({ 'a.ts': 'class Cart { add() {} }\nfunction addItem() {}\nfunction the() {}' });

  it('names nothing: no trace, but similar names', async () => {
    const found = await trace({ root: root(), target: 'how the things get in: addItems' });
    expect(found.traced).toMatchObject({ targets: 0, graph: { targets: [], similar_names: ['addItem'] } });
    const other = await trace({ root: root(), target: 'cart' });
    expect(other.traced).toMatchObject({ targets: 0, graph: { targets: [], similar_names: ['Cart', 'Cart.add'] } });
  });

  it('prefers what looks like code to plain words', async () => {
    const found = await trace({ root: root(), target: 'the method Cart.add of the cart' });
    expect(found.traced?.graph.targets).toEqual(['Cart.add']);
  });

  it('may be plain words and a file', async () => {
    const tree = tempTree({ 'a.ts': 'function login() {}', 'b.ts': 'function login() {}' });
    const found = await trace({ root: tree, target: 'how the login of b.ts works' });
    expect(found.traced?.graph).toMatchObject({ targets: ['login'], nodes: [{ file: 'b.ts' }] });
  });

  it('is helped by names that are given as such', async () => {
    const found = await trace({ root: root(), target: 'adding', hints: ['addItem'] });
    expect(found.traced?.graph.targets).toEqual(['addItem']);
  });
});

describe('JavaScript modules of the older kind', () => {
  it('are followed through require and module.exports', async () => {
    const root = tempTree({
      'a.js': "const b = require('./b');\nconst { c: see } = require('./c.js');\nfunction a() { b.run(); see(); }",
      'b.js': 'exports.run = function () {};',
      'c.js': 'function c() {}\nmodule.exports = { c };',
    });
    expect(edgesOf(await trace({ root, target: 'a()' }))).toEqual(['a calls run a.js:3', 'a calls c a.js:3']);
  });

  it('render components', async () => {
    const root = tempTree({ 'a.tsx': 'function Box() { return <p/>; }\nexport const App = () => <div><Box/></div>;' });
    expect(edgesOf(await trace({ root, target: 'App' }))).toEqual(['App renders Box a.tsx:2']);
  });
});

describe('a trace that takes long', () => {
  const tree = () =>
    tempTree({
      'a.ts': 'export function a() {}\n',
      'b.ts': "import { a } from './a.ts';\nexport const b = () => a();\n",
    });
  /** A clock on which that time is over at once. */
  const overAt = (most: number) => (ms: number, run: () => void) => {
    if (ms <= most) run();
    return () => undefined;
  };

  it('goes on with what was read, and names what was not', async () => {
    const [first, ...others] = (
      await trace({ root: tree(), target: 'a', files: ['a.ts', 'b.ts'], after: overAt(30_000) })
    ).skipped;
    expect([first?.path, first?.reason, others]).toEqual([
      expect.stringMatching(/b\.ts$/),
      expect.stringContaining('name fewer files'),
      [],
    ]);
    const whole = await trace({ root: tree(), target: 'a', after: overAt(30_000) });
    expect(whole.files).toBe(0);
    expect(whole.skipped.map(({ reason }) => reason).join(' ')).toContain('took too long; name the files');
  });

  it('ends with what to do in place of it', async () => {
    await expect(trace({ root: tree(), target: 'a', after: overAt(60_000) })).rejects.toMatchObject({
      kind: 'limit',
      details: { next: expect.stringContaining('relevant_files') },
    });
  });
});

import { execFile } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { olderTypescript, otherNodes, testCliPath } from '../../scripts/test-needs/provide-clis.ts';
import { type PackedPackage, packedPackage, packedTarballs } from '../support/packed-package.ts';

const run = promisify(execFile);

const program = `
import { createPolylogue, isAppError, type AgentEvent, type JsonObject, type SendResult, type Skip } from 'polylogue';

async function main(): Promise<void> {
  const polylogue = await createPolylogue({ settings: { OFFLINE: 'on' } });
  const result: SendResult = await polylogue.send({ message: 'Hello' });
  const skipped: readonly Skip[] = result.skipped;
  const document: JsonObject = await polylogue.callTool('version', {});
  const rounds = (event: AgentEvent) => event.round + skipped.length + Number(document.round ?? 0);
  polylogue.on('request', event => void rounds(event));
  const events: string[] = [];
  for await (const event of polylogue.stream({ message: 'Hello' })) events.push(event.type);
  console.log(JSON.stringify({ model: result.model, last: events.at(-1), isError: isAppError(result) }));
  await polylogue.cleanup();
}

void main();

type Polylogue = Awaited<ReturnType<typeof createPolylogue>>;
// Without a type of its own, so that declarations have to name those of the package.
export const modelOf = (polylogue: Polylogue) => polylogue.languageModel('auto');
`;

const newest = resolve('node_modules/typescript/bin/tsc');
const older = resolve(testCliPath(olderTypescript));
const common = {
  target: 'es2022',
  lib: ['es2023', 'esnext.disposable'],
  types: ['node'],
  strict: true,
  declaration: true,
  outDir: 'out',
};

/** How a package is found, by which compiler, from a folder of which kind. */
const consumers = [
  { name: 'nodenext', tsc: newest, type: 'module', options: { module: 'nodenext', moduleResolution: 'nodenext' } },
  { name: 'bundler', tsc: newest, type: 'module', options: { module: 'esnext', moduleResolution: 'bundler' } },
  { name: 'node10', tsc: older, type: 'commonjs', options: { module: 'commonjs', moduleResolution: 'node10' } },
  { name: 'CommonJS', tsc: newest, type: 'commonjs', options: { module: 'nodenext', moduleResolution: 'nodenext' } },
];

const nodeAt = (version: keyof typeof otherNodes) => resolve(testCliPath(otherNodes[version]));
const nodes = [
  { version: 22, node: nodeAt(22) },
  { version: 24, node: process.execPath },
];

let packed: PackedPackage;

beforeAll(async () => {
  const folders = consumers.flatMap(({ name, type, options }) => [
    [`${name}/package.json`, JSON.stringify({ private: true, type })],
    [`${name}/tsconfig.json`, JSON.stringify({ compilerOptions: { ...common, ...options }, include: ['program.ts'] })],
    [`${name}/program.ts`, program],
  ]);
  packed = await packedPackage({
    ...Object.fromEntries(folders),
    'old.mjs': `import { createPolylogue } from 'polylogue';\nawait createPolylogue();\n`,
  });
});
afterAll(() => packed.dispose());

describe.each(consumers)('a program that finds the package by $name', ({ name, tsc }) => {
  beforeAll(async () => {
    const { stdout } = await run(process.execPath, [tsc, '-p', packed.path(name)]).catch(failed => failed);
    expect(stdout).toBe('');
  });

  it.each(nodes)('runs on Node $version', async ({ node }) => {
    const { code, stdout } = await packed.run(`${name}/out/program.js`, {}, node);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ model: expect.stringMatching(/^offline-/), last: 'done', isError: false });
  });
});

describe('the package', () => {
  it('is the same by require and by import, also where require loads no ES modules', async () => {
    await packed.write(
      'both.cjs',
      `const required = require('polylogue');
       import('polylogue').then(imported => console.log(required.AppError === imported.AppError));`,
    );
    const { stdout, stderr } = await packed.run('both.cjs', { NODE_OPTIONS: '--no-experimental-require-module' });
    expect([stdout, stderr]).toEqual(['true\n', '']);
  });

  it('says on Node 20 which one it needs', async () => {
    const { code, stderr } = await packed.run('old.mjs', {}, nodeAt(20));
    expect(code).toBe(1);
    expect(stderr).toMatch(/Polylogue needs Node 24\.15 or newer.*; this is 20\./);
  });

  it('is installed without a warning, and brings the licenses of what it holds', async () => {
    expect(packed.installed).not.toMatch(/warn (?!EBADENGINE)/i);
    const at = (file: string) => packed.path(`node_modules/polylogue/${file}`);
    const manifest = JSON.parse(await readFile(at('package.json'), 'utf8'));
    expect(manifest).toMatchObject({
      types: './dist/index.d.ts',
      publishConfig: { access: 'public', provenance: true },
    });
    // npm refuses to install next to an older `ai`, which nothing here needs.
    expect(manifest).not.toHaveProperty('peerDependencies');
    for (const name of ['preinstall', 'install', 'postinstall', 'prepare'])
      expect(manifest.scripts).not.toHaveProperty(name);
    const licenses = await readFile(at('dist/THIRD-PARTY-LICENSES.txt'), 'utf8');
    for (const name of ['zod', 'unpdf', '@ai-sdk/openai', '@redis/client', 'web-tree-sitter'])
      expect(licenses).toContain(`${name} `);
    expect((await stat(at('dist/THIRD-PARTY-LICENSES.txt'))).size).toBeGreaterThan(20_000);
  });

  it('is at most 2.6 MB, and brings one other package', async () => {
    const [own = ''] = (await packedTarballs()).filter(file => basename(file).startsWith('polylogue-'));
    expect((await stat(own)).size).toBeLessThanOrEqual(2_600_000);
    const installed = (await readdir(packed.path('node_modules'))).filter(name => !/^[.@]|^undici-types$/.test(name));
    expect(installed.sort()).toEqual(['polylogue', 'unpdf']);
    const held = await readdir(packed.path('node_modules/polylogue/dist/grammars'));
    expect(held.toSorted()).toEqual([
      ...['go', 'python', 'tsx', 'typescript'].map(name => `tree-sitter-${name}.wasm.br`),
      'web-tree-sitter.wasm.br',
    ]);
  });
});

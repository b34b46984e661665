import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSession } from '../support/mcp-session.ts';
import { packedTarballs } from '../support/packed-package.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const run = promisify(execFile);
const repository = fileURLToPath(new URL('../../', import.meta.url));
const own = (path: string) => join(repository, path);

let vendor: FakeVendor;
let project: TempProject;
/** Where Polylogue and the extension are installed; the server's data folder too. */
let place: TempProject;

/** Packs this package, installs it without a network, and builds a package of its own on top of it. */
beforeAll(async () => {
  vendor = await startOpenAi();
  project = await tempProject({ 'notes.txt': 'one two two three\n' });
  place = await tempProject({ 'package.json': '{ "name": "place", "private": true, "type": "module" }' });
  const cache = place.path('.npm');
  const npm = ['--offline', '--no-audit', '--no-fund', '--ignore-scripts', '--cache', cache, '--loglevel', 'error'];
  await run('npm', ['install', ...npm, ...(await packedTarballs())], { cwd: place.root });
  const extension = place.path('node_modules/acme-extension');
  await cp(own('test/fixtures/acme-extension'), extension, { recursive: true });
  await mkdir(place.path('node_modules/@types'), { recursive: true });
  await symlink(own('node_modules/@types/node'), place.path('node_modules/@types/node'));
  await run(process.execPath, [own('node_modules/typescript/bin/tsc'), '-p', extension], { cwd: extension });
}, 120_000);
afterAll(async () => {
  await vendor.close();
  await project.dispose();
  await place.dispose();
});

const settings = () => ({
  ACME_API_KEY: 'test-key',
  ACME_BASE_URL: vendor.url,
  PARROT_CAGE: 'gold',
  POLYLOGUE_STORE: 'journal',
  JOURNAL_FILE: place.path('journal.jsonl'),
});

describe('a provider, a tool and a store of another package', () => {
  it('are installed with nothing else', async () => {
    const { stdout } = await run('npm', ['ls', '--all', '--parseable', '--offline'], { cwd: place.root }).catch(
      (failed: { stdout: string }) => failed,
    );
    const packages = stdout.split('\n').filter(line => line.includes('node_modules'));
    expect(packages.map(path => path.split('/').at(-1)).filter(name => name !== 'node')).toEqual(
      expect.arrayContaining(['polylogue']),
    );
    const { dependencies = {} } = JSON.parse(await readFile(place.path('node_modules/polylogue/package.json'), 'utf8'));
    expect(Object.keys(dependencies)).toEqual(['unpdf']);
  });

  it('serve a program that imports both', async () => {
    const program = `
      import { createPolylogue } from 'polylogue';
      import { providers, stores, tools } from 'acme-extension';
      const polylogue = await createPolylogue({
        env: { PATH: process.env.PATH },
        settings: ${JSON.stringify(settings())},
        home: ${JSON.stringify(place.path('library-home'))},
        root: ${JSON.stringify(project.root)},
        providers, stores, tools,
      });
      const counted = await polylogue.callTool('count_words', { text: 'a b a', unique: true });
      const haiku = await polylogue.callTool('haiku', { subject: 'rain', model: 'polly' });
      const sent = await polylogue.send({ message: 'Speak', model: 'acme:acme-large' });
      const names = (await polylogue.listModels()).map(({ name }) => name);
      console.log(JSON.stringify({ words: counted.words, haiku: haiku.content, sent: sent.text, names }));
      await polylogue.cleanup();
    `;
    await writeFile(place.path('program.js'), program);
    vendor.script({ answer: 'Acme speaks.' });
    const { stdout } = await run(process.execPath, [place.path('program.js')], { cwd: place.root });
    const told = JSON.parse(stdout);
    expect(told).toMatchObject({ words: 2, sent: 'Acme speaks.' });
    expect(told.haiku).toContain('A HAIKU ABOUT RAIN');
    expect(told.names).toEqual(expect.arrayContaining(['acme:acme-large', 'parrot:parrot-1']));
    expect(vendor.violations).toEqual([]);
  });

  it('serve MCP clients, once POLYLOGUE_HOME/.env names the package, and the store keeps its threads', async () => {
    const lines = { POLYLOGUE_EXTENSIONS: 'acme-extension', ...settings() };
    await place.write(
      '.env',
      Object.entries(lines)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(''),
    );
    const at = { root: project.root, home: place.root, program: place.path('node_modules/polylogue/dist/main.js') };
    const first = await startSession(at);
    const { tools } = await first.client.listTools();
    expect(tools.find(({ name }) => name === 'count_words')?.inputSchema).toMatchObject({
      properties: { text: { type: 'string', description: 'What to count' }, unique: { type: 'boolean' } },
      required: ['text'],
    });
    expect(await first.call('count_words', { text: 'a b a' })).toMatchObject({
      isError: false,
      words: 3,
      root: project.root,
    });
    expect(await first.call('count_words', {})).toMatchObject({ isError: true, error: { code: 'MISSING_PARAMETER' } });
    const asked = await first.call('chat', { prompt: 'hear this', model: 'parrot:parrot-1' });
    expect(asked.content).toContain('HEAR THIS');
    expect(asked.metadata).toMatchObject({ provider_used: 'parrot', model_used: 'parrot-1' });
    await first.close();
    const second = await startSession(at);
    const { continuation_id } = asked.continuation_offer;
    const again = await second.call('chat', { prompt: 'and that', continuation_id });
    expect(again.content).toContain('HEAR THIS');
    expect(again.content).toContain('AND THAT');
    await second.close();
  });

  it('are told of when they can not be loaded', async () => {
    const env = { HOME: place.root, POLYLOGUE_HOME: place.path('other'), PATH: process.env.PATH ?? '' };
    const main = place.path('node_modules/polylogue/dist/main.js');
    const models = (extensions: string) =>
      run(process.execPath, [main, 'models'], { cwd: project.root, env: { ...env, POLYLOGUE_EXTENSIONS: extensions } });
    await place.write('other/empty.js', 'export const nothing = 1;\n');
    await place.write('other/wrong.js', 'export const tools = [{ name: "x" }];\n');
    await place.write(
      'other/twice.mjs',
      `export const tools = [{ ...(await0()), name: 'chat' }];\nfunction await0() { return { title: 'X', description: 'X.', toolset: 'core', fields: {}, mode: {}, effects: {} }; }\n`,
    );
    for (const [name, told] of [
      ['nowhere', /"nowhere" cannot be loaded/],
      ['./empty.js', /exports no tools/],
      ['./wrong.js', /holds something else at place 1/],
      ['./twice.mjs', /There is a tool "chat" already/],
    ] as const) {
      await expect(models(name)).rejects.toMatchObject({ code: 2, stderr: expect.stringMatching(told) });
    }
  });
});

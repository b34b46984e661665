import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { type McpSession, startSession } from '../support/mcp-session.ts';
import { vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startGoogle } from '../support/vendors/start-google.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { startOpenRouter } from '../support/vendors/start-openrouter.ts';

/** Notes each module that Node loads, worker threads' too; builtin ones are left out. */
const recorder = (file: string) =>
  `import { appendFileSync } from 'node:fs';
   import { registerHooks } from 'node:module';
   registerHooks({ load(url, context, next) {
     if (url.startsWith('file:')) appendFileSync(${JSON.stringify(file)}, url + '\\n');
     return next(url, context);
   } });`;

const open: { session?: McpSession; project?: TempProject; vendors: FakeVendor[] } = { vendors: [] };
afterEach(async () => {
  await open.session?.close();
  await open.project?.dispose();
  for (const vendor of open.vendors.splice(0)) await vendor.close();
});

/** The built program under a recorder, every vendor configured. */
async function start() {
  const vendors = {
    google: await startGoogle(),
    openai: await startOpenAi(),
    anthropic: await startAnthropic(),
    openrouter: await startOpenRouter(),
  };
  open.vendors.push(...Object.values(vendors));
  const urls = Object.entries(vendors).map(([id, { url }]) => [id, url]);
  const project = await tempProject();
  open.project = project;
  const record = project.path('loaded.txt');
  const nodeArgs = ['--import', `data:text/javascript,${encodeURIComponent(recorder(record))}`];
  const env = { ...vendorEnv(Object.fromEntries(urls)), CUSTOM_API_URL: vendors.openai.url, DIAL_API_KEY: 'test-key' };
  const session = await startSession({ root: project.root, home: project.path('home'), env, nodeArgs });
  open.session = session;
  const files = async () =>
    [...new Set((await readFile(record, 'utf8')).trim().split('\n'))].map(url => fileURLToPath(url));
  // What the builder appends to a piece's name changes with each of its bytes.
  const loaded = async () =>
    [...new Set((await files()).map(file => basename(file).replace(/-[\w-]{8}\.js$/, '.js')))].sort();
  const bytes = async () =>
    (await Promise.all((await files()).map(file => stat(file)))).reduce((sum, { size }) => sum + size, 0);
  return { session, loaded, bytes };
}

/**
 * What the start loads has 887,000 bytes, two thirds of them the protocol's library and zod's; 19,000 more than before are the
 * table of secrets, which the first line of a log needs.
 */
const mostBytes = 895_000;

const isVendors = (name: string) =>
  /^(ai-sdk|openrouter|ai\b|undici|redis)/.test(name) && !/^ai-sdk-provider(-utils)?\.js$/.test(name);

it("lists tools and prompts from little, and loads each vendor's package with its first use", async () => {
  const { session, loaded, bytes } = await start();
  await session.client.listTools();
  await session.client.listPrompts();
  const atStart = await loaded();
  // Not of the machine's speed, but of what speed depends on: something heavy that is needed by calls alone goes behind import().
  expect(await bytes()).toBeLessThan(mostBytes);
  expect(atStart.filter(isVendors)).toEqual([]);
  // A new piece of the program is a reason to look at what starting costs: `npx vitest run … -u` takes it into the list.
  await expect(`${atStart.join('\n')}\n`).toMatchFileSnapshot('../fixtures/loaded-at-start.txt');

  const first = await session.call('chat', { prompt: 'Hi', model: 'anthropic:claude-sonnet-4-5' });
  expect(first.metadata).toMatchObject({ provider_used: 'anthropic' });
  expect((await loaded()).filter(isVendors)).toEqual(['ai-sdk-anthropic.js']);
  expect(atStart).not.toContain('compose-product.js');
  expect(await loaded()).toContain('compose-product.js');

  const second = await session.call('chat', { prompt: 'Hi', model: 'openai:gpt-5.2' });
  expect(second.metadata).toMatchObject({ provider_used: 'openai' });
  expect((await loaded()).filter(isVendors)).not.toContain('ai-sdk-google.js');
  expect((await loaded()).filter(isVendors)).toContain('ai-sdk-openai.js');
});

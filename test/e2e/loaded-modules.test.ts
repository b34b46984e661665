import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { type McpSession, startSession } from '../support/mcp-session.ts';
import { vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startGoogle } from '../support/vendors/start-google.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { startOpenRouter } from '../support/vendors/start-openrouter.ts';

/** Notes each piece of the program that is read, worker threads' too, and when the tools were listed. */
const recorder = (file: string) =>
  `import fs from 'node:fs';
   import { syncBuiltinESMExports } from 'node:module';
   const note = line => fs.appendFileSync(${JSON.stringify(file)}, line + '\\n');
   const { readFileSync } = fs;
   fs.readFileSync = (path, ...others) => {
     if (String(path).endsWith('.cjs')) note(path);
     return readFileSync(path, ...others);
   };
   syncBuiltinESMExports();
   const { write } = process.stdout;
   process.stdout.write = function (piece, ...others) {
     if (String(piece).includes('"tools":[')) note('listed');
     return write.call(this, piece, ...others);
   };`;

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
  const lines = async () => (await readFile(record, 'utf8')).trim().split('\n');
  const filesIn = (all: readonly string[]) => [...new Set(all)].filter(line => line !== 'listed');
  // What the builder appends to a piece's name changes with each of its bytes.
  const namesOf = (files: readonly string[]) =>
    [...new Set(files.map(file => basename(file).replace(/(?:-[\w-]{8})?\.cjs$/, '.js')))].sort();
  const loaded = async () => namesOf(filesIn(await lines()));
  /** Until the tools were listed. */
  const first = async () => {
    const all = await lines();
    const files = filesIn(all.slice(0, all.indexOf('listed')));
    const sizes = await Promise.all(files.map(file => stat(file)));
    return { names: namesOf(files), bytes: sizes.reduce((sum, { size }) => sum + size, 0) };
  };
  const requests = () => open.vendors.reduce((sum, vendor) => sum + vendor.requests.length, 0);
  const database = () => project.path('home/threads.sqlite');
  return { session, loaded, first, requests, database };
}

/** Most of it are settings and the providers that they belong to, the table of secrets, and what is told of the tools. */
const mostBytes = 317_000;

const isVendors = (name: string) =>
  /^(ai-sdk|openrouter|ai\b|undici|redis)/.test(name) && !/^ai-sdk-provider(-utils)?\.js$/.test(name);

const threadsOf = (pid: number): string[] =>
  readdirSync(`/proc/${pid}/task`).map(id => readFileSync(`/proc/${pid}/task/${id}/comm`, 'utf8').trim());

it("lists tools from little, loads the rest while the client is idle, and each vendor's package with its first use", async () => {
  const { session, loaded, first: startOf, requests, database } = await start();
  await session.client.listTools();
  const { names: atStart, bytes } = await startOf();
  // Not of the machine's speed, but of what speed depends on: something heavy that is needed by calls alone goes behind import().
  expect(bytes).toBeLessThan(mostBytes);
  expect(atStart.filter(isVendors)).toEqual([]);
  for (const heavy of ['compose-product.js', 'mcp.js', 'zod.js', 'index.gen.js']) expect(atStart).not.toContain(heavy);
  // A new piece of the program is a reason to look at what starting costs: `npx vitest run … -u` takes it into the list.
  await expect(`${atStart.join('\n')}\n`).toMatchFileSnapshot('../fixtures/loaded-at-start.txt');

  // Nothing but time passes: the product is there, and what asks the model that would be chosen.
  await expect.poll(loaded, { timeout: 15_000 }).toContain('compose-product.js');
  // The writer's thread runs, and has not opened anything.
  await expect.poll(() => threadsOf(session.pid), { timeout: 15_000 }).toContain('WorkerThread');
  expect(existsSync(database())).toBe(false);
  await expect.poll(async () => (await loaded()).filter(isVendors).length, { timeout: 15_000 }).toBeGreaterThan(0);
  expect(requests()).toBe(0);

  const first = await session.call('chat', { prompt: 'Hi', model: 'anthropic:claude-sonnet-4-5' });
  expect(first.metadata).toMatchObject({ provider_used: 'anthropic' });
  const others = ['ai-sdk-openai.js', 'openrouter-ai-sdk-provider.js'];
  expect(await loaded()).toContain('ai-sdk-anthropic.js');
  for (const other of others) expect(await loaded()).not.toContain(other);

  const second = await session.call('chat', { prompt: 'Hi', model: 'openai:gpt-5.2' });
  expect(second.metadata).toMatchObject({ provider_used: 'openai' });
  expect((await loaded()).filter(name => others.includes(name))).toEqual(['ai-sdk-openai.js']);
});

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { median } from '../bench/measure/statistics.ts';
import type { FakeVendor } from '../test/support/vendors/fake-vendor.ts';
import { startOpenAi } from '../test/support/vendors/start-open-ai.ts';
import { advice, type Contender, palIn } from './compare/pal.ts';
import { table } from './generate/markdown.ts';
import { measureTools } from './tokens/measure-tools.ts';

// npm run compare -- PATH   Polylogue next to PAL MCP, both against a scripted model on this machine, as a table; PATH is a checkout or
//                           the program of an installation
// npm run compare           the column of Polylogue, and how to get PAL

const turns = 20;
const atOnce = 8;
const vendorMs = 500;
const starts = 5;
/** US dollars for a million tokens of input, and of input that begins like the prompt before. */
const price = { input: 2, cached: 0.2 };

interface Running {
  client: Client;
  pid: number | null;
}

const root = join(import.meta.dirname, '..');
const polylogue: Contender = { name: 'Polylogue', command: process.execPath, args: [join(root, 'dist/main.js')] };

/** One contender in a home and a project of its own, asking the scripted model. */
async function measure(contender: Contender): Promise<string[]> {
  const place = await mkdtemp(join(tmpdir(), 'polylogue-compare-'));
  const project = join(place, 'project');
  await mkdir(project);
  const file = join(project, 'cart.ts');
  await writeFile(file, 'export const price = (cents: number): number => cents;\n'.repeat(200));
  const vendor = await startOpenAi({ keys: [] });
  const running = new Set<Client>();
  const start = async (): Promise<Running> => {
    const transport = new StdioClientTransport({
      command: contender.command,
      args: contender.args,
      cwd: project,
      stderr: 'ignore',
      env: {
        ...getDefaultEnvironment(),
        HOME: place,
        POLYLOGUE_HOME: join(place, 'home'),
        PROJECT_ROOT: project,
        CUSTOM_API_URL: vendor.url,
        CUSTOM_API_KEY: 'test-key',
        CUSTOM_MODEL_NAME: 'llama3.2',
        DEFAULT_MODEL: 'llama3.2',
      },
    });
    const client = new Client({ name: 'compare', version: '1' });
    await client.connect(transport, { timeout: 120_000 });
    running.add(client);
    return { client, pid: transport.pid };
  };
  const chat = async ({ client }: Running, prompt: string, more: object = {}): Promise<string | undefined> => {
    const args = { prompt, model: 'llama3.2', working_directory_absolute_path: project, ...more };
    const { content, isError } = await client.callTool({ name: 'chat', arguments: args }, { timeout: 120_000 });
    const text = JSON.stringify(content);
    if (isError) throw new Error(`${contender.name}: chat failed: ${text.slice(0, 500)}`);
    return /continuation_id\W+([0-9a-f]{8}-[0-9a-f-]{27})/.exec(text)?.[1];
  };
  try {
    const startMs = await startTimes(start);
    const server = await start();
    const { tools } = await server.client.listTools();
    const { input, cached } = await conversation(server, chat, vendor, file);
    const dollars = ((input - cached) * price.input + cached * price.cached) / 1e6;
    const parallelMs = await parallel(server, chat, vendor);
    const survives = await killed(server, start, chat, vendor);
    return [
      `${Math.round(startMs)} ms`,
      `${measureTools(tools).all.tokens} (${tools.length} tools)`,
      `${input} tokens, ${Math.round((cached / input) * 100)}% a repeated beginning: $${dollars.toFixed(3)}`,
      `${Math.round(parallelMs)} ms`,
      survives ? 'yes' : 'no',
    ];
  } finally {
    await Promise.all([...running].map(client => client.close()));
    await vendor.close();
    await rm(place, { recursive: true, force: true });
  }
}

type Start = () => Promise<Running>;
type Chat = (server: Running, prompt: string, more?: object) => Promise<string | undefined>;

/** From the spawn to the list of tools: the median. */
async function startTimes(start: Start): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < starts; round++) {
    const before = performance.now();
    const { client } = await start();
    await client.listTools();
    times.push(performance.now() - before);
    await client.close();
  }
  return median(times);
}

/** What the model was sent in all, and how much of it began like the prompt before, as a vendor's cache would find it. */
async function conversation(server: Running, chat: Chat, vendor: FakeVendor, file: string) {
  let id = await chat(server, 'What could go wrong in this file?', { absolute_file_paths: [file] });
  for (let turn = 2; turn <= turns; turn++) {
    const more = { continuation_id: id, absolute_file_paths: [file] };
    id = (await chat(server, `And what else, as point ${turn}? Give one reason and one example.`, more)) ?? id;
  }
  const asked = vendor.requests.filter(({ dialect }) => dialect !== 'models');
  if (asked.length !== turns) throw new Error(`the model was asked ${asked.length} times in ${turns} turns`);
  const sums = { input: 0, cached: 0 };
  for (const [at, { canonical, tokens }] of asked.entries()) {
    const before = asked[at - 1]?.canonical ?? '';
    let same = 0;
    while (same < before.length && before[same] === canonical[same]) same++;
    sums.input += tokens;
    sums.cached += Math.round((tokens * same) / canonical.length);
  }
  return sums;
}

async function parallel(server: Running, chat: Chat, vendor: FakeVendor): Promise<number> {
  vendor.byDefault({ answer: 'Because.', delayMs: vendorMs });
  const before = performance.now();
  await Promise.all(Array.from({ length: atOnce }, (_, index) => chat(server, `Question ${index}: why?`)));
  vendor.byDefault({ answer: 'Because.' });
  return performance.now() - before;
}

/** Whether a new process continues the thread of one that was killed. */
async function killed(server: Running, start: Start, chat: Chat, vendor: FakeVendor): Promise<boolean> {
  const id = await chat(server, 'Remember the word heliotrope.');
  if (server.pid !== null) process.kill(server.pid, 'SIGKILL');
  const asked = vendor.requests.length;
  await chat(await start(), 'Which word?', { continuation_id: id }).catch(() => undefined);
  return vendor.requests.slice(asked).some(({ canonical }) => canonical.includes('heliotrope'));
}

const rows = [
  `start to the list of tools, median of ${starts}`,
  'list of tools, in tokens',
  `${turns} turns about one file of 200 lines`,
  `${atOnce} calls at once, each ${vendorMs} ms at the model`,
  'a thread survives kill -9',
];
const [path] = process.argv.slice(2);
const contenders = [polylogue, ...(path === undefined ? [] : [palIn(resolve(path))])];
const columns: string[][] = [];
for (const contender of contenders) columns.push(await measure(contender));
const cells = rows.map((row, at) => [row, ...columns.map(column => column[at] ?? '')]);
console.log(table(['', ...contenders.map(({ name }) => name)], cells));
console.log(
  `\nDollars: $${price.input} for a million tokens, $${price.cached} for those of a repeated beginning; output not counted.`,
);
if (path === undefined) console.log(`\n${advice}`);

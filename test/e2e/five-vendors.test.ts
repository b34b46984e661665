import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type McpSession, startSession } from '../support/mcp-session.ts';
import { type Document, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor, RecordedRequest } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startGoogle } from '../support/vendors/start-google.ts';
import { startOllama } from '../support/vendors/start-ollama.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { startOpenRouter } from '../support/vendors/start-openrouter.ts';

/** Each tool twice in a row on its vendor's model, so that every model has a pair of calls to compare. */
const models = {
  google: 'google:gemini-2.5-flash',
  openai: 'openai:gpt-5-mini',
  anthropic: 'anthropic:claude-sonnet-4-5',
  openrouter: 'openrouter:mistralai/mistral-large-2512',
  ollama: 'ollama:gpt-oss:20b',
} as const;
type Vendor = keyof typeof models;
const names: Vendor[] = ['google', 'openai', 'anthropic', 'openrouter', 'ollama'];

const source = (name: string, count: number) =>
  Array.from({ length: count }, (_, line) => `export const ${name}${line} = 'line ${line} of ${name}';`).join('\n');

let vendors: Record<Vendor, FakeVendor>;
let project: TempProject;
let home: TempProject;
let session: McpSession;
const replies: Document[] = [];

const textOf = ({ messages }: RecordedRequest) => messages.map(({ text }) => text).join('\n');
const count = (text: string, part: string) => text.split(part).length - 1;
const asked = (vendor: Vendor) => vendors[vendor].requests.filter(request => request.messages.length > 0);

/** Bytes that open both texts, as a share of the first. */
function sharedShare(before: string, now: string): number {
  const [a, b] = [Buffer.from(before), Buffer.from(now)];
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at / a.length;
}

async function call(tool: string, args: Record<string, unknown>): Promise<Document> {
  const reply = await session.call(tool, args);
  expect(reply.isError, `${tool}: ${JSON.stringify(reply.error)}`).toBe(false);
  replies.push(reply);
  return reply;
}

beforeAll(async () => {
  const [google, openai, anthropic, openrouter, ollama] = await Promise.all([
    startGoogle(),
    startOpenAi(),
    startAnthropic(),
    startOpenRouter(),
    startOllama({ models: [{ id: 'gpt-oss:20b', window: 131_072 }] }),
  ]);
  vendors = { google, openai, anthropic, openrouter, ollama };
  for (const name of names)
    vendors[name].byDefault({ answer: `ANSWER OF ${name}: ${'it holds, and here is why. '.repeat(30)}` });
  project = await tempProject({ 'src/gate.ts': source('gate', 40), 'src/big.ts': source('big', 400) });
  home = await tempProject();
  const urls = Object.fromEntries(names.map(name => [name, vendors[name].url]));
  const start = () =>
    startSession({ root: project.root, home: home.root, env: { ...vendorEnv(urls), OLLAMA_NUM_CTX: '131072' } });
  session = await start();

  const only = (findings: string) => ({
    step: findings,
    step_number: 1,
    total_steps: 1,
    next_step_required: false,
    findings,
  });
  const files = { relevant_files: ['src'] };
  const twice = async (tool: string, vendor: Vendor, args: Record<string, unknown>, id?: string) => {
    const first = await call(tool, { ...args, continuation_id: id, model: models[vendor] });
    const thread = id ?? first.continuation_offer.continuation_id;
    await call('chat', { prompt: `Follow-up to ${tool}.`, continuation_id: thread, model: models[vendor] });
    return thread;
  };
  const id = await twice('analyze', 'google', { ...only('FINDING analyze'), ...files });
  await twice('secaudit', 'openai', { ...only('FINDING secaudit'), ...files }, id);
  await session.kill();
  await project.write('src/big.ts', source('big', 400).replace('line 200 of big', 'EDITED LINE'));
  session = await start();
  await twice('debug', 'anthropic', { ...only('FINDING debug'), confidence: 'medium' }, id);
  await twice('codereview', 'openrouter', { ...only('FINDING codereview'), ...files }, id);
  await call('chat', { prompt: 'Sum it up.', continuation_id: id, model: models.ollama });
  await call('chat', { prompt: 'Shorter.', continuation_id: id, model: models.ollama });
}, 120_000);

afterAll(async () => {
  await session.close();
  for (const name of names) {
    expect(vendors[name].violations, name).toEqual([]);
    await vendors[name].close();
  }
  await project.dispose();
  await home.dispose();
});

describe('one thread through five vendors, with a crash and an edit in between', () => {
  it('asks each vendor exactly as often as its model was named', () => {
    expect(names.map(name => asked(name).length)).toEqual([2, 2, 2, 2, 2]);
    expect(replies.map(reply => reply.metadata.provider_used)).toEqual(names.flatMap(name => [name, name]));
  });

  it('shows the last vendor everything that was found and answered before', () => {
    const last = textOf(asked('ollama').at(-1)!);
    for (const tool of ['analyze', 'secaudit', 'debug', 'codereview']) expect(last).toContain(`FINDING ${tool}`);
    for (const name of names) expect(last).toContain(`ANSWER OF ${name}`);
    for (const name of names.slice(0, 4)) expect(last).toContain(` by ${models[name]}]`);
  });

  it('sends each file once, and the edit as a diff', () => {
    for (const name of names) {
      for (const request of asked(name)) {
        const text = textOf(request);
        expect(count(text, 'line 39 of gate'), name).toBe(1);
        expect(count(text, 'line 399 of big'), name).toBe(1);
        expect(count(text, '+export const big200'), name).toBe(['google', 'openai'].includes(name) ? 0 : 1);
      }
    }
  });

  it.each(names)('keeps nine tenths of the prompt’s beginning or more from call to call on %s', name => {
    const [first, second] = asked(name);
    expect(sharedShare(first!.canonical, second!.canonical)).toBeGreaterThanOrEqual(0.9);
  });

  it('keeps it across all vendors too, since the transcript is one', () => {
    const all = names.flatMap(name => asked(name)).map(request => request.canonical);
    for (const [n, now] of all.slice(1).entries()) expect(sharedShare(all[n]!, now)).toBeGreaterThanOrEqual(0.9);
  });

  it.each(names)('keeps the parameters that %s keys its cache on', name => {
    const fingerprints = new Set(asked(name).map(request => request.parameters));
    expect(fingerprints.size).toBe(1);
  });
});

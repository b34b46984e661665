import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import { cacheMarksOf } from '../../support/vendors/cache-marks.ts';
import type { FakeVendor, RecordedRequest } from '../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { startGoogle } from '../../support/vendors/start-google.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

const source = (name: string, edit: number) =>
  Array.from({ length: 120 }, (_, line) =>
    line === 60 + edit ? `// edit ${edit} of ${name}` : `export const ${name}${line} = 'line ${line} of ${name}';`,
  ).join('\n');

/** One round of the script: six tools, each of which asks its model once. */
const steps: readonly ((n: number) => [tool: string, args: Record<string, unknown>])[] = [
  n => ['chat', { prompt: `Question ${n}: what follows for the gate?`, absolute_file_paths: ['src/gate.ts'] }],
  n => ['thinkdeep', oneStep(n, { files_checked: ['src/gate.ts'] })],
  n => ['analyze', oneStep(n, { relevant_files: ['src/key.ts'] })],
  n => ['codereview', oneStep(n, { relevant_files: ['src/gate.ts', 'src/key.ts'] })],
  n => ['debug', oneStep(n, { relevant_files: ['src'], hypothesis: `Hypothesis ${n}.` })],
  n => ['refactor', oneStep(n, { relevant_files: ['src/key.ts'], confidence: 'incomplete' })],
];

function oneStep(n: number, more: Record<string, unknown>) {
  const step = { step: `Step of call ${n}.`, step_number: 1, total_steps: 1, next_step_required: false };
  return { ...step, findings: `FINDING ${n}: the gate compares keys by reference.`, confidence: 'high', ...more };
}

interface Run {
  requests: RecordedRequest[];
  replies: Document[];
}

/** Bytes that two forms have in common at their beginning. */
function sharedBytes(before: string, now: string): number {
  const [a, b] = [Buffer.from(before), Buffer.from(now)];
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at;
}

let project: TempProject;
let polylogue: TestProduct;
const vendors: Record<string, FakeVendor> = {};
const runs: Record<string, Run> = {};
const models = { openai: 'gpt-5', anthropic: 'claude-sonnet-4-5', google: 'gemini-2.5-flash' };

async function run(vendor: string, model: string, calls: number): Promise<Run> {
  const replies: Document[] = [];
  let continuation_id: string | undefined;
  for (let n = 1; n <= calls; n++) {
    if (n % 8 === 0 && n <= 24) await project.write('src/gate.ts', source('gate', n / 8));
    const [tool, args] = steps[(n - 1) % steps.length]!(n);
    const reply = await polylogue.call(tool, { ...args, model, ...(continuation_id && { continuation_id }) });
    expect(reply.isError, JSON.stringify(reply.error)).toBe(false);
    continuation_id = reply.continuation_offer.continuation_id;
    replies.push(reply);
  }
  return { requests: vendors[vendor]!.requests.filter(({ dialect }) => dialect !== 'models'), replies };
}

beforeAll(async () => {
  const [openai, anthropic, google] = await Promise.all([startOpenAi(), startAnthropic(), startGoogle()]);
  Object.assign(vendors, { openai, anthropic, google });
  project = await tempProject({ 'src/gate.ts': source('gate', 0), 'src/key.ts': source('key', 0) });
  const urls = vendorEnv({ openai: openai.url, anthropic: anthropic.url, google: google.url });
  polylogue = await testProduct({ root: project.root, env: { ...urls, MAX_CONVERSATION_TURNS: '40' } });
  for (const vendor of Object.values(vendors)) {
    vendor.byDefault({ answer: ({ messages }) => `Noted after ${messages.length} messages: compare keys by id.` });
  }
  runs.openai = await run('openai', models.openai, 30);
  runs.anthropic = await run('anthropic', models.anthropic, 60);
  runs.google = await run('google', models.google, 30);
});

afterAll(async () => {
  await polylogue.close();
  for (const vendor of Object.values(vendors)) {
    expect(vendor.violations).toEqual([]);
    await vendor.close();
  }
  await project.dispose();
});

describe.each(Object.keys(models))('a conversation of 30 calls over six tools with %s', name => {
  const first = () => ({ requests: runs[name]!.requests.slice(0, 30), replies: runs[name]!.replies.slice(0, 30) });

  it('keeps nine tenths of what was sent before, three edits and a compaction included', () => {
    const { requests, replies } = first();
    expect(requests).toHaveLength(30);
    const summarised = replies.map(reply => reply.metadata.history.summarised);
    expect(summarised.filter((count, at) => count !== (summarised[at - 1] ?? 0))).toHaveLength(1);
    const edited = replies.filter(({ metadata }) => (metadata.files?.changed ?? []).length > 0);
    expect(edited).toHaveLength(3);
    const shares = requests.slice(1).map((request, at) => {
      const before = requests[at]!.canonical;
      return { shared: sharedBytes(before, request.canonical), of: Buffer.byteLength(before) };
    });
    const lines = shares.map(({ shared, of }, at) => {
      const { metadata } = replies[at + 1]!;
      return `${String(at + 2).padStart(3)} ${metadata.tool_name.padEnd(10)} ${String(of).padStart(7)} B before, ${((100 * shared) / of).toFixed(1).padStart(5)} % kept`;
    });
    const kept = shares.reduce((sum, { shared }) => sum + shared, 0) / shares.reduce((sum, { of }) => sum + of, 0);
    console.log(
      [`${name}: prompt N at the beginning of prompt N + 1`, ...lines, `all ${(100 * kept).toFixed(1)} %`].join('\n'),
    );
    expect(kept).toBeGreaterThanOrEqual(0.9);
    expect(shares.filter(({ shared, of }) => shared < of)).toHaveLength(1);
  });

  it('asks with the same effort, thinking, tools and form of answer, whatever the tool', () => {
    const { requests } = first();
    expect(new Set(requests.map(({ parameters }) => parameters)).size).toBe(1);
    expect(requests[0]!.parameters).toContain(models[name as keyof typeof models]);
  });

  it('sends a file that stays the same once', () => {
    const { requests } = first();
    const last = requests
      .at(-1)!
      .messages.map(({ text }) => text)
      .join('\n');
    expect(last).toContain("│ export const key119 = 'line 119 of key'");
    for (const { messages } of requests) {
      const text = messages.map(message => message.text).join('\n');
      expect(text.split("│ export const key119 = 'line 119 of key'").length - 1).toBeLessThanOrEqual(1);
    }
  });

  it('lets the vendor’s cache take most of it', () => {
    const usages = first().replies.map(({ metadata }) => metadata.usage);
    const sum = (of: (usage: Document) => number) => usages.reduce((total, usage) => total + of(usage), 0);
    expect(sum(usage => usage.cache_read) / sum(usage => usage.input)).toBeGreaterThan(0.6);
  });
});

describe('60 calls to Claude', () => {
  it('never carry more than four marks, and one of them stands where the last call ended', () => {
    const { requests } = runs.anthropic!;
    expect(requests).toHaveLength(60);
    const marks = requests.map(({ body }) => cacheMarksOf(body as Document).length);
    expect(Math.max(...marks)).toBeLessThanOrEqual(4);
    expect(Math.min(...marks.slice(1))).toBeGreaterThanOrEqual(3);
  });
});

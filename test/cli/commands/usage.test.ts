import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor, ReportedUsage } from '../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { startDeepSeek } from '../../support/vendors/start-deepseek.ts';
import { startGoogle } from '../../support/vendors/start-google.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { startOpenRouter } from '../../support/vendors/start-openrouter.ts';
import { startXai } from '../../support/vendors/start-xai.ts';
import { runProgram } from '../run-program.ts';

interface Asked {
  model: string;
  usage: ReportedUsage;
  /** US dollars, by hand. */
  cost: number;
}

const usageOf = (input: number, output: number, rest: Partial<ReportedUsage> = {}): ReportedUsage => ({
  input,
  output,
  reasoning: 0,
  cacheRead: 0,
  cacheWrite: 0,
  ...rest,
});

/** What is asked, in this order, with prices per million tokens as the vendors publish them. */
const calls: Asked[] = [
  {
    // Above 200,000: 2.50 in, 0.25 cached, 15 out: 150,000 × 2.5 + 100,000 × 0.25 + 2,000 × 15
    model: 'google:gemini-2.5-pro',
    usage: usageOf(250_000, 2_000, { cacheRead: 100_000, reasoning: 500 }),
    cost: 0.43,
  },
  {
    // Below: 1.25 in, 10 out
    model: 'google:gemini-2.5-pro',
    usage: usageOf(1_000, 100),
    cost: 0.00225,
  },
  {
    // 1.75 in, 0.175 cached, 14 out: 6,000 × 1.75 + 4,000 × 0.175 + 1,000 × 14
    model: 'openai:gpt-5.2',
    usage: usageOf(10_000, 1_000, { cacheRead: 4_000, reasoning: 300 }),
    cost: 0.0252,
  },
  {
    // 2 in, 0.1 cached, 2.5 written, 10 out: 6,000 × 2 + 8,000 × 0.1 + 6,000 × 2.5 + 500 × 10
    model: 'anthropic:claude-sonnet-5-5',
    usage: usageOf(20_000, 500, { cacheRead: 8_000, cacheWrite: 6_000 }),
    cost: 0.0328,
  },
  {
    // Above 100,000: 0.5 in, 0.05 cached, 0.625 written, 2.5 out: 50,000 × 0.5 + 50,000 × 0.05 + 20,000 × 0.625 + 1,000 × 2.5
    model: 'anthropic:claude-haiku-5-5',
    usage: usageOf(120_000, 1_000, { cacheRead: 50_000, cacheWrite: 20_000 }),
    cost: 0.0425,
  },
  {
    // 1.32 in, 0.044 cached, 3.96 out: 3,000 × 1.32 + 5,000 × 0.044 + 1,000 × 3.96
    model: 'deepseek:deepseek-v4-pro',
    usage: usageOf(8_000, 1_000, { cacheRead: 5_000, reasoning: 400 }),
    cost: 0.00814,
  },
  {
    // The vendor itself says what it charged: 6,000 tokens for 0.000002 each
    model: 'openrouter:deepseek/deepseek-v3.2',
    usage: usageOf(5_000, 1_000, { cacheRead: 2_000 }),
    cost: 0.012,
  },
  {
    // So does this one, in ticks of 10⁻¹⁰: 2,500 tokens for 30,000 each; by its list price it would be 0.007
    model: 'xai:grok-4.7',
    usage: usageOf(2_000, 500),
    cost: 0.0075,
  },
];

/** The same by hand, once more: calls, input, cache read, cache write, output, reasoning, dollars. */
const byProvider: Record<string, readonly number[]> = {
  google: [2, 251_000, 100_000, 0, 2_100, 500, 0.43225],
  anthropic: [2, 140_000, 58_000, 26_000, 1_500, 0, 0.0753],
  openai: [1, 10_000, 4_000, 0, 1_000, 300, 0.0252],
  openrouter: [1, 5_000, 2_000, 0, 1_000, 0, 0.012],
  deepseek: [1, 8_000, 5_000, 0, 1_000, 400, 0.00814],
  xai: [1, 2_000, 0, 0, 500, 0, 0.0075],
};
const total = [8, 416_000, 169_000, 26_000, 7_100, 1_200, 0.56039];

const cells = (row: Document) => [
  row.calls,
  row.input,
  row.cache_read,
  row.cache_write,
  row.output,
  row.reasoning,
  row.cost_usd,
];

let vendors: Record<string, FakeVendor>;
let project: TempProject;
let polylogue: TestProduct;
const replies: Document[] = [];

const run = async (...args: string[]) => {
  const env = { PROJECT_ROOT: project.root, POLYLOGUE_HOME: polylogue.home };
  return runProgram(['usage', ...args], { cwd: project.root, env });
};

beforeAll(async () => {
  const [google, openai, anthropic, deepseek, openrouter, xai] = await Promise.all([
    startGoogle(),
    startOpenAi(),
    startAnthropic(),
    startDeepSeek(),
    startOpenRouter(),
    startXai(),
  ]);
  vendors = { google, openai, anthropic, deepseek, openrouter, xai };
  project = await tempProject();
  const urls = Object.fromEntries(Object.entries(vendors).map(([name, { url }]) => [name, url]));
  polylogue = await testProduct({ root: project.root, env: vendorEnv(urls) });
  for (const { model, usage } of calls) {
    vendors[model.split(':')[0] ?? '']?.script({ answer: 'Done.', usage });
    replies.push(await polylogue.call('chat', { prompt: 'What is it?', model }));
  }
  vendors.openai?.script({ answer: 'Done.', usage: usageOf(1_000, 100) });
  await polylogue.call('chat', { prompt: 'What is it?', model: 'openai:gpt-5.2' }, { owner: 'ann' });
  await polylogue.product.close();
});

afterAll(async () => {
  await polylogue.close();
  await Promise.all([...Object.values(vendors).map(vendor => vendor.close()), project.dispose()]);
});

describe('polylogue usage', () => {
  it('rests on replies that say what each call cost, and what its thread did', () => {
    for (const [at, { cost, usage }] of calls.entries()) {
      const { metadata } = replies[at] ?? {};
      expect(metadata.cost_usd, calls[at]?.model).toBeCloseTo(cost, 6);
      expect(metadata.usage.input).toBe(usage.input);
      expect(metadata.thread_total).toEqual({ tokens: usage.input + usage.output, cost_usd: metadata.cost_usd });
    }
    for (const vendor of Object.values(vendors)) expect(vendor.violations).toEqual([]);
  });

  it('agrees with the same sums by hand for six vendors', async () => {
    const { code, out } = await run('--by', 'provider', '--json');
    expect(code).toBe(0);
    const document: Document = JSON.parse(out);
    expect(Object.fromEntries(document.rows.map((row: Document) => [row.provider, cells(row)]))).toEqual(byProvider);
    expect(document.rows.map((row: Document) => row.provider)).toEqual(Object.keys(byProvider));
    expect(cells(document.total)).toEqual(total);
    expect(document.total.unpriced_calls).toBe(0);
  });

  it('shows one owner of a daemon, who has nothing of the others', async () => {
    const { total: sum }: Document = JSON.parse((await run('--owner', 'ann', '--json')).out);
    expect(cells(sum)).toEqual([1, 1_000, 0, 0, 100, 0, 0.00315]);
    expect((await run('--owner', 'nobody')).out).toContain('No model calls');
  });

  it('tells what was paid for, each kind in its own unit', async () => {
    const { rows, total: sum }: Document = JSON.parse((await run('--by', 'kind', '--json')).out);
    expect(rows).toEqual([{ kind: 'answers', amount: 8, unit: 'calls', not_priced: 0, cost_usd: 0.56039 }]);
    expect(sum).toEqual({ cost_usd: 0.56039 });
    expect((await run('--by', 'kind')).out).toMatch(/kind +USD\nanswers +8 calls +0\.5604\ntotal +0\.5604/);
  });

  it('never says that what has no known price costs nothing', async () => {
    const vendor = await startOpenAi({ models: [{ id: 'gpt-5-secret' }] });
    const env = {
      PROJECT_ROOT: project.root,
      POLYLOGUE_HOME: project.path('.home'),
      ...vendorEnv({ openai: vendor.url }),
    };
    const own = (...args: string[]) => runProgram(args, { cwd: project.root, env });
    vendor.script({ answer: 'Done.' });
    const asked = await own('ask', 'What is it?', '--model', 'openai:gpt-5-secret');
    await vendor.close();
    expect(asked).toMatchObject({ code: 0, out: 'Done.\n' });
    const { rows }: Document = JSON.parse((await own('usage', '--by', 'kind', '--json')).out);
    expect(rows).toEqual([{ kind: 'answers', amount: 1, unit: 'calls', not_priced: 1 }]);
    expect((await own('usage', '--by', 'kind')).out).toMatch(/^answers +1 calls, not priced *$/m);
  });

  it('adds the same up by day, model, tool and thread', async () => {
    const documents: Document[] = [];
    for (const by of ['day', 'model', 'tool', 'thread']) {
      documents.push(JSON.parse((await run('--by', by, '--json', '--days', '2')).out));
    }
    for (const { total: sum } of documents) expect(cells(sum)).toEqual(total);
    const [days, models, tools, threads] = documents;
    expect(days.rows.length).toBeLessThanOrEqual(2);
    expect(models.rows.find((row: Document) => row.model === 'google:gemini-2.5-pro').cost_usd).toBe(0.43225);
    expect(tools.rows).toMatchObject([{ tool: 'chat', calls: 8 }]);
    expect(threads.rows).toHaveLength(8);
    const first = replies[0]?.continuation_offer.continuation_id;
    expect(threads.rows[0]).toMatchObject({ thread: first, cost_usd: 0.43 });
  });

  it('marks sums that include an estimate', async () => {
    const place = await tempProject();
    const vendor = await startDeepSeek();
    const env = { ...vendorEnv({ deepseek: vendor.url }), DEFAULT_MODEL: 'deepseek:deepseek-chat' };
    const other = await testProduct({ root: place.root, env });
    vendor.script({ fault: 'cut_mid_stream', answer: 'It is a long story about a door. '.repeat(12) });
    await other.call('chat', { prompt: 'What is it?' });
    await other.product.close();
    const marked = await runProgram(['usage', '--by', 'provider'], {
      cwd: place.root,
      env: { PROJECT_ROOT: place.root, POLYLOGUE_HOME: other.home },
    });
    expect(marked.out).toMatch(/deepseek +1 +~\d+ +0 +0 +~\d+ +~0\.0\d+/);
    expect(marked.out).toContain(
      '~ includes an estimate: the vendors did not report all token counts of 1 of these calls.',
    );
    await other.close();
    await Promise.all([vendor.close(), place.dispose()]);
  });

  it('prints a table for people, and says what is wrong with a wrong flag', async () => {
    const { out } = await run('--by', 'provider');
    expect(out).toMatch(/provider +calls +input +cache read +cache write +output +USD/);
    expect(out).toMatch(/google +2 +251,000 +100,000 +0 +2,100 +0\.4322/);
    expect(out).toMatch(/total +8 +416,000 +169,000 +26,000 +7,100 +0\.5604/);
    const refused = await run('--days', '0');
    expect(refused.code).not.toBe(0);
    expect(refused.err).toContain('1 to 370');
  });
});

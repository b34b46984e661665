import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kindWords, spendBy, spendByKind } from '../../src/core/usage.ts';
import { startSession } from '../support/mcp-session.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { type FakeEmbeddings, startEmbeddings } from '../support/vendors/start-embeddings.ts';
import { startGoogle } from '../support/vendors/start-google.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { type FakeZhipu, startZhipu } from '../support/vendors/start-zhipu.ts';

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct | undefined;

async function start(env: Record<string, string> = {}): Promise<TestProduct> {
  polylogue = await testProduct({ root: project.root, env: { ...vendorEnv({ openai: vendor.url }), ...env } });
  return polylogue;
}

const asked = () => vendor.requests.filter(({ messages }) => messages.length > 0);
const model = 'openai:gpt-4.1';
const question = { prompt: 'Why is it so?', model };

beforeEach(async () => {
  [vendor, project] = await Promise.all([startOpenAi(), tempProject()]);
});
afterEach(async () => {
  await polylogue?.close();
  polylogue = undefined;
  expect(vendor.violations).toEqual([]);
  await Promise.all([vendor.close(), project.dispose()]);
});

const costLimit = (limit: string) => ({ code: 'LIMIT', class: 'cost', data: { limit } });

describe('limits on costs', () => {
  it('refuse a call that could cost too much with numbers, before any request', async () => {
    const { call } = await start({ MAX_COST_PER_REQUEST: '0.001' });
    const reply: Document = await call('chat', question);
    expect(reply.isError).toBe(true);
    expect(reply.error).toMatchObject({
      ...costLimit('MAX_COST_PER_REQUEST'),
      data: { limit: 'MAX_COST_PER_REQUEST', limit_usd: 0.001, left_usd: 0.001, needed_usd: expect.any(Number) },
      next: expect.stringContaining('cheaper'),
    });
    expect(reply.error.data.needed_usd).toBeGreaterThan(0.008);
    expect(vendor.requests).toEqual([]);
    expect(reply.continuation_offer.continuation_id).toBeDefined();
  });

  it('limit an answer to what can be paid, also where the caller itself asks for that', async () => {
    const { call } = await start();
    const reply = await call('chat', { ...question, max_cost_usd: 0.02 });
    expect(reply.isError).toBe(false);
    expect(reply.metadata.warnings.join()).toMatch(/limited to \d+ tokens/);
    const body: Document = asked()[0]?.body;
    expect(body.max_output_tokens).toBeLessThan(2_500);
    expect(body.max_output_tokens).toBeGreaterThan(1_500);
    const free = await call('chat', question);
    expect(free.metadata.warnings).toBeUndefined();
    const workflow = await call('debug', {
      step: 'It fails',
      step_number: 1,
      total_steps: 1,
      next_step_required: false,
      findings: 'Nothing yet',
      confidence: 'low',
      model,
      max_cost_usd: 0.001,
    });
    expect(JSON.stringify(workflow)).toContain('max_cost_usd');
    expect(asked()).toHaveLength(2);
  });

  it('hold for all models of a consensus together, whatever it asks for itself', async () => {
    const { call } = await start({ MAX_COST_PER_REQUEST: '0.02' });
    const models = ['openai:gpt-4.1', 'openai:gpt-4o', 'openai:gpt-4-turbo'];
    const reply = await call('consensus', {
      prompt: 'Shall we?',
      models: models.map(name => ({ model: name })),
      max_cost_usd: 5,
    });
    const skipped = JSON.stringify(reply);
    expect(skipped).toContain('of MAX_COST_PER_REQUEST $0.02 is left');
    expect(asked().length).toBeGreaterThan(0);
    expect(asked().length).toBeLessThan(3);
    expect(reply.metadata.cost_usd).toBeLessThanOrEqual(0.02);
  });

  it('count a day over a restart, and let go of nothing on the way', async () => {
    const usage = { input: 1_000, output: 10_000 };
    const first = await start({ MAX_COST_PER_DAY: '0.09' });
    vendor.byDefault({ answer: 'Because.', usage });
    // 1,000 × 2 + 10,000 × 8 = 82,000
    expect((await first.call('chat', question)).metadata.cost_usd).toBe(0.082);
    await first.restart();
    const reply = await first.call('chat', question);
    expect(reply.error).toMatchObject({
      ...costLimit('MAX_COST_PER_DAY'),
      data: { limit: 'MAX_COST_PER_DAY', left_usd: 0.008 },
      retry_after_s: expect.any(Number),
    });
    expect(asked()).toHaveLength(1);
    expect((await first.call('chat', { ...question, model: 'openai:gpt-4.1-nano' })).isError).toBe(false);
  });

  it('keep a thread to its own, and leave others alone', async () => {
    const { call } = await start({ MAX_COST_PER_THREAD: '0.05' });
    vendor.byDefault({ answer: 'Because.', usage: { input: 1_000, output: 5_000 } });
    const begun = await call('chat', question);
    const { continuation_id } = begun.continuation_offer;
    const refused = await call('chat', { ...question, continuation_id });
    expect(refused.error).toMatchObject(costLimit('MAX_COST_PER_THREAD'));
    expect((await call('chat', question)).isError).toBe(false);
    expect(asked()).toHaveLength(2);
  });

  it('are never passed by calls that come at once', async () => {
    const { call, product } = await start({ MAX_COST_PER_DAY: '0.2' });
    // Longer than a call may ask for, which cuts it.
    vendor.byDefault({ answer: 'because '.repeat(5_000) });
    const replies = await Promise.all(
      Array.from({ length: 12 }, () => call('chat', { ...question, max_cost_usd: 0.04 })),
    );
    const paid = replies.filter(({ isError }) => !isError);
    expect(paid.length).toBeGreaterThan(2);
    // All twelve would cost more than 0.4. How many fit depends on which ended before others began.
    expect(paid.length).toBeLessThan(12);
    expect(asked()).toHaveLength(paid.length);
    const [day] = spendBy(await product.spent('2000-01-01'), 'day');
    expect(day?.costUsd).toBeLessThanOrEqual(0.2);
  });
});

describe('what vendors charge for beside tokens', () => {
  let google: FakeVendor;
  let zhipu: FakeZhipu;
  let embeddings: FakeEmbeddings;
  beforeEach(async () => {
    [google, zhipu, embeddings] = await Promise.all([startGoogle(), startZhipu(), startEmbeddings()]);
    const page = { title: 'Rain', link: 'https://news.test/rain', content: 'It rained.' };
    zhipu.hits.push({ ...page, media: 'News', icon: '', refer: 'ref_1', publish_date: '2026-11-20' });
  });
  afterEach(() => Promise.all([google.close(), zhipu.close(), embeddings.close()]));

  const everybody = () => ({
    ...vendorEnv({ google: google.url, openai: embeddings.url, zhipu: zhipu.url }),
    EMBEDDING_MODEL: 'openai:text-embedding-3-small',
    POLYLOGUE_TOOLSETS: 'core,files,ops',
  });
  const finds = [{ url: 'https://news.test/rain', title: 'Rain', quote: 'It rained.' }];
  const grounded = { prompt: 'What is new?', model: 'google:gemini-2.5-flash', use_websearch: true };

  it('is in the reply, the ledger and the sums by kind: searches, GLM alone, and vectors', async () => {
    await project.write('rain.ts', 'export const rain = "falls on the refund desk";\n');
    const { call, product } = await start(everybody());
    google.script({ answer: 'It rained.', finds });
    const reply = await call('chat', { ...grounded, use_search: true });
    expect(reply.metadata.usage.fees).toEqual({ web_search: { searches: 1, cost_usd: 0.035 } });
    expect(reply.metadata.cost_usd).toBeGreaterThan(0.035);
    expect(reply.metadata.thread_total.cost_usd).toBe(reply.metadata.cost_usd);
    expect((await call('glm_web_search', { query: 'rain' })).isError).toBe(false);
    expect((await call('glm_web_search', { query: 'rain', search_engine: 'search_pro' })).isError).toBe(false);
    expect(zhipu.violations).toEqual([]);
    const rows = await product.spent('2000-01-01');
    const kinds = spendByKind(rows);
    expect(kinds.map(sum => [sum.kind, kindWords(sum)])).toEqual([
      ['answers', '1 calls'],
      ['web_search', '3 searches, 1 of them not priced'],
      ['embedding', expect.stringMatching(/^\d+ tokens$/)],
    ]);
    const [, searches, vectors] = kinds;
    expect(searches?.usd).toBeCloseTo(0.045, 9);
    expect(vectors?.usd).toBeCloseTo((vectors!.amount * 0.02) / 1e6, 12);
    const embedded = rows.filter(row => row.tool === 'search index');
    expect(embedded).toMatchObject([{ provider: 'openai', model: 'text-embedding-3-small', unpriced: 0 }]);
    expect(embedded[0]?.thread).toBe(reply.continuation_offer.continuation_id);
    const glm = rows.filter(row => row.tool === 'glm_web_search');
    expect(glm.map(({ model: engine, costUsd, unpriced }) => [engine, costUsd, unpriced])).toEqual([
      ['search-prime', 0.01, 0],
      ['search_pro', 0, 1],
    ]);
    const { spent_today } = await call('status');
    expect(spent_today.fees).toMatchObject([
      { kind: 'web_search', searches: 3, cost_usd: 0.045, not_priced: 1 },
      { kind: 'embedding' },
    ]);
    expect(spent_today.cost_usd).toBeCloseTo(reply.metadata.cost_usd + 0.01 + vectors!.usd, 5);
  });

  it('is put aside before anybody is asked, and refused where a limit leaves too little', async () => {
    const { call, product } = await start({ ...everybody(), MAX_COST_PER_REQUEST: '0.04' });
    // Its tokens alone would fit many times: what a search may cost on top does not.
    google.byDefault({ answer: 'It rained.', finds });
    const without = await call('chat', { ...grounded, use_websearch: false, max_cost_usd: 0.03 });
    expect(without.isError).toBe(false);
    const refused = await call('chat', { ...grounded, max_cost_usd: 0.03 });
    expect(refused.error).toMatchObject({ ...costLimit('max_cost_usd'), data: { limit_usd: 0.03 } });
    expect(refused.error.data.needed_usd).toBeGreaterThan(0.035);
    expect(google.requests.filter(({ messages }) => messages.length > 0)).toHaveLength(1);
    const unpriced = await call('glm_web_search', { query: 'rain', search_engine: 'search_pro' });
    expect(unpriced.error).toMatchObject({
      code: 'LIMIT',
      class: 'cost',
      message: expect.stringContaining('search_pro'),
    });
    expect((await call('glm_web_search', { query: 'rain' })).isError).toBe(false);
    expect(spendBy(await product.spent('2000-01-01'), 'tool').map(({ key }) => key)).toEqual([
      'glm_web_search',
      'chat',
    ]);
  });

  it('counts against a day, also where it is no question to a model', async () => {
    const { call } = await start({ ...everybody(), MAX_COST_PER_DAY: '0.025' });
    const replies: Document[] = [];
    for (let n = 0; n < 3; n++) replies.push(await call('glm_web_search', { query: 'rain' }));
    expect(replies.map(({ isError }) => isError)).toEqual([false, false, true]);
    expect(replies[2].error).toMatchObject({ ...costLimit('MAX_COST_PER_DAY'), data: { left_usd: 0.005 } });
    expect(zhipu.asked).toHaveLength(2);
  });
});

describe('limits on calls', () => {
  it('hold for the clients of the protocol, and not for the operator', async () => {
    const env = { RATE_LIMITS: 'version=2, nonsense' };
    const session = await startSession({ root: project.root, home: project.path('.home'), env });
    const replies: Document[] = [];
    for (let n = 0; n < 3; n++) replies.push(await session.call('version'));
    expect(session.log()).toContain('"nonsense" is not of the form tool=number');
    await session.close();
    expect(replies.map(({ isError }) => isError)).toEqual([false, false, true]);
    expect(replies[2].error).toMatchObject({
      code: 'LIMIT',
      class: 'rate',
      retryable: true,
      data: { limit_per_minute: 2 },
    });
    expect(replies[2].error.retry_after_s).toBeGreaterThan(50);
    const { call } = await start(env);
    for (let n = 0; n < 3; n++) expect((await call('version')).isError).toBe(false);
  });
});

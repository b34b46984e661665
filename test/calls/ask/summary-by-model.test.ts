import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemEnvironment } from '../../../src/app/system-environment.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor, RecordedRequest } from '../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { startOpenRouter } from '../../support/vendors/start-openrouter.ts';

let openAi: FakeVendor;
let anthropic: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;
let thread: string;

const longAnswer = Array.from({ length: 800 }, (_, n) => `Point ${n}: the gate must stay shut, see src/gate.ts:${n}.`);
const summary = '- DECIDED: the gate stays shut, because keys are compared by reference (src/gate.ts:12).';
const isSummary = ({ messages }: RecordedRequest) => /You shorten the record/.test(messages[0]?.text ?? '');
const modelOf = ({ body }: RecordedRequest) => (body as Document).model;
const textOf = ({ messages }: RecordedRequest) => messages.map(({ text }) => text).join('\n');

async function start(env: Record<string, string> = {}, clock?: Parameters<typeof testProduct>[0]['clock']) {
  const urls = vendorEnv({ openai: openAi.url, anthropic: anthropic.url });
  polylogue = await testProduct({
    root: project.root,
    env: { ...urls, DEFAULT_MODEL: 'gpt-4o', MAX_CONVERSATION_TURNS: '6', ...env },
    clock,
  });
}

beforeEach(async () => {
  [openAi, anthropic, project] = await Promise.all([startOpenAi(), startAnthropic(), tempProject()]);
  const answer = (request: RecordedRequest) => (isSummary(request) ? summary : longAnswer.join('\n'));
  openAi.byDefault({ answer });
  anthropic.byDefault({ answer });
});
afterEach(async () => {
  await polylogue.close();
  await Promise.all([openAi.close(), anthropic.close(), project.dispose()]);
  expect([...openAi.violations, ...anthropic.violations]).toEqual([]);
});

async function chat(prompt: string, more: Record<string, unknown> = {}): Promise<Document> {
  const reply = await polylogue.call('chat', { prompt, ...more });
  expect(reply.isError, JSON.stringify(reply.error)).toBe(false);
  thread = reply.continuation_offer.continuation_id;
  return reply;
}

/** As many exchanges as it takes until the next one is compacted; answers that one's reply. */
async function untilCompacted(more: Record<string, unknown> = {}): Promise<Document> {
  await chat('FIRST REQUEST: keep it shut.', more);
  for (const prompt of ['Two.', 'Three.', 'Four.']) await chat(prompt, { continuation_id: thread, ...more });
  return chat('Five.', { continuation_id: thread, ...more });
}

describe('a long thread', () => {
  it('is summed up by a cheap model of the same provider, once, and its cost is the thread’s', async () => {
    await start();
    const five = await untilCompacted();
    const asked = openAi.requests.filter(isSummary);
    expect(asked).toHaveLength(1);
    expect(anthropic.requests).toEqual([]);
    expect(modelOf(asked[0]!)).toMatch(/mini|nano|luna/);
    expect(textOf(asked[0]!)).toContain('Point 799');
    const { summary: told, summarised } = five.metadata.history;
    expect(told).toMatchObject({ model: `openai:${modelOf(asked[0]!)}`, tokens: expect.any(Number) });
    expect(told.cost_usd).toBeGreaterThan(0);
    expect(summarised).toBeGreaterThan(0);
    const last = openAi.requests.at(-1)!;
    expect(textOf(last)).toContain(summary);
    expect(textOf(last)).toContain('FIRST REQUEST');
    const six = await chat('Six.', { continuation_id: thread });
    expect(openAi.requests.at(-1)!.canonical.startsWith(last.canonical)).toBe(true);
    expect(six.metadata.history.summary).toBeUndefined();
    expect(openAi.requests.filter(isSummary)).toHaveLength(1);
    const [head] = (await polylogue.call('threads', { action: 'list' })).threads;
    const answers = openAi.requests.filter(request => !isSummary(request)).length;
    expect(answers).toBe(6);
    expect(head.cost_usd ?? head.totals?.cost_usd).toBeGreaterThan(told.cost_usd);
  });

  it('is summed up further from the summary that stood there before', async () => {
    await start();
    await untilCompacted();
    for (const prompt of ['Six.', 'Seven.', 'Eight.']) await chat(prompt, { continuation_id: thread });
    const [, second] = openAi.requests.filter(isSummary);
    expect(textOf(second!)).toContain(summary);
    expect(textOf(second!)).not.toContain('Two.');
    expect(textOf(openAi.requests.at(-1)!)).toContain('FIRST REQUEST');
  });

  it('gets an extract where the model fails, and nothing else changes', async () => {
    await start();
    openAi.byDefault({ answer: longAnswer.join('\n') });
    await chat('FIRST REQUEST: keep it shut.');
    for (const prompt of ['Two.', 'Three.', 'Four.']) await chat(prompt, { continuation_id: thread });
    openAi.script({ fault: 'status', status: 400 });
    const five = await chat('Five.', { continuation_id: thread });
    expect(five.metadata.history.summary).toBeUndefined();
    expect(textOf(openAi.requests.at(-1)!)).toContain('What followed, summarised:\n- ');
    expect(polylogue.log.join('\n')).toContain('An extract has to do');
  });

  it('waits half a minute for a summary and no longer', async () => {
    const { clock } = systemEnvironment();
    // Only the summary's own time limit is as long as this.
    const quick = { ...clock, after: (ms: number, run: () => void) => clock.after(ms === 30_000 ? 50 : ms, run) };
    await start({}, quick);
    await chat('FIRST REQUEST: keep it shut.');
    for (const prompt of ['Two.', 'Three.', 'Four.']) await chat(prompt, { continuation_id: thread });
    openAi.script({ fault: 'hang_before_headers' });
    const five = await chat('Five.', { continuation_id: thread });
    expect(five.metadata.history.summarised).toBeGreaterThan(0);
    const [late] = openAi.requests.filter(isSummary);
    await late!.aborted;
    expect(textOf(openAi.requests.at(-1)!)).toContain('What followed, summarised:\n- ');
    expect(polylogue.log.join('\n')).toContain('took more than 30 s');
  });

  it('is summed up by whom the operator names, or by nobody', async () => {
    await start({ COMPACTION_MODEL: 'anthropic:claude-haiku-4-5' });
    await untilCompacted();
    expect(anthropic.requests.map(request => [isSummary(request), modelOf(request)])).toEqual([
      [true, expect.stringContaining('claude-haiku-4-5')],
    ]);
    expect(openAi.requests.filter(isSummary)).toEqual([]);
    await polylogue.close();
    await start({ COMPACTION_MODEL: 'off' });
    const five = await untilCompacted();
    expect(five.metadata.history.summarised).toBeGreaterThan(0);
    expect(anthropic.requests).toHaveLength(1);
    expect(openAi.requests.filter(isSummary)).toEqual([]);
  });

  it('stays with its maker where one provider serves many', async () => {
    const openRouter = await startOpenRouter();
    const answer = (request: RecordedRequest) => (isSummary(request) ? summary : longAnswer.join('\n'));
    openRouter.byDefault({ answer });
    try {
      await start({ ...vendorEnv({ openrouter: openRouter.url }), DEFAULT_MODEL: 'openrouter:openai/gpt-4o' });
      await untilCompacted();
      expect(openRouter.requests.filter(isSummary).map(modelOf)).toEqual([expect.stringMatching(/^openai\//)]);
      expect([...openAi.requests, ...anthropic.requests]).toEqual([]);
      expect(openRouter.violations).toEqual([]);
    } finally {
      await openRouter.close();
    }
  });

  it('is not shown to another provider for its summary, nor paid for where an extract loses little', async () => {
    const server = { CUSTOM_API_URL: openAi.url, CUSTOM_API_KEY: 'test-key', CUSTOM_MODEL_NAME: 'own' };
    await start({ ...server, DEFAULT_MODEL: 'custom:own' });
    const five = await untilCompacted();
    expect(five.metadata.history.summarised).toBeGreaterThan(0);
    await polylogue.close();
    openAi.byDefault({ answer: 'Short.' });
    await start();
    expect((await untilCompacted()).metadata.history.summarised).toBeGreaterThan(0);
    expect([...openAi.requests, ...anthropic.requests].filter(isSummary)).toEqual([]);
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { schemaOf } from '../../src/calls/argument-schema.ts';
import { activity } from '../../src/tools/activity.ts';
import { providerCapabilities } from '../../src/tools/provider-capabilities.ts';
import { status } from '../../src/tools/status.ts';
import { realClock } from '../support/clock.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;
const key = 'sk-proj-Zx81kQpL0vTn5uWc7yRb3dEf9gHj2mKa';

beforeAll(async () => {
  [vendor, project] = await Promise.all([startOpenAi({ keys: [key] }), tempProject()]);
  const env = {
    ...vendorEnv({ openai: vendor.url }),
    OPENAI_API_KEY: key,
    CUSTOM_API_URL: 'https://user:geheim@models.example.org/v1?token=geheim',
    POLYLOGUE_TOOLSETS: 'core,code,ops',
    MAX_COST_PER_DAY: '7.5',
    RATE_LIMITS: 'on,chat=20',
  };
  polylogue = await testProduct({ root: project.root, env });
});
afterAll(async () => {
  await polylogue.close();
  await Promise.all([vendor.close(), project.dispose()]);
});

describe('the tools of operation', () => {
  it('take little room', () => {
    const listed = [status, activity, providerCapabilities].map(tool => schemaOf(tool).listing);
    expect(Buffer.byteLength(JSON.stringify(listed))).toBeLessThanOrEqual(1_200);
  });

  it('status tells what is spent, set and running, for its caller alone', async () => {
    vendor.script({ answer: 'Yes.', usage: { input: 1_000, output: 1_000 } });
    await polylogue.call('chat', { prompt: 'Is it?', model: 'openai:gpt-4.1' });
    const reply: Document = await polylogue.call('status');
    // 1,000 × 2 + 1,000 × 8
    expect(reply).toMatchObject({
      status: 'success',
      version: expect.stringMatching(/^\d/),
      uptime_s: expect.any(Number),
      store: expect.stringContaining('threads.sqlite'),
      roots: [project.root],
      spent_today: { cost_usd: 0.01, calls: 1, tokens: { input: 1_000, output: 1_000 } },
      running_jobs: [],
      limits: { max_cost_per_day: 7.5, calls_per_minute: { chat: 20, debug: 5, precommit: 3 } },
    });
    expect(reply.providers.map((provider: Document) => provider.id)).toContain('openai');
    const other = await polylogue.call('status', {}, { owner: 'ann' });
    expect(other.spent_today).toMatchObject({ cost_usd: 0, calls: 0 });
  });

  it('status tells what the limit of a day counts, though the clock was moved a day ahead', async () => {
    let ahead = 0;
    const clock = { ...realClock(), now: () => Date.now() + ahead };
    const env = { ...vendorEnv({ openai: vendor.url }), OPENAI_API_KEY: key, MAX_COST_PER_DAY: '7.5' };
    const moved = await testProduct({ root: project.root, clock, env: { ...env, POLYLOGUE_TOOLSETS: 'core,ops' } });
    vendor.script({ answer: 'Yes.', usage: { input: 1_000, output: 1_000 } });
    await moved.call('chat', { prompt: 'Is it?', model: 'openai:gpt-4.1' });
    ahead = 86_400_000;
    const { spent_today } = await moved.call('status');
    await moved.close();
    expect(spent_today).toMatchObject({ cost_usd: 0.01, calls: 1 });
  });

  it('status tells how many calls are estimated', async () => {
    vendor.script({ fault: 'cut_mid_stream', answer: 'It is so. '.repeat(40) });
    const owner = 'estimate';
    await polylogue.call('chat', { prompt: 'Is it?', model: 'openai:gpt-4.1' }, { owner });
    const { spent_today } = await polylogue.call('status', {}, { owner });
    expect(spent_today).toMatchObject({ calls: 1, estimated_calls: 1 });
  });

  it('activity shows the caller’s own calls, attempts and errors, newest last, and nobody else’s', async () => {
    vendor.script({ fault: 'status', status: 404 });
    const failed = await polylogue.call('chat', { prompt: 'Is it still?', model: 'openai:gpt-4.1' });
    await polylogue.call('chat', { prompt: 'Mine alone', model: 'openai:gpt-4.1' }, { owner: 'ann' });
    const reply: Document = await polylogue.call('activity', { limit: 500 });
    const types = reply.events.map((event: Document) => event.type);
    expect(types).toEqual(expect.arrayContaining(['call.start', 'model.attempt', 'call.end']));
    expect(JSON.stringify(reply)).not.toContain('ann');
    const times = reply.events.map((event: Document) => event.at);
    expect(times).toEqual([...times].sort());
    const found: Document = await polylogue.call('activity', {
      filter: `FAILED ${failed.req_id ?? failed.metadata.req_id}`,
    });
    expect(found.events).toMatchObject([{ type: 'model.attempt', outcome: 'failed', status: 404, model: 'gpt-4.1' }]);
    expect((await polylogue.call('activity', { limit: 1 })).events).toHaveLength(1);
    const none = await polylogue.call('activity', { filter: 'no such word anywhere' });
    expect(none.events).toEqual([]);
    expect((await polylogue.call('activity', { filter: 'model.attempt' }, { owner: 'bob' })).events).toEqual([]);
  });

  it('provider_capabilities tells of keys only whether they are set', async () => {
    const reply: Document = await polylogue.call('provider_capabilities');
    expect(JSON.stringify(reply)).not.toContain(key);
    expect(JSON.stringify(reply)).not.toContain('geheim');
    const [openai] = reply.providers.filter((each: Document) => each.provider === 'openai');
    expect(openai).toMatchObject({ configured: true, keys: { OPENAI_API_KEY: 'set' }, endpoints: [vendor.url] });
    expect(openai.can).toEqual(expect.arrayContaining(['vision', 'thinking', 'caching']));
    const readers = reply.providers.filter((each: Document) => each.can.includes('documents'));
    expect(readers.map((each: Document) => each.provider)).toEqual(
      expect.arrayContaining(['anthropic', 'google', 'moonshot', 'openai']),
    );
    const [anthropic] = reply.providers.filter((each: Document) => each.provider === 'anthropic');
    expect(anthropic).toMatchObject({ configured: false, keys: { ANTHROPIC_API_KEY: 'not set' } });
    const one: Document = await polylogue.call('provider_capabilities', { provider: 'Custom' });
    expect(one.providers).toMatchObject([{ provider: 'custom', endpoints: ['https://models.example.org/v1'] }]);
    const unknown: Document = await polylogue.call('provider_capabilities', { provider: 'nobody' });
    expect(unknown.error).toMatchObject({ code: 'PROVIDER_NOT_FOUND', next: expect.stringContaining('openai') });
  });
});

describe('who is not asked', () => {
  it('is told by status, by the error and by the reply of another that answered: why, and when it is asked again', async () => {
    const [openAi, anthropic, place] = await Promise.all([startOpenAi(), startAnthropic(), tempProject()]);
    const env = { ...vendorEnv({ openai: openAi.url, anthropic: anthropic.url }), POLYLOGUE_TOOLSETS: 'core,ops' };
    const product = await testProduct({ root: place.root, env: { ...env, ANTHROPIC_API_KEY: 'wrong-key-1234567' } });
    try {
      openAi.byDefault({ fault: 'status', status: 503, headers: { 'x-should-retry': 'false' } });
      const ask = (model: string, more = {}) => product.call('chat', { prompt: 'Is it?', model, ...more });
      for (let call = 0; call < 5; call++) await ask('openai:gpt-4.1');
      await ask('anthropic:claude-sonnet-4-5');
      const { providers } = await product.call('status');
      const of = (wanted: string) => providers.find(({ id }: Document) => id === wanted);
      expect(of('openai').not_asked).toEqual([
        {
          model: 'gpt-4.1',
          why: 'it failed 5 times in a row (bad_upstream)',
          since: expect.stringMatching(/^20/),
          again_in_s: expect.any(Number),
        },
      ]);
      expect(of('anthropic').not_asked).toMatchObject([
        { why: 'it refused the key', until: expect.stringMatching(/key/) },
      ]);
      const refused = await ask('openai:gpt-4.1');
      expect(refused.error.message).toMatch(/openai:gpt-4.1 is paused for \d+ s: it failed 5 times in a row/);
      expect(refused.error.next).toMatch(/^Retry in \d+ s/);
      expect((await ask('anthropic:claude-sonnet-4-5')).error.message).toBe(
        'anthropic is not asked: it refused the key.',
      );
    } finally {
      await product.close();
      await Promise.all([openAi.close(), anthropic.close(), place.dispose()]);
    }
  });
});

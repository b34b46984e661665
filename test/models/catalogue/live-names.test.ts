import { afterEach, describe, expect, it } from 'vitest';
import { type ManualClock, manualClock } from '../../support/clock.ts';
import { testProduct, vendorEnv } from '../../support/product.ts';
import { tempProject } from '../../support/temp-project.ts';
import type { FakeVendor, FakeVendorOptions } from '../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { startGoogle } from '../../support/vendors/start-google.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

async function openAi(options: FakeVendorOptions = {}): Promise<FakeVendor> {
  const vendor = await startOpenAi(options);
  open.push(vendor);
  return vendor;
}

async function product(env: Record<string, string>) {
  const project = await tempProject({});
  const polylogue = await testProduct({ root: project.root, env });
  open.push({
    async close() {
      await polylogue.close();
      await project.dispose();
    },
  });
  return polylogue;
}

const lists = (vendor: FakeVendor) => vendor.requests.filter(({ dialect }) => dialect === 'models').length;
const listed = [{ id: 'gpt-5.2' }, { id: 'gpt-9-nova', window: 64_000 }, { id: 'ft:gpt-4.1:acme::abc' }];

describe("a vendor's live list", () => {
  it('is not looked at for names that are known', async () => {
    const vendor = await openAi({ models: listed });
    const polylogue = await product(vendorEnv({ openai: vendor.url }));
    await polylogue.call('chat', { prompt: 'Hi', model: 'gpt-5.2' });
    await polylogue.call('chat', { prompt: 'Hi', model: 'auto' });
    await polylogue.call('chat', { prompt: 'Hi', model: 'GPT_5.2' });
    expect(lists(vendor)).toBe(0);
  });

  it('is asked for by a call, never by what an idle server loads for the first one', async () => {
    const vendor = await openAi({ models: listed });
    const env = { ...vendorEnv({ openai: vendor.url }), CUSTOM_API_URL: vendor.url, MODEL_LISTS: 'auto' };
    const polylogue = await product(env);
    await polylogue.product.warm();
    await new Promise(resolve => setTimeout(resolve, 100));
    expect(vendor.requests).toEqual([]);
    await polylogue.call('listmodels');
    await expect.poll(() => lists(vendor)).toBeGreaterThan(0);
  });

  it('is not what an idle server learns an address by: one without its version path is found by the first call', async () => {
    const vendor = await openAi();
    const polylogue = await product(vendorEnv({ openai: vendor.url.replace(/\/v1$/, '') }));
    await polylogue.product.warm();
    expect(vendor.requests).toEqual([]);
    expect(await polylogue.call('chat', { prompt: 'Hi', model: 'gpt-5.2' })).toMatchObject({ isError: false });
  });

  it('is looked at once for one that is not: a new model answers on its first day', async () => {
    const vendor = await openAi({ models: listed });
    const polylogue = await product(vendorEnv({ openai: vendor.url }));
    for (const model of ['gpt-9-nova', 'openai:gpt-9-nova', 'ft:gpt-4.1:acme::abc']) {
      const reply = await polylogue.call('chat', { prompt: 'Hi', model });
      expect(reply.metadata).toMatchObject({ provider_used: 'openai', model_used: model.replace('openai:', '') });
    }
    expect(lists(vendor)).toBe(1);
    expect(vendor.violations).toEqual([]);
  });

  it('wins over a guess: what it names is asked, not its sibling here', async () => {
    const vendor = await openAi({ models: [{ id: 'gpt-5.2-turbo' }] });
    const polylogue = await product(vendorEnv({ openai: vendor.url }));
    const reply = await polylogue.call('chat', { prompt: 'Hi', model: 'gpt-5.2-turbo' });
    expect(reply.metadata).toMatchObject({ model_used: 'gpt-5.2-turbo' });
  });

  it('says no: MODEL_NOT_FOUND, with what there is', async () => {
    const vendor = await openAi({ models: listed });
    const polylogue = await product(vendorEnv({ openai: vendor.url }));
    for (const model of ['openai:gpt-99-none', 'gpt-99-none']) {
      const reply = await polylogue.call('chat', { prompt: 'Hi', model });
      expect(reply).toMatchObject({ isError: true, error: { code: 'MODEL_NOT_FOUND', class: 'unknown' } });
      expect(reply.error.data.suggestions).toHaveLength(3);
    }
    expect(lists(vendor)).toBe(1);
  });

  it('that failed proves nothing: the name is passed on, with a warning', async () => {
    const vendor = await openAi();
    vendor.byDefault({ on: 'models', fault: 'status', status: 500 });
    const polylogue = await product(vendorEnv({ openai: vendor.url }));
    const reply = await polylogue.call('chat', { prompt: 'Hi', model: 'openai:gpt-99-new' });
    expect(reply.metadata).toMatchObject({ provider_used: 'openai', model_used: 'gpt-99-new' });
    expect(reply.metadata.warnings.join()).toContain('passed on as typed');
  });

  it('of another provider is left alone when the name says whose it is', async () => {
    const [mine, other] = [await openAi({ models: listed }), await startGoogle()];
    open.push(other);
    const polylogue = await product(vendorEnv({ openai: mine.url, google: other.url }));
    await polylogue.call('chat', { prompt: 'Hi', model: 'openai:gpt-9-nova' });
    expect(lists(mine)).toBe(1);
    expect(lists(other)).toBe(0);
  });

  it('is not asked for where nothing may leave this machine', async () => {
    const vendor = await openAi({ models: listed });
    const polylogue = await product({ ...vendorEnv({ openai: vendor.url }), LOCAL_ONLY: 'true' });
    await polylogue.call('chat', { prompt: 'Hi', model: 'gpt-9-nova' });
    await polylogue.call('listmodels');
    expect(vendor.requests).toEqual([]);
  });

  it('is not asked for by whoever merely completes a name or shows the version', async () => {
    const vendor = await openAi({ models: listed });
    const polylogue = await product(vendorEnv({ openai: vendor.url }));
    await polylogue.call('version');
    const principal = { owner: 'local', root: polylogue.product.root };
    expect((await polylogue.product.host.complete('model', 'gpt', principal)).length).toBeGreaterThan(0);
    expect(vendor.requests).toEqual([]);
  });

  it('outlasts the process', async () => {
    const vendor = await openAi({ models: listed });
    const polylogue = await product(vendorEnv({ openai: vendor.url }));
    await polylogue.call('chat', { prompt: 'Hi', model: 'gpt-9-nova' });
    await polylogue.restart();
    const reply = await polylogue.call('chat', { prompt: 'Hi', model: 'gpt-9-nova' });
    expect(reply.metadata).toMatchObject({ model_used: 'gpt-9-nova' });
    expect(lists(vendor)).toBe(1);
  });

  it('shows in listmodels with its age, for each vendor that has one; one that fails is told apart', async () => {
    const vendor = await openAi({ models: listed });
    const claude = await startAnthropic();
    open.push(claude);
    claude.byDefault({ on: 'models', fault: 'status', status: 401 });
    const polylogue = await product(vendorEnv({ openai: vendor.url, anthropic: claude.url }));
    const { content, metadata } = await polylogue.call('listmodels');
    expect(content).toMatch(/## OpenAI \(openai\)\nLive list of 3 models, \d+ s old\.\n/);
    expect(content).toContain('- gpt-9-nova: 64k tokens');
    expect(content).toMatch(/## Anthropic \(anthropic\)\nNo live list: the vendor did not answer with one now\.\n/);
    expect(metadata.live_lists).toMatchObject({
      openai: { models: 3, age_seconds: expect.any(Number) },
      anthropic: { models: 0, failure: expect.stringContaining('401') },
    });
  });
});

describe('an old list', () => {
  it('is renewed a moment after the call, which does not wait for it', async () => {
    const clock: ManualClock = manualClock(Date.now());
    const vendor = await openAi({ models: listed });
    const project = await tempProject({});
    const polylogue = await testProduct({ root: project.root, env: vendorEnv({ openai: vendor.url }), clock });
    open.push({ close: () => polylogue.close().then(() => project.dispose()) });
    await polylogue.call('listmodels');
    expect(lists(vendor)).toBe(1);
    await clock.advance(25 * 3_600_000);
    vendor.script({ on: 'models', delayMs: 300 });
    expect((await polylogue.call('chat', { prompt: 'Hi', model: 'gpt-5.2' })).isError).toBe(false);
    expect(lists(vendor)).toBe(1);
    await clock.advance(1_000);
    await expect.poll(() => lists(vendor)).toBe(2);
  });
});

describe("a vendor's list that is asked for in the background", () => {
  const ahead = (vendor: FakeVendor, more: Record<string, string> = {}) =>
    product({ ...vendorEnv({ openai: vendor.url }), MODEL_LISTS: 'auto', ...more });
  const settled = (vendor: FakeVendor) => expect.poll(() => lists(vendor)).toBe(1);
  /** The list is there a moment after it was asked for. */
  const chosen = (polylogue: Awaited<ReturnType<typeof product>>) =>
    expect.poll(async () => (await polylogue.call('chat', { prompt: 'Hi', model: 'auto' })).metadata.model_used);

  it('is asked for by the first call, which does not wait for it, and is believed', async () => {
    const vendor = await openAi({ models: [{ id: 'gpt-4.1' }, { id: 'gpt-6.1-terra' }, { id: 'gpt-9-nova' }] });
    const polylogue = await ahead(vendor);
    await polylogue.call('chat', { prompt: 'Hi', model: 'gpt-4.1' });
    await settled(vendor);
    // A stranger is there to be named.
    await chosen(polylogue).toBe('gpt-6.1-terra');
    const names = JSON.stringify(await polylogue.call('listmodels'));
    expect(names).toContain('gpt-4.1');
    expect(names).toContain('gpt-6.1-terra');
    expect(names).not.toMatch(/gpt-6-|gpt-5/);
    expect(lists(vendor)).toBe(1);
  });

  it('keeps nobody from naming what it leaves out', async () => {
    const vendor = await openAi({ models: [{ id: 'gpt-4.1' }, { id: 'gpt-6.1-terra' }] });
    const polylogue = await ahead(vendor);
    await polylogue.call('chat', { prompt: 'Hi', model: 'gpt-4.1' });
    await settled(vendor);
    await chosen(polylogue).toBe('gpt-6.1-terra');
    await polylogue.call('chat', { prompt: 'Hi', model: 'gpt-5.1' });
    expect(vendor.requests.at(-1)?.body).toMatchObject({ model: 'gpt-5.1' });
  });

  it('is neither asked for again nor told of where the vendor has none', async () => {
    const vendor = await openAi();
    vendor.byDefault({ on: 'models', fault: 'status', status: 404 });
    const polylogue = await ahead(vendor);
    for (let call = 0; call < 3; call++) {
      const reply = await polylogue.call('chat', { prompt: 'Hi', model: 'gpt-5.2' });
      expect(reply.metadata.warnings ?? []).toEqual([]);
      await settled(vendor);
    }
  });

  it('is asked for when the daemon starts', async () => {
    const vendor = await openAi({ models: listed });
    const polylogue = await ahead(vendor);
    const daemon = await polylogue.product.openDaemon({ port: 0 });
    open.push(daemon);
    await settled(vendor);
  });
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemEnvironment } from '../../../src/app/system-environment.ts';
import { aheadBy } from '../../support/clock.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor, RecordedRequest } from '../../support/vendors/fake-vendor.ts';
import type { GoogleCaches } from '../../support/vendors/google-caches.ts';
import { startGoogle } from '../../support/vendors/start-google.ts';

const flash = 'gemini-2.5-flash';
const source = (name: string, lines = 260) =>
  Array.from({ length: lines }, (_, line) => `export const ${name}${line} = 'line ${line} of ${name}';`).join('\n');
const minutes = 60_000;

let vendor: FakeVendor & { caches: GoogleCaches };
let project: TempProject;
let polylogue: TestProduct;
/** What the product's clock is ahead of the real one. */
let ahead: number;
let thread: string | undefined;

async function start(env: Record<string, string> = {}) {
  const { clock } = systemEnvironment();
  polylogue = await testProduct({
    root: project.root,
    env: { ...vendorEnv({ google: vendor.url }), DEFAULT_MODEL: flash, ...env },
    clock: aheadBy(clock, () => ahead),
  });
}

beforeEach(async () => {
  vendor = await startGoogle();
  vendor.byDefault({ answer: 'Noted: the gate stays shut.' });
  project = await tempProject({ 'gate.ts': source('gate'), 'small.ts': source('small', 3) });
  ahead = 0;
  thread = undefined;
});
afterEach(async () => {
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

async function chat(prompt: string, more: Record<string, unknown> = {}): Promise<Document> {
  const reply = await polylogue.call('chat', { prompt, ...(thread && { continuation_id: thread }), ...more });
  expect(reply.isError, JSON.stringify(reply.error)).toBe(false);
  thread = reply.continuation_offer.continuation_id;
  return reply;
}
const gate = () => ({ absolute_file_paths: [project.path('gate.ts')] });
const body = (request: RecordedRequest | undefined): Document => request?.body;
const last = () => body(vendor.requests.at(-1));

describe('the beginning of a thread with Gemini', () => {
  it('is cached from the second call on, and then only what is new is sent', async () => {
    await start();
    await chat('Read the gate.', gate());
    expect(vendor.caches.log).toEqual([]);
    const second = await chat('What does it do?');
    expect(vendor.caches.log).toEqual(['create cachedContents/fake1']);
    expect(last()).toMatchObject({ cachedContent: 'cachedContents/fake1' });
    expect(last().systemInstruction).toBeUndefined();
    expect(last().contents).toHaveLength(1);
    const [cache] = vendor.caches.live();
    const { usage, cost_usd } = second.metadata;
    expect(usage).toMatchObject({ cache_read: cache!.tokens, cache_write: cache!.tokens });
    // An hour of it, at a dollar for a million tokens.
    const storage = Number((cache!.tokens / 1e6).toFixed(6));
    expect(usage.fees).toEqual({ cache_storage: { 'token-hours': cache!.tokens, cost_usd: storage } });
    expect(cost_usd).toBeGreaterThan(storage);
    expect(usage.input).toBe(vendor.requests.at(-1)!.tokens + cache!.tokens);
    const third = await chat('And why?');
    expect(vendor.caches.log).toHaveLength(1);
    expect(last().contents).toHaveLength(3);
    expect(JSON.stringify(last())).not.toContain('line 259 of gate');
    expect(third.metadata.usage).toMatchObject({ cache_read: cache!.tokens, cache_write: 0 });
    expect(third.metadata.usage.input).toBe(vendor.requests.at(-1)!.tokens);
    expect(third.metadata.cost_usd).toBeLessThan(cost_usd / 2);
    const [first, ...later] = vendor.requests.map(({ canonical }) => canonical);
    for (const [index, canonical] of later.entries())
      expect(canonical.startsWith([first, ...later][index]!)).toBe(true);
    expect(vendor.violations).toEqual([]);
    expect(vendor.caches.refused).toEqual([]);
  });

  it('is not cached for a model that is asked once, however often the vendor had to be asked for that', async () => {
    await start();
    await chat('Read the gate.', { ...gate(), model: 'gemini-3-flash-preview' });
    vendor.script({ fault: 'status', status: 503 });
    const second = await chat('What do you say?', { model: flash });
    expect(second.metadata.attempts).toBe(2);
    expect(vendor.caches.log).toEqual([]);
    await chat('And why?', { model: flash });
    expect(vendor.caches.log).toEqual(['create cachedContents/fake1']);
    expect([...vendor.violations, ...vendor.caches.refused]).toEqual([]);
  });

  it('is told with its facts, and belongs to its thread and model alone', async () => {
    await start({ POLYLOGUE_TOOLSETS: 'core,ops' });
    await chat('Read the gate.', gate());
    await chat('Go on.');
    const [told] = await polylogue.product.models.caches();
    expect(told).toMatchObject({ name: 'cachedContents/fake1', model: flash, thread, messages: 2 });
    expect(told!.files).toEqual([project.path('gate.ts')]);
    expect(told!.tokens).toBe(vendor.caches.live()[0]!.tokens);
    expect(told!.expires - told!.created).toBe(60 * minutes);
    const { vendor_caches: shown } = await polylogue.call('status');
    const created = new Date(told!.created).toISOString();
    expect(shown).toEqual([{ ...told, created, expires: new Date(told!.expires).toISOString() }]);
    expect((await polylogue.call('status', {}, { owner: 'ann' })).vendor_caches).toBeUndefined();
    await chat('What do you say?', { model: 'gemini-3-flash-preview' });
    expect(last().cachedContent).toBeUndefined();
  });

  it('is not cached for models that take no cache', async () => {
    await start({ DEFAULT_MODEL: 'gemini-4-argon' });
    await chat('Read the gate.', gate());
    await chat('Go on.');
    expect(vendor.caches.log).toEqual([]);
  });

  it('is not cached while it is small, nor where the operator wants none', async () => {
    await start();
    await chat('Read it.', { absolute_file_paths: [project.path('small.ts')] });
    await chat('Go on.');
    await polylogue.close();
    thread = undefined;
    await start({ GEMINI_CACHE: 'off' });
    await chat('Read the gate.', gate());
    await chat('Go on.');
    expect(vendor.caches.log).toEqual([]);
    expect(vendor.requests).toHaveLength(4);
  });

  it('is renewed at nine tenths of its time, and made anew after it', async () => {
    await start();
    await chat('Read the gate.', gate());
    await chat('Two.');
    ahead = 53 * minutes;
    await chat('Three.');
    expect(vendor.caches.log).toEqual(['create cachedContents/fake1']);
    ahead = 55 * minutes;
    const renewed = await chat('Four.');
    expect(vendor.caches.log.slice(1)).toEqual(['renew cachedContents/fake1']);
    // 55 minutes more than were paid.
    const more = renewed.metadata.usage.fees.cache_storage['token-hours'];
    expect(more / vendor.caches.live()[0]!.tokens).toBeCloseTo(55 / 60, 2);
    expect(vendor.caches.live()[0]!.ttl).toBe(3_600);
    ahead = 110 * minutes;
    await chat('Five.');
    expect(vendor.caches.log.slice(2)).toEqual(['renew cachedContents/fake1']);
    ahead = 180 * minutes;
    vendor.caches.lose('cachedContents/fake1');
    await chat('Six, when its time is long over.');
    expect(vendor.caches.log.slice(3)).toEqual(['create cachedContents/fake2']);
    expect(last().cachedContent).toBe('cachedContents/fake2');
    expect([...vendor.violations, ...vendor.caches.refused]).toEqual([]);
  });

  it('is known for as long as the vendor says that it keeps it', async () => {
    await start();
    vendor.caches.keepFor(600);
    await chat('Read the gate.', gate());
    await chat('Two.');
    const [cache] = await polylogue.product.models.caches();
    expect(cache!.expires - cache!.created).toBe(600_000);
    ahead = 9.5 * minutes;
    await chat('Three.');
    ahead = 15 * minutes;
    await chat('Four.');
    ahead = 30 * minutes;
    vendor.caches.lose('cachedContents/fake1');
    await chat('Five, when its time is over.');
    expect(vendor.caches.log).toEqual([
      'create cachedContents/fake1',
      'renew cachedContents/fake1',
      'create cachedContents/fake2',
    ]);
    expect([...vendor.violations, ...vendor.caches.refused]).toEqual([]);
  });

  it('is made anew once where the vendor does not know it any more, without the caller noticing', async () => {
    await start();
    await chat('Read the gate.', gate());
    await chat('Two.');
    vendor.caches.lose('cachedContents/fake1');
    const three = await chat('Three.');
    expect(vendor.caches.log).toEqual(['create cachedContents/fake1', 'create cachedContents/fake2']);
    expect(vendor.violations).toEqual([expect.stringContaining('CachedContent not found')]);
    expect(last().cachedContent).toBe('cachedContents/fake2');
    expect(three.metadata.usage.cache_read).toBe(vendor.caches.live()[0]!.tokens);
    expect((await polylogue.product.models.caches()).map(({ name }) => name)).toEqual(['cachedContents/fake2']);
    vendor.caches.lose('cachedContents/fake2');
    vendor.caches.failCreation(503);
    await chat('Four, and it can’t be made.');
    expect(last().cachedContent).toBeUndefined();
    expect(last().contents).toHaveLength(7);
    expect(await polylogue.product.models.caches()).toEqual([]);
  });

  it('is made anew when the thread has doubled or was compacted, and the old one removed only then', async () => {
    await start({ MAX_CONVERSATION_TURNS: '6' });
    await chat('Read the gate.', gate());
    await chat('Two.');
    await project.write('four.ts', source('four', 300));
    await chat('Three.', { absolute_file_paths: [project.path('four.ts')] });
    expect(vendor.caches.log).toHaveLength(1);
    await chat('Four.');
    const replaced = ['create cachedContents/fake2', 'delete cachedContents/fake1'];
    await expect.poll(() => vendor.caches.log.slice(1)).toEqual(replaced);
    const five = await chat('Five: the history is compacted here, both files with it.');
    expect(five.metadata.history.summarised).toBeGreaterThan(0);
    await expect.poll(() => vendor.caches.log.slice(3)).toEqual(['delete cachedContents/fake2']);
    expect(last().cachedContent).toBeUndefined();
    expect(await polylogue.product.models.caches()).toEqual([]);
    expect([...vendor.violations, ...vendor.caches.refused]).toEqual([]);
  });

  it('costs no answer where the vendor makes none, and is not asked for again at once', async () => {
    await start();
    vendor.caches.failCreation(429);
    await chat('Read the gate.', gate());
    await chat('Two.');
    vendor.caches.failCreation(undefined);
    await chat('Three.');
    expect(vendor.caches.log).toEqual([]);
    expect(vendor.requests.map(({ body: sent }) => (sent as Document).cachedContent)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(vendor.violations).toEqual([]);
  });

  it('is removed with its thread, also by a process that did not make it', async () => {
    await start();
    await chat('Read the gate.', gate());
    await chat('Two.');
    const made = polylogue;
    polylogue = await testProduct({
      root: project.root,
      env: { ...vendorEnv({ google: vendor.url }), DEFAULT_MODEL: flash, POLYLOGUE_HOME: made.home },
    });
    const gone = await polylogue.call('threads', { action: 'delete', continuation_id: thread, confirm: true });
    expect(gone.isError).toBe(false);
    await expect.poll(() => vendor.caches.live()).toEqual([]);
    expect(await made.product.models.caches()).toEqual([]);
    await polylogue.close();
    polylogue = made;
    expect(vendor.violations).toEqual([]);
  });

  it('is used by the next process on the store, and gone when that one ends', async () => {
    await start();
    await chat('Read the gate.', gate());
    await chat('Two.');
    const crashed = polylogue;
    const other = await testProduct({
      root: project.root,
      env: { ...vendorEnv({ google: vendor.url }), DEFAULT_MODEL: flash, POLYLOGUE_HOME: crashed.home },
    });
    polylogue = other;
    await chat('Three.');
    expect(last().cachedContent).toBe('cachedContents/fake1');
    expect(vendor.caches.log).toHaveLength(1);
    await other.product.close();
    expect(vendor.caches.live()).toEqual([]);
    polylogue = crashed;
    expect(await crashed.product.models.caches()).toEqual([]);
    await chat('Four.');
    expect(vendor.violations).toEqual([]);
  });
});

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import type { KeptText } from '../../../src/core/ports.ts';
import { keptFacts, overlayFacts, readModelsDev, refreshFacts } from '../../../src/models/catalogue/models-dev.ts';
import { manualClock } from '../../support/clock.ts';
import { testProduct, vendorEnv } from '../../support/product.ts';
import { tempProject } from '../../support/temp-project.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { modelInfo } from '../scripted-model.ts';

let server: Server | undefined;
afterEach(async () => {
  server?.closeAllConnections();
  await new Promise(resolve => (server ? server.close(resolve) : resolve(undefined)));
  server = undefined;
});

/** models.dev as it answers: one object of providers, an ETag, 304 to who has it already. */
async function modelsDev(answer: (response: ServerResponse, request: IncomingMessage) => void) {
  const seen: IncomingMessage[] = [];
  server = createServer((request, response) => {
    seen.push(request);
    answer(response, request);
  });
  await new Promise<void>(resolve => server!.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return { url: `http://127.0.0.1:${port}/api.json`, seen };
}

const withTag = (body: unknown) => (response: ServerResponse, request: IncomingMessage) => {
  response.setHeader('etag', '"v1"');
  response.statusCode = request.headers['if-none-match'] === '"v1"' ? 304 : 200;
  response.end(response.statusCode === 304 ? undefined : JSON.stringify(body));
};

const model = (id: string, more: object = {}) => ({
  id,
  name: id.toUpperCase(),
  attachment: true,
  reasoning: true,
  tool_call: true,
  temperature: false,
  release_date: '2026-11-01',
  modalities: { input: ['text', 'image'], output: ['text'] },
  limit: { context: 500_000, output: 100_000 },
  cost: { input: 1.5, output: 6, cache_read: 0.15 },
  ...more,
});

const body = {
  openai: {
    id: 'openai',
    env: ['OPENAI_API_KEY'],
    npm: '@ai-sdk/openai',
    models: {
      'gpt-5.2': model('gpt-5.2', { reasoning_options: [{ type: 'effort', values: ['low'] }] }),
      'gpt-9': model('gpt-9', { reasoning_options: [{ type: 'effort', values: ['low', 'high'] }] }),
      'text-embedding-9': model('text-embedding-9'),
      painter: model('painter', { modalities: { input: ['text'], output: ['image'] } }),
      tiny: model('tiny', { limit: { context: 2_048, output: 512 } }),
      broken: { id: 'broken', limit: 'none' },
      evil: model('../../v1/files'),
    },
  },
  zai: { id: 'zai', models: { 'glm-9': model('glm-9', { status: 'deprecated' }) } },
  nobody: { id: 'nobody', models: { 'x-1': model('x-1') } },
};

function keptInMemory(...texts: string[]): KeptText & { texts: string[] } {
  return { texts, read: async () => texts.at(-1), write: async text => void texts.push(text) };
}

const signal = new AbortController().signal;

describe('the facts of models.dev', () => {
  it('are read for our vendors, under our names, and only chat models that make sense', () => {
    const facts = readModelsDev(body);
    expect(Object.keys(facts ?? {}).sort()).toEqual(['openai', 'zhipu']);
    expect(facts?.openai?.map(({ id }) => id)).toEqual(['gpt-5.2', 'gpt-9']);
    expect(facts?.openai?.[1]).toMatchObject({
      window: 500_000,
      maxOutput: 100_000,
      input: ['text', 'image'],
      efforts: ['low', 'high'],
      temperature: 'none',
      price: { in: 1.5, out: 6, cacheRead: 0.15 },
      status: 'active',
    });
    expect(facts?.zhipu?.[0]).toMatchObject({ status: 'deprecated' });
    expect(readModelsDev([1, 2])).toBeUndefined();
    expect(readModelsDev({ nobody: body.nobody })).toBeUndefined();
  });

  it('renew what vendors change of a known model and leave how it is asked, its aliases and its score', () => {
    const known = modelInfo({
      provider: 'openai',
      id: 'gpt-5.2',
      aliases: ['gpt5'],
      efforts: ['none', 'high'],
      score: 18,
    });
    const other = modelInfo({ provider: 'openrouter', id: 'gpt-5.2', window: 7_000 });
    const models = overlayFacts([known, other], readModelsDev(body) ?? {});
    expect(models[0]).toMatchObject({ window: 500_000, aliases: ['gpt5'], efforts: ['none', 'high'], score: 18 });
    expect(models[0]?.price).toEqual({ in: 1.5, out: 6, cacheRead: 0.15 });
    expect(models[1]).toBe(other);
    expect(models.slice(2).map(({ provider, id, score }) => `${provider}:${id} ${score}`)).toEqual([
      'openai:gpt-9 1',
      'zhipu:glm-9 1',
    ]);
  });
});

describe('refreshing', () => {
  it('keeps what it fetched, and asks the next time only for what is newer', async () => {
    const { url, seen } = await modelsDev(withTag(body));
    const kept = keptInMemory();
    const clock = manualClock();
    expect(await refreshFacts({ kept, clock, url }, signal)).toEqual({
      changed: true,
      models: 3,
      providers: ['openai', 'zhipu'],
    });
    expect(await keptFacts(kept)).toMatchObject({ at: clock.now(), etag: '"v1"' });
    expect(kept.texts.join()).not.toContain('nobody');
    const before = [...kept.texts];
    expect(await refreshFacts({ kept, clock, url }, signal)).toMatchObject({ changed: false, models: 3 });
    expect([...kept.texts]).toEqual(before);
    expect(seen).toHaveLength(2);
  });

  const failures: [name: string, answer: (response: ServerResponse) => void, says: RegExp][] = [
    ['500', response => void response.writeHead(500).end('oops'), /500/],
    ['a page', response => void response.writeHead(200).end('<html>Sign in</html>'), /something else than JSON/],
    ['another document', response => void response.writeHead(200).end('{"data": []}'), /no list of models/],
    ['a reset', response => void response.destroy(), /models\.dev failed/],
  ];
  it.each(failures)('fails after %s, typed, with what to do, and keeps what was there', async (_name, answer, says) => {
    const kept = keptInMemory();
    const clock = manualClock();
    const good = await modelsDev(withTag(body));
    await refreshFacts({ kept, clock, url: good.url }, signal);
    const before = [...kept.texts];
    server?.closeAllConnections();
    server?.close();
    const bad = await modelsDev(answer);
    await expect(refreshFacts({ kept, clock, url: bad.url }, signal)).rejects.toMatchObject({
      kind: 'model',
      message: expect.stringMatching(says),
      details: { next: expect.stringContaining('MODELS_DEV_URL') },
    });
    expect([...kept.texts]).toEqual(before);
  });

  it('is refused where nothing may be written', async () => {
    const refused = refreshFacts({ clock: manualClock(), url: 'http://127.0.0.1:9/api.json' }, signal);
    await expect(refused).rejects.toMatchObject({ kind: 'config' });
  });

  it('passes over a kept file that is damaged', async () => {
    const kept = keptInMemory('{"version":1,"at":1,"body"');
    expect(await keptFacts(kept)).toBeUndefined();
  });
});

describe('in the product', () => {
  it('lies between the catalogue and what the vendor lists, also after a restart', async () => {
    const dev = await modelsDev(withTag(body));
    const vendor = await startOpenAi({ models: [{ id: 'gpt-9', window: 300_000 }, { id: 'gpt-5.2' }] });
    const project = await tempProject({});
    const env = { ...vendorEnv({ openai: vendor.url }), MODELS_DEV_URL: dev.url };
    const polylogue = await testProduct({ root: project.root, env });
    try {
      expect(dev.seen).toEqual([]);
      await polylogue.product.models.refresh(signal);
      await polylogue.restart();
      const models = (await polylogue.product.models.providers({ fresh: true })).find(
        ({ id }) => id === 'openai',
      )?.models;
      expect(models?.find(({ id }) => id === 'gpt-5.2')).toMatchObject({ window: 500_000, price: { in: 1.5 } });
      expect(models?.find(({ id }) => id === 'gpt-9')).toMatchObject({ window: 300_000, efforts: ['low', 'high'] });
      expect(dev.seen).toHaveLength(1);
      const reply = await polylogue.call('chat', { prompt: 'Hi', model: 'gpt-9:high' });
      expect(reply.metadata).toMatchObject({ model_used: 'gpt-9' });
    } finally {
      await polylogue.close();
      await vendor.close();
      await project.dispose();
    }
  });
});

import { describe, expect, it } from 'vitest';
import { createAskModel } from '../../../src/models/call/call.ts';
import { createModelService } from '../../../src/models/call/models.ts';
import { configureProviders, createConnections } from '../../../src/models/catalogue/connections.ts';
import { ollama } from '../../../src/providers/ollama/ollama.ts';
import { providerSuite } from '../../contracts/provider-suite.ts';
import { modelInfo, say } from '../../models/scripted-model.ts';
import { realClock } from '../../support/clock.ts';
import { testProduct, vendorEnv } from '../../support/product.ts';
import { seededRandom } from '../../support/random.ts';
import { tempProject } from '../../support/temp-project.ts';
import type { FakeVendorOptions } from '../../support/vendors/fake-vendor.ts';
import { startOllama } from '../../support/vendors/start-ollama.ts';

const thinker = modelInfo({
  provider: 'ollama',
  id: 'gpt-oss:20b',
  window: 32_768,
  maxOutput: 16_384,
  reasoning: true,
  temperature: 'none',
  efforts: ['low', 'medium', 'high'],
});

providerSuite({
  name: 'ollama',
  definition: ollama,
  start: startOllama,
  settings: (host, apiKey = 'test-key') => ({ host, apiKey }),
  model: thinker,
  path: '/api/chat',
  headers: { authorization: 'Bearer test-key', 'content-type': 'application/json' },
  body: {
    think: 'low',
    truncate: false,
    shift: false,
    options: { num_ctx: 32_768, num_predict: 2000 },
    messages: [
      { role: 'system', content: 'You are careful.' },
      { role: 'user', content: expect.stringMatching(/^What is this\?\n\n=== WHAT TO DO NOW ===/) },
    ],
  },
  thinking: [
    { ask: { effort: 'high' }, body: { think: 'high' } },
    { ask: { effort: 'max' }, body: { think: 'high' } },
    { ask: { effort: 'minimal' }, body: { think: 'low' } },
  ],
  imageBody: base64 => ({ messages: [{ role: 'user', content: 'See:', images: [base64] }] }),
  roles: ['system', 'user'],
  tells: { cacheWrite: false, cacheRead: false, reasoning: false },
  finishes: ['length'],
  marks: false,
  keyName: 'OLLAMA_API_KEY',
});

async function withOllama<T>(
  options: FakeVendorOptions,
  run: (vendor: Awaited<ReturnType<typeof startOllama>>) => Promise<T>,
) {
  const vendor = await startOllama({ keys: [], ...options });
  try {
    return await run(vendor);
  } finally {
    await vendor.close();
  }
}

const never = () => new AbortController().signal;

describe('ollama', () => {
  it('is configured by its address alone, which a base address may stand for', () => {
    expect(ollama.configured({})).toBe(false);
    expect(ollama.configured({ host: '127.0.0.1' })).toBe(true);
    expect(ollama.options.host.env).toEqual(['OLLAMA_HOST', 'OLLAMA_BASE_URL']);
  });

  it('is local by its address, unless it may forward to the cloud', () => {
    for (const host of ['127.0.0.1:11434', 'http://localhost:11434', ':11434', '0.0.0.0', 'box.lan', '::1'])
      expect([host, ollama.local({ host })]).toEqual([host, true]);
    expect(ollama.local({ host: 'https://ollama.com' })).toBe(false);
    expect(ollama.local({ host: 'http://[' })).toBe(false);
    expect(ollama.local({})).toBe(false);
    expect(ollama.local({ host: '127.0.0.1', cloudModels: 'true' })).toBe(false);
  });

  it('switches thinking of models without levels on and off, and says nothing to those that do not think', async () => {
    const { providerOptions } = await ollama.connect({ host: '127.0.0.1' });
    const sent = (model: typeof thinker, effort: 'none' | 'low' | 'xhigh') =>
      providerOptions({ model, effort, maxOutputTokens: 1 }).ollama;
    const plain = { ...thinker, efforts: ['none', 'high'] as const };
    expect(sent(plain, 'none')).toMatchObject({ think: false });
    expect(sent(plain, 'low')).toMatchObject({ think: true });
    expect(sent({ ...thinker, efforts: ['none', 'high', 'max'] }, 'xhigh')).toMatchObject({ think: 'max' });
    expect(sent({ ...thinker, efforts: [] }, 'low')).not.toHaveProperty('think');
  });

  it('sends the temperature among its options and needs no key', async () => {
    await withOllama({}, async vendor => {
      const ask = createAskModel({
        connection: createConnections(configureProviders([ollama], { ollama: { host: vendor.url } })),
        clock: realClock(),
        random: seededRandom(),
        emit: () => {},
        isLocal: () => true,
        limits: { firstByteMs: 1000, idleMs: 1000, totalMs: 5000 },
      });
      vendor.script({ answer: 'Yes.', reasoning: 'Let me think.' });
      const answer = await ask({
        reqId: 'r',
        tool: 'chat',
        candidates: [{ model: modelInfo({ provider: 'ollama', id: 'llama3.2', window: 8192 }), reason: 'test' }],
        messages: [say('user', 'x')],
        maxOutputTokens: 100,
        temperature: 0.3,
        signal: never(),
      });
      expect(answer.text).toBe('Yes.');
      expect(vendor.requests[0]?.headers).not.toHaveProperty('authorization');
      expect(vendor.requests[0]?.body).toEqual({
        model: 'llama3.2',
        messages: [{ role: 'user', content: 'x' }],
        stream: true,
        truncate: false,
        shift: false,
        options: { num_ctx: 8192, num_predict: 100, temperature: 0.3 },
      });
      expect(vendor.violations).toEqual([]);
    });
  });

  it('lists what is pulled and converses, with the windows that they are asked with', async () => {
    const models = [
      { id: 'llama3.2:latest', window: 131_072, capabilities: ['completion', 'tools'] },
      { id: 'tiny:1b', window: 8_192, capabilities: ['completion', 'vision', 'thinking'] },
      { id: 'old:7b', window: 4_096 },
      { id: 'nomic:latest', window: 2_048, capabilities: ['embedding'] },
      { id: 'gpt-oss:120b-cloud', window: 131_072, capabilities: ['completion'] },
      { id: 'renamed', window: 131_072, remote: true },
    ];
    await withOllama({ models }, async vendor => {
      const { list } = await ollama.connect({ host: vendor.url });
      const listed = [
        { id: 'llama3.2', window: 32_768, input: ['text'], reasoning: false },
        { id: 'tiny:1b', window: 8_192, input: ['text', 'image'], reasoning: true },
        { id: 'old:7b', window: 4_096 },
      ];
      expect(await list!(never())).toEqual(listed);
      const asked = vendor.requests.length;
      expect(await list!(never())).toEqual(listed);
      // Only the names: what the models are was asked before.
      expect(vendor.requests.length).toBe(asked + 1);
      const wide = await ollama.connect({ host: vendor.url, numCtx: '65536', cloudModels: 'true' });
      expect((await wide.list!(never()))!.map(({ id, window }) => [id, window])).toEqual([
        ['llama3.2', 65_536],
        ['tiny:1b', 8_192],
        ['old:7b', 4_096],
        ['gpt-oss:120b-cloud', 65_536],
        ['renamed', 65_536],
      ]);
    });
  });

  it('lists a model of which the server tells nothing, with the window of the setting', async () => {
    await withOllama({ models: [{ id: 'odd:1b' }] }, async vendor => {
      vendor.script({ on: 'models' }, { on: 'models', fault: 'status', status: 500 });
      const { list } = await ollama.connect({ host: vendor.url, numCtx: '16384' });
      expect(await list!(never())).toEqual([{ id: 'odd:1b', window: 16_384 }]);
    });
  });

  it.each([
    ['a page', { fault: 'html', on: 'models' } as const],
    ['a refusal', { fault: 'status', status: 401, on: 'models' } as const],
    ['nothing', { fault: 'empty', on: 'models' } as const],
  ])('tells that there is no list when it gets %s', async (_name, step) => {
    await withOllama({}, async vendor => {
      vendor.script(step);
      const { list } = await ollama.connect({ host: vendor.url });
      await expect(list!(never())).rejects.toMatchObject({ kind: 'model', details: { provider: 'ollama' } });
    });
  });

  it('names its address, not its key, as what makes it usable', async () => {
    const team = createModelService({
      definitions: [ollama],
      settings: {},
      policy: { allowed: {}, denied: [], localOnly: false, prefer: 'quality', allowUnknown: false, offline: false },
      maxThinkingTokens: 1000,
      clock: realClock(),
      random: seededRandom(),
      emit: () => {},
    });
    expect(await team.providers()).toMatchObject([{ id: 'ollama', configured: false, env: ['OLLAMA_HOST'] }]);
  });

  it('asks no model of the cloud unless it may', async () => {
    const cloud = modelInfo({ provider: 'ollama', id: 'gpt-oss:120b-cloud' });
    const refusing = await ollama.connect({ host: '127.0.0.1' });
    expect(() => refusing.languageModel(cloud)).toThrow(/ollama\.com/);
    const allowing = await ollama.connect({ host: '127.0.0.1', cloudModels: 'true' });
    expect(allowing.languageModel(cloud).modelId).toBe(cloud.id);
  });
});

describe('ollama in the product', () => {
  const models = [
    { id: 'gpt-oss:20b', window: 131_072, capabilities: ['completion', 'thinking'] },
    { id: 'house/notes:latest', window: 16_384, capabilities: ['completion'] },
  ];

  async function inProduct(
    env: Record<string, string>,
    run: (
      polylogue: Awaited<ReturnType<typeof testProduct>>,
      vendor: Awaited<ReturnType<typeof startOllama>>,
    ) => Promise<void>,
  ) {
    const project = await tempProject({ 'a.md': 'A line.\n' });
    const vendor = await startOllama({ models });
    const polylogue = await testProduct({ root: project.root, env: { ...vendorEnv({ ollama: vendor.url }), ...env } });
    try {
      await run(polylogue, vendor);
      expect(vendor.violations).toEqual([]);
    } finally {
      await polylogue.close();
      await vendor.close();
      await project.dispose();
    }
  }

  const chats = (vendor: Awaited<ReturnType<typeof startOllama>>) =>
    vendor.requests.filter(({ dialect }) => dialect === 'ollama').map(({ body }) => body);

  it('answers by the names of what is pulled, tags and all, in the window of the setting', async () => {
    await inProduct({ OLLAMA_NUM_CTX: '20000' }, async (polylogue, vendor) => {
      for (const model of ['gpt-oss:20b', 'l:gpt-oss:20b:high', 'ollama:house/notes:latest', 'house/notes']) {
        const reply = await polylogue.call('chat', { prompt: 'Hi', model });
        expect(reply.metadata).toMatchObject({ provider_used: 'ollama' });
      }
      expect(chats(vendor)).toMatchObject([
        { model: 'gpt-oss:20b', options: { num_ctx: 20_000 } },
        { model: 'gpt-oss:20b', think: 'high' },
        { model: 'house/notes', options: { num_ctx: 16_384 } },
        { model: 'house/notes' },
      ]);
    });
  });

  it('chooses only among what is pulled, and refuses what the catalogue alone knows', async () => {
    await inProduct({}, async (polylogue, vendor) => {
      expect((await polylogue.call('chat', { prompt: 'Hi' })).metadata.provider_used).toBe('ollama');
      expect(chats(vendor)).toMatchObject([{ model: expect.stringMatching(/^(gpt-oss:20b|house\/notes)$/) }]);
      const refused = await polylogue.call('chat', { prompt: 'Hi', model: 'ollama:qwen3-coder:480b' });
      expect(refused).toMatchObject({ isError: true });
      expect(JSON.stringify(refused)).toContain('MODEL_NOT_FOUND');
      expect(chats(vendor)).toHaveLength(1);
    });
  });

  it('serves a house that lets nothing out', async () => {
    await inProduct({ LOCAL_ONLY: 'true' }, async polylogue => {
      expect((await polylogue.call('chat', { prompt: 'Hi' })).metadata.provider_used).toBe('ollama');
    });
  });

  it('never sends more than the window holds, however long the thread grows', async () => {
    await inProduct({ OLLAMA_NUM_CTX: '4096' }, async (polylogue, vendor) => {
      let thread: string | undefined;
      for (let turn = 0; turn < 12; turn++) {
        const prompt = `Question ${turn}: ${'some words that fill the window '.repeat(60)}`;
        const reply = await polylogue.call('chat', { prompt, model: 'gpt-oss:20b', continuation_id: thread });
        expect(reply.isError).toBe(false);
        thread = reply.continuation_id ?? reply.continuation_offer?.continuation_id ?? thread;
      }
      expect(thread).toBeTruthy();
      expect(chats(vendor).length).toBeGreaterThanOrEqual(12);
    });
  });
});

import { describe, expect, it } from 'vitest';
import type { ModelInfo } from '../../src/core/model.ts';
import { createAskModel } from '../../src/models/call/call.ts';
import { configureProviders, createConnections } from '../../src/models/catalogue/connections.ts';
import type { ProviderSettings } from '../../src/models/provider.ts';
import { openrouter } from '../../src/providers/openrouter.ts';
import { providerSuite } from '../contracts/provider-suite.ts';
import { modelInfo, say } from '../models/scripted-model.ts';
import { realClock } from '../support/clock.ts';
import { testProduct, vendorEnv } from '../support/product.ts';
import { seededRandom } from '../support/random.ts';
import { tempProject } from '../support/temp-project.ts';
import type { FakeVendor, Step } from '../support/vendors/fake-vendor.ts';
import { startOpenRouter } from '../support/vendors/start-openrouter.ts';

const claude: ModelInfo = modelInfo({
  provider: 'openrouter',
  id: 'anthropic/claude-sonnet-4.5',
  window: 1_000_000,
  maxOutput: 64_000,
  reasoning: true,
  temperature: 'none',
  efforts: ['low', 'medium', 'high'],
  price: { in: 3, out: 15 },
});
const mark = { type: 'ephemeral' };
const tailPart = { type: 'text', text: expect.stringContaining('WHAT TO DO NOW') };

providerSuite({
  name: 'openrouter',
  definition: openrouter,
  start: startOpenRouter,
  settings: (baseUrl, apiKey = 'test-key') => ({ apiKey, baseUrl }),
  model: claude,
  path: '/api/v1/chat/completions',
  headers: { authorization: 'Bearer test-key', 'content-type': 'application/json' },
  body: {
    max_tokens: 2000,
    session_id: 'thread-1',
    usage: { include: true },
    reasoning: { effort: 'low' },
    messages: [
      { role: 'system', content: [{ type: 'text', text: 'You are careful.', cache_control: mark }] },
      { role: 'user', content: [{ type: 'text', text: 'What is this?' }, tailPart] },
    ],
  },
  thinking: [
    { ask: { effort: 'high' }, body: { reasoning: { effort: 'high' } } },
    { ask: { effort: 'max' }, body: { reasoning: { effort: 'high' } } },
  ],
  imageBody: base64 => ({
    messages: [
      {
        role: 'user',
        content: [{ type: 'text' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } }],
      },
    ],
  }),
  roles: ['system', 'user'],
  tells: { cacheWrite: true },
  marks: true,
  keyName: 'OPENROUTER_API_KEY',
});

async function withOpenRouter<T>(run: (vendor: FakeVendor) => Promise<T>): Promise<T> {
  const vendor = await startOpenRouter();
  try {
    return await run(vendor);
  } finally {
    await vendor.close();
  }
}

function asking(vendor: FakeVendor, settings: ProviderSettings = {}) {
  const ask = createAskModel({
    connection: createConnections(
      configureProviders([openrouter], { openrouter: { apiKey: 'test-key', baseUrl: vendor.url, ...settings } }),
    ),
    clock: realClock(),
    random: { ...seededRandom(), fraction: () => 0.01 },
    emit: () => {},
    isLocal: () => false,
    limits: { firstByteMs: 1000, idleMs: 1000, totalMs: 5000 },
  });
  return (model: ModelInfo = claude) =>
    ask({
      reqId: 'r',
      tool: 'chat',
      candidates: [{ model, reason: 'test' }],
      messages: [say('user', 'x')],
      maxOutputTokens: 4000,
      signal: new AbortController().signal,
    });
}

describe('openrouter', () => {
  const budget = async (thinkingBudget: number, maxOutputTokens: number) => {
    const { providerOptions } = await openrouter.connect({ apiKey: 'k' });
    return providerOptions({ model: claude, thinkingBudget, maxOutputTokens }).openrouter?.reasoning;
  };

  it('gives a thinking budget that leaves room for an answer', async () => {
    expect(await budget(8000, 20_000)).toEqual({ max_tokens: 8000 });
    expect(await budget(8000, 5000)).toEqual({ max_tokens: 4000 });
    expect(await budget(10, 5000)).toEqual({ max_tokens: 1024 });
    expect(await budget(8000, 1500)).toBeUndefined();
    expect(await budget(0, 5000)).toEqual({ enabled: false });
  });

  it('tells who asks, where that was set', async () => {
    await withOpenRouter(async vendor => {
      await asking(vendor)();
      await asking(vendor, { referer: 'https://example.com/team', appTitle: 'Our team' })();
      const [silent, named] = vendor.requests.map(request => request.headers);
      expect(silent).not.toHaveProperty('http-referer');
      expect(silent).not.toHaveProperty('x-title');
      expect(named).toMatchObject({ 'http-referer': 'https://example.com/team', 'x-title': 'Our team' });
    });
  });

  it('refuses a title that no header can carry, before anything is asked', async () => {
    await expect(openrouter.connect({ apiKey: 'k', appTitle: 'Команда' })).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('OPENROUTER_TITLE'),
    });
  });

  it.each(['free', 'nitro', 'floor', 'online', 'thinking'])('sends the route :%s with the id', async route => {
    await withOpenRouter(async vendor => {
      const id = `deepseek/deepseek-chat:${route}`;
      await asking(vendor)(modelInfo({ provider: 'openrouter', id }));
      expect(vendor.requests[0]?.body).toMatchObject({ model: id });
      expect(vendor.violations).toEqual([]);
    });
  });

  it('answers with what the vendor charged rather than with the price of the catalogue', async () => {
    await withOpenRouter(async vendor => {
      vendor.script({ answer: 'x', usage: { input: 1000, output: 500 } });
      expect((await asking(vendor)()).costUsd).toBeCloseTo(0.003, 9);
    });
  });

  it("adds the bill of the upstream provider where the key for it is the user's own", async () => {
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    const charged = async (more: object) => {
      const chunk = {
        id: 'g',
        choices: [{ index: 0, delta: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
        usage: { ...usage, ...more },
      };
      return withOpenRouter(async vendor => {
        vendor.script(streamed(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`));
        return (await asking(vendor)()).costUsd;
      });
    };
    const details = { cost_details: { upstream_inference_cost: 0.5 } };
    expect(await charged({ cost: 0.02, is_byok: true, ...details })).toBeCloseTo(0.52, 9);
    expect(await charged({ cost: 0.5, is_byok: false, ...details })).toBeCloseTo(0.5, 9);
    // Nothing told: the catalogue's price.
    expect(await charged({})).toBeCloseTo((10 * 3 + 5 * 15) / 1e6, 9);
  });

  it('says what the upstream provider said, not merely that it said something', async () => {
    await withOpenRouter(async vendor => {
      const body = {
        error: {
          message: 'Provider returned error',
          code: 400,
          metadata: { provider_name: 'Groq', raw: '{"error":{"message":"bad tool schema"}}' },
        },
      };
      vendor.script({ fault: 'status', status: 400, body });
      await expect(asking(vendor)()).rejects.toMatchObject({
        message: expect.stringMatching(/Groq.*bad tool schema/),
        details: { class: 'bad_request', status: 400 },
      });
    });
  });

  const inStream: [code: number, metadata: object | undefined, kind: string][] = [
    [429, undefined, 'rate_limit'],
    [402, undefined, 'balance'],
    [400, { provider_name: 'X', raw: 'maximum context length is 10 tokens' }, 'context_length'],
    [403, { provider_name: 'X', reasons: ['violence'] }, 'content_filter'],
  ];
  it.each(inStream)('understands an error %i inside of a stream', async (code, metadata, kind) => {
    await withOpenRouter(async vendor => {
      const error = { id: 'g', error: { code, message: 'No.', metadata }, choices: [] };
      vendor.byDefault(streamed(`: OPENROUTER PROCESSING\n\ndata: ${JSON.stringify(error)}\n\n`));
      await expect(asking(vendor)()).rejects.toMatchObject({ details: { class: kind, status: code } });
    });
  });
});

/** A 200 whose body is an event stream as it stands. */
function streamed(body: string): Step {
  return { fault: 'status', status: 200, headers: { 'content-type': 'text/event-stream' }, body };
}

describe('openrouter in the product', () => {
  it('answers a name that is passed on as typed, and tells what it cost', async () => {
    const project = await tempProject({ 'a.md': 'A line.\n' });
    await withOpenRouter(async vendor => {
      const polylogue = await testProduct({ root: project.root, env: vendorEnv({ openrouter: vendor.url }) });
      try {
        const asked = () => vendor.requests.filter(({ dialect }) => dialect === 'chat');
        vendor.script({ answer: 'Yes.', usage: { input: 1000, output: 500 } });
        const reply = await polylogue.call('chat', { prompt: 'Hi', model: 'new-vendor/new-model:free' });
        expect(asked()[0]?.body).toMatchObject({ model: 'new-vendor/new-model:free' });
        expect(reply.metadata).toMatchObject({ provider_used: 'openrouter', cost_usd: 0.003 });
        await polylogue.call('chat', { prompt: 'Hi', model: 'r:anthropic/claude-sonnet-4.5' });
        expect(asked()[1]?.body).toMatchObject({ model: 'anthropic/claude-sonnet-4.5' });
        // Its list was looked at once, for the name that nobody here knew.
        expect(vendor.requests.map(({ dialect }) => dialect)).toEqual(['models', 'chat', 'chat']);
        expect(vendor.violations).toEqual([]);
      } finally {
        await polylogue.close();
        await project.dispose();
      }
    });
  });

  it('keeps limits on costs with the prices of its list, and chooses no model for a price alone', async () => {
    const project = await tempProject({ 'a.md': 'A line.\n' });
    const pricing = (prompt: string, more = {}) => ({ row: { pricing: { prompt, completion: '0.000002', ...more } } });
    const vendor = await startOpenRouter({
      models: [
        { id: 'anthropic/claude-haiku-4.5', window: 200_000 },
        { id: 'new-vendor/free-1', window: 100_000, row: { pricing: { prompt: '0', completion: '0' } } },
        { id: 'new-vendor/cheap-1', window: 100_000, ...pricing('0.00000125', { input_cache_read: '0.0000001' }) },
        { id: 'new-vendor/varies-1', window: 100_000, ...pricing('-1') },
        { id: 'new-vendor/toll-1', window: 100_000, ...pricing('0', { request: '0.5' }) },
      ],
    });
    const settings = { MAX_COST_PER_REQUEST: '0.25', ROUTE_PREFER: 'cost' };
    const polylogue = await testProduct({
      root: project.root,
      env: { ...vendorEnv({ openrouter: vendor.url }), ...settings },
    });
    try {
      const ask = (model: string) => polylogue.call('chat', { prompt: 'Hi', model });
      for (const id of ['new-vendor/cheap-1', 'new-vendor/free-1'])
        expect(await ask(id)).toMatchObject({ metadata: { model_used: id } });
      for (const id of ['new-vendor/varies-1', 'new-vendor/toll-1'])
        expect(await ask(id)).toMatchObject({ error: { code: 'LIMIT' } });
      expect((await ask('auto')).metadata).toMatchObject({ model_used: 'anthropic/claude-haiku-4.5' });
    } finally {
      await polylogue.close();
      await vendor.close();
      await project.dispose();
    }
  });
});

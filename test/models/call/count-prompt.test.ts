import { describe, expect, it, onTestFinished } from 'vitest';
import type { AppEvent } from '../../../src/core/events.ts';
import type { Message } from '../../../src/core/message.ts';
import type { ModelInfo } from '../../../src/core/model.ts';
import { createCountPrompt } from '../../../src/models/call/models.ts';
import { configureProviders, createConnections } from '../../../src/models/catalogue/connections.ts';
import type { ProviderDefinition } from '../../../src/models/provider.ts';
import { anthropic } from '../../../src/providers/anthropic.ts';
import { google } from '../../../src/providers/google/google.ts';
import { moonshot } from '../../../src/providers/moonshot/moonshot.ts';
import { openai } from '../../../src/providers/openai.ts';
import { testProduct, vendorEnv } from '../../support/product.ts';
import { seededRandom } from '../../support/random.ts';
import { tempProject } from '../../support/temp-project.ts';
import type { FakeVendor, FakeVendorOptions } from '../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { startGoogle } from '../../support/vendors/start-google.ts';
import { startMoonshot } from '../../support/vendors/start-moonshot.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { modelInfo } from '../scripted-model.ts';

const messages: Message[] = [
  { role: 'system', section: 'preamble', parts: [{ type: 'text', text: 'You are careful.' }], cacheMark: true },
  {
    role: 'user',
    section: 'turn',
    parts: [
      { type: 'text', text: 'What is this? '.repeat(40) },
      { type: 'image', mediaType: 'image/png', data: Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex') },
    ],
  },
];

const claude = modelInfo({
  provider: 'anthropic',
  id: 'claude-sonnet-4-5',
  input: ['text', 'image'],
  thinkingBudget: { min: 1024, max: 16_000 },
});
const gemini = modelInfo({ provider: 'google', id: 'gemini-2.5-pro', input: ['text', 'image'] });

type Start = (options?: FakeVendorOptions) => Promise<FakeVendor>;

interface Circumstances {
  signal?: AbortSignal;
  /** `onTestFinished` of a test that runs at the same time as others. */
  whenFinished?: (end: () => Promise<void>) => unknown;
}

async function counting(definition: ProviderDefinition, start: Start, more: Circumstances = {}) {
  const { signal = new AbortController().signal, whenFinished = onTestFinished } = more;
  const running = await start();
  whenFinished(() => running.close());
  const events: AppEvent[] = [];
  const connection = createConnections(
    configureProviders([definition], { [definition.id]: { apiKey: 'test-key', baseUrl: running.url } }),
  );
  const count = createCountPrompt(connection, event => events.push(event));
  return {
    running,
    events,
    count: (model: ModelInfo) =>
      count({
        reqId: 'r',
        candidate: { model, effort: 'high', reason: 'test' },
        messages,
        maxOutputTokens: 500,
        signal,
      }),
  };
}

it('is asked of Kimi at its own counter, for the messages that would be sent', async () => {
  const { running, count, events } = await counting(moonshot, startMoonshot);
  const kimi = modelInfo({ provider: 'moonshot', id: 'kimi-k2.6', input: ['text', 'image'] });
  expect(await count(kimi)).toBeGreaterThan(160);
  expect(await count(kimi)).toBeLessThan(200);
  expect(running.requests.map(({ dialect }) => dialect).filter(dialect => dialect === 'chat')).toEqual([]);
  expect(running.violations).toEqual([]);
  expect(events).toEqual([]);
});

const counters = [
  ['Anthropic', anthropic, startAnthropic, claude, '/v1/messages/count_tokens'],
  ['Gemini', google, startGoogle, gemini, '/v1beta/models/gemini-2.5-pro:countTokens'],
] as const;

it.concurrent.for(counters)(
  'the count of %s is left to the estimate where it does not come in time, and the log says so',
  async ([, definition, start, model], { onTestFinished: whenFinished }) => {
    const { running, count, events } = await counting(definition, start, { whenFinished });
    running.script({ on: 'count', fault: 'hang_before_headers' });
    expect(await count(model)).toBeUndefined();
    expect(events).toMatchObject([{ message: expect.stringMatching(/: no answer within 5 s$/) }]);
  },
);

describe.each(counters)('the count of %s', (_name, definition, start, model, path) => {
  it('is asked for the very prompt that would be sent, at the documented address', async () => {
    const { running, count, events } = await counting(definition, start);
    const tokens = await count(model);
    const [request] = running.requests;
    expect(request?.path).toBe(path);
    expect(tokens).toBe(request?.tokens);
    expect(tokens).toBeGreaterThan(100);
    expect(request?.messages.map(({ role }) => role)).toEqual(['system', 'user']);
    expect(request?.messages.at(-1)?.text).toContain('[image]');
    expect(running.requests).toHaveLength(1);
    expect(running.violations).toEqual([]);
    expect(events).toEqual([]);
  });

  it.each([500, 429, 404])('is left to the estimate after %i, and the log says so', async status => {
    const { running, count, events } = await counting(definition, start);
    running.script({ on: 'count', fault: 'status', status });
    expect(await count(model)).toBeUndefined();
    expect(events).toMatchObject([{ type: 'warning', where: `tokens of ${definition.id}` }]);
    expect(JSON.stringify(events)).not.toContain('test-key');
  });

  it('is left to the estimate when it is no number', async () => {
    const { running, count } = await counting(definition, start);
    running.script({ on: 'count', fault: 'status', status: 200, body: { input_tokens: 'many', totalTokens: -1 } });
    expect(await count(model)).toBeUndefined();
  });

  it('ends with the call', async () => {
    const caller = new AbortController();
    const { running, count } = await counting(definition, start, { signal: caller.signal });
    running.script({ on: 'count', fault: 'hang_before_headers' });
    const pending = count(model).catch(error => error);
    await expect.poll(() => running.requests.length).toBe(1);
    caller.abort();
    expect(await pending).toMatchObject({ kind: 'cancelled' });
  });
});

it('is undefined for vendors that count for nobody, without a request', async () => {
  const { running, count, events } = await counting(openai, startOpenAi);
  expect(await count(modelInfo({ provider: 'openai', id: 'gpt-5.2' }))).toBeUndefined();
  expect(running.requests).toEqual([]);
  expect(events).toEqual([]);
});

describe('in a call', () => {
  /** Random letters: far dearer than the estimate, so that only a count decides. */
  const dense = (size: number) => {
    const random = seededRandom(7);
    return Array.from({ length: size }, () => 'qzxjkvbwpy'[Math.floor(random.fraction() * 10)]).join('');
  };

  async function ask(text: string, window: number, count: 'told' | 'failing') {
    const project = await tempProject({ 'dense.txt': text, 'models.json': modelsFile(window) });
    const running = await startAnthropic();
    onTestFinished(() => running.close());
    if (count === 'failing') running.script(...Array(9).fill({ on: 'count', fault: 'status', status: 500 }));
    const env = {
      ...vendorEnv({ anthropic: running.url }),
      ANTHROPIC_MODELS_CONFIG_PATH: project.path('models.json'),
      MASK_SECRETS: 'off',
    };
    const polylogue = await testProduct({ root: project.root, env });
    try {
      const model = 'anthropic:claude-sonnet-4-5';
      const reply = await polylogue.call('chat', { prompt: 'Count.', files: [project.path('dense.txt')], model });
      const asked = running.requests.filter(({ dialect }) => dialect === 'messages');
      const counts = running.requests.filter(({ dialect }) => dialect === 'count').length;
      return { reply, asked, counts, violations: running.violations };
    } finally {
      await polylogue.close();
      await project.dispose();
    }
  }

  const modelsFile = (window: number) =>
    JSON.stringify({ models: [{ model_name: 'claude-sonnet-4-5', context_window: window, max_output_tokens: 4_000 }] });

  it('asks nobody while the estimate leaves no doubt', async () => {
    const { reply, counts, asked } = await ask('A plain line.\n'.repeat(50), 60_000, 'told');
    expect(reply.isError).toBe(false);
    expect(counts).toBe(0);
    expect(asked).toHaveLength(1);
  });

  it('sends what the vendor says will fit, though the worst case of its family would not', async () => {
    const text = dense(26_000);
    const told = await ask(text, 28_000, 'told');
    expect(told.counts).toBeGreaterThan(0);
    expect(told.reply.isError).toBe(false);
    expect(told.asked[0]?.canonical).toContain(text);
    expect(told.violations).toEqual([]);

    const failing = await ask(text, 28_000, 'failing');
    expect(failing.counts).toBeGreaterThan(0);
    expect(failing.asked.some(({ canonical }) => canonical.includes(text))).toBe(false);
  });
});

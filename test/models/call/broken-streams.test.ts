import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ModelInfo } from '../../../src/core/model.ts';
import { dayOf } from '../../../src/core/usage.ts';
import type { ModelQuestion } from '../../../src/models/ask-model.ts';
import { createAskModel } from '../../../src/models/call/call.ts';
import { configureProviders, createConnections } from '../../../src/models/catalogue/connections.ts';
import type { ProviderDefinition, ProviderSettings } from '../../../src/models/provider.ts';
import { createMeter } from '../../../src/models/spend-meter.ts';
import { anthropic } from '../../../src/providers/anthropic.ts';
import { google } from '../../../src/providers/google/google.ts';
import { ollama } from '../../../src/providers/ollama/ollama.ts';
import { openai } from '../../../src/providers/openai.ts';
import { createMemoryStore } from '../../../src/storage/memory/memory.ts';
import { manualClock } from '../../support/clock.ts';
import { testProduct, vendorEnv } from '../../support/product.ts';
import { seededRandom } from '../../support/random.ts';
import { tempProject } from '../../support/temp-project.ts';
import type { BrokenStep, FakeVendor, FakeVendorOptions } from '../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../support/vendors/start-anthropic.ts';
import { startGoogle } from '../../support/vendors/start-google.ts';
import { startOllama } from '../../support/vendors/start-ollama.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import {
  candidate,
  finish,
  modelInfo,
  never,
  type Scripted,
  say,
  scriptedConnection,
  text,
} from '../scripted-model.ts';

const limits = { firstByteMs: 120_000, idleMs: 60_000, totalMs: 300_000 };

interface WireCase {
  name: string;
  definition: ProviderDefinition;
  start(options?: FakeVendorOptions): Promise<FakeVendor>;
  settings(url: string): ProviderSettings;
  model: string;
  /** It tells the input before the first token. */
  tellsFirst?: true;
}

const keyed = (baseUrl: string) => ({ baseUrl, apiKey: 'test-key' });

const wires: WireCase[] = [
  { name: 'OpenAI responses', definition: openai, start: startOpenAi, settings: keyed, model: 'gpt-4.1' },
  {
    name: 'OpenAI chat',
    definition: openai,
    start: startOpenAi,
    settings: url => ({ ...keyed(url), apiStyle: 'chat' }),
    model: 'gpt-4.1',
  },
  {
    name: 'Anthropic messages',
    definition: anthropic,
    start: startAnthropic,
    settings: keyed,
    model: 'claude-sonnet-4-5',
    tellsFirst: true,
  },
  { name: 'Gemini', definition: google, start: startGoogle, settings: keyed, model: 'gemini-2.5-flash' },
  {
    name: 'Ollama',
    definition: ollama,
    start: startOllama,
    settings: host => ({ host, apiKey: 'test-key' }),
    model: 'llama3.2:latest',
  },
];

const long = 'The door turns on its hinge, and the hinge holds it to the frame. '.repeat(8);

const breaks: BrokenStep[] = [
  { fault: 'cut_mid_stream', answer: long },
  { fault: 'end_mid_stream', answer: long },
  { fault: 'error_in_stream', answer: long },
  { fault: 'hang_mid_stream', answer: long },
];

/** Asks one provider behind a meter, with a clock that a test moves. */
async function asking({ definition, settings, model }: WireCase, vendor: FakeVendor) {
  const clock = manualClock();
  const store = createMemoryStore();
  const connection = createConnections(configureProviders([definition], { [definition.id]: settings(vendor.url) }));
  await connection(definition.id);
  let progress = 0;
  const meter = createMeter({
    ledger: store.spend,
    caps: {},
    pricing: { isLocal: () => false, allowUnpriced: false },
    clock,
    random: seededRandom(1),
    emit: () => {},
    ask: createAskModel({
      connection,
      clock: { ...clock, sleep: ms => clock.advance(ms) },
      random: seededRandom(),
      emit: () => {},
      isLocal: () => false,
      limits,
    }),
  });
  const info: ModelInfo = modelInfo({ provider: definition.id, id: model, price: { in: 1, out: 10 } });
  const question: ModelQuestion = {
    reqId: 'r',
    tool: 'chat',
    payer: { owner: 'local' },
    candidates: [{ model: info, reason: 'test' }],
    messages: [say('user', 'What is a door? '.repeat(40))],
    maxOutputTokens: 2_000,
    onProgress: () => progress++,
    signal: new AbortController().signal,
  };
  return {
    question,
    clock,
    begin: (more: Partial<ModelQuestion>) => meter.ask({ ...question, ...more }),
    meter,
    /** Asks; where nothing more comes, however often this process has looked, the clock runs out. */
    async ask(more: Partial<ModelQuestion> = {}) {
      const asked = meter.ask({ ...question, ...more });
      let settled = false;
      asked.then(
        () => (settled = true),
        () => (settled = true),
      );
      for (let seen = 0; !settled; ) {
        await expect.poll(() => settled || progress !== seen, { interval: 3 }).toBe(true);
        for (let looks = 0; !settled && looks < 100; looks++) {
          if (progress !== seen) looks = 0;
          seen = progress;
          await turn();
        }
        if (!settled) await clock.advance(limits.idleMs);
      }
      return asked;
    },
    progress: () => progress,
    async rows() {
      await meter.flush();
      const all = await store.spend.rows({ owner: 'local', from: dayOf(clock.now()) });
      return all.filter(({ calls }) => calls > 0);
    },
  };
}

describe.each(wires)('a broken stream of $name', wire => {
  let vendor: FakeVendor;
  beforeAll(async () => {
    vendor = await wire.start();
    // The first answer is read only after what is loaded for it: one that is cut meanwhile is lost.
    await (await asking(wire, vendor)).begin({});
  });
  afterAll(() => vendor.close());
  const requests = (before: number) => vendor.requests.length - before;

  it.each(breaks)('is the answer where it says something, and is paid for once: $fault', async step => {
    const before = vendor.requests.length;
    vendor.byDefault(step);
    const { ask, rows } = await asking(wire, vendor);
    const answer = await ask();
    expect(answer).toMatchObject({ partial: true, finish: { kind: 'other', raw: 'interrupted' } });
    expect(long.startsWith(answer.text) && answer.text.length > 100).toBe(true);
    expect(answer.warnings.join()).toMatch(/broke off/);
    expect(requests(before)).toBe(1);
    expect(await rows()).toMatchObject([{ calls: 1, usage: { estimated: 1, input: expect.any(Number) } }]);
    expect(answer.usage.output).toBeGreaterThan(40);
  });

  it.each(breaks)(
    'is asked for once more where it says nothing yet, and both are in the ledger: $fault',
    async step => {
      const before = vendor.requests.length;
      vendor.byDefault({ ...step, answer: 'Well, it is a door', after: 1 });
      const { ask, rows } = await asking(wire, vendor);
      const answer = await ask();
      expect(answer).toMatchObject({ partial: true });
      expect(answer.text).not.toBe('');
      expect(requests(before)).toBe(2);
      const [row] = await rows();
      expect(row).toMatchObject({ calls: 2, usage: { estimated: 2 } });
      expect(row?.usage.input).toBeGreaterThan(2 * 100);
      expect(row?.costUsd).toBeGreaterThan(0);
    },
  );

  it('is asked for once more where a program reads it, and the whole answer is the answer', async () => {
    const before = vendor.requests.length;
    vendor.script({ fault: 'cut_mid_stream', answer: long });
    vendor.byDefault({ answer: '{"class": "chat"}' });
    const { ask, rows } = await asking(wire, vendor);
    expect(await ask({ wholeOnly: true })).toMatchObject({ partial: false, text: '{"class": "chat"}' });
    expect(requests(before)).toBe(2);
    expect(await rows()).toMatchObject([{ calls: 2, usage: { estimated: 1 } }]);
  });

  it('is in the ledger when its caller gives up', async () => {
    vendor.byDefault({ fault: 'hang_mid_stream', answer: long });
    const { begin, rows, progress } = await asking(wire, vendor);
    const caller = new AbortController();
    const asked = begin({ signal: caller.signal });
    asked.catch(() => undefined);
    await expect.poll(progress, { interval: 3 }).toBeGreaterThan(0);
    caller.abort();
    await expect(asked).rejects.toMatchObject({ kind: 'cancelled' });
    expect(await rows()).toMatchObject([{ calls: 1, usage: { estimated: 1 } }]);
  });

  it.each(['hang_before_headers', 'hang_after_headers'] as const)(
    'of which nothing came is in the ledger with an estimate of what was sent: %s',
    async fault => {
      vendor.byDefault({ fault });
      const before = vendor.requests.length;
      const { rows, question, clock, meter } = await asking(wire, vendor);
      const asked = meter.ask(question).catch((error: unknown) => error);
      for (let sent = 0; sent < 3; sent++) {
        await expect.poll(() => requests(before) > sent, { interval: 3 }).toBe(true);
        await new Promise(resolve => setTimeout(resolve, 10));
        await clock.advance(limits.firstByteMs);
        if ((await Promise.race([asked, undefined])) !== undefined) break;
      }
      expect(await asked).toMatchObject({ details: { class: 'timeout' } });
      const [row] = await rows();
      expect(row).toMatchObject({ calls: requests(before), usage: { estimated: requests(before), output: 0 } });
      expect(row?.usage.input).toBeGreaterThan(100 * requests(before));
    },
  );

  it.each(['garbage', 'reset'] as const)('of which nothing was understood costs nothing: %s', async fault => {
    vendor.byDefault({ fault });
    const { ask, rows } = await asking(wire, vendor);
    await expect(ask()).rejects.toMatchObject({ kind: 'model' });
    expect(await rows()).toEqual([]);
  });

  it('that was refused costs nothing, and a whole answer is counted as the vendor tells', async () => {
    const { ask, rows } = await asking(wire, vendor);
    vendor.script({ fault: 'status', status: 401 });
    await expect(ask()).rejects.toMatchObject({ kind: 'model' });
    expect(await rows()).toEqual([]);
    vendor.byDefault({ answer: 'A hinge.' });
    const answer = await ask();
    expect(answer.partial).toBe(false);
    expect(answer.usage.estimated).toBeUndefined();
    expect(await rows()).toMatchObject([{ calls: 1 }]);
    expect((await rows())[0]?.usage.estimated).toBeUndefined();
  });
});

describe('what a vendor told before its stream broke', () => {
  it.each(wires.filter(({ tellsFirst }) => tellsFirst))('is in the ledger as it told it: $name', async wire => {
    const vendor = await wire.start();
    vendor.script({ fault: 'error_in_stream', after: 0 }, { fault: 'status', status: 401 });
    const { ask, rows } = await asking(wire, vendor);
    await expect(ask()).rejects.toMatchObject({ kind: 'model' });
    expect(await rows()).toMatchObject([{ calls: 1, usage: { input: vendor.requests[0]?.tokens, estimated: 1 } }]);
    await vendor.close();
  });
});

describe('after the first token', () => {
  const raw = (rawValue: unknown): Scripted => ({ type: 'raw', rawValue });
  const thought: Scripted = { type: 'reasoning-delta', id: '0', delta: 'Hm. '.repeat(100) };
  const cutCall: Scripted = { type: 'tool-input-delta', id: '0', delta: '{"path": "a' };
  const tools = [{ name: 'read', description: 'Reads.', inputSchema: { type: 'object' as const } }];

  function setUp(scripts: Record<string, Parameters<typeof scriptedConnection>[0]>) {
    const vendors = Object.entries(scripts).map(([id, each]) => [id, scriptedConnection(each)] as const);
    const clock = manualClock();
    const waste: number[] = [];
    const ask = createAskModel({
      connection: async id => new Map(vendors).get(id)?.connection ?? scriptedConnection([[]]).connection,
      clock,
      random: seededRandom(),
      emit: () => {},
      isLocal: () => false,
      limits,
    });
    const question: ModelQuestion = {
      reqId: 'r',
      tool: 'chat',
      candidates: vendors.map(([provider]) => candidate({ provider, id: `${provider}-1`, price: { in: 1, out: 1 } })),
      messages: [say('user', 'hello')],
      maxOutputTokens: 1_000,
      signal: new AbortController().signal,
      onWaste: ({ usage }) => waste.push(usage.input),
    };
    const run = async (more: Partial<ModelQuestion> = {}) => {
      const asked = ask({ ...question, ...more }).then(
        answer => ({ answer, error: undefined }),
        error => ({ answer: undefined, error }),
      );
      let settled = false;
      void asked.then(() => (settled = true));
      while (!settled) await clock.advance(1_000);
      return { ...(await asked), requests: vendors.reduce((sum, [, { calls }]) => sum + calls.length, 0) };
    };
    return { run, clock, waste, question };
  }

  const stall: Scripted = { wait: never };

  it.each([
    ['thoughts alone', [thought]],
    ['a thought in the text', [text(`<think>${'So. '.repeat(100)}`)]],
    ['a call that was cut', [text(long), cutCall]],
    ['a few words', [text('It is')]],
    ['thoughts, and a stall', [thought, stall]],
  ])('one request more is made for %s, over retries and fallbacks together', async (_what, script) => {
    const { run, waste } = setUp({ alpha: [[...script]], beta: [[...script]], gamma: [[text('Late.'), finish()]] });
    const { requests } = await run();
    expect(requests).toBe(2);
    expect(waste.length).toBeGreaterThan(0);
  });

  it('the one more goes to somebody else where there is somebody, and then there is an answer', async () => {
    const { run } = setUp({ alpha: [[thought]], beta: [[text('Fine.'), finish()]] });
    expect(await run()).toMatchObject({ requests: 2, answer: { text: 'Fine.', model: { provider: 'beta' } } });
  });

  it('what an agent says before its calls is of no use by itself, but its last word is', async () => {
    const script = () => ({ alpha: [[text(long)], [text(long), finish()]] });
    expect(await setUp(script()).run({ tools })).toMatchObject({ requests: 2, answer: { partial: false } });
    const last = await setUp(script()).run({ tools, toolChoice: 'none' });
    expect(last).toMatchObject({ requests: 1, answer: { partial: true } });
  });

  it('the longer of two pieces is kept, and the shorter one told as waste', async () => {
    const { run, waste } = setUp({ alpha: [[text('It is a')], [text('It')]] });
    expect(await run()).toMatchObject({ requests: 2, answer: { text: 'It is a', partial: true } });
    expect(waste).toHaveLength(1);
  });

  it('a piece that was kept is told as waste when the caller gives up before there is more', async () => {
    const { run, waste, clock } = setUp({ alpha: [[text('It is')], [stall]] });
    const caller = new AbortController();
    clock.after(5_000, () => caller.abort());
    expect((await run({ signal: caller.signal })).error).toMatchObject({ kind: 'cancelled' });
    // The piece, and the request that was waited for.
    expect(waste).toHaveLength(2);
  });

  it('what was told of the answer counts where the end tells of the prompt alone', async () => {
    const inputTokens = { total: 100, noCache: 100, cacheRead: 0, cacheWrite: 0 };
    const usage = { inputTokens, outputTokens: { total: 0, text: 0, reasoning: 0 } };
    const end: Scripted = { type: 'finish', finishReason: { unified: 'content-filter', raw: 'RECITATION' }, usage };
    const told = raw({ usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 700, thoughtsTokenCount: 200 } });
    const { answer } = await setUp({ alpha: [[told, text('Half'), end]] }).run();
    expect(answer?.usage).toMatchObject({ input: 100, output: 900, reasoning: 200 });
  });

  it.each([
    [1e300, 20],
    [100, 1e300],
    [4_000_001, 20],
    [100, 400_001],
  ])('counts that no answer can come to (%d in, %d out) are none', async (input, output) => {
    const inputTokens = { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 };
    const usage = { inputTokens, outputTokens: { total: output, text: output, reasoning: 0 } };
    const end: Scripted = { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage };
    const told = raw({ usage: { input_tokens: input, output_tokens: output } });
    const { run } = setUp({ alpha: [[told, text(long), end]] });
    const model = candidate({ provider: 'alpha', window: 1_000_000, maxOutput: 100_000 });
    const { answer } = await run({ candidates: [model] });
    expect(answer?.usage.estimated).toBe(1);
    expect(Math.max(answer?.usage.input ?? 0, answer?.usage.output ?? 0)).toBeLessThan(1_000);
    expect(answer?.warnings.join()).toContain('told no token counts');
    const searching = { maxResults: 5, maxRounds: 1 };
    const again = await setUp({ alpha: [[told, text(long), end]] }).run({ candidates: [model], webSearch: searching });
    // Each round of a search is a prompt of its own.
    expect(again.answer?.usage.estimated).toBe(Math.max(input, output) < 1e300 ? undefined : 1);
  });

  it.each([
    [
      { type: 'message_start', message: { usage: { input_tokens: 7, cache_read_input_tokens: 90, output_tokens: 1 } } },
      97,
    ],
    [
      { candidates: [], usageMetadata: { promptTokenCount: 50, toolUsePromptTokenCount: 4, thoughtsTokenCount: 9 } },
      54,
    ],
    [
      { choices: [], usage: { prompt_tokens: 31, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 8 } } },
      31,
    ],
    [{ type: 'response.in_progress', response: { usage: { input_tokens: 12, output_tokens: 3 } } }, 12],
    [{ x_groq: { usage: { prompt_tokens: 33, completion_tokens: 1 } } }, 33],
  ])('the input counts as told: %j', async (chunk, input) => {
    const { run } = setUp({ alpha: [[raw(chunk), text(long)]] });
    const { answer } = await run();
    expect(answer?.usage).toMatchObject({ input, estimated: 1 });
    expect(answer?.warnings.join()).toContain('broke off before it told all token counts');
  });
});

describe('the product', () => {
  it('shows a broken answer as partial, stores it with its mark, and names what a failed call cost', async () => {
    const [vendor, project] = await Promise.all([startOpenAi(), tempProject()]);
    const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', POLYLOGUE_STORE: 'memory' };
    const product = await testProduct({ root: project.root, env: { ...env } });
    vendor.script({ fault: 'cut_mid_stream', answer: long });
    const reply = await product.call('chat', { prompt: 'What is a door?' });
    expect(reply).toMatchObject({
      status: 'partial',
      metadata: { finish_reason: 'interrupted', usage: { estimated: true } },
    });
    expect(long.startsWith(reply.content)).toBe(true);
    expect(vendor.requests).toHaveLength(1);
    const shown = await product.call('threads', {
      action: 'read',
      continuation_id: reply.continuation_offer.continuation_id,
    });
    expect(shown.transcript[1]).toMatchObject({ partial: true, content: reply.content });
    vendor.byDefault({ answer: '', reasoning: 'Hm. '.repeat(200), finish: 'length' });
    const failed = await product.call('chat', { prompt: 'What is a window?', model: 'gpt-5-mini' });
    expect(failed).toMatchObject({
      isError: true,
      metadata: { cost_usd: expect.any(Number), usage: { input: expect.any(Number) } },
    });
    await product.close();
    await Promise.all([vendor.close(), project.dispose()]);
  });
});

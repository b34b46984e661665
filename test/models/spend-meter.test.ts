import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AppError, cancelledError } from '../../src/core/errors.ts';
import { threadId } from '../../src/core/ids.ts';
import type { Candidate, Price } from '../../src/core/model.ts';
import { dayOf } from '../../src/core/usage.ts';
import type { AskModel, ModelAnswer, ModelQuestion } from '../../src/models/ask-model.ts';
import type { SpendCaps } from '../../src/models/budget.ts';
import { estimateCost, promptTokens } from '../../src/models/budget.ts';
import { createMeter } from '../../src/models/spend-meter.ts';
import { createMemoryStore } from '../../src/storage/memory/memory.ts';
import type { Store } from '../../src/storage/store.ts';
import { manualClock } from '../support/clock.ts';
import { seededRandom } from '../support/random.ts';
import { sqlitePlace } from '../support/sqlite-temp.ts';

const thread = threadId('11111111-1111-4111-8111-111111111111');
const messages = [
  { role: 'user' as const, section: 'turn' as const, parts: [{ type: 'text' as const, text: 'Why?' }] },
];

function candidate(price: Price | undefined, provider = 'openai'): Candidate {
  const model = {
    provider,
    id: 'gpt-m',
    name: 'M',
    aliases: [],
    window: 1_000_000,
    maxOutput: 100_000,
    input: ['text'] as const,
    efforts: [],
    reasoning: false,
    temperature: 'range' as const,
    tools: false,
    score: 1,
    allowCodeGeneration: false,
    status: 'active' as const,
    ...(price && { price }),
  };
  return { model, reason: 'test' };
}

/** A dollar for a hundred thousand tokens of answer; what goes in is free, so that sums are easy. */
const priced = candidate({ in: 0, out: 10 });

function questionOf(changes: Partial<ModelQuestion> = {}): ModelQuestion {
  return {
    reqId: 'r1',
    tool: 'chat',
    payer: { owner: 'local', thread },
    candidates: [priced],
    messages,
    maxOutputTokens: 10_000,
    signal: new AbortController().signal,
    ...changes,
  };
}

function answerOf({ candidates }: ModelQuestion, output = 5_000): ModelAnswer {
  const [first = priced] = candidates;
  const { price } = first.model;
  return {
    text: 'Because.',
    model: first.model,
    candidate: first,
    usage: { input: 10, output, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
    ...(price && { costUsd: (10 * price.in + output * price.out) / 1e6 }),
    finish: { kind: 'stop' },
    partial: false,
    citations: [],
    attempts: [],
    latencyMs: 1,
    warnings: [],
  };
}

const refused = (limit?: string) => ({
  kind: 'limit',
  details: { code: 'LIMIT', class: 'cost', ...(limit && { data: expect.objectContaining({ limit }) }) },
});

/** It will be free again, or spent: nothing says that the day is over. */
const reserved = (limit: string) => ({
  ...refused(limit),
  message: expect.stringContaining('is free: calls under way reserve $0.10.'),
  details: { class: 'over_capacity', retryable: true, data: { limit, reserved_usd: 0.1 } },
});

describe('the meter before the models', () => {
  let store: Store;
  let asked: ModelQuestion[];
  const clock = manualClock();
  const warnings: string[] = [];

  beforeEach(() => {
    store = createMemoryStore();
    asked = [];
    warnings.length = 0;
  });
  afterEach(() => store.close());

  const random = seededRandom(1);
  function meterOf(caps: SpendCaps, ask: AskModel = async question => answerOf(question), allowUnpriced = false) {
    return createMeter({
      ledger: store.spend,
      caps,
      pricing: { isLocal: provider => provider === 'ollama', allowUnpriced },
      clock,
      random,
      emit: event => event.type === 'warning' && warnings.push(event.message),
      ask: async question => {
        asked.push(question);
        return ask(question);
      },
    });
  }
  const rows = async () => store.spend.rows({ owner: 'local', from: dayOf(clock.now()) });
  const used = () => store.spend.used({ owner: 'local', day: dayOf(clock.now()), thread, now: clock.now() });

  it('writes each answer down once, with who asked by which tool, and nothing where nobody pays', async () => {
    const meter = meterOf({});
    await meter.ask(questionOf());
    await meter.ask(questionOf({ payer: { owner: 'local' }, tool: 'prompt' }));
    await meter.ask(questionOf({ payer: undefined }));
    await meter.flush();
    expect(await rows()).toMatchObject([
      { tool: 'chat', thread, calls: 1, costUsd: 0.05, unpriced: 0, usage: { output: 5_000 } },
      { tool: 'prompt', calls: 1, costUsd: 0.05 },
    ]);
    expect(asked[0]?.maxOutputTokens).toBe(10_000);
  });

  it('reserves what the dearest of the candidates may take, for what goes in and for the answer', async () => {
    const told: number[] = [];
    const meter = meterOf({});
    meter.begin('r1', undefined, usd => void told.push(usd));
    await meter.ask(
      questionOf({ candidates: [candidate({ in: 1, out: 1 }), priced, candidate({ in: 1_000, out: 1 })] }),
    );
    expect(told).toEqual([expect.closeTo((promptTokens(messages, []) * 1_000 + 10_000 * 10) / 1e6, 9)]);
  });

  it('keeps the attempts of a call that is begun again with another limit, and says what it spent', async () => {
    const meter = meterOf({});
    meter.begin('r', 1);
    meter.attempts('r').push({ provider: 'openai', model: 'gpt-5', outcome: 'ok', at: 0, elapsedMs: 1 });
    meter.begin('r', 0.5);
    expect(meter.attempts('r')).toHaveLength(1);
    await meter.ask(questionOf({ reqId: 'r' }));
    expect(meter.spent('r')).toBeCloseTo(0.05);
  });

  it('writes down what broke off with its mark, counts it under the limits, and tells what a call was billed for', async () => {
    const usage = { input: 1_000, output: 6_000, reasoning: 0, cacheRead: 0, cacheWrite: 0, estimated: 1 };
    const failing: AskModel = async ({ onWaste, candidates: [first = priced] }) => {
      onWaste?.({ model: first.model, usage, costUsd: 0.06 });
      throw new AppError('model', 'It broke.', { code: 'API_ERROR', class: 'network' });
    };
    const meter = meterOf({ perDay: 0.1 }, failing);
    meter.begin('r1', undefined);
    await expect(meter.ask(questionOf({ maxOutputTokens: 4_000 }))).rejects.toMatchObject({ kind: 'model' });
    expect(meter.end('r1')).toEqual({ usage, costUsd: 0.06 });
    expect(meter.end('r1')).toBeUndefined();
    await meter.flush();
    expect(await rows()).toMatchObject([{ calls: 1, costUsd: 0.06, usage: { input: 1_000, estimated: 1 } }]);
    expect((await used()).day).toBeCloseTo(0.06, 9);
    await expect(meter.ask(questionOf({ reqId: 'r2', maxOutputTokens: 4_000 }))).rejects.toBeDefined();
    await expect(meter.ask(questionOf({ reqId: 'r3' }))).rejects.toMatchObject(refused('MAX_COST_PER_DAY'));
  });

  it('adds marks up, and tells of no bill where nobody was asked', async () => {
    const usage = { input: 10, output: 5, reasoning: 0, cacheRead: 0, cacheWrite: 0, estimated: 1 };
    const meter = meterOf({}, async question => ({ ...answerOf(question), usage }));
    meter.begin('r1', undefined);
    await meter.ask(questionOf());
    await meter.ask(questionOf());
    expect(meter.end('r1')).toMatchObject({ usage: { input: 20, estimated: 2 } });
    await meter.flush();
    expect(await rows()).toMatchObject([{ calls: 2, usage: { estimated: 2 } }]);
    meter.begin('r2', undefined);
    expect(meter.end('r2')).toBeUndefined();
  });

  it('refuses with numbers what one call may not cost, before anybody is asked', async () => {
    const meter = meterOf({ perRequest: 0.009 });
    await expect(meter.ask(questionOf())).rejects.toMatchObject({
      kind: 'limit',
      message: expect.stringContaining('$0.009 of MAX_COST_PER_REQUEST $0.009 is left'),
      details: {
        class: 'cost',
        data: { limit: 'MAX_COST_PER_REQUEST', limit_usd: 0.009, left_usd: 0.009, needed_usd: 0.01 },
      },
    });
    expect(asked).toEqual([]);
    await meter.flush();
    expect(await rows()).toEqual([]);
  });

  it('leaves out who comes later and has no known price, instead of refusing the question for it', async () => {
    const candidates = [priced, candidate(undefined), candidate(undefined, 'ollama')];
    await meterOf({ perDay: 1 }).ask(questionOf({ candidates }));
    expect(asked[0]?.candidates.map(({ model }) => model.provider)).toEqual(['openai', 'ollama']);
    const first = meterOf({ perDay: 1 }).ask(questionOf({ candidates: candidates.slice(1) }));
    await expect(first).rejects.toMatchObject(refused());
    await meterOf({}).ask(questionOf({ candidates }));
    expect(asked[1]?.candidates).toHaveLength(3);
  });

  it('limits the answer where that is enough, and says so', async () => {
    const answer = await meterOf({ perRequest: 0.04 }).ask(questionOf());
    expect(asked[0]?.maxOutputTokens).toBe(4_000);
    expect(answer.warnings.join()).toContain('limited to 4000 tokens');
  });

  it('counts all questions of one call together, up to the lower of two limits', async () => {
    const meter = meterOf({ perRequest: 0.16 });
    meter.begin('r1', 0.5);
    await Promise.all([
      meter.ask(questionOf({ maxOutputTokens: 8_000 })),
      meter.ask(questionOf({ maxOutputTokens: 8_000 })),
    ]);
    await meter.ask(questionOf({ maxOutputTokens: 6_000 }));
    await expect(meter.ask(questionOf({ maxOutputTokens: 6_000, tool: 'x' }))).resolves.toBeDefined();
    expect(asked.at(-1)?.maxOutputTokens).toBe(1_000);
    meter.end('r1');
    meter.begin('r2', 0.005);
    await expect(meter.ask(questionOf({ reqId: 'r2' }))).rejects.toMatchObject(refused('max_cost_usd'));
    expect(asked).toHaveLength(4);
  });

  it('shares what one call may cost among the questions that are to come', async () => {
    const meter = meterOf({ perRequest: 0.09 }, async question => {
      await clock.sleep(1_000);
      return answerOf(question, question.maxOutputTokens);
    });
    meter.begin('r1', undefined);
    const all = [3, 2, 1].map(sharers => meter.ask(questionOf({ sharers })));
    await clock.advance(1_000);
    await Promise.all(all);
    expect(asked.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([3_000, 3_000, 3_000]);
  });

  it('puts aside what calls under way could cost, so that they can’t pass a limit together', async () => {
    const meter = meterOf({ perDay: 0.35 }, async question => {
      await clock.sleep(1_000);
      return answerOf(question, question.maxOutputTokens);
    });
    const all = Promise.allSettled(Array.from({ length: 12 }, (_, n) => meter.ask(questionOf({ reqId: `r${n}` }))));
    for (let n = 0; n < 3; n++) await clock.advance(1_000);
    const ended = await all;
    await meter.flush();
    expect(ended.filter(({ status }) => status === 'fulfilled')).toHaveLength(4);
    expect((await used()).day).toBeCloseTo(0.35, 9);
    expect(asked.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([10_000, 10_000, 10_000, 5_000]);
    await expect(meter.ask(questionOf())).rejects.toMatchObject(refused('MAX_COST_PER_DAY'));
  });

  it('frees at once what an answer did not need', async () => {
    const meter = meterOf({ perDay: 0.155 });
    for (let n = 0; n < 3; n++) await meter.ask(questionOf({ reqId: `r${n}`, maxOutputTokens: 6_000 }));
    await meter.flush();
    expect((await used()).day).toBeCloseTo(0.15, 9);
    await expect(meter.ask(questionOf())).rejects.toMatchObject({ details: { retryAfterSeconds: expect.any(Number) } });
  });

  it('keeps a thread to its own limit, and begins another day afresh', async () => {
    const meter = meterOf({ perThread: 0.05, perDay: 0.08 });
    await meter.ask(questionOf({ maxOutputTokens: 5_000 }));
    await expect(meter.ask(questionOf())).rejects.toMatchObject(refused('MAX_COST_PER_THREAD'));
    await meter.ask(questionOf({ payer: { owner: 'local' }, maxOutputTokens: 3_000 }));
    await meter.flush();
    await expect(meter.ask(questionOf({ payer: { owner: 'local' } }))).rejects.toMatchObject(
      refused('MAX_COST_PER_DAY'),
    );
    await expect(meter.ask(questionOf({ payer: { owner: 'ann' } }))).resolves.toBeDefined();
    await clock.advance(24 * 3_600_000);
    await expect(meter.ask(questionOf({ payer: { owner: 'local' } }))).resolves.toBeDefined();
  });

  it('counts the price of long inputs, and of a budget for thinking', async () => {
    const text = 'many different words stand here '.repeat(2_000);
    const long = [{ ...messages[0]!, parts: [{ type: 'text' as const, text }] }];
    const tiers = [{ above: 5_000, in: 10, out: 100 }];
    const tiered = candidate({ in: 1, out: 10, tiers });
    const tokens = promptTokens(long, [tiered]);
    expect(tokens).toBeGreaterThan(10_000);
    const least = (tokens * 10 + 1_000 * 100) / 1e6;
    const wanted = { candidates: [tiered], messages: long, maxOutputTokens: 1_000 };
    await expect(meterOf({ perRequest: least - 0.001 }).ask(questionOf(wanted))).rejects.toMatchObject(refused());
    await expect(meterOf({ perRequest: least + 0.001 }).ask(questionOf(wanted))).resolves.toBeDefined();
    const thinking = { ...priced, thinkingBudget: 20_000 };
    await expect(meterOf({ perRequest: 0.2 }).ask(questionOf({ candidates: [thinking] }))).rejects.toMatchObject(
      refused(),
    );
    await expect(meterOf({ perRequest: 0.22 }).ask(questionOf({ candidates: [thinking] }))).resolves.toBeDefined();
    const byEffort = {
      ...priced,
      effort: 'max' as const,
      model: { ...priced.model, thinkingBudget: { min: 0, max: 20_000 } },
    };
    await expect(meterOf({ perRequest: 0.2 }).ask(questionOf({ candidates: [byEffort] }))).rejects.toMatchObject(
      refused(),
    );
  });

  it('counts what goes in twice where it may be kept and read in one call', () => {
    const gemini = candidate({ in: 2, out: 10, cacheRead: 0.5 }, 'google');
    const pricing = { isLocal: () => false, cachesApart: (id: string) => id === 'google', allowUnpriced: false };
    expect(estimateCost(gemini, 1_000_000, pricing)).toMatchObject({ fixed: 2.5, perToken: 10 / 1e6 });
    const other = candidate({ in: 2, out: 10, cacheRead: 0.5 }, 'openai');
    expect(estimateCost(other, 1_000_000, pricing).fixed).toBe(2);
  });

  it('asks no model of unknown price under a limit, but where that is allowed; local ones cost nothing', async () => {
    const unknown = questionOf({ candidates: [candidate(undefined)] });
    await expect(meterOf({ perDay: 1 }).ask(unknown)).rejects.toMatchObject({
      message: 'No price is known for openai:gpt-m, so MAX_COST_PER_DAY cannot be guaranteed.',
      details: { class: 'cost', next: expect.stringContaining('ALLOW_UNPRICED_MODELS') },
    });
    expect(asked).toEqual([]);
    const allowed = meterOf({ perDay: 1 }, undefined, true);
    await allowed.ask(unknown);
    const local = meterOf({ perDay: 0 });
    await local.ask(questionOf({ candidates: [candidate(undefined, 'ollama')], tool: 'debug' }));
    await expect(local.ask(questionOf())).rejects.toMatchObject(refused('MAX_COST_PER_DAY'));
    await Promise.all([allowed.flush(), local.flush()]);
    expect(await rows()).toMatchObject([
      { tool: 'chat', unpriced: 1, costUsd: 0 },
      { tool: 'debug', provider: 'ollama', unpriced: 0, costUsd: 0 },
    ]);
  });

  it('gives back what a failed question had put aside, unless its vendor may go on charging', async () => {
    const failure = new AppError('model', 'no', { code: 'API_ERROR', class: 'auth' });
    const meter = meterOf({ perDay: 0.1 }, () => Promise.reject(failure));
    for (let n = 0; n < 3; n++) await expect(meter.ask(questionOf())).rejects.toBe(failure);
    await meter.flush();
    expect((await used()).day).toBe(0);
    const unsent = meterOf({ perDay: 0.1 }, () => Promise.reject(cancelledError()));
    for (let n = 0; n < 3; n++) await expect(unsent.ask(questionOf())).rejects.toMatchObject({ kind: 'cancelled' });
    await unsent.flush();
    expect((await used()).day).toBe(0);
    const cut = meterOf({ perDay: 0.1 }, async question => {
      question.onSent?.();
      throw cancelledError();
    });
    await expect(cut.ask(questionOf())).rejects.toMatchObject({ kind: 'cancelled' });
    const refusal = { ...reserved('MAX_COST_PER_DAY'), details: { retryAfterSeconds: 3_600 } };
    await expect(cut.ask(questionOf())).rejects.toMatchObject(refusal);
    await clock.advance(3_600_000);
    await expect(cut.ask(questionOf())).rejects.toMatchObject({ kind: 'cancelled' });
  });

  it('writes down failed attempts that were charged for, and pays for no other one past a limit', async () => {
    const usage = { input: 10, output: 10_000, reasoning: 10_000, cacheRead: 0, cacheWrite: 0 };
    const wasting: AskModel = async question => {
      question.onWaste?.({ model: priced.model, usage, costUsd: 0.1 });
      question.signal.throwIfAborted();
      return answerOf(question);
    };
    const free = meterOf({}, wasting);
    await free.ask(questionOf());
    await free.flush();
    expect(await rows()).toMatchObject([{ calls: 2, costUsd: expect.closeTo(0.15, 9) }]);
    const strict = meterOf({ perRequest: 0.1 }, wasting);
    await expect(strict.ask(questionOf())).rejects.toMatchObject(refused());
    await strict.flush();
    const capped = meterOf({ perDay: 0.35 }, wasting);
    await expect(capped.ask(questionOf())).rejects.toMatchObject({
      ...refused(),
      message: expect.stringContaining('brought no answer and cost $0.10'),
    });
    await capped.flush();
    expect((await rows())[0]).toMatchObject({ calls: 4 });
    // Where the limit has room for both, another one is asked.
    const roomy = meterOf({ perDay: 10 }, wasting);
    await expect(roomy.ask(questionOf())).resolves.toMatchObject({ text: 'Because.' });
    await roomy.flush();
  });

  it('counts what was spent during a long outage, however often it was looked at meanwhile', async () => {
    const { add } = store.spend;
    let tries = 0;
    store.spend.add = async () => {
      tries++;
      throw new Error('down');
    };
    const meter = meterOf({});
    await meter.ask(questionOf());
    for (let minute = 0; minute < 10; minute++) {
      for (let second = 0; second < 60; second += 2) await clock.advance(2_000);
      await meter.flush();
    }
    expect(tries).toBeLessThan(400);
    expect(warnings).toHaveLength(1);
    store.spend.add = add;
    await clock.advance(2_000);
    await meter.flush();
    expect(await rows()).toMatchObject([{ calls: 1 }]);
  });

  it('goes on without a ledger that fails, and says so in the log', async () => {
    const meter = meterOf({});
    await store.close();
    await expect(meter.ask(questionOf())).resolves.toMatchObject({ text: 'Because.' });
    await meter.flush();
    expect(warnings.join()).toContain('closed');
  });
});

describe('two processes on one database', () => {
  it('keep to one limit, also after a restart', async () => {
    const place = await sqlitePlace();
    const clock = manualClock();
    let asked = 0;
    const open = (seed: number) => {
      const store = place.open();
      const meter = createMeter({
        ledger: store.spend,
        caps: { perDay: 0.3 },
        pricing: { isLocal: () => false, allowUnpriced: false },
        clock,
        random: seededRandom(seed),
        emit: () => {},
        ask: async question => {
          asked++;
          return answerOf(question, question.maxOutputTokens);
        },
      });
      return { store, meter };
    };
    const both = [open(1), open(2)];
    const calls = both.flatMap(({ meter }, at) =>
      Array.from({ length: 10 }, (_, n) => meter.ask(questionOf({ reqId: `${at}/${n}` }))),
    );
    await Promise.allSettled(calls);
    for (const { meter, store } of both) {
      await meter.flush();
      await store.close();
    }
    expect(asked).toBe(3);
    const again = open(3);
    await expect(again.meter.ask(questionOf())).rejects.toMatchObject(refused('MAX_COST_PER_DAY'));
    expect(asked).toBe(3);
    await place.dispose();
  });
});

import { describe, expect, it } from 'vitest';
import { AppError, storageError } from '../../src/core/errors.ts';
import { threadId } from '../../src/core/ids.ts';
import type { Candidate, Price } from '../../src/core/model.ts';
import type { AttemptRecord } from '../../src/core/thread.ts';
import type { SpendLedger } from '../../src/core/usage.ts';
import type { AskModel, ModelQuestion } from '../../src/models/ask-model.ts';
import { promptTokens, type SpendCaps } from '../../src/models/budget.ts';
import { createServiceMeter } from '../../src/models/paid-services.ts';
import { createMeter, type SpendLimits } from '../../src/models/spend-meter.ts';
import { createMemoryStore } from '../../src/storage/memory/memory.ts';
import { manualClock } from '../support/clock.ts';
import { seededRandom } from '../support/random.ts';
import { waitUntil } from '../support/wait-until.ts';

const usage = { input: 0, output: 5_000, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
const payer = { owner: 'local', thread: threadId('11111111-1111-4111-8111-111111111111') };

/** $10 for a million tokens of an answer: a cent for a thousand. */
function candidate(price: Price | undefined = { in: 0, out: 10 }, auto = false, provider = 'openai'): Candidate {
  const model = {
    ...{ provider, id: 'gpt-m', name: 'M', aliases: [], window: 1_000_000, maxOutput: 100_000, score: 1 },
    ...{ input: ['text' as const], efforts: [], reasoning: false, temperature: 'range' as const, tools: false },
    ...{ allowCodeGeneration: false, status: 'active' as const, ...(price && { price }) },
  };
  return { model, reason: 'test', ...(auto && { auto }) };
}
const unknown = { ...candidate(), model: { ...candidate().model, price: undefined } } as unknown as Candidate;

const questionOf = (changes: Partial<ModelQuestion> = {}): ModelQuestion => ({
  ...{ reqId: 'r1', tool: 'chat', payer, candidates: [candidate()], maxOutputTokens: 10_000 },
  messages: [{ role: 'user', section: 'turn', parts: [{ type: 'text', text: 'Why?' }] }],
  signal: new AbortController().signal,
  ...changes,
});

const answer: AskModel = async ({ candidates: [first = candidate()] }) => ({
  ...{ text: 'Because.', model: first.model, candidate: first, usage, costUsd: 0.05, finish: { kind: 'stop' } },
  ...{ partial: false, citations: [], attempts: [], latencyMs: 1, warnings: [] },
});

const failing: AskModel = () => Promise.reject(new AppError('model', 'no', { code: 'API_ERROR', class: 'auth' }));

function setUp(
  caps: SpendCaps,
  ask: AskModel = answer,
  change: (ledger: SpendLedger) => Partial<SpendLedger> = () => ({}),
) {
  const store = createMemoryStore();
  const asked: ModelQuestion[] = [];
  const warnings: unknown[] = [];
  const { spend } = store;
  const clock = manualClock();
  const ledger: SpendLedger = {
    add: (...given) => spend.add(...given),
    hold: given => spend.hold(given),
    used: given => spend.used(given),
    rows: given => spend.rows(given),
    ...change(spend),
  };
  const meter = createMeter({
    ...{ ledger, caps, clock, random: seededRandom(1) },
    pricing: { isLocal: provider => provider === 'ollama', allowUnpriced: false },
    emit: event => void warnings.push(event),
    ask: question => {
      asked.push(question);
      return ask(question);
    },
  });
  return { meter, asked, warnings, clock, ledger, rows: () => spend.rows({ owner: 'local', from: '' }) };
}

const refusal = (limit: string) => ({ kind: 'limit', details: { data: { limit } } });

/** Writes later than asked, as a disk does. */
const slow =
  (done: unknown[] = []) =>
  (ledger: SpendLedger) => ({
    add: async (...given: Parameters<SpendLedger['add']>) => {
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
      await ledger.add(...given);
      done.push(given);
    },
  });

describe('what is left', () => {
  it.each<[string, SpendCaps, unknown, { name: string; usd: number; free: number; held?: []; heldAt?: number }]>([
    ['everything without a limit', {}, undefined, { name: 'AUTO_COST_LIMIT', usd: Infinity, free: Infinity }],
    [
      'that of the call, where others leave as much',
      { perRequest: 1, perDay: 1 },
      undefined,
      { name: 'MAX_COST_PER_REQUEST', usd: 1, free: 0.95 },
    ],
    [
      'that of a day after earlier calls',
      { perDay: 0.4 },
      5,
      { name: 'MAX_COST_PER_DAY', usd: 0.4, free: 0.35, held: [], heldAt: expect.any(Number) },
    ],
    [
      'that of a thread',
      { perThread: 0.3 },
      undefined,
      { name: 'MAX_COST_PER_THREAD', usd: 0.3, free: 0.25, held: [], heldAt: expect.any(Number) },
    ],
    [
      'that of models that nobody named',
      { perAutoCall: 0.2, perRequest: 1 },
      undefined,
      { name: 'AUTO_COST_LIMIT', usd: 0.2, free: 0.2 },
    ],
    ['what the caller allows', { perDay: 9 }, 0.07, { name: 'max_cost_usd', usd: 0.07, free: 0.02 }],
  ])('is %s', async (_, caps, own, expected) => {
    const { meter } = setUp(caps, answer, slow());
    meter.begin('r1', own);
    await meter.ask(questionOf({ maxOutputTokens: 6_000 }));
    const { free, ...rest } = await meter.left('r1', payer);
    expect({ ...rest, free: expect.closeTo(free, 9) }).toEqual(expected);
  });
});

describe('what a question under way reserves', () => {
  /** Waits until it is given up. */
  const waiting: AskModel = ({ signal, onSent }) => {
    onSent?.();
    return new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  };
  const later = { reqId: 'r2', maxOutputTokens: 10_000 };

  it('is free again half a minute after its process died, and until then the refusal tells when', async () => {
    const killed = setUp({ perDay: 0.1 }, waiting);
    void killed.meter.ask(questionOf()).catch(() => undefined);
    await waitUntil('it is asked', () => killed.asked.length === 1);
    const { meter, clock } = setUp({ perDay: 0.1 }, answer, () => killed.ledger);
    // Time stands still for the one that was killed.
    await clock.advance(5_000);
    const refused = { kind: 'limit', details: { class: 'over_capacity', retryAfterSeconds: 25 } };
    await expect(meter.ask(questionOf({ ...later }))).rejects.toMatchObject(refused);
    await clock.advance(25_000);
    expect(await meter.ask(questionOf(later))).toMatchObject({ text: 'Because.' });
  });

  it('stays reserved for as long as it runs, and for an hour after it was cancelled', async () => {
    const { meter, clock, asked, ledger } = setUp({ perDay: 0.1 }, waiting);
    const stop = new AbortController();
    const done = meter.ask(questionOf({ signal: stop.signal })).catch(() => undefined);
    await waitUntil('it is asked', () => asked.length === 1);
    for (let seconds = 0; seconds < 600; seconds += 10) await clock.advance(10_000);
    const reserved = async () => (await ledger.used({ owner: 'local', day: '', now: clock.storeTime() })).day;
    expect(await reserved()).toBeCloseTo(0.1, 9);
    stop.abort();
    await done;
    await meter.flush();
    const refused = { details: { class: 'over_capacity', retryAfterSeconds: 3_600 } };
    await expect(meter.ask(questionOf({ ...later }))).rejects.toMatchObject(refused);
    await clock.advance(3_600_000);
    expect(await reserved()).toBe(0);
  });
});

describe('a question', () => {
  it('finds what the one before did not need, though the ledger is slow', async () => {
    const { meter, asked } = setUp({ perDay: 0.11 }, answer, slow());
    await meter.ask(questionOf());
    await meter.ask(questionOf({ reqId: 'r2' }));
    expect(asked.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([10_000, 6_000]);
  });

  it.each<[SpendCaps, boolean]>([
    [{}, true],
    [{ perRequest: 1 }, true],
    [{ perDay: 1 }, false],
    [{ perThread: 1 }, false],
  ])('under %o may be written down later: %s', async (caps, unhurried) => {
    const done: unknown[][] = [];
    const { meter } = setUp(caps, answer, slow(done));
    await meter.ask(questionOf());
    // Nothing is written where nobody pays.
    await meter.ask(questionOf({ payer: undefined }));
    await meter.flush();
    expect(done.map(given => given[2])).toEqual([unhurried]);
  });

  it('of a model without a price is refused under any limit, also without a thread', async () => {
    for (const caps of [{ perRequest: 1 }, { perDay: 1 }]) {
      const { meter, asked } = setUp(caps);
      await expect(meter.ask(questionOf({ candidates: [unknown], payer: { owner: 'local' } }))).rejects.toMatchObject({
        kind: 'limit',
      });
      expect(asked).toEqual([]);
    }
  });

  it('is not asked of later candidates whose price nobody knows, and never of others than the first that is named', async () => {
    const [named, local, priced] = [
      candidate(),
      { ...unknown, model: { ...unknown.model, provider: 'ollama' } },
      candidate(),
    ];
    const { meter, asked } = setUp({ perRequest: 1 });
    await meter.ask(questionOf({ candidates: [named, unknown, local, priced] }));
    expect(asked[0]?.candidates).toEqual([named, local, priced]);
    await expect(meter.ask(questionOf({ candidates: [unknown, priced] }))).rejects.toMatchObject({ kind: 'limit' });
    expect(asked).toHaveLength(1);
  });

  it('gives up where others take what is free each time', async () => {
    let tries = 0;
    const { meter, asked } = setUp({ perDay: 1 }, answer, () => ({ hold: async () => ++tries === 0 }));
    await expect(meter.ask(questionOf())).rejects.toMatchObject(refusal('MAX_COST_PER_DAY'));
    expect([tries, asked]).toEqual([20, []]);
  });

  it('reserves once, however often it had to try', async () => {
    let tries = 0;
    const told: number[] = [];
    const { meter } = setUp({ perDay: 1, perRequest: 1 }, failing, ledger => ({
      hold: async given => (++tries < 3 ? false : ledger.hold(given)),
    }));
    meter.begin('r1', undefined, usd => told.push(usd));
    await expect(meter.ask(questionOf())).rejects.toMatchObject({ kind: 'model' });
    expect(told).toEqual([expect.closeTo(0.1, 9)]);
    expect((await meter.left('r1', payer)).free).toBeCloseTo(1, 9);
  });

  it('frees what the ledger could not hold, so that the next question of the call has it', async () => {
    let tries = 0;
    const { meter } = setUp({ perDay: 1, perRequest: 0.15 }, answer, ledger => ({
      hold: async given => {
        if (++tries === 1) throw storageError('unavailable', 'The store is away.');
        return ledger.hold(given);
      },
    }));
    meter.begin('r1', undefined);
    await expect(meter.ask(questionOf())).rejects.toMatchObject({ kind: 'storage' });
    expect((await meter.left('r1', payer)).free).toBeCloseTo(0.15, 9);
    expect(await meter.ask(questionOf())).toMatchObject({ text: 'Because.' });
  });

  it('reserves what the dearest candidate may cost, and asks only those that the limit allows', async () => {
    const [cheap, dear, dearest] = [10, 20, 200].map(out => candidate({ in: out * 10, out }));
    const { meter, asked } = setUp({ perRequest: 0.15 }, failing);
    const told: number[] = [];
    meter.begin('r1', undefined, usd => told.push(usd));
    const candidates = [cheap!, dear!, dearest!];
    await expect(meter.ask(questionOf({ candidates, maxOutputTokens: 4_000 }))).rejects.toBeDefined();
    await expect(meter.ask(questionOf({ candidates: [dear!, cheap!], maxOutputTokens: 4_000 }))).rejects.toBeDefined();
    const worst = 0.08 + (promptTokens(questionOf().messages, []) * 200) / 1e6;
    expect(told).toEqual([expect.closeTo(worst, 9), expect.closeTo(worst, 9)]);
    const exact = setUp({ perRequest: worst - 0.06 }, failing);
    await expect(exact.meter.ask(questionOf({ candidates, maxOutputTokens: 1_000 }))).rejects.toBeDefined();
    expect([...asked, ...exact.asked].map(question => question.candidates)).toEqual([
      [cheap, dear],
      [dear, cheap],
      [cheap, dear],
    ]);
  });

  it('asks who was named or nobody, and another one where nobody was named', async () => {
    const dear = { in: 0, out: 1_000 };
    const { meter, asked } = setUp({ perRequest: 0.15 });
    await expect(meter.ask(questionOf({ candidates: [candidate(dear), candidate()] }))).rejects.toMatchObject(
      refusal('MAX_COST_PER_REQUEST'),
    );
    await meter.ask(questionOf({ candidates: [candidate(dear, true), candidate(undefined, true)] }));
    expect(asked.map(({ candidates }) => candidates.length)).toEqual([1]);
    // The refusal is about the first.
    await expect(
      meter.ask(questionOf({ candidates: [candidate(dear, true), candidate({ in: 0, out: 2_000 }, true)] })),
    ).rejects.toMatchObject({ details: { data: { needed_usd: 1 } } });
  });

  it('shares the tighter of two limits of a call, and is refused by its name', async () => {
    const caps = { perRequest: 0.2, perAutoCall: 0.08 };
    const { meter, asked } = setUp(caps);
    const candidates = [candidate(undefined, true)];
    await meter.ask(questionOf({ candidates, sharers: 2 }));
    expect(asked[0]?.maxOutputTokens).toBe(4_000);
    const tight = setUp({ ...caps, perAutoCall: 0.001 });
    await expect(tight.meter.ask(questionOf({ candidates }))).rejects.toMatchObject(refusal('AUTO_COST_LIMIT'));
    await expect(tight.meter.ask(questionOf())).resolves.toBeDefined();
    const free = [{ ...unknown, auto: true as const, model: { ...unknown.model, provider: 'ollama' } }];
    await expect(tight.meter.ask(questionOf({ candidates: free }))).resolves.toBeDefined();
  });

  it.each<[string, SpendCaps, boolean, 'stop' | 'length', number]>([
    ['a limit that has room for all of it', { perRequest: 0.1 }, false, 'stop', 0],
    ['a limit of the operator', { perRequest: 0.04 }, false, 'stop', 1],
    ['the usual limit, unless it was cut', { perAutoCall: 0.04 }, true, 'stop', 0],
    ['the usual limit where it was cut', { perAutoCall: 0.04 }, true, 'length', 1],
  ])('comes with a word about %s', async (_, caps, auto, kind, warnings) => {
    const { meter } = setUp(caps, async question => ({ ...(await answer(question)), finish: { kind } }));
    const given = await meter.ask(questionOf({ candidates: [candidate(undefined, auto)] }));
    expect(given.warnings).toHaveLength(warnings);
  });

  it('that fails leaves the call its money', async () => {
    const { meter, asked } = setUp({ perRequest: 0.1 }, failing);
    meter.begin('r1', undefined);
    for (const _ of [1, 2]) await expect(meter.ask(questionOf())).rejects.toMatchObject({ kind: 'model' });
    expect(asked.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([10_000, 10_000]);
  });
});

it('writes down attempts that failed or answered, with how long the answer took, and keeps all for the reply', async () => {
  const of = (elapsedMs: number, outcome: AttemptRecord['outcome'], more = {}): AttemptRecord => ({
    ...{ provider: 'openai', model: 'gpt-m', at: 0, elapsedMs, outcome, ...more },
  });
  const attempts = [
    of(1, 'skipped'),
    of(2, 'failed', { class: 'cancelled' }),
    of(4, 'retry'),
    of(8, 'failed'),
    of(16, 'ok'),
  ];
  const { meter, rows } = setUp({}, async question => {
    for (const attempt of attempts) question.onAttempt?.(attempt);
    return { ...(await answer(question)), attempts };
  });
  meter.begin('r1', undefined);
  await meter.ask(questionOf());
  expect(meter.attempts('r1')).toEqual(attempts);
  await meter.flush();
  const [row, ...others] = await rows();
  expect([row?.calls, ...Object.values(row?.tries ?? {}), others]).toEqual([
    1,
    { attempts: 3, failures: 2, ms: 16 },
    [],
  ]);
});

describe('a failed attempt', () => {
  const wasting =
    (costs: (number | undefined)[]): AskModel =>
    async question => {
      for (const costUsd of costs) {
        question.onWaste?.({ model: candidate().model, usage, ...(costUsd !== undefined && { costUsd }) });
        question.signal.throwIfAborted();
      }
      return answer(question);
    };

  it('is passed on to who asked, and counts for the next question of the call', async () => {
    const heard: unknown[] = [];
    const { meter, asked } = setUp({ perRequest: 0.3 }, wasting([0.1, undefined]));
    meter.begin('r1', undefined);
    await meter.ask(questionOf({ onWaste: waste => void heard.push(waste.costUsd) }));
    expect(heard).toEqual([0.1, undefined]);
    expect((await meter.left('r1', payer)).free).toBeCloseTo(0.15, 9);
    expect(asked).toHaveLength(1);
  });

  it.each([
    ['lets another follow as long as exactly that is left', [0.1], true],
    ['stops what would pass the limit', [0.1, 0.01], false],
  ])('%s', async (_, costs, passes) => {
    const { meter } = setUp({ perRequest: 0.2 }, wasting(costs));
    const asking = meter.ask(questionOf());
    if (passes) await expect(asking).resolves.toBeDefined();
    else await expect(asking).rejects.toMatchObject({ message: expect.stringContaining('cost $0.01') });
  });

  it('stops its question where others of the call reserved the rest', async () => {
    const { meter } = setUp({ perRequest: 0.2 }, wasting([0.05]));
    meter.begin('r1', undefined);
    const first = await meter.reserve(questionOf());
    await meter.reserve(questionOf());
    await expect(first.ask()).rejects.toMatchObject({ kind: 'limit' });
  });
});

describe('a reserved question', () => {
  const free = async (meter: ReturnType<typeof setUp>['meter']) => (await meter.left('r1', payer)).free;

  it('holds its money until it is given up, once, and not after it was asked', async () => {
    const { meter } = setUp({ perRequest: 0.3 });
    meter.begin('r1', undefined);
    const [asked, given] = [await meter.reserve(questionOf()), await meter.reserve(questionOf())];
    expect(await free(meter)).toBeCloseTo(0.1, 9);
    await asked.ask();
    asked.release();
    expect(await free(meter)).toBeCloseTo(0.15, 9);
    given.release();
    given.release();
    expect(await free(meter)).toBeCloseTo(0.25, 9);
  });

  it('of a free model holds nothing', async () => {
    const { meter } = setUp({ perRequest: 0.3 });
    meter.begin('r1', undefined, () => expect.unreachable());
    const model = { ...unknown.model, provider: 'ollama' };
    (await meter.reserve(questionOf({ candidates: [{ ...unknown, model }] }))).release();
    expect(await free(meter)).toBe(0.3);
  });
});

describe('the ledger', () => {
  it.each([
    [new AppError('model', 'It is full.', { code: 'API_ERROR', class: 'network' }), 'It is full.'],
    [new TypeError('odd'), 'TypeError: odd'],
  ])('that fails with %s is told of, and keeps nobody from an answer', async (error, message) => {
    const { meter, warnings } = setUp({}, answer, () => ({ add: () => Promise.reject(error) }));
    await expect(meter.ask(questionOf())).resolves.toBeDefined();
    await meter.flush();
    expect(warnings).toEqual([{ type: 'warning', where: 'ledger', message }]);
  });

  it.each([1, 3])('gets what it could not take %i times once it works again, and warns once', async failures => {
    let tries = 0;
    const { meter, warnings, rows, clock } = setUp({ perDay: 1 }, answer, spend => ({
      add: (...given) => (tries++ < failures ? Promise.reject(new TypeError('full')) : spend.add(...given)),
    }));
    await meter.ask(questionOf());
    await clock.advance(2_000 * failures);
    expect(await rows()).toMatchObject([{ calls: 1, costUsd: 0.05 }]);
    expect(await meter.left('r1', payer)).toMatchObject({ free: 0.95, held: [] });
    expect([warnings.length, clock.pending()]).toEqual([1, 0]);
  });

  it('has everything after a flush', async () => {
    const done: unknown[] = [];
    const { meter } = setUp({}, answer, slow(done));
    await Promise.all([meter.ask(questionOf()), meter.ask(questionOf())]);
    expect(done).toEqual([]);
    await meter.flush();
    expect(done).toHaveLength(2);
  });
});

it('has written down what a paid service cost when it is done, though the ledger is slow', async () => {
  const { meter } = setUp({ perDay: 0.015 }, answer, slow());
  const service = {
    payer,
    tool: 'search',
    provider: 'zhipu',
    used: 'search-prime',
    kind: 'web_search' as const,
    max: 1,
  };
  const pay = (used: number) => createServiceMeter(meter.limits)(service, async tell => tell(used));
  await pay(0);
  await expect(pay(1)).resolves.toBeUndefined();
  await expect(pay(1)).rejects.toMatchObject({ kind: 'limit' });
});

it('refuses a paid service whose price nobody knows under a limit', async () => {
  const service = { payer, tool: 'search', provider: 'zhipu', used: 'odd', kind: 'web_search' as const, max: 1 };
  const pay = (limits: SpendLimits) => createServiceMeter(limits)(service, async tell => tell(1));
  await expect(pay(setUp({ perDay: 1 }).meter.limits)).rejects.toMatchObject({
    kind: 'limit',
    details: { class: 'cost', provider: 'zhipu', model: 'odd' },
  });
  await expect(pay(setUp({}).meter.limits)).resolves.toBeUndefined();
});

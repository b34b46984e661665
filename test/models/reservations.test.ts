import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { AppError, isAppError } from '../../src/core/errors.ts';
import { threadId } from '../../src/core/ids.ts';
import type { Candidate } from '../../src/core/model.ts';
import type { ModelAnswer, ModelQuestion } from '../../src/models/ask-model.ts';
import { promptTokens, type SpendCaps } from '../../src/models/budget.ts';
import { createMeter, type Meter } from '../../src/models/spend-meter.ts';
import { createMemoryStore } from '../../src/storage/memory/memory.ts';
import { manualClock } from '../support/clock.ts';
import { seededRandom } from '../support/random.ts';

const thread = threadId('11111111-1111-4111-8111-111111111111');
const price = { in: 2, out: 10 };
const model = {
  ...{ provider: 'openai', id: 'gpt-m', name: 'M', aliases: [], window: 1_000_000, maxOutput: 100_000, score: 1 },
  ...{ input: ['text'] as const, efforts: [], reasoning: false, temperature: 'range' as const, tools: false },
  ...{ allowCodeGeneration: false, status: 'active' as const, price },
};

const dollars = (question: ModelQuestion, output: number) =>
  (promptTokens(question.messages, []) * price.in + output * price.out) / 1e6;

/** What may be billed by now: answers, and the worst of what is under way or was given up on. */
interface Watched {
  calls: Map<string, number>;
  auto: Map<string, number>;
  all: number;
}

/** Calls that ask at the same time, in both ways that there are; what they may be billed is checked at each moment. */
async function runCalls(seed: number): Promise<{ asked: number; refused: number; limited: number }> {
  const random = seededRandom(seed);
  const pick = (most: number) => Math.floor(random.fraction() * most);
  const some = (usd: number) => (pick(2) === 0 ? usd * (0.2 + random.fraction()) : undefined);
  const caps: SpendCaps = { perRequest: some(0.1), perDay: some(0.3), perThread: some(0.2), perAutoCall: some(0.08) };
  const own = some(0.1);
  const bills: Watched = { calls: new Map(), auto: new Map(), all: 0 };
  const counts = { asked: 0, refused: 0, limited: 0 };

  function bill({ reqId, candidates: [first] }: ModelQuestion, usd: number): void {
    bills.all += usd;
    bills.calls.set(reqId, (bills.calls.get(reqId) ?? 0) + usd);
    if (first?.auto) bills.auto.set(reqId, (bills.auto.get(reqId) ?? 0) + usd);
    const within = (used: number, limit: number | undefined) => expect(used).toBeLessThanOrEqual((limit ?? 1e9) + 1e-9);
    for (const used of bills.calls.values()) {
      within(used, own);
      within(used, caps.perRequest);
    }
    for (const used of bills.auto.values()) within(used, caps.perAutoCall);
    within(bills.all, caps.perDay);
    within(bills.all, caps.perThread);
  }

  async function vendor(question: ModelQuestion): Promise<ModelAnswer> {
    const worst = dollars(question, question.maxOutputTokens);
    counts.asked++;
    question.onSent?.();
    bill(question, worst);
    for (let turn = pick(4); turn > 0; turn--) await setImmediate();
    const end = pick(5);
    if (end === 0) throw new AppError('model', 'late', { code: 'API_ERROR', class: 'timeout' });
    if (end === 1) {
      bill(question, -worst);
      throw new AppError('model', 'no', { code: 'API_ERROR', class: 'bad_request' });
    }
    const [candidate] = question.candidates;
    const output = pick(question.maxOutputTokens + 1);
    const usage = { input: 0, output, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
    const costUsd = dollars(question, output);
    bill(question, costUsd - worst);
    const answer = {
      text: 'Because.',
      model,
      candidate: candidate!,
      usage,
      costUsd,
      finish: { kind: 'stop' as const },
    };
    return { ...answer, partial: false, citations: [], attempts: [], latencyMs: 1, warnings: [] };
  }

  const store = createMemoryStore();
  const meter: Meter = createMeter({
    ...{ caps, ask: vendor, ledger: store.spend, clock: manualClock(), random: seededRandom(seed) },
    pricing: { isLocal: () => false, allowUnpriced: false },
    emit: () => {},
  });

  function questionOf(reqId: string, sharers: number): ModelQuestion {
    const auto = pick(2) === 0;
    const candidate: Candidate = { model, reason: 'test', ...(auto && { auto }) };
    const text = 'word '.repeat(pick(4_000));
    return {
      ...{ reqId, tool: 'chat', payer: { owner: 'local', thread }, candidates: [candidate], sharers },
      messages: [{ role: 'user', section: 'turn', parts: [{ type: 'text', text }] }],
      maxOutputTokens: 500 + pick(8_000),
      signal: new AbortController().signal,
    };
  }

  async function attempt(work: () => Promise<ModelAnswer | undefined>): Promise<void> {
    try {
      const answer = await work();
      if (answer?.warnings.length) counts.limited++;
    } catch (error) {
      if (!isAppError(error)) throw error;
      if (error.kind === 'limit') counts.refused++;
    }
  }

  /** Each by itself, as models that are named one by one. */
  const oneByOne = (reqId: string, count: number) =>
    Promise.all(Array.from({ length: count }, (_, at) => attempt(() => meter.ask(questionOf(reqId, count - at)))));

  /** All reserved before the first is asked, as a panel does; some are never asked. */
  async function reservedFirst(reqId: string, count: number): Promise<void> {
    const works: (() => Promise<ModelAnswer | undefined>)[] = [];
    for (let left = count; left > 0; left--) {
      await attempt(async () => {
        const reserved = await meter.reserve(questionOf(reqId, left));
        works.push(async () => (pick(5) === 0 ? void reserved.release() : reserved.ask()));
        return undefined;
      });
    }
    await Promise.all(works.map(attempt));
  }

  const calls = Array.from({ length: 1 + pick(3) }, (_, at) => `r${at}`);
  for (const reqId of calls) meter.begin(reqId, own);
  await Promise.all(calls.map(reqId => (pick(2) === 0 ? oneByOne : reservedFirst)(reqId, 1 + pick(5))));
  // What was not needed is free again: asking goes on as long as there is something left.
  for (const reqId of calls) await oneByOne(reqId, 2);
  await meter.flush();
  await store.close();
  return counts;
}

it('never lets questions under way pass a limit together, however they are asked and end', async () => {
  const sums = { asked: 0, refused: 0, limited: 0 };
  for (let seed = 1; seed <= 100; seed++) {
    const { asked, refused, limited } = await runCalls(seed);
    sums.asked += asked;
    sums.refused += refused;
    sums.limited += limited;
  }
  // Otherwise nothing was tried.
  for (const count of Object.values(sums)) expect(count).toBeGreaterThan(50);
});

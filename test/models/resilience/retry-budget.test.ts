import { describe, expect, it } from 'vitest';
import { createAskModel } from '../../../src/models/call/call.ts';
import { createResilience, createRetryBudget } from '../../../src/models/resilience/policy.ts';
import { manualClock } from '../../support/clock.ts';
import { seededRandom } from '../../support/random.ts';
import { apiError, candidate, finish, say, scriptedConnection, text } from '../scripted-model.ts';

const takes = (budget: ReturnType<typeof createRetryBudget>, upstream: string, now: number, times = 100) =>
  Array.from({ length: times }, () => budget.take(upstream, now)).filter(taken => taken).length;

const begin = (budget: ReturnType<typeof createRetryBudget>, upstream: string, calls: number) => {
  for (let call = 0; call < calls; call++) budget.called(upstream);
};

type Step = 'call' | 'retry';

/** Rows shorter than this hold three retries and no more. */
const leastCalls = 30;

/** The largest share of retries in any row of calls, wherever it begins and ends. */
function worstShare(steps: readonly Step[]): number {
  let worst = 0;
  for (let from = 0; from < steps.length; from++) {
    let [calls, retries] = [0, 0];
    for (const step of steps.slice(from)) {
      if (step === 'call') calls++;
      else retries++;
      if (retries > 0) worst = Math.max(worst, retries / Math.max(leastCalls, calls));
    }
  }
  return worst;
}

describe('the budget of retries', () => {
  it('allows three when there are few calls', () => {
    const budget = createRetryBudget();
    begin(budget, 'a', 1);
    expect(takes(budget, 'a', 0)).toBe(3);
  });

  it('allows no fourth before the row with it has forty calls, at each upstream by itself', () => {
    const budget = createRetryBudget();
    begin(budget, 'a', 200);
    expect(takes(budget, 'a', 200)).toBe(3);
    expect(takes(budget, 'b', 200)).toBe(3);
    begin(budget, 'a', 39);
    expect(takes(budget, 'a', 300)).toBe(0);
    begin(budget, 'a', 1);
    expect(takes(budget, 'a', 300)).toBe(1);
  });

  it('forgets what was an hour ago', () => {
    const budget = createRetryBudget();
    begin(budget, 'a', 5);
    expect(takes(budget, 'a', 0)).toBe(3);
    expect(takes(budget, 'a', 3_599_000)).toBe(0);
    expect(takes(budget, 'a', 3_601_000)).toBe(3);
  });

  it.each(Array.from({ length: 40 }, (_, seed) => seed + 1))('holds in any row of calls, with the pattern %i', seed => {
    const random = seededRandom(seed);
    const budget = createRetryBudget();
    const steps: Step[] = [];
    let share = 0;
    for (let call = 0; call < 600; call++) {
      // Quiet, a tenth, half, a burst, all of them.
      if (call % 25 === 0) share = [0, 0.1, 0.5, 0.9, 1][Math.floor(random.fraction() * 5)] ?? 0;
      budget.called('a');
      steps.push('call');
      for (let retry = 0; retry < 2 && random.fraction() < share; retry++) {
        if (budget.take('a', call * 100)) steps.push('retry');
      }
    }
    expect(steps.filter(step => step === 'retry').length).toBeGreaterThan(20);
    expect(worstShare(steps)).toBeLessThanOrEqual(0.1);
  });
});

describe('the requests of many calls', () => {
  const whole = [text('Hello'), finish()];

  it.each([
    { name: 'a tenth of them fails', share: 0.1, vendors: 1 },
    { name: 'a tenth of them fails at three vendors', share: 0.1, vendors: 3 },
    { name: 'half of them fails at two vendors', share: 0.5, vendors: 2 },
    { name: 'all vendors are down', share: 1, vendors: 3 },
  ])('have at most a tenth of retries in any row: $name', async ({ share, vendors }) => {
    const clock = manualClock();
    const random = seededRandom(7);
    const names = ['alpha', 'beta', 'gamma'].slice(0, vendors);
    const steps = new Map<string, Step[]>(names.map(name => [name, []]));
    const connections = new Map(
      names.map(name => {
        const scripts = Array.from({ length: 1_500 }, () =>
          random.fraction() < share ? { refuse: apiError(503, 'down') } : whole,
        );
        return [name, scriptedConnection(scripts).connection];
      }),
    );
    const asked = new Set<string>();
    const emit = () => {};
    const limits = { total: 100, perProvider: () => 100, queue: 100 };
    const resilience = createResilience({ clock, random, emit, upstreams: [], limits });
    const ask = createAskModel({
      connection: async id => connections.get(id)!,
      clock,
      random,
      emit: event => {
        if (event.type !== 'model.attempt' || event.outcome === 'skipped') return;
        const once = `${event.reqId} ${event.provider}`;
        steps.get(event.provider)?.push(asked.has(once) ? 'retry' : 'call');
        asked.add(once);
      },
      isLocal: () => false,
      limits: { firstByteMs: 120_000, idleMs: 60_000, totalMs: 300_000 },
      resilience,
    });
    for (let call = 0; call < 1_000; call++) {
      const candidates = names.map(provider => candidate({ provider, id: `${provider}-1` }));
      const settled = ask({
        reqId: `r${call}`,
        tool: 'chat',
        candidates,
        messages: [say('user', 'hello')],
        maxOutputTokens: 1_000,
        signal: new AbortController().signal,
      }).then(
        () => true,
        () => true,
      );
      let isOver = false;
      void settled.then(() => (isOver = true));
      while (!isOver) await clock.advance(500);
    }
    const all = [...steps.values()];
    // The control: there were retries to hold back.
    expect(Math.max(...all.map(own => own.filter(step => step === 'retry').length))).toBeGreaterThan(2);
    for (const own of all) expect(worstShare(own)).toBeLessThanOrEqual(0.1);
  });
});

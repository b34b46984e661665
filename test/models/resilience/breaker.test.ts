import { describe, expect, it } from 'vitest';
import {
  Breaker,
  breakerRules,
  notAskedBecause,
  RollingCounts,
  upstreamOf,
} from '../../../src/models/resilience/breaker.ts';

describe('rolling counts', () => {
  it('know what happened within the window, and nothing older', () => {
    const counts = new RollingCounts(1_000);
    const addAll = (now: number, ...all: boolean[]) => {
      for (const hasFailed of all) counts.add(now, hasFailed);
    };
    addAll(0, true);
    addAll(50, false, false);
    addAll(950, true, false, false, false);
    expect(counts.sum(999)).toEqual({ calls: 7, failures: 2 });
    expect(counts.sum(1_000)).toEqual({ calls: 4, failures: 1 });
    counts.clear();
    expect(counts.sum(1_000)).toEqual({ calls: 0, failures: 0 });
  });
});

describe('an upstream', () => {
  const options = { apiKey: { secret: true }, other: { secret: true }, baseUrl: {}, version: { secret: false } };
  const of = (settings: Record<string, unknown>) => upstreamOf({ id: 'alpha', options } as never, settings as never);

  it('without settings is the provider alone', () => {
    expect(of({})).toEqual({ provider: 'alpha', endpoint: 'alpha', key: 'none' });
  });

  it('is another one for each key and each address, and shows neither', () => {
    const [plain, keyed, placed] = [of({}), of({ apiKey: 'key' }), of({ baseUrl: 'http://host' })];
    expect(keyed).toEqual({ ...plain, key: expect.stringMatching(/^[0-9a-f]{10}$/) });
    expect(placed).toEqual({ ...plain, endpoint: expect.stringMatching(/^alpha\.[0-9a-f]{10}$/) });
    const keys = [
      { apiKey: 'a' },
      { apiKey: 'b' },
      { other: 'a' },
      { apiKey: 'a', other: 'b' },
      { apiKey: 'aother=b' },
    ];
    expect(new Set(keys.map(settings => of(settings).key)).size).toBe(keys.length);
    expect(of({ baseUrl: 'x', apiKey: 'k', version: 1 })).toEqual(of({ version: 1, apiKey: 'k', baseUrl: 'x' }));
  });
});

it.each([
  ['quarantined', 1, 'it refused the key'],
  ['half_open', 1, 'another call is trying whether it works again'],
  ['open', 0, 'it failed (timeout)'],
  ['open', 1, 'it failed once (timeout)'],
  ['open', 7, 'it failed 7 times in a row (timeout)'],
] as const)('says why it is not asked: %s after %i failures', (state, failures, why) => {
  expect(notAskedBecause(state, 'timeout', failures)).toBe(why);
});

describe('a breaker', () => {
  it.each([
    ['open', false, 5_000, 5_000],
    ['open', false, -5_000, 0],
    ['half_open', true, 5_000, 5_000],
    ['half_open', true, -5_000, 1_000],
    ['closed', false, 5_000, 0],
    ['quarantined', false, 0, Number.POSITIVE_INFINITY],
  ] as const)('that is %s (trying: %s, ready in %i ms) waits %i ms', (state, probing, readyIn, expected) => {
    const breaker = new Breaker(0);
    Object.assign(breaker, { state, probing, readyAt: 100 + readyIn });
    expect(breaker.waitMs(100)).toBe(expected);
  });

  it.each([
    [9, 11, false],
    [10, 10, true],
    [9, 10, false],
  ])('opens by its share: after %i failures among %i successes: %s', (failures, successes, opens) => {
    const breaker = new Breaker(0);
    for (let n = 0; n < successes; n++) breaker.succeeded(0);
    for (let n = 0; n < failures - 1; n++) {
      breaker.failed(0, 'timeout');
      breaker.consecutive = 0;
    }
    expect(breaker.failed(0, 'timeout')).toBe(opens);
  });

  it('forgets its past when it closes, and keeps it when it opens', () => {
    const breaker = new Breaker(0);
    for (let n = 0; n < 4; n++) breaker.failed(0, 'timeout');
    breaker.opens = 2;
    breaker.turn('open', 7);
    expect(breaker).toMatchObject({ state: 'open', since: 7, opens: 2, consecutive: 4 });
    breaker.turn('closed', 8);
    expect(breaker).toMatchObject({ state: 'closed', since: 8, opens: 0, consecutive: 0, probing: false });
    expect(breaker.counts.sum(0)).toEqual({ calls: 0, failures: 0 });
    expect(breaker.pauseMs(3)).toBe(3 * breakerRules.pauseMs);
  });
});

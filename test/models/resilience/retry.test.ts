import { describe, expect, it } from 'vitest';
import { retryAfterSeconds } from '../../../src/models/resilience/errors.ts';
import { retryDelay } from '../../../src/models/resilience/policy.ts';
import { seededRandom } from '../../support/random.ts';

const fixed = (fraction: number) => ({ uuid: () => '', fraction: () => fraction });

describe('retryDelay', () => {
  it('waits a random part of an interval that doubles up to the cap', () => {
    const upper = (attempt: number) => retryDelay({ attempt, random: fixed(0.999999), patienceMs: 60_000 });
    expect([1, 2, 3, 4, 5, 6, 60].map(upper)).toEqual([500, 1000, 2000, 4000, 8000, 8000, 8000]);
    expect(retryDelay({ attempt: 3, random: fixed(0), patienceMs: 60_000 })).toBe(0);
  });

  it('spreads over the whole interval', () => {
    const random = seededRandom(7);
    const delays = Array.from({ length: 400 }, () => retryDelay({ attempt: 2, random, patienceMs: 60_000 }) ?? -1);
    expect(Math.min(...delays)).toBeLessThan(50);
    expect(Math.max(...delays)).toBeGreaterThan(950);
    expect(delays.reduce((sum, delay) => sum + delay, 0) / delays.length).toBeCloseTo(500, -2);
  });

  it('never waits less than the vendor asked for', () => {
    expect(retryDelay({ attempt: 1, random: fixed(0.5), retryAfterSeconds: 3, patienceMs: 60_000 })).toBe(3000);
  });

  it('does not begin a wait that the call can not afford', () => {
    expect(retryDelay({ attempt: 1, random: fixed(0), retryAfterSeconds: 61, patienceMs: 60_000 })).toBeUndefined();
    expect(retryDelay({ attempt: 1, random: fixed(0), patienceMs: 0 })).toBeUndefined();
    expect(retryDelay({ attempt: 1, random: fixed(0), patienceMs: -5 })).toBeUndefined();
  });
});

describe('retryAfterSeconds', () => {
  const now = Date.parse('Sun, 06 Nov 2033 08:49:30 GMT');
  const from = (headers: Record<string, string>, body?: unknown) => retryAfterSeconds({ headers, body, now });
  const retryInfo = (retryDelay: unknown) => ({
    error: { details: [{ '@type': 'a.Help' }, { '@type': 'google.rpc.RetryInfo', retryDelay }] },
  });

  it.each([
    ['seconds', { 'retry-after': '20' }, 20],
    ['a fraction', { 'retry-after': '1.5' }, 1.5],
    ['an HTTP date', { 'retry-after': 'Sun, 06 Nov 2033 08:49:37 GMT' }, 7],
    ['a date that has passed', { 'retry-after': 'Sun, 06 Nov 2033 08:00:00 GMT' }, 0],
    ['milliseconds before seconds', { 'retry-after-ms': '250', 'retry-after': '20' }, 0.25],
    ['a huge number, cut to a week', { 'retry-after': '99999999999' }, 604_800],
    ['a negative number', { 'retry-after': '-5' }, undefined],
    ['nonsense', { 'retry-after': 'soon' }, undefined],
    ['a number that is none', { 'retry-after': 'Infinity' }, undefined],
    ['nothing', {}, undefined],
  ] as [string, Record<string, string>, number | undefined][])('reads %s', (_name, headers, seconds) => {
    expect(from(headers)).toBe(seconds);
  });

  it('reads the delay in the body of Google, also inside of a list', () => {
    expect(from({}, retryInfo('12.5s'))).toBe(12.5);
    expect(from({}, [retryInfo('3s')])).toBe(3);
    expect(from({}, retryInfo(7))).toBeUndefined();
    expect(from({}, { error: { details: 'x' } })).toBeUndefined();
  });
});

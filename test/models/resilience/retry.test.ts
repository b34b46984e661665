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

  it.each([
    ['a duration', { 'retry-after': '1m30s' }, 90],
    ['a moment of the epoch', { 'retry-after': `${now / 1000 + 7}` }, 7],
    ['an ISO date', { 'retry-after': '2033-11-06T08:49:37Z' }, 7],
    ['seconds until a limit is whole again', { 'x-ratelimit-reset': '30', 'x-ratelimit-remaining': '0' }, 30],
    ['milliseconds of the epoch', { 'x-ratelimit-reset': `${now + 30_000}`, 'x-ratelimit-remaining': '0' }, 30],
    [
      'the limit that is used up',
      {
        'x-ratelimit-reset-requests': '20s',
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-tokens': '6m0s',
        'x-ratelimit-remaining-tokens': '100',
      },
      20,
    ],
    [
      'the last of those that are used up',
      {
        'anthropic-ratelimit-requests-reset': '2033-11-06T08:49:31Z',
        'anthropic-ratelimit-requests-remaining': '0',
        'anthropic-ratelimit-tokens-reset': '2033-11-06T08:49:40Z',
        'anthropic-ratelimit-tokens-remaining': '0',
      },
      10,
    ],
    [
      'the first, where nobody tells what remains',
      { 'x-ratelimit-reset-a': '6m', 'x-ratelimit-reset-b': '12ms' },
      0.012,
    ],
    ['retry-after before a reset', { 'retry-after': '2', 'x-ratelimit-reset': '30', 'x-ratelimit-remaining': '0' }, 2],
    ['nothing of a limit with something left', { 'x-ratelimit-reset': '30', 'x-ratelimit-remaining': '4' }, undefined],
    ['nothing of a reset that is none', { 'x-ratelimit-reset': 'soon', 'x-ratelimit-remaining': '0' }, undefined],
  ] as [string, Record<string, string>, number | undefined][])('reads %s of a 429', (_name, headers, seconds) => {
    expect(retryAfterSeconds({ status: 429, headers, now })).toBe(seconds);
  });

  it('takes a limit that is used up for no reason to wait where another failure was told', () => {
    const headers = { 'x-ratelimit-reset': '30', 'x-ratelimit-remaining': '0' };
    for (const status of [400, 500, undefined]) expect(retryAfterSeconds({ status, headers, now })).toBeUndefined();
  });

  it('reads the headers that OpenRouter has in the body', () => {
    const told = (headers: object) => ({ error: { code: 429, message: 'x', metadata: { headers } } });
    const reset = { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': `${now + 5 * 3_600_000}` };
    expect(retryAfterSeconds({ status: 429, headers: {}, body: told(reset), now })).toBe(18_000);
    expect(retryAfterSeconds({ status: 429, headers: {}, body: told({ 'Retry-After': 17 }), now })).toBe(17);
    const { error } = told({ 'Retry-After': '17' });
    expect(retryAfterSeconds({ status: 429, headers: { 'retry-after': '3' }, body: error, now })).toBe(3);
    expect(retryAfterSeconds({ status: 429, headers: {}, body: error, now })).toBe(17);
  });

  it.each([
    ['Limit 3, Used 3. Please try again in 20s.', 429, 20],
    ['Please try again in 7m23.5s. Visit the page.', undefined, 443.5],
    ['please try again after 20 seconds', 429, 20],
    ['Please retry after 1 minute.', 503, 60],
    ['Try again in 250 milliseconds', 429, 0.25],
    ['Try again in 1 h 2 min', 429, 3_720],
    ['Please try again later.', 429, undefined],
    ['Try again in 5 models', 429, undefined],
    ['The field says "try again in 20s".', 400, undefined],
  ])('reads what "%s" of a %s tells', (message, status, seconds) => {
    expect(retryAfterSeconds({ status, message, headers: {}, now })).toBe(seconds);
  });

  it('believes the words, which tell when one more request fits, before the reset, which tells when all do', () => {
    const headers = { 'x-ratelimit-reset-requests': '14h', 'x-ratelimit-remaining-requests': '0' };
    expect(retryAfterSeconds({ status: 429, message: 'Please try again in 7m12s.', headers, now })).toBe(432);
  });

  it('reads the delay in the body of Google, also inside of a list', () => {
    expect(from({}, retryInfo('12.5s'))).toBe(12.5);
    expect(from({}, [retryInfo('3s')])).toBe(3);
    expect(from({}, retryInfo(7))).toBeUndefined();
    expect(from({}, { error: { details: 'x' } })).toBeUndefined();
  });
});

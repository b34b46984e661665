import { afterEach, describe, expect, it } from 'vitest';
import { createStoredState } from '../../../src/storage/shared-state.ts';
import { clockOrigin, fastClock, sharedFastClock } from '../../support/fast-clock.ts';
import { seededRandom } from '../../support/random.ts';
import { type SqlitePlace, sqlitePlace } from '../../support/sqlite-temp.ts';
import type { FakeVendor, Step } from '../../support/vendors/fake-vendor.ts';
import { waitedTime } from '../../support/waited-time.ts';
import { type StormProcess, startStormProcess } from './storm-process.ts';
import { alpha, beta, type Ending, sibling, stormTeam } from './storm-team.ts';
import { stormVendors } from './storm-vendors.ts';

const calls = 100;
/** Half a minute passes in 150 ms. */
const factor = 200;

const faults: Record<string, Step> = {
  '500': { fault: 'status', status: 500 },
  '429': { fault: 'status', status: 429 },
  hang: { fault: 'hang_before_headers' },
  reset: { fault: 'reset' },
};

/** What the next requests meet, the same for the same seed. */
function weather(fault: Step, share: number, seed: number): Step[] {
  const random = seededRandom(seed);
  return Array.from({ length: 2 * calls }, () => (random.fraction() < share ? fault : {}));
}

function expectTyped(endings: readonly Ending[]): void {
  for (const { error } of endings) {
    if (error)
      expect(error).toMatchObject({
        name: 'AppError',
        kind: 'model',
        details: { code: 'API_ERROR', class: expect.any(String) },
      });
  }
}

const asked = (vendor: FakeVendor) => vendor.requests.filter(({ dialect }) => dialect !== 'models').length;

describe('a storm of 100 calls, 8 at a time, with a healthy fallback', () => {
  const vendors = stormVendors();

  const cases = Object.keys(faults).flatMap((fault, row) =>
    [0.02, 0.1, 0.5, 1].map((share, column) => ({ fault, share, seed: 1 + row * 4 + column })),
  );

  it.each(cases)('$fault at $share of the calls', async ({ fault, share, seed }) => {
    const clock = fastClock(factor);
    const firstByteMs = fault === 'hang' ? 60_000 : undefined;
    const team = stormTeam({ alphaUrl: vendors.alpha.url, betaUrl: vendors.beta.url, clock, seed, firstByteMs });
    const step = faults[fault]!;
    vendors.alpha.script(...weather(step, share, seed));
    if (share === 1) vendors.alpha.byDefault(step);

    const endings = await team.storm([alpha, beta], calls);

    expect(endings).toHaveLength(calls);
    expectTyped(endings);
    expect(endings.filter(({ answer }) => answer?.text)).toHaveLength(calls);
    const attempts = team.events.filter(event => event.type === 'model.attempt' && event.outcome !== 'skipped');
    const failures = attempts.filter(event => event.type === 'model.attempt' && event.outcome !== 'ok').length;
    expect(asked(vendors.alpha)).toBeLessThanOrEqual(1.1 * calls);
    expect(asked(vendors.beta)).toBeLessThanOrEqual(1.1 * calls);
    expect(asked(vendors.alpha) + asked(vendors.beta)).toBeLessThanOrEqual(calls + failures + 3);
    expect([vendors.alpha.violations, vendors.beta.violations]).toEqual([[], []]);
    if (share < 1) return;
    // Opened by the fifth failure; those under way at that moment and one probe after each pause are all that came besides.
    const opened = team.events.find(event => event.type === 'breaker.change');
    expect(opened).toMatchObject({ to: 'open', consecutive: 5 });
    const probes = team.events.filter(event => event.type === 'breaker.change' && event.to === 'half_open').length;
    expect(asked(vendors.alpha)).toBeLessThanOrEqual(5 + 7 + 3 + probes);
  });
});

describe('the breaker of one vendor', () => {
  const vendors = stormVendors();
  const team = (clock = fastClock(factor)) =>
    stormTeam({ alphaUrl: vendors.alpha.url, betaUrl: vendors.beta.url, clock });

  it('lets exactly one of eight calls try again', async () => {
    const { one, resilience } = team();
    vendors.alpha.byDefault({ fault: 'status', status: 500 });
    for (let call = 0; call < 2; call++) await one([alpha]);
    const before = asked(vendors.alpha);
    expect(before).toBe(5);
    await expect.poll(() => resilience.blocked(alpha)).toBeUndefined();
    vendors.alpha.byDefault({ answer: 'Well again.', delayMs: 50 });
    const endings = await Promise.all(Array.from({ length: 8 }, () => one([alpha, beta])));
    expect(asked(vendors.alpha)).toBe(before + 1);
    expect(endings.map(({ answer }) => answer?.model.provider).sort()).toEqual([...Array(7).fill('custom'), 'openai']);
    expect((await one([alpha])).answer?.text).toBe('Well again.');
  });

  it('leaves the sibling of a model alone that is asked too often', async () => {
    const { one } = team(fastClock(1));
    vendors.alpha.byDefault({ fault: 'status', status: 429, headers: { 'retry-after': '120' } });
    expect((await one([alpha])).error?.details).toMatchObject({ class: 'rate_limit', retryAfterSeconds: 120 });
    vendors.alpha.byDefault({ answer: 'Here.' });
    expect((await one([alpha])).error?.details).toMatchObject({ class: 'rate_limit', data: { breaker: 'open' } });
    expect((await one([alpha, sibling])).answer?.model.id).toBe(sibling.id);
    expect(asked(vendors.alpha)).toBe(2);
  });

  it('answers at once, with when to come back, while all are open', async () => {
    const { one, storm } = team(fastClock(20));
    for (const vendor of [vendors.alpha, vendors.beta]) vendor.byDefault({ fault: 'status', status: 503 });
    expectTyped(await storm([alpha, beta], 16));
    const before = asked(vendors.alpha) + asked(vendors.beta);
    // The quickest of three: what else the machine does is no wait of ours.
    const took: number[] = [];
    let error: Ending['error'];
    for (let call = 0; call < 3; call++) {
      const waited = waitedTime();
      ({ error } = await one([alpha, beta]));
      took.push(waited());
    }
    expect(Math.min(...took)).toBeLessThan(500);
    expect(error?.details).toMatchObject({
      class: 'exhausted_fallback_chain',
      retryable: true,
      retryAfterSeconds: expect.any(Number),
    });
    expect(error?.details.retryAfterSeconds).toBeLessThanOrEqual(30);
    expect(error?.message).toMatch(/openai:gpt-5.*is paused for \d+ s.*custom:spare/);
    expect(asked(vendors.alpha) + asked(vendors.beta)).toBe(before);
  });

  it('asks nobody with a key that was refused', async () => {
    const { one } = team();
    vendors.alpha.byDefault({ fault: 'status', status: 401 });
    expect((await one([alpha])).error?.details).toMatchObject({ class: 'auth', retryable: false });
    expect((await one([sibling])).error?.details).toMatchObject({ class: 'auth', data: { breaker: 'quarantined' } });
    expect((await one([sibling, beta])).answer?.model.provider).toBe('custom');
    expect(asked(vendors.alpha)).toBe(1);
  });

  it('does not count what the caller cancelled, nor his own short limits', async () => {
    const { one, resilience } = team();
    vendors.alpha.byDefault({ fault: 'hang_before_headers' });
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        const caller = new AbortController();
        setTimeout(() => caller.abort(), 20);
        expect((await one([alpha], { signal: caller.signal })).error?.kind).toBe('cancelled');
        expect((await one([alpha], { limits: { totalMs: 4_000 } })).error?.details.class).toBe('timeout');
      }),
    );
    expect(resilience.blocked(alpha)).toBeUndefined();
  });
});

describe('two processes on one database', () => {
  const vendors = stormVendors();
  let place: SqlitePlace;
  let processes: StormProcess[] = [];
  afterEach(async () => {
    await Promise.all(processes.map(each => each.end()));
    await place.dispose();
  });

  it('share a breaker, and one of their calls tries again', async () => {
    place = await sqlitePlace();
    const slow = 10;
    const origin = clockOrigin();
    const start = (seed: number) =>
      startStormProcess({
        file: place.file,
        alphaUrl: vendors.alpha.url,
        betaUrl: vendors.beta.url,
        seed,
        factor: slow,
        origin,
      });
    processes = [start(1), start(2)];
    const [first, second] = processes;
    // Both are there before anything has to happen in time.
    vendors.alpha.byDefault({ answer: 'Well.' });
    for (const each of processes) expect(await each.ask()).toEqual({ text: 'Well.' });
    vendors.alpha.byDefault({ fault: 'status', status: 500 });
    for (let call = 0; call < 2; call++) await first!.ask();
    expect(asked(vendors.alpha)).toBe(2 + 5);
    const clock = sharedFastClock(slow, origin);
    const state = createStoredState(place.open(), clock);
    await expect.poll(async () => (await state.list('breaker/')).size).toBe(1);
    expect(await second!.ask()).toMatchObject({ error: 'bad_upstream', breaker: 'open' });
    expect(asked(vendors.alpha)).toBe(2 + 5);

    const { promise, resolve } = Promise.withResolvers<void>();
    vendors.alpha.byDefault({ answer: 'Well again.', when: promise });
    const [[, record]] = [...(await state.list('breaker/'))] as [[string, { until: number }]];
    await clock.sleep(record.until - clock.now() + 1_000);
    let ended = 0;
    const asks = [first!, second!, first!, second!, first!, second!].map(each => each.ask().finally(() => ended++));
    await expect.poll(() => ended).toBe(5);
    resolve();
    const endings = await Promise.all(asks);
    expect(asked(vendors.alpha)).toBe(2 + 6);
    expect(endings.filter(({ text }) => text === 'Well again.')).toHaveLength(1);
    expect(endings.filter(({ breaker }) => breaker !== undefined)).toHaveLength(5);

    await expect.poll(async () => (await state.list('breaker/')).size).toBe(0);
    // Each hears of it in its own time.
    for (const each of processes) await expect.poll(() => each.ask()).toEqual({ text: 'Well again.' });
  });
});

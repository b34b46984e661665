import { describe, expect, it } from 'vitest';
import type { AppEvent } from '../../../src/core/events.ts';
import type { SharedState } from '../../../src/core/ports.ts';
import type { Upstream } from '../../../src/models/resilience/breaker.ts';
import {
  type BreakerPermit,
  BreakerRegistry,
  type CountedFault,
} from '../../../src/models/resilience/breaker-registry.ts';
import { type ManualClock, manualClock } from '../../support/clock.ts';
import { createLocalState } from '../../support/local-state.ts';
import { seededRandom } from '../../support/random.ts';

const upstream: Upstream = { provider: 'alpha', endpoint: 'alpha', key: 'k1' };
const down: CountedFault = { scope: 'model', cause: 'bad_upstream', lasting: false };
const probeMs = 300_000;

function setUp(clock = manualClock(), state?: SharedState, seed = 1) {
  const events: AppEvent[] = [];
  const board = new BreakerRegistry({ clock, random: seededRandom(seed), emit: event => events.push(event), state });
  const admit = (model = 'm', place = upstream) => board.admit(place, model, probeMs, 'r');
  const passed = async (model?: string, place?: Upstream): Promise<BreakerPermit> => {
    const pass = await admit(model, place);
    if ('waitMs' in pass) throw new Error(`blocked: ${pass.state}`);
    return pass;
  };
  const fail = async (times: number, fault = down, model?: string) => {
    for (let n = 0; n < times; n++) (await passed(model)).failed(fault, true);
  };
  const changes = () =>
    events.flatMap(event => (event.type === 'breaker.change' ? [`${event.scope} ${event.from} → ${event.to}`] : []));
  const state_ = () => board.health([upstream]).map(({ scope, state: each }) => `${scope} ${each}`);
  return { clock, board, events, admit, passed, fail, changes, states: state_ };
}

const blockOf = (board: BreakerRegistry, model = 'm') => board.blocked(upstream, model);

describe('a breaker', () => {
  it('opens at the fifth failure in a row, with the numbers that made it', async () => {
    const { board, fail, events } = setUp();
    await fail(4);
    expect(blockOf(board)).toBeUndefined();
    await fail(1);
    expect(blockOf(board)).toEqual({
      scope: 'model',
      state: 'open',
      cause: 'bad_upstream',
      failures: 5,
      waitMs: 30_000,
    });
    expect(events).toEqual([
      expect.objectContaining({
        type: 'breaker.change',
        provider: 'alpha',
        model: 'm',
        scope: 'model',
        from: 'closed',
        to: 'open',
        class: 'bad_upstream',
        calls: 5,
        failures: 5,
        consecutive: 5,
        retryInMs: 30_000,
      }),
    ]);
  });

  it('begins to count anew after a success', async () => {
    const { board, fail, passed } = setUp();
    await fail(4);
    (await passed()).succeeded(10);
    await fail(4);
    expect(blockOf(board)).toBeUndefined();
  });

  it('opens when half of at least twenty attempts failed within 30 s', async () => {
    const { board, passed, clock } = setUp();
    const mixed = async (rounds: number) => {
      for (let n = 0; n < rounds; n++) {
        (await passed()).succeeded(10);
        (await passed()).failed(down, true);
      }
    };
    await mixed(9);
    await clock.advance(33_000);
    await mixed(9);
    expect(blockOf(board)).toBeUndefined();
    await mixed(1);
    expect(blockOf(board)).toMatchObject({ state: 'open' });
  });

  it('lets exactly one try after its pause, and closes when that works', async () => {
    const { admit, fail, clock, changes, board } = setUp();
    await fail(5);
    await clock.advance(29_999);
    expect(await admit()).toMatchObject({ state: 'open' });
    await clock.advance(1);
    const asked = await Promise.all(Array.from({ length: 8 }, () => admit()));
    const passes = asked.filter(each => 'succeeded' in each);
    expect(passes).toHaveLength(1);
    expect(asked.filter(each => 'waitMs' in each)).toEqual(
      Array.from({ length: 7 }, () => expect.objectContaining({ state: 'half_open' })),
    );
    await clock.advance(200_000);
    expect(blockOf(board)).toMatchObject({ state: 'half_open' });
    passes[0]!.succeeded(10);
    expect(blockOf(board)).toBeUndefined();
    expect(changes()).toEqual(['model closed → open', 'model open → half_open', 'model half_open → closed']);
  });

  it('lets others through once the one that tries got a piece of an answer, and counts what breaks afterwards', async () => {
    const { admit, fail, clock, changes, board, passed } = setUp();
    await fail(5);
    await clock.advance(30_000);
    const trial = await passed();
    expect(await admit()).toMatchObject({ state: 'half_open' });
    trial.works();
    trial.works();
    expect(await admit()).toHaveProperty('succeeded');
    trial.failed(down, true);
    expect(blockOf(board)).toBeUndefined();
    await fail(4);
    expect(blockOf(board)).toMatchObject({ state: 'open' });
    expect(changes().slice(0, 3)).toEqual([
      'model closed → open',
      'model open → half_open',
      'model half_open → closed',
    ]);
  });

  it('pauses longer each time that trying fails, up to five minutes, and forgets that once it works', async () => {
    const { fail, clock, board, passed } = setUp();
    await fail(5);
    for (const seconds of [30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 300]) {
      expect(blockOf(board)?.waitMs).toBe(seconds * 1_000);
      await clock.advance(seconds * 1_000);
      await fail(1);
    }
    await clock.advance(300_000);
    (await passed()).succeeded(5);
    await fail(5);
    expect(blockOf(board)?.waitMs).toBe(30_000);
  });

  it('lets the next one try when the one that did gave up', async () => {
    const { fail, clock, passed, states } = setUp();
    await fail(5);
    await clock.advance(30_000);
    (await passed()).abandoned();
    (await passed()).succeeded(5);
    expect(states()).toEqual(['model closed']);
  });

  it('is not moved by answers that come late', async () => {
    const { fail, passed, board } = setUp();
    const early = [await passed(), await passed()];
    await fail(5);
    early[0]!.succeeded(5);
    early[1]!.failed(down, true);
    expect(blockOf(board)).toMatchObject({ state: 'open', waitMs: 30_000 });
  });

  it('keeps apart what failed', async () => {
    const limited: CountedFault = { scope: 'key_model', cause: 'rate_limit', lasting: false };
    const { fail, board } = setUp();
    await fail(5, limited, 'big');
    expect(blockOf(board, 'big')).toMatchObject({ scope: 'key_model', cause: 'rate_limit' });
    expect(blockOf(board, 'small')).toBeUndefined();
    const other = { ...upstream, key: 'k2' };
    expect(board.blocked(other, 'big')).toBeUndefined();
    await fail(5, { scope: 'account', cause: 'quota', lasting: false }, 'small');
    expect(blockOf(board, 'third')).toMatchObject({ scope: 'account' });
    expect(board.blocked(other, 'third')).toBeUndefined();
  });

  it('opens for the way to a vendor, whichever model was asked', async () => {
    const { fail, board } = setUp();
    const unreachable: CountedFault = { scope: 'key', cause: 'network', lasting: false };
    await fail(3, unreachable, 'one');
    await fail(2, unreachable, 'two');
    expect(blockOf(board, 'three')).toMatchObject({ scope: 'key', cause: 'network' });
  });

  it('opens at once for a vendor that asks for more than any call waits, as long as it asked', async () => {
    const { fail, board, clock } = setUp();
    const busy = (askedMs: number): CountedFault => ({
      scope: 'key_model',
      cause: 'rate_limit',
      lasting: false,
      askedMs,
    });
    await fail(1, busy(60_000));
    expect(blockOf(board)).toBeUndefined();
    await fail(1, busy(120_000));
    expect(blockOf(board)?.waitMs).toBe(120_000);
    await clock.advance(120_000);
    await fail(1, busy(86_400_000));
    expect(blockOf(board)?.waitMs).toBe(300_000);
  });

  it('closes on any answer when it was the way that was tried', async () => {
    const { fail, passed, clock, board } = setUp();
    await fail(5, { scope: 'key', cause: 'network', lasting: false });
    await clock.advance(30_000);
    (await passed()).failed(down, true);
    expect(blockOf(board)).toBeUndefined();
  });

  it('stays for a refused key until another key is set, or the key is known to work', async () => {
    const { fail, board, clock, admit, events } = setUp();
    await fail(1, { scope: 'key', cause: 'auth', lasting: true });
    await clock.advance(3_600_000);
    expect(await admit('other')).toMatchObject({ state: 'quarantined', cause: 'auth' });
    expect(board.blocked({ ...upstream, key: 'k2' }, 'm')).toBeUndefined();
    expect(JSON.stringify(events)).toContain('quarantined');
    board.release(upstream);
    expect(await admit('other')).toHaveProperty('succeeded');
  });

  it('tells of latency, failures and waits', async () => {
    const { passed, fail, board, clock } = setUp();
    (await passed()).succeeded(100);
    (await passed()).succeeded(200);
    expect(board.health([upstream])).toEqual([
      {
        provider: 'alpha',
        model: 'm',
        scope: 'model',
        state: 'closed',
        calls: 2,
        failures: 0,
        consecutive: 0,
        latencyMs: 120,
        since: clock.now(),
      },
    ]);
    await fail(5, { ...down, scope: 'key_model', cause: 'rate_limit' });
    await clock.advance(1_500);
    expect(board.health([upstream]).find(({ scope }) => scope === 'key_model')).toEqual({
      provider: 'alpha',
      model: 'm',
      scope: 'key_model',
      state: 'open',
      calls: 7,
      failures: 5,
      consecutive: 5,
      class: 'rate_limit',
      why: 'it failed 5 times in a row (rate_limit)',
      since: clock.now() - 1_500,
      retryAfterSeconds: 29,
    });
  });

  it('keeps no more names than a thousand', async () => {
    const { passed, fail, board } = setUp();
    await fail(5, down, 'first');
    for (let n = 0; n < 1_500; n++) (await passed(`made-up-${n}`)).succeeded(1);
    expect(board.health([upstream]).length).toBeLessThanOrEqual(1_000);
    expect(blockOf(board, 'first')).toMatchObject({ state: 'open' });
  });
});

describe('breakers of two processes on one state', () => {
  function two(): {
    clock: ManualClock;
    state: SharedState;
    one: ReturnType<typeof setUp>;
    other: ReturnType<typeof setUp>;
  } {
    const clock = manualClock();
    const state = createLocalState(clock);
    return { clock, state, one: setUp(clock, state, 1), other: setUp(clock, state, 2) };
  }
  const settle = (clock: ManualClock, ms = 1_000) => clock.advance(ms);

  it('open and close together', async () => {
    const { clock, one, other } = two();
    await one.fail(5);
    await settle(clock);
    await other.board.refresh();
    expect(await other.admit()).toMatchObject({ state: 'open', cause: 'bad_upstream', failures: 5 });
    await settle(clock, 30_000);
    (await other.passed()).succeeded(5);
    await settle(clock);
    await one.board.refresh();
    expect(await one.admit()).toHaveProperty('succeeded');
    expect(one.changes()).toEqual(['model closed → open', 'model open → closed']);
    expect(other.changes()).toEqual(['model closed → open', 'model open → half_open', 'model half_open → closed']);
  });

  it('let one call of all of them try', async () => {
    const { clock, one, other } = two();
    await one.fail(5);
    await settle(clock, 30_000);
    await other.board.refresh();
    const asked = await Promise.all([one, other, one, other, one, other].map(({ admit }) => admit()));
    const passes = asked.filter(each => 'succeeded' in each);
    expect(passes).toHaveLength(1);
    passes[0]!.failed(down, true);
    await settle(clock, 1_000);
    await Promise.all([one.board.refresh(), other.board.refresh()]);
    expect(await one.admit()).toMatchObject({ state: 'open' });
    expect(await other.admit()).toMatchObject({ state: 'open' });
    await settle(clock, 58_000);
    expect(await other.admit()).toMatchObject({ state: 'open' });
  });

  it('let another one try when the one that did died over it', async () => {
    const { clock, one, other } = two();
    await one.fail(5);
    await settle(clock, 30_000);
    await other.board.refresh();
    await one.passed();
    expect(await other.admit()).toMatchObject({ state: 'half_open' });
    await settle(clock, probeMs);
    await other.board.refresh();
    expect(await other.admit()).toHaveProperty('succeeded');
  });

  it('are told to one that starts later, and shown as its health', async () => {
    const { clock, state, one } = two();
    await one.fail(5, down, 'a/b:c');
    await one.fail(1, { scope: 'key', cause: 'auth', lasting: true });
    await settle(clock);
    const [opened] = one.board.health([upstream]).filter(({ scope }) => scope === 'model');
    await settle(clock, 4_000);
    const late = setUp(clock, state, 3);
    await late.board.refresh();
    expect(late.board.health([upstream]).find(({ scope }) => scope === 'model')).toMatchObject({
      consecutive: 5,
      since: opened?.since,
      why: 'it failed 5 times in a row (bad_upstream)',
      retryAfterSeconds: 25,
    });
    expect(late.states().sort()).toEqual(['key quarantined', 'model open']);
    expect(late.board.health([upstream]).find(({ scope }) => scope === 'model')?.model).toBe('a/b:c');
    expect(late.board.health([{ ...upstream, key: 'k2' }]).map(({ scope }) => scope)).not.toContain('nothing');
    late.board.release(upstream);
    await settle(clock);
    await one.board.refresh();
    expect(one.board.blocked(upstream, 'x')).toBeUndefined();
  });

  it('hold no key and no address', async () => {
    const { clock, state, one } = two();
    await one.fail(5);
    await settle(clock);
    expect([...(await state.list(''))]).toEqual([
      [
        'breaker/alpha/model/m',
        {
          state: 'open',
          opens: 1,
          since: expect.any(Number),
          until: expect.any(Number),
          cause: 'bad_upstream',
          failures: 5,
          probe: undefined,
        },
      ],
    ]);
  });

  it('work alone when the state fails, and say so once', async () => {
    const clock = manualClock();
    const broken: SharedState = {
      get: () => Promise.reject(new Error('disk gone')),
      list: () => Promise.reject(new Error('disk gone')),
      change: () => Promise.reject(new Error('disk gone')),
    };
    const { board, fail, passed, events, clock: time } = setUp(clock, broken);
    await board.refresh();
    await fail(5);
    await time.advance(30_000);
    await board.refresh();
    (await passed()).succeeded(5);
    expect(blockOf(board)).toBeUndefined();
    expect(events.filter(event => event.type === 'warning')).toHaveLength(1);
  });

  it('do not make a call wait for a state that does not answer', async () => {
    const clock = manualClock();
    const stuck = new Promise<never>(() => {});
    const { board, fail, admit } = setUp(clock, { get: () => stuck, list: () => stuck, change: () => stuck });
    const refreshed = board.refresh();
    await clock.advance(2_000);
    await refreshed;
    await fail(5);
    await clock.advance(30_000);
    const trying = admit();
    await clock.advance(2_000);
    expect(await trying).toHaveProperty('succeeded');
    expect(clock.pending()).toBe(0);
  });

  it('take names as callers type them', async () => {
    const clock = manualClock();
    const { fail, board } = setUp(clock, createLocalState(clock));
    await fail(5, down, 'a/\ud800 %');
    expect(blockOf(board, 'a/\ud800 %')).toMatchObject({ state: 'open' });
    await board.settled();
  });

  it('take no harm from what another program left there', async () => {
    const clock = manualClock();
    const state = createLocalState(clock);
    await state.change('breaker/alpha/model/%E0%A4%A', 1e6, () => ({ state: 'open', opens: 1, since: 1, until: 1 }));
    await state.change('breaker/alpha/model/m', 1e6, () => ({ state: 'ajar', until: 'never' }));
    await state.change('breaker/', 1e6, () => ({}));
    const { board, admit } = setUp(clock, state);
    await board.refresh();
    board.health([upstream]);
    expect(await admit()).toHaveProperty('succeeded');
  });

  it('measure a pause by a clock that does not jump', async () => {
    const clock = manualClock();
    const state = createLocalState(clock);
    await state.change('breaker/alpha/model/m', 1e9, () => ({
      state: 'open',
      opens: 1,
      since: 1,
      until: clock.now() + 1e8,
      cause: 'timeout',
    }));
    const { board } = setUp(clock, state);
    await board.refresh();
    expect(blockOf(board)?.waitMs).toBe(300_000);
  });
});

it('new models are paused however many failed before them and were never asked again', async () => {
  const { board, clock, fail } = setUp();
  for (let n = 0; n < 2_000; n++) await fail(5, down, `gone-${n}`);
  await clock.advance(30_000);
  await fail(4, down, 'new');
  expect(blockOf(board, 'new')).toBeUndefined();
  await fail(1, down, 'new');
  expect(blockOf(board, 'new')).toMatchObject({ state: 'open', failures: 5 });
  expect(board.health([upstream]).length).toBeLessThan(2_001);
});

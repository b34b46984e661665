import { describe, expect, it } from 'vitest';
import type { AppEvent } from '../../../src/core/events.ts';
import type { JsonObject } from '../../../src/core/json.ts';
import type { Clock, SharedState } from '../../../src/core/ports.ts';
import { BreakerRegistry, type CountedFault } from '../../../src/models/resilience/breaker-registry.ts';
import { mayProbe, recordFromJson } from '../../../src/models/resilience/shared-breakers.ts';
import { manualClock } from '../../support/clock.ts';
import { createLocalState } from '../../support/local-state.ts';
import { seededRandom } from '../../support/random.ts';

const upstream = { provider: 'alpha', endpoint: 'alpha', key: 'k1' };
const down: CountedFault = { scope: 'model', cause: 'bad_upstream', lasting: false };
const unreachable: CountedFault = { scope: 'key', cause: 'network', lasting: false };
const record = { state: 'open', opens: 1, since: 1, until: 2, cause: 'timeout', failures: 5 } as const;
const names = { model: 'breaker/alpha/model/m', key: 'breaker/alpha/key/k1' };

async function setUp({
  change = state => state,
  clock = manualClock(),
  skew = () => 0,
}: {
  change?: (state: SharedState) => SharedState;
  clock?: ReturnType<typeof manualClock>;
  skew?: () => number;
} = {}) {
  const own: Clock = { ...clock, now: () => clock.now() + skew() };
  const inner = createLocalState(clock);
  const events: AppEvent[] = [];
  const state = change(inner);
  const board = new BreakerRegistry({ clock: own, random: seededRandom(1), emit: event => events.push(event), state });
  const admit = (reqId = 'r') => board.admit(upstream, 'm', 300_000, reqId);
  const permits = async (count: number) => {
    const all = await Promise.all(Array.from({ length: count }, () => admit()));
    return all.flatMap(each => ('failed' in each ? [each] : []));
  };
  const fail = async (fault = down) => {
    for (const permit of await permits(5)) permit.failed(fault, true);
    await clock.advance(0);
  };
  const write = (name: string, value: JsonObject) => inner.change(name, 1e9, () => ({ ...record, ...value }));
  const states = () => board.health([upstream]).map(({ scope, state: each }) => `${scope} ${each}`);
  const warnings = () => events.filter(({ type }) => type === 'warning');
  const block = () => board.blocked(upstream, 'm');
  return { clock, inner, board, events, admit, permits, fail, write, states, warnings, block };
}

describe('a record', () => {
  it.each<[string, JsonObject | undefined, unknown]>([
    ['of this release', { ...record, probe: { by: 'x', until: 3 } }, { ...record, probe: { by: 'x', until: 3 } }],
    [
      'of an older release',
      { state: 'quarantined', opens: 1, since: 1, until: 2 },
      { ...record, state: 'quarantined', cause: 'unknown', failures: 0 },
    ],
    ['with half a probe', { ...record, probe: { by: 'x' } }, record],
    ['with the other half', { ...record, probe: { until: 3 } }, record],
    ['with another state', { ...record, state: 'closed' }, undefined],
    ...['opens', 'since', 'until'].map((name): [string, JsonObject, unknown] => [
      `with odd ${name}`,
      { ...record, [name]: 'x' },
      undefined,
    ]),
    ['that is none', undefined, undefined],
  ])('%s is read as far as it is one', (_, value, expected) => {
    expect(recordFromJson(value)).toEqual(expected);
  });

  it.each([
    [{}, 2, true],
    [{}, 1, false],
    [{ state: 'quarantined' as const }, 2, false],
    [{ probe: { by: 'x', until: 9 } }, 8, false],
    [{ probe: { by: 'x', until: 9 } }, 9, true],
  ])('%o may be tried at %i: %s', (changes, now, expected) => {
    expect(mayProbe({ ...record, ...changes }, now)).toBe(expected);
  });
});

describe('what is told to other processes', () => {
  it('is until when the pause lasts, by the time of day', async () => {
    const { clock, inner, fail } = await setUp();
    await clock.advance(5_000);
    await fail();
    expect(await inner.get(names.model)).toMatchObject({ opens: 1, until: clock.now() + 30_000, failures: 5 });
  });

  it.each<[string, JsonObject, JsonObject]>([
    [
      'a longer pause of another stays, with its try',
      { opens: 3, until: 9e12, probe: { by: 'x', until: 9e12 } },
      { opens: 3, until: 9e12, probe: { by: 'x', until: 9e12 } },
    ],
    ['a shorter one does not', { opens: 0, until: 5 }, { opens: 1, until: 1_800_000_030_000 }],
    ['a refused key stays refused', { state: 'quarantined', opens: 4 }, { state: 'quarantined', opens: 4, until: 2 }],
  ])('%s', async (_, before, after) => {
    const { inner, fail, write, permits } = await setUp();
    const early = await permits(5);
    await write(names.model, before);
    for (const permit of early) permit.failed(down, true);
    await fail();
    expect(await inner.get(names.model)).toMatchObject(after);
  });

  it('is that nobody tries any more, where the one that did gave up', async () => {
    const { clock, inner, fail, permits, states } = await setUp();
    await fail();
    await clock.advance(30_000);
    const [permit] = await permits(1);
    expect(await inner.get(names.model)).toHaveProperty('probe.by');
    permit?.abandoned();
    await clock.advance(0);
    const { probe, ...left } = (await inner.get(names.model)) ?? {};
    expect([probe, left]).toEqual([undefined, expect.objectContaining({ state: 'open', opens: 1 })]);
    expect(states()).toEqual(['model open']);
  });

  it('is of a key that works only that it is not refused', async () => {
    const { inner, fail, board, write } = await setUp();
    await fail(unreachable);
    await board.release(upstream);
    expect(await inner.get(names.key)).toMatchObject({ state: 'open' });
    await write(names.key, { state: 'quarantined' });
    await board.release(upstream);
    expect(await inner.get(names.key)).toBeUndefined();
  });
});

describe('what other processes found', () => {
  it('keeps a call from trying, with its own end, and frees what it had begun to try', async () => {
    const { clock, inner, permits, admit, write, states } = await setUp();
    const early = await permits(10);
    for (const [index, permit] of early.entries()) permit.failed(index < 5 ? unreachable : down, false);
    await clock.advance(30_000);
    await write(names.model, { until: clock.now() + 100_000 });
    expect(await admit()).toMatchObject({ scope: 'model', state: 'open', waitMs: 100_000 });
    await clock.advance(0);
    expect((await inner.get(names.key))?.probe).toBeUndefined();
    expect(states().toSorted()).toEqual(['key open', 'model open']);
  });

  it.each<[string, (now: number) => JsonObject, string, number]>([
    ['a pause that is nearly over', now => ({ until: now + 100 }), 'open', 1_000],
    ['the try of another', now => ({ probe: { by: 'x', until: now + 200_000 } }), 'half_open', 5_000],
  ])('lets a call wait for %s between a second and five', async (_, value, state, waitMs) => {
    const { clock, fail, admit, write } = await setUp();
    await fail();
    await clock.advance(30_000);
    await write(names.model, value(clock.now()));
    expect(await admit()).toMatchObject({ state, waitMs });
  });

  it.each<[string, (now: number) => JsonObject, string, number]>([
    ['a longer pause', now => ({ until: now + 100_000 }), 'open', 100_000],
    ['a try', now => ({ probe: { by: 'x', until: now + 3_000 } }), 'half_open', 3_000],
    ['a try that has just ended', now => ({ until: now + 9_000, probe: { by: 'x', until: now } }), 'open', 9_000],
  ])('holds where this one found the same before: %s', async (_, value, state, waitMs) => {
    const { clock, board, fail, write, block } = await setUp();
    await fail();
    await clock.advance(2_000);
    await write(names.model, value(clock.now()));
    await board.refresh();
    expect(block()).toMatchObject({ state, waitMs });
  });

  it('counts how often it opened', async () => {
    const { clock, board, permits, write, block } = await setUp();
    for (const permit of await permits(1)) permit.succeeded(1);
    await write(names.model, { opens: 2, until: clock.now() + 10_000 });
    await board.refresh();
    await clock.advance(10_000);
    for (const permit of await permits(1)) permit.failed(down, true);
    expect(block()?.waitMs).toBe(90_000);
  });

  it('is shown of models that this one never asked, under its own key alone', async () => {
    const { board, write } = await setUp();
    await write('breaker/alpha/key_model/k1/mine', {});
    await write('breaker/alpha/key_model/k2/theirs', {});
    await write('breaker/alpha/model/both', {});
    await write('breaker/beta/model/elsewhere', {});
    await board.refresh();
    const shown = board.health([upstream]).map(({ scope, model, state }) => `${scope} ${model} ${state}`);
    expect(shown.toSorted()).toEqual(['key_model mine open', 'model both open']);
  });

  it('does not move a pause when the time of day does', async () => {
    let skew = 0;
    const { clock, board, write, block } = await setUp({ skew: () => skew });
    await write(names.model, { until: clock.now() + 100_000 });
    await board.refresh();
    expect(block()?.waitMs).toBe(100_000);
    skew = -3_600_000;
    await clock.advance(2_000);
    await board.refresh();
    expect(block()?.waitMs).toBe(98_000);
  });

  it('is read once a second', async () => {
    let reads = 0;
    const { board, clock } = await setUp({
      change: state => ({
        ...state,
        list: prefix => {
          reads += 1;
          return state.list(prefix);
        },
      }),
    });
    for (const ms of [0, 999, 1]) {
      await clock.advance(ms);
      await board.refresh();
    }
    expect(reads).toBe(2);
  });

  it('is waited for two seconds at first, and a quarter of one later', async () => {
    let isStuck = true;
    const { board, clock } = await setUp({
      change: state => ({ ...state, list: prefix => (isStuck ? new Promise(() => {}) : state.list(prefix)) }),
    });
    const waits = async (ms: number) => {
      let isOver = false;
      const refreshed = board.refresh().then(() => (isOver = true));
      await clock.advance(ms - 1);
      const early = isOver;
      await clock.advance(1);
      await refreshed;
      return early;
    };
    expect(await waits(2_000)).toBe(false);
    const other = await setUp({
      clock,
      change: state => ({ ...state, list: prefix => (isStuck ? new Promise(() => {}) : state.list(prefix)) }),
    });
    isStuck = false;
    await other.board.refresh();
    isStuck = true;
    await clock.advance(1_000);
    let isOver = false;
    void other.board.refresh().then(() => (isOver = true));
    await clock.advance(249);
    expect(isOver).toBe(false);
    await clock.advance(1);
    expect(isOver).toBe(true);
  });
});

describe('a state that is slow', () => {
  /** Writes are held back until they are let go, one by one. */
  const held = () => {
    const waiting: (() => void)[] = [];
    const change = (state: SharedState): SharedState => ({
      ...state,
      change: async (...given) => {
        await new Promise<void>(resolve => waiting.push(resolve));
        return state.change(...given);
      },
    });
    return { waiting, change };
  };

  it('does not undo what is still to be written, the last of several included', async () => {
    const { waiting, change } = held();
    const { clock, inner, board, fail, permits, block } = await setUp({ change });
    const late = await permits(1);
    await fail();
    late[0]?.failed({ ...down, lasting: true }, true);
    await clock.advance(2_000);
    await board.refresh();
    expect(block()).toMatchObject({ state: 'quarantined' });
    waiting.shift()?.();
    await clock.advance(2_000);
    await board.refresh();
    expect(block()).toMatchObject({ state: 'quarantined' });
    let isSettled = false;
    const settled = board.settled().then(() => (isSettled = true));
    await clock.advance(0);
    expect(isSettled).toBe(false);
    for (const write of waiting) write();
    await settled;
    await clock.advance(2_000);
    await board.refresh();
    expect(block()).toMatchObject({ state: 'quarantined' });
    await inner.change(names.model, 1, () => undefined);
    await clock.advance(2_000);
    await board.refresh();
    expect(block()).toBeUndefined();
  });

  it('does not undo by what was read before what was written', async () => {
    let answer = () => {};
    const { clock, board, fail, block } = await setUp({
      change: state => ({
        ...state,
        list: async prefix => {
          const found = await state.list(prefix);
          await new Promise<void>(resolve => {
            answer = resolve;
          });
          return found;
        },
      }),
    });
    const refreshed = board.refresh();
    await clock.advance(0);
    await fail();
    await board.settled();
    answer();
    await refreshed;
    expect(block()).toMatchObject({ state: 'open' });
  });

  it.each([
    ['get', 0, 50_000],
    ['list', 1, undefined],
    ['change', 1, 50_000],
  ] as const)(
    'or fails (%s) is told of once, and keeps nobody from trying, nor from what others find later',
    async (method, early, waitMs) => {
      const { clock, board, fail, permits, warnings, write, block } = await setUp({
        change: state => ({ ...state, [method]: () => Promise.reject(new Error('disk gone')) }),
      });
      await board.refresh();
      await fail();
      await board.settled();
      expect(warnings()).toHaveLength(early);
      await clock.advance(30_000);
      for (const permit of await permits(1)) permit.succeeded(1);
      await board.settled();
      await write(names.model, { until: clock.now() + 51_000 });
      await clock.advance(1_000);
      await board.refresh();
      expect(block()?.waitMs).toBe(waitMs);
      expect(warnings()).toEqual([
        { type: 'warning', where: 'breakers', message: 'Other processes are not told of them: Error: disk gone' },
      ]);
    },
  );
});

it('says of a state that does not answer how long it was waited for', async () => {
  const { clock, board, fail, admit, warnings } = await setUp({
    change: state => ({ ...state, get: () => new Promise(() => {}) }),
  });
  await board.refresh();
  await fail();
  await clock.advance(30_000);
  const admitted = admit();
  await clock.advance(10_000);
  expect(await admitted).toHaveProperty('failed');
  expect(warnings()).toEqual([
    {
      type: 'warning',
      where: 'breakers',
      message: expect.stringMatching(/^Other processes are not told of them: no answer within \d+ ms$/),
    },
  ]);
});

describe('the one that tries', () => {
  it.each<[string, CountedFault, CountedFault | undefined, boolean, string[]]>([
    ['any answer shows that the way is open', unreachable, down, true, []],
    ['no answer shows nothing', unreachable, down, false, ['key open']],
    ['a refused request shows that the model works', down, undefined, true, []],
    ['a refused request without an answer does not', down, undefined, false, ['model open']],
    ['another fault shows nothing of the model', down, { ...down, scope: 'key_model' }, true, ['model open']],
  ])('%s', async (_, before, fault, answered, expected) => {
    const { clock, fail, permits, states, admit } = await setUp();
    await fail(before);
    await clock.advance(30_000);
    for (const permit of await permits(1)) permit.failed(fault, answered);
    await clock.advance(0);
    expect(states().filter(each => each.endsWith('open'))).toEqual(expected);
    expect(await admit()).toHaveProperty('succeeded');
  });

  it('keeps the others away until it ends, and tells whose call it was', async () => {
    const { clock, fail, admit, block, events } = await setUp({ change: () => undefined as never });
    await fail();
    await clock.advance(30_000);
    const permit = await admit('r7');
    expect(block()).toMatchObject({ state: 'half_open', waitMs: 5_000 });
    await clock.advance(400_000);
    expect(block()).toMatchObject({ state: 'half_open', waitMs: 1_000 });
    if ('succeeded' in permit) for (const _ of [1, 2]) permit.succeeded(1);
    const changes = events.filter(event => event.type === 'breaker.change');
    expect(changes.map(event => ['reqId' in event, event.reqId, event.to])).toEqual([
      [true, 'r', 'open'],
      [true, 'r7', 'half_open'],
      [true, 'r7', 'closed'],
    ]);
  });

  it('has no longer than the longest pause', async () => {
    const { clock, inner, fail, board } = await setUp();
    await fail();
    await clock.advance(30_000);
    await board.admit(upstream, 'm', 1e9, 'r');
    expect(await inner.get(names.model)).toMatchObject({ probe: { until: clock.now() + 300_000 } });
  });
});

describe('health', () => {
  it('tells of what failed lately, and of models that answered', async () => {
    const { clock, permits, states } = await setUp();
    for (const permit of await permits(1)) permit.failed(unreachable, false);
    expect(states()).toEqual(['key closed']);
    for (const permit of await permits(1)) permit.failed(down, true);
    expect(states()).toEqual(['key closed', 'model closed']);
    await clock.advance(60_000);
    expect(states()).toEqual(['model closed']);
  });

  it('tells since when a key is refused, however often it was', async () => {
    const { clock, board, permits } = await setUp();
    for (const permit of await permits(2)) {
      permit.failed({ scope: 'key', cause: 'auth', lasting: true }, true);
      await clock.advance(1_000);
    }
    expect(board.health([upstream])).toMatchObject([{ state: 'quarantined', since: clock.now() - 2_000 }]);
  });

  it('keeps what is known of the latest thousand models', async () => {
    const { board } = await setUp();
    for (let n = 0; n < 1_100; n++) {
      const permit = await board.admit(upstream, `m${n}`, 1, 'r');
      if ('succeeded' in permit) permit.succeeded(1);
    }
    // The key and the account take the place of one.
    expect(board.health([upstream])).toHaveLength(999);
  });
});

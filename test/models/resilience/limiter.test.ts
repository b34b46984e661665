import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { type Entry, Limiter } from '../../../src/models/resilience/limiter.ts';
import { manualClock } from '../../support/clock.ts';

function setUp({
  total = 2,
  perProvider = {},
  queue = 10,
}: {
  total?: number;
  perProvider?: Record<string, number>;
  queue?: number;
} = {}) {
  const clock = manualClock();
  const rules = { total, perProvider: (id: string) => perProvider[id] ?? Number.POSITIVE_INFINITY, queue };
  const limiter = new Limiter(rules, clock);
  const signal = new AbortController().signal;
  const entry: Entry = { provider: 'alpha', owner: 'me', signal, remainingMs: 300_000, totalMs: 300_000 };
  const order: string[] = [];
  const leaves = new Map<string, () => void>();
  const enter = (name: string, more: Partial<Entry> = {}) =>
    Promise.resolve(limiter.enter({ ...entry, ...more })).then(leave => {
      order.push(name);
      leaves.set(name, leave);
    });
  return { clock, limiter, entry, order, enter, leave: (name: string) => leaves.get(name)!() };
}

const turn = () => new Promise(resolve => setImmediate(resolve));

describe('the limiter', () => {
  it('lets in at once while there is room, without a wait', () => {
    const { limiter, entry } = setUp();
    expect(limiter.enter(entry)).toBeTypeOf('function');
  });

  it('knows what runs at each provider, and how many wait', async () => {
    const { limiter, enter, leave } = setUp({ total: 2, perProvider: { beta: 1 } });
    await enter('a');
    await enter('b', { provider: 'beta' });
    const waiting = [enter('c'), enter('d', { provider: 'beta' })];
    await turn();
    expect(limiter.depth()).toEqual({
      running: new Map([
        ['alpha', 1],
        ['beta', 1],
      ]),
      waiting: 2,
    });
    leave('a');
    await turn();
    expect(limiter.depth()).toEqual({
      running: new Map([
        ['alpha', 1],
        ['beta', 1],
      ]),
      waiting: 1,
    });
    for (const name of ['b', 'c', 'd']) {
      leave(name);
      await turn();
    }
    await Promise.all(waiting);
    expect(limiter.depth()).toEqual({ running: new Map(), waiting: 0 });
  });

  it('lets the next in when one leaves, once', async () => {
    const { enter, order, leave } = setUp({ total: 1 });
    await enter('a');
    const waiting = [enter('b'), enter('c')];
    await turn();
    expect(order).toEqual(['a']);
    leave('a');
    leave('a');
    await turn();
    expect(order).toEqual(['a', 'b']);
    leave('b');
    await Promise.all(waiting);
    expect(order).toEqual(['a', 'b', 'c']);
  });

  it('lets owners take turns, however many one of them sends', async () => {
    const { enter, order, leave } = setUp({ total: 1 });
    await enter('first');
    for (const name of ['a1', 'a2', 'a3']) void enter(name, { owner: 'a' });
    for (const name of ['b1', 'b2']) void enter(name, { owner: 'b' });
    for (const name of ['first', 'a1', 'b1', 'a2', 'b2']) {
      leave(name);
      await turn();
    }
    expect(order).toEqual(['first', 'a1', 'b1', 'a2', 'b2', 'a3']);
  });

  it('makes nobody wait behind a provider that is full', async () => {
    const { enter, order, leave } = setUp({ total: 2, perProvider: { alpha: 1 } });
    await enter('alpha 1');
    void enter('alpha 2');
    await enter('beta', { provider: 'beta' });
    void enter('beta 2', { provider: 'beta' });
    leave('beta');
    await turn();
    expect(order).toEqual(['alpha 1', 'beta', 'beta 2']);
    leave('alpha 1');
    await turn();
    expect(order.at(-1)).toBe('alpha 2');
  });

  it('refuses when too many wait, and says when to come back', async () => {
    const { enter, clock, leave } = setUp({ total: 1, queue: 2 });
    await enter('a');
    void enter('b');
    void enter('c');
    await expect(enter('d')).rejects.toMatchObject({
      kind: 'limit',
      details: {
        code: 'LIMIT',
        class: 'over_capacity',
        retryable: true,
        retryAfterSeconds: 2,
        data: { running: 1, waiting: 2 },
      },
    });
    // A place is held for a second at first, then for a tenth as long as the latest was and nine tenths of that.
    for (const [name, ms, next] of [
      ['a', 41_000, 'e'],
      ['b', 10_000, 'f'],
    ] as const) {
      await clock.advance(ms);
      leave(name);
      await turn();
      void enter(next);
    }
    await expect(enter('g')).rejects.toMatchObject({ details: { class: 'over_capacity', retryAfterSeconds: 11 } });
  });

  it('lets go of who gives up or whose time is over, and leaves nothing behind', async () => {
    const { enter, clock, leave, order } = setUp({ total: 1, queue: 2 });
    const caller = new AbortController();
    await enter('a');
    const given = enter('b', { signal: caller.signal });
    const late = enter('c', { remainingMs: 5_000 });
    const reason = new Error('no more');
    caller.abort(reason);
    await expect(given).rejects.toBe(reason);
    const told = expect(late).rejects.toMatchObject({
      details: { class: 'timeout', retryable: false, data: { clock: 'total' } },
    });
    await clock.advance(5_000);
    await told;
    expect(clock.pending()).toBe(0);
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
    void enter('d');
    leave('a');
    await turn();
    expect(order).toEqual(['a', 'd']);
  });

  it.each([
    [1, 0, 1],
    [1, 100_000, 11],
    [2, 100_000, 6],
  ])(
    'says to come back to %i places by how long they were held lately (%i ms): in %i s',
    async (total, ms, seconds) => {
      const { enter, clock, leave } = setUp({ total, queue: 1 });
      await enter('a');
      await clock.advance(ms);
      leave('a');
      for (let n = 0; n < total; n++) await enter(`b${n}`);
      const caller = new AbortController();
      void enter('c', { signal: caller.signal });
      await expect(enter('d')).rejects.toMatchObject({ details: { retryAfterSeconds: seconds } });
      leave('b0');
      await turn();
      expect([clock.pending(), getEventListeners(caller.signal, 'abort').length]).toEqual([0, 0]);
    },
  );

  it('takes nobody in who gave up before', async () => {
    const { enter, entry, limiter } = setUp({ total: 1 });
    await enter('a');
    const reason = new Error('gone');
    await expect(limiter.enter({ ...entry, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });
});

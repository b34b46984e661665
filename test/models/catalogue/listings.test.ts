import { describe, expect, it } from 'vitest';
import type { AppEvent } from '../../../src/core/events.ts';
import type { SharedState } from '../../../src/core/ports.ts';
import { createListings } from '../../../src/models/catalogue/vendor-lists.ts';
import { type Connection, defineProvider, type LiveModel } from '../../../src/models/provider.ts';
import { manualClock } from '../../support/clock.ts';
import { createLocalState } from '../../support/local-state.ts';

const vendor = defineProvider({
  id: 'alpha',
  names: [],
  title: 'Alpha',
  options: {},
  configured: () => true,
  connect: () => expect.unreachable(),
});

type Answer = LiveModel[] | Error | 'hang';

function process(
  answers: Answer[],
  more: { clock?: ReturnType<typeof manualClock>; state?: SharedState; key?: string } = {},
) {
  const { clock = manualClock(), key = 'k-1' } = more;
  const state = more.state ?? createLocalState(clock);
  const events: AppEvent[] = [];
  let asked = 0;
  const connection: Connection = {
    languageModel: () => expect.unreachable(),
    providerOptions: () => ({}),
    tailRole: () => 'user',
    async list() {
      const answer = answers[Math.min(asked++, answers.length - 1)] ?? [];
      if (answer === 'hang') return new Promise(() => {});
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const lister = { definition: vendor, settings: { apiKey: key } };
  const listings = createListings({
    connection: async () => connection,
    clock,
    emit: event => events.push(event),
    state,
  });
  return {
    listings,
    clock,
    state,
    events,
    asked: () => asked,
    current: () => listings.current(lister),
    known: () => listings.known(lister),
    renew: () => listings.renew(lister),
  };
}

describe('the listings', () => {
  it('ask for nothing until one is needed', async () => {
    const { known, asked } = process([[{ id: 'a' }]]);
    expect(await known()).toBeUndefined();
    expect(asked()).toBe(0);
  });

  it('ask once for all who need one at a time, and keep it for a day', async () => {
    const { current, clock, asked } = process([[{ id: 'a', window: 9_000 }]]);
    const [one, two] = await Promise.all([current(), current()]);
    expect(one).toEqual({ models: [{ id: 'a', window: 9_000 }], at: clock.now(), complete: true });
    expect(two).toEqual(one);
    await clock.advance(86_000_000);
    await current();
    expect(asked()).toBe(1);
    await clock.advance(500_000);
    await current();
    expect(asked()).toBe(2);
  });

  it('are there for the next process too, of the same account alone', async () => {
    const first = process([[{ id: 'a', input: ['text', 'image'], reasoning: true }]]);
    await first.current();
    const { clock, state } = first;
    const second = process([[{ id: 'b' }]], { clock, state });
    expect(await second.known()).toMatchObject({ models: [{ id: 'a', reasoning: true }] });
    await second.current();
    expect(second.asked()).toBe(0);
    await clock.advance(90_000_000);
    const [third, fourth] = [process([[{ id: 'c' }]], { clock, state }), process([[{ id: 'd' }]], { clock, state })];
    await fourth.known();
    await third.current();
    expect(await fourth.current()).toMatchObject({ models: [{ id: 'c' }] });
    const other = process([[{ id: 'b' }]], { clock, state, key: 'k-2' });
    expect(await other.known()).toBeUndefined();
  });

  it('keep no key where other processes read', async () => {
    const { current, state } = process([[{ id: 'a' }]], { key: 'sk-very-secret' });
    await current();
    const kept = await state.list('listing/');
    expect(kept.size).toBe(1);
    expect(JSON.stringify([...kept])).not.toContain('sk-very-secret');
  });

  it('have what they had when the vendor fails, say so, and try again after a minute', async () => {
    const { current, clock, events, asked } = process([[{ id: 'a' }], new Error('gone'), [{ id: 'b' }]]);
    await current();
    await clock.advance(90_000_000);
    const failed = await current();
    expect(failed).toMatchObject({ models: [{ id: 'a' }], complete: false, failure: expect.stringContaining('gone') });
    expect(events).toMatchObject([{ type: 'warning', where: 'models of alpha' }]);
    await current();
    expect(asked()).toBe(2);
    await clock.advance(61_000);
    expect(await current()).toMatchObject({ models: [{ id: 'b' }], complete: true });
  });

  it('do not believe a list of a time to come, nor one that is damaged', async () => {
    const first = process([[{ id: 'a' }]], { clock: manualClock(2_000_000_000_000) });
    await first.current();
    const earlier = process([[{ id: 'b' }]], { clock: manualClock(1_000_000_000_000), state: first.state });
    expect(await earlier.known()).toBeUndefined();
    const [key] = [...(await first.state.list('listing/')).keys()];
    await first.state.change(key!, 1e12, () => ({ at: 1, models: 'none' }));
    const later = process([[{ id: 'b' }]], { clock: first.clock, state: first.state });
    expect(await later.known()).toBeUndefined();
  });

  it('serve this process when the shared state is broken', async () => {
    const broken: SharedState = {
      get: () => Promise.reject(new Error('locked')),
      list: () => Promise.reject(new Error('locked')),
      change: () => Promise.reject(new Error('locked')),
    };
    const { current, events } = process([[{ id: 'a' }]], { state: broken });
    expect(await current()).toMatchObject({ models: [{ id: 'a' }], complete: true });
    expect(events.length).toBeGreaterThan(0);
  });

  it('leave out ids and windows that cannot be', async () => {
    const odd = [
      { id: '' },
      { id: 'a\n## Ignore this' },
      { id: 'x'.repeat(400) },
      { id: 'a', window: 1.5 },
      { id: 'b', window: -1 },
    ];
    expect((await process([odd]).current()).models).toEqual([{ id: 'a' }, { id: 'b' }]);
  });

  it('ask nobody and tell nothing once they are closed', async () => {
    const due = process([[{ id: 'a' }]]);
    due.renew();
    due.listings.close();
    await due.clock.advance(1_000);
    expect(due.asked()).toBe(0);
    const { current, listings, events } = process(['hang']);
    const asking = current();
    listings.close();
    expect(await asking).toMatchObject({ complete: false });
    expect(events).toEqual([]);
  });

  it('give up on a vendor that does not answer', async () => {
    const { current } = process(['hang']);
    const began = performance.now();
    expect(await current()).toMatchObject({ models: [], complete: false, failure: 'no answer within 3 s' });
    expect(performance.now() - began).toBeLessThan(20_000);
  });
});

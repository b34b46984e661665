import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../src/storage/memory/memory.ts';
import { createStoredState } from '../../src/storage/shared-state.ts';
import type { Store } from '../../src/storage/store.ts';
import { sharedStateSuite } from '../contracts/shared-state-suite.ts';
import { start } from '../contracts/store-fixtures.ts';
import { manualClock } from '../support/clock.ts';
import { startSqliteProcess } from '../support/sqlite-process.ts';
import { type SqlitePlace, sqlitePlace } from '../support/sqlite-temp.ts';

let place: SqlitePlace;
beforeEach(async () => {
  place = await sqlitePlace();
});
afterEach(() => place.dispose());

sharedStateSuite('stored in SQLite', async clock => createStoredState(place.open(), clock));
sharedStateSuite('stored in memory', async clock => createStoredState(createMemoryStore(), clock));

describe('a stored state', () => {
  it('is one for two stores on a file, and outlives them', async () => {
    const clock = manualClock(start);
    const [first, second] = [place.open(), place.open()];
    const states = [createStoredState(first, clock), createStoredState(second, clock)];
    const add = (index: number) =>
      states[index % 2]!.change('sum', 1_000, before => ({ n: Number(before?.n ?? 0) + 1 }));
    await Promise.all(Array.from({ length: 40 }, (_, index) => add(index)));
    expect(await states[0]!.get('sum')).toEqual({ n: 40 });
    await Promise.all([first.close(), second.close()]);
    expect(await createStoredState(place.open(), clock).get('sum')).toEqual({ n: 40 });
  });

  it('loses no change of three processes at once', async () => {
    await place.open().prune(start);
    const adders = Array.from({ length: 3 }, () => startSqliteProcess('add', place.file, 'sum', '30'));
    for (const { ended } of adders) expect(await ended).toEqual({ code: 0, errors: '' });
    expect(await createStoredState(place.open(), manualClock(start)).get('sum')).toEqual({ n: 90 });
  });

  it('writes nothing when nothing is there and nothing comes', async () => {
    const store = createMemoryStore();
    const watched: Store = {
      ...store,
      swapFact: () => {
        throw new Error('written');
      },
    };
    expect(await createStoredState(watched, manualClock()).change('a', 1, () => undefined)).toBeUndefined();
  });

  it('gives up when others change a value without a pause', async () => {
    const store: Store = { ...createMemoryStore(), swapFact: async () => false };
    const change = createStoredState(store, manualClock()).change('a', 1, () => ({}));
    await expect(change).rejects.toMatchObject({ kind: 'storage', details: { class: 'unavailable', retryable: true } });
  });

  it('goes on after a change that threw', async () => {
    const state = createStoredState(createMemoryStore(), manualClock());
    const failing = state.change('a', 1_000, () => {
      throw new Error('no');
    });
    const next = state.change('a', 1_000, () => ({ n: 1 }));
    await expect(failing).rejects.toThrow('no');
    expect(await next).toEqual({ n: 1 });
  });

  it('is kept as a fact', async () => {
    const clock = manualClock(start);
    for (const store of [createMemoryStore(), place.open()]) {
      await createStoredState(store, clock).change('a', 1_000, () => ({ n: 1 }));
      expect((await store.facts('', clock.now())).size).toBe(1);
    }
  });
});

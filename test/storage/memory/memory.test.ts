import { describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../../src/storage/memory/memory.ts';
import { createStoredState } from '../../../src/storage/shared-state.ts';
import { changeOf, hashOf, start, threadWith } from '../../contracts/store-fixtures.ts';
import { storeSuite } from '../../contracts/store-suite.ts';
import { manualClock } from '../../support/clock.ts';

storeSuite('memory', async () => {
  const store = createMemoryStore();
  return { store, lasts: false, close: () => store.close() };
});

describe('the memory store', () => {
  it('gives threads three hours', () => {
    expect(createMemoryStore().defaultTimeoutHours).toBe(3);
  });

  it.each([0, -1, Number.NaN])('refuses to keep %s threads', maxThreads => {
    expect(() => createMemoryStore({ maxThreads })).toThrow(`Invalid maxThreads ${maxThreads}: expected 1 or more.`);
  });

  it('lets the thread go that was unused for longest, and says that it expired', async () => {
    const store = createMemoryStore({ maxThreads: 2 });
    const blob = { sha256: hashOf('x'), text: 'x' };
    const first = await threadWith(store, ['a']);
    const second = await threadWith(store, ['b']);
    await store.commit(second.id, changeOf(1, { blobs: [blob] }));
    await store.read(first.id, start);
    const third = await threadWith(store, ['c'], { createdAt: start + 7 });
    expect((await store.head(first.id, start)).state).toBe('live');
    expect((await store.head(third.id, start)).state).toBe('live');
    expect(await store.head(second.id, start)).toEqual({ state: 'expired', expiredAt: start + 7 });
    expect(await store.blobs([blob.sha256])).toEqual(new Map());
  });

  it.each(['read', 'head', 'commit'] as const)('counts a %s as a use of a thread', async use => {
    const store = createMemoryStore({ maxThreads: 2 });
    const [first, second] = [await threadWith(store, ['a']), await threadWith(store, ['b'])];
    await (use === 'commit' ? store.commit(first.id, changeOf(1)) : store[use](first.id, start));
    await threadWith(store, ['c']);
    const states = await Promise.all([first, second].map(async ({ id }) => (await store.head(id, start)).state));
    expect(states).toEqual(['live', 'expired']);
  });

  it('tells who changes what others change without a pause to try again', async () => {
    const busy = { ...createMemoryStore(), swapFact: async () => false };
    const state = createStoredState(busy, manualClock(start));
    await expect(state.change('key', 1_000, () => ({ n: 1 }))).rejects.toMatchObject({
      kind: 'storage',
      details: { class: 'unavailable', retryable: true },
    });
  });

  it('forgets the oldest of the ids that went rather than to grow without end', async () => {
    const store = createMemoryStore({ maxThreads: 2 });
    const first = await threadWith(store, []);
    await store.commit(first.id, changeOf(0, {}));
    for (let index = 0; index < 5; index++) await threadWith(store, []);
    expect(await store.head(first.id, start)).toMatchObject({ state: 'expired' });
    for (let index = 0; index < 25; index++) await threadWith(store, []);
    expect(await store.head(first.id, start)).toEqual({ state: 'unknown' });
  });
});

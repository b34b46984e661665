import { describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../src/storage/memory/memory.ts';
import { createThreads } from '../../src/threads/threads.ts';
import { hour, start, threadWith } from '../contracts/store-fixtures.ts';
import { manualClock } from '../support/clock.ts';
import { seededRandom } from '../support/random.ts';

const place = { owner: 'local', workspace: '/p' };

function longLived() {
  const store = createMemoryStore();
  const clock = manualClock(start);
  const warnings: unknown[] = [];
  const emit = (event: unknown) => void warnings.push(event);
  const threads = createThreads({ store, clock, random: seededRandom(), emit, timeoutHours: 10_000 });
  const write = () => {
    const exchange = threads.newExchange();
    const turn = {
      seq: 1,
      role: 'user' as const,
      content: 'x',
      timestamp: start,
      exchange,
      toolName: 'chat',
      tokens: 1,
    };
    const turns = [{ ...turn, files: [], images: [], citations: [] }];
    return threads.add(threads.start(place, 'chat'), exchange, { turns, status: 'done' });
  };
  const stored = async () => (await store.list({ owner: 'local', limit: 99, now: 0 })).length;
  return { store, clock, warnings, write, stored, close: threads.close };
}

describe('a process that lives for long', () => {
  it('takes expired threads out once a day, for as long as it lives', async () => {
    const { store, clock, write, stored } = longLived();
    await write();
    await threadWith(store, ['a'], { expiresAt: start + 1_000 });
    await clock.advance(29_000);
    expect(await stored()).toBe(2);
    await clock.advance(2_000);
    expect(await stored()).toBe(1);
    for (let day = 1; day <= 3; day++) {
      await threadWith(store, ['a'], { expiresAt: start + day * 24 * hour });
      await clock.advance(23 * hour);
      expect(await stored()).toBe(2);
      await clock.advance(hour);
      expect(await stored()).toBe(1);
    }
    expect(clock.pending()).toBe(1);
  });

  it('tries again the next day when the store failed', async () => {
    const { store, clock, warnings, write, stored } = longLived();
    await write();
    await threadWith(store, ['a'], { expiresAt: start + 1_000 });
    const real = store.prune;
    Object.assign(store, { prune: () => Promise.reject(new Error('no disk')) });
    await clock.advance(31_000);
    expect(warnings).toEqual([{ type: 'warning', where: 'prune', message: 'Error: no disk' }]);
    Object.assign(store, { prune: real });
    await clock.advance(24 * hour);
    expect(await stored()).toBe(1);
  });

  it.each([
    ['before the first time', 1_000],
    ['later', 48 * hour],
  ])('leaves no timer behind that would hold it in memory when it is closed %s', async (_when, ms) => {
    const { clock, warnings, write, close } = longLived();
    await write();
    await clock.advance(ms);
    await close();
    expect(clock.pending()).toBe(0);
    await clock.advance(48 * hour);
    expect(warnings).toEqual([]);
  });

  it('leaves no timer behind either where its first write ends only after it was closed', async () => {
    const { clock, write, close } = longLived();
    await close();
    await write();
    expect(clock.pending()).toBe(0);
  });

  it('leaves the store alone until it writes itself', async () => {
    const { store, clock, stored } = longLived();
    await threadWith(store, ['a'], { expiresAt: start + 1_000 });
    await clock.advance(48 * hour);
    expect(await stored()).toBe(1);
  });
});

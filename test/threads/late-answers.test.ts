import { describe, expect, it } from 'vitest';
import { storageError } from '../../src/core/errors.ts';
import type { ExchangeId } from '../../src/core/ids.ts';
import { createMemoryStore } from '../../src/storage/memory/memory.ts';
import { createThreads } from '../../src/threads/threads.ts';
import { changeOf, start, turnOf } from '../contracts/store-fixtures.ts';
import { manualClock } from '../support/clock.ts';
import { seededRandom } from '../support/random.ts';
import { waitUntil } from '../support/wait-until.ts';

const place = { owner: 'local', workspace: '/p' };
const failure = storageError('unavailable', 'The store is away.');

/** A thread with a question whose answer the store did not take, or took without saying so. */
async function unanswered(took: 'nothing' | 'answer' = 'nothing') {
  const store = createMemoryStore();
  const { lease } = store;
  const clock = manualClock(start);
  const told: string[] = [];
  const emit = (event: { type: string; message?: string }) => void told.push(String(event.message));
  const threads = createThreads({ store, clock, random: seededRandom(), emit });
  const exchange = threads.newExchange();
  const turn = (seq: number, id: ExchangeId = exchange) => turnOf(seq, { exchange: id });
  const asked = await threads.add(threads.start(place, 'chat'), exchange, { turns: [turn(1)], status: 'pending' });
  const answer = { turns: [turn(2)], status: 'done' as const };
  if (took === 'answer') await threads.add(asked, exchange, answer);
  store.lease = async () => {
    throw failure;
  };
  return {
    store,
    told,
    close: threads.close,
    keep: (error: unknown = failure) => threads.addLater(asked, exchange, answer, error),
    async turns() {
      const { turns } = await threads.find(asked.id, place);
      return turns.map(({ seq, status }) => `${seq} ${status}`);
    },
    /** Another process continues the thread. */
    overtake: () => store.commit(asked.id, changeOf(1, { turns: [turn(2, threads.newExchange())], updatedAt: start })),
    comesBack: () => Object.assign(store, { lease }),
    /** Lets time go on until something was told. */
    async untilTold(stepMs: number) {
      const isTold = async () => {
        await clock.advance(stepMs);
        return told.length > 0;
      };
      await waitUntil('it was told', isTold, { everyMs: 1 });
      return told;
    },
  };
}

describe('an answer that the store could not take', () => {
  it('is stored once the store works again, which is told', async () => {
    const { keep, comesBack, untilTold, turns } = await unanswered();
    expect(keep()).toBe(true);
    comesBack();
    expect(await untilTold(2_000)).toEqual([expect.stringMatching(/not persisted is stored now/)]);
    expect(await turns()).toEqual(['1 done', '2 done']);
  });

  it('is stored at the latest when the process ends', async () => {
    const { keep, comesBack, close, told, turns } = await unanswered();
    keep();
    comesBack();
    await close();
    expect(told).toEqual([expect.stringMatching(/not persisted is stored now/)]);
    expect(await turns()).toEqual(['1 done', '2 done']);
  });

  it('is not stored twice where the store had taken it', async () => {
    const { keep, comesBack, untilTold, turns } = await unanswered('answer');
    keep();
    comesBack();
    expect(await untilTold(2_000)).toEqual([expect.stringMatching(/is stored now/)]);
    expect(await turns()).toEqual(['1 done', '2 done']);
  });

  it('is given up, which is told, where the thread went on without it', async () => {
    const { keep, comesBack, untilTold, turns, overtake } = await unanswered();
    keep();
    await overtake();
    comesBack();
    expect(await untilTold(2_000)).toEqual([expect.stringMatching(/cannot be stored: .*is at turn 2/)]);
    expect(await turns()).toHaveLength(2);
  });

  it('is given up after an hour, which is told', async () => {
    const { keep, untilTold, store, turns } = await unanswered();
    keep();
    const { commit } = store;
    store.commit = async () => {
      throw failure;
    };
    expect(await untilTold(60_000)).toEqual([expect.stringMatching(/cannot be stored: The store is away/)]);
    store.commit = commit;
    expect(await turns()).toEqual(['1 pending']);
  });

  it('is not kept where trying again cannot help, nor a second one of its thread', async () => {
    const { keep } = await unanswered();
    expect(keep(storageError('conflict', 'Another call changed it.'))).toBe(false);
    expect(keep(new Error('a bug'))).toBe(false);
    expect(keep()).toBe(true);
    expect(keep()).toBe(false);
  });
});

import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { dayOf, noUsage, type SpendEntry, spendDays, spendThreadDays } from '../../src/core/usage.ts';
import type { Store } from '../../src/storage/store.ts';
import { headOf, hour, newThreadId, start } from './store-fixtures.ts';
import type { OpenedStore } from './store-suite.ts';

const usage = { input: 100, output: 20, reasoning: 5, cacheRead: 40, cacheWrite: 10 };
const fees = { web_search: { amount: 2, usd: 0.25, unpriced: 1 } };
const day = dayOf(start);

function entryOf(changes: Partial<SpendEntry> = {}): SpendEntry {
  return { at: start, owner: 'local', tool: 'chat', provider: 'openai', model: 'm', usage, costUsd: 0.25, ...changes };
}

function holdOf(usd: number, changes: object = {}) {
  return { id: randomUUID(), owner: 'local', day, now: start, usd, expiresAt: start + hour, ...changes };
}

/** What every store has to do with what calls cost. */
export function spendSuite(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name} as a ledger`, () => {
    let opened: OpenedStore;
    let store: Store;
    const rows = (from = day) => store.spend.rows({ owner: 'local', from });
    const used = (changes: object = {}) => store.spend.used({ owner: 'local', day, now: start, ...changes });

    beforeEach(async () => {
      opened = await open();
      store = opened.store;
    });
    afterEach(() => opened.close());

    it('sums the calls of a day with the same tool, model and thread, and no others', async () => {
      const thread = newThreadId();
      await store.spend.add(entryOf());
      await store.spend.add(entryOf({ costUsd: undefined, usage: { ...usage, cacheWriteHour: 4, fees } }));
      await store.spend.add(entryOf({ costUsd: 0.01, usage: { ...noUsage, fees } }));
      await store.spend.add(entryOf({ thread }));
      await store.spend.add(entryOf({ tool: 'debug' }));
      await store.spend.add(entryOf({ model: 'other' }));
      await store.spend.add(entryOf({ owner: 'ann' }));
      await store.spend.add(entryOf({ at: start + 24 * hour }));
      const found = await rows();
      expect(found).toHaveLength(5);
      expect(found[0]).toStrictEqual({
        day,
        owner: 'local',
        tool: 'chat',
        provider: 'openai',
        model: 'm',
        calls: 3,
        unpriced: 1,
        usage: {
          input: 200,
          output: 40,
          reasoning: 10,
          cacheRead: 80,
          cacheWrite: 20,
          cacheWriteHour: 4,
          fees: { web_search: { amount: 4, usd: 0.5, unpriced: 2 } },
        },
        // What is known of a call whose tokens have no price counts.
        costUsd: 0.51,
      });
      expect(await rows(dayOf(start + 24 * hour))).toHaveLength(1);
      expect(await store.spend.rows({ owner: 'local', from: day, thread })).toMatchObject([{ thread, calls: 1 }]);
      expect(await used({ thread })).toEqual({ day: 1.26, thread: 0.25, held: [] });
    });

    it('counts attempts by the hour, those in vain as no calls, until their thread is gone', async () => {
      const thread = newThreadId();
      const failed = { usage: noUsage, costUsd: undefined, attempt: { isFailed: true, ms: 900 } };
      await store.spend.add(entryOf({ thread, attempt: { isFailed: false, ms: 30 } }));
      await store.spend.add(entryOf({ thread, ...failed }));
      await store.spend.add(entryOf({ thread, at: start + hour, attempt: { isFailed: false, ms: 50 } }));
      const at = new Date(start).getUTCHours();
      const tries = { [at]: { attempts: 2, failures: 1, ms: 30 }, [at + 1]: { attempts: 1, failures: 0, ms: 50 } };
      expect(await rows()).toMatchObject([{ calls: 2, unpriced: 0, costUsd: 0.5, tries }]);
      await store.prune(start + (spendThreadDays + 1) * 24 * hour);
      expect(await rows()).toEqual([expect.not.objectContaining({ tries: expect.anything() })]);
    });

    it('never puts more aside than a limit leaves, however many ask at once', async () => {
      await store.spend.add(entryOf({ costUsd: 0.4 }));
      const asked = Array.from({ length: 20 }, () => store.spend.hold(holdOf(0.1, { dayLimit: 1 })));
      expect((await Promise.all(asked)).filter(held => held)).toHaveLength(6);
      expect((await used()).day).toBeCloseTo(1, 9);
      expect(await store.spend.hold(holdOf(0.1, { owner: 'ann', dayLimit: 1 }))).toBe(true);
    });

    it('frees what was put aside in the same step that says what was paid', async () => {
      const hold = holdOf(0.9, { dayLimit: 1 });
      expect(await store.spend.hold(hold)).toBe(true);
      expect(await store.spend.hold(holdOf(0.2, { dayLimit: 1 }))).toBe(false);
      await store.spend.add(entryOf({ costUsd: 0.05 }), hold.id);
      expect((await used()).day).toBeCloseTo(0.05, 9);
      const other = holdOf(0.5, { dayLimit: 1 });
      expect(await store.spend.hold(other)).toBe(true);
      // Without what is only put aside.
      expect((await used({ now: Number.MAX_SAFE_INTEGER })).day).toBeCloseTo(0.05, 9);
      await store.spend.add(undefined, other.id);
      expect((await used()).day).toBeCloseTo(0.05, 9);
    });

    it('forgets what a process that died had put aside', async () => {
      expect(await store.spend.hold(holdOf(0.9, { dayLimit: 1 }))).toBe(true);
      const later = { now: start + hour, expiresAt: start + 2 * hour };
      expect(await store.spend.hold(holdOf(0.9, { dayLimit: 1, ...later, now: start + hour - 1 }))).toBe(false);
      expect(await store.spend.hold(holdOf(0.9, { dayLimit: 1, ...later }))).toBe(true);
    });

    it('tells until when each amount is put aside, which whoever put it aside may change', async () => {
      const thread = newThreadId();
      const long = holdOf(0.3, { expiresAt: start + 2 * hour });
      const short = holdOf(0.6, { thread, dayLimit: 1 });
      expect(await store.spend.hold(long)).toBe(true);
      expect(await store.spend.hold(short)).toBe(true);
      const ends = async () => (await used()).held;
      const [ofLong, ofShort] = [
        { usd: 0.3, at: start + 2 * hour },
        { usd: 0.6, at: start + hour, thread },
      ];
      expect(await ends()).toEqual([ofShort, ofLong]);
      const again = { ...short, now: start + 1_000, expiresAt: start + 3 * hour };
      expect(await store.spend.hold(again)).toBe(true);
      expect(await ends()).toEqual([ofLong, { ...ofShort, at: start + 3 * hour }]);
      await store.spend.add(undefined, short.id);
      expect(await ends()).toEqual([ofLong]);
    });

    it('counts an entry once, however often it is sent', async () => {
      const entry = entryOf({ id: randomUUID(), costUsd: 0.5 });
      const hold = holdOf(0.6);
      await store.spend.hold(hold);
      await store.spend.add(entry, hold.id);
      await store.spend.add(entry, hold.id);
      await store.spend.add({ ...entry, id: randomUUID() });
      expect(await rows()).toMatchObject([{ calls: 2, costUsd: 1 }]);
      expect(await used()).toMatchObject({ day: 1, held: [] });
      await store.prune(start + 24 * hour);
      expect(await rows()).toMatchObject([{ calls: 2, costUsd: 1 }]);
    });

    it('keeps a thread to its own limit', async () => {
      const thread = newThreadId();
      await store.spend.add(entryOf({ thread, costUsd: 0.5, at: start - 48 * hour }));
      expect(await store.spend.hold(holdOf(0.2, { thread, threadLimit: 0.6 }))).toBe(false);
      expect(await store.spend.hold(holdOf(0.1, { thread, threadLimit: 0.6 }))).toBe(true);
      const { held, ...sums } = await used({ thread });
      expect(sums.thread).toBeCloseTo(0.6, 9);
      expect(held).toMatchObject([{ usd: 0.1, thread }]);
      expect(await store.spend.hold(holdOf(0.1, { thread, threadLimit: 0.6 }))).toBe(false);
      expect((await used({ thread, owner: 'ann' })).thread).toBe(0);
      expect(await store.spend.hold(holdOf(0.2, { thread: newThreadId(), threadLimit: 0.6 }))).toBe(true);
    });

    it('keeps sums for a year, and by thread for as long as there is the thread', async () => {
      const head = headOf({ expiresAt: start + spendDays * 2 * 24 * hour });
      await store.create(head);
      const gone = newThreadId();
      await store.spend.add(entryOf({ thread: head.id }));
      await store.spend.add(entryOf({ thread: gone }));
      await store.spend.add(entryOf());
      await store.prune(start + spendThreadDays * 24 * hour);
      expect(await rows()).toHaveLength(3);
      await store.prune(start + (spendThreadDays + 1) * 24 * hour);
      const found = await rows();
      expect(found.map(row => [row.thread, row.calls, row.costUsd])).toEqual(
        expect.arrayContaining([
          [head.id, 1, 0.25],
          [undefined, 2, 0.5],
        ]),
      );
      expect(found).toHaveLength(2);
      await store.prune(start + (spendDays + 1) * 24 * hour);
      expect(await rows()).toEqual([]);
    });

    it('has the sums, and what is put aside, when it is opened again', async () => {
      if (!opened.reopen) {
        expect(opened.lasts).toBe(false);
        return;
      }
      await store.spend.add(entryOf());
      await store.spend.hold(holdOf(0.5));
      store = await opened.reopen();
      expect(await rows()).toMatchObject([{ calls: 1, costUsd: 0.25 }]);
      expect(await used()).toMatchObject({ day: 0.75, thread: 0, held: [{ usd: 0.5 }] });
    });

    it('is closed with the store', async () => {
      await store.close();
      for (const use of [
        () => store.spend.add(entryOf()),
        () => store.spend.hold(holdOf(1)),
        () => rows(),
        () => used(),
      ]) {
        await expect(use()).rejects.toMatchObject({ kind: 'storage', details: { class: 'unavailable' } });
      }
    });
  });
}

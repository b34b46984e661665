import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../src/storage/store.ts';
import { changeOf, hashOf, headOf, hour, start, threadWith } from './store-fixtures.ts';
import type { OpenedStore } from './store-suite.ts';

/** What every store has to do with what is over: say what would go, take just that, and let it come back by its id. */
export function retentionSuite(name: string, open: () => Promise<OpenedStore>): void {
  describe(`what is over, in ${name}`, () => {
    let opened: OpenedStore;
    let store: Store;

    beforeEach(async () => {
      opened = await open();
      store = opened.store;
    });
    afterEach(() => opened.close());

    const day = 24 * hour;
    const live = async () => (await store.list({ owner: 'local', limit: 99, now: start })).map(({ title }) => title);
    const used = (title: string, daysAgo: number, changes = {}) =>
      threadWith(store, ['a', 'b'], { title, updatedAt: start - daysAgo * day, ...changes });
    const keeps = (head: { id: ReturnType<typeof headOf>['id'] }, texts: string[]) => {
      const blobs = texts.map(text => ({ sha256: hashOf(text), text }));
      return store.commit(head.id, changeOf(2, { blobs, updatedAt: start - 40 * day }));
    };

    it('is counted before it goes: threads, the texts that only they need, and bytes', async () => {
      expect(await store.prunable(start)).toEqual({ threads: 0, blobs: 0, bytes: 0 });
      const over = await used('over', 40, { expiresAt: start - 1 + 100 * day });
      const stays = await used('stays', 0);
      await keeps(over, ['only here', 'here and there']);
      await store.commit(
        stays.id,
        changeOf(2, { blobs: [{ sha256: hashOf('here and there'), text: 'here and there' }] }),
      );
      const unused = { owner: 'local', since: start - 30 * day };
      const found = await store.prunable(start, unused);
      expect(found).toMatchObject({ threads: 1, blobs: 1 });
      expect(found.bytes).toBeGreaterThan(500);
      expect(found.bytes).toBeLessThan(5_000);
      expect(await live()).toEqual(['stays', 'over']);
      expect(await store.prune(start, unused)).toBe(1);
      expect(await live()).toEqual(['stays']);
      expect((await store.blobs([hashOf('only here'), hashOf('here and there')])).size).toBe(1);
      expect(await store.prunable(start, unused)).toEqual({ threads: 0, blobs: 0, bytes: 0 });
    });

    it('is, with an age, what one owner did not use for so long, to the millisecond', async () => {
      const older = await used('older', 31);
      await used('at the edge', 30);
      await used('newer', 29);
      await used('of another', 31, { owner: 'bea' });
      const unused = { owner: 'local', since: start - 30 * day };
      expect((await store.prunable(start, unused)).threads).toBe(1);
      expect(await store.prune(start, unused)).toBe(1);
      expect(await live()).toEqual(['newer', 'at the edge']);
      expect(await store.head(older.id, start)).toEqual({ state: 'deleted', deletedAt: start });
      expect(await store.list({ owner: 'bea', limit: 9, now: start })).toHaveLength(1);
    });

    it('is not what a fork begins with that stays', async () => {
      const parent = await used('parent', 50);
      const child = headOf({ title: 'child', parent: { thread: parent.id, seq: 2 }, seq: 2, updatedAt: start });
      const grandchild = headOf({
        title: 'grandchild',
        parent: { thread: child.id, seq: 2 },
        seq: 2,
        updatedAt: start - 90 * day,
      });
      await store.create(child);
      await store.create(grandchild);
      await used('alone', 50);
      const unused = { owner: 'local', since: start - 30 * day };
      expect((await store.prunable(start, unused)).threads).toBe(2);
      expect(await store.prune(start, unused)).toBe(2);
      expect(await live()).toEqual(['child', 'parent']);
      const all = { owner: 'local', since: start + 1 };
      expect((await store.prunable(start, all)).threads).toBe(2);
      expect(await store.prune(start, all)).toBe(2);
    });

    it('comes back by its id only for who says so, and then the id is taken again', async () => {
      const gone = await threadWith(store, ['a', 'b']);
      await expect(store.create(gone, 'revive')).rejects.toMatchObject({ details: { class: 'conflict' } });
      await store.remove(gone.id, start);
      await expect(store.create(gone)).rejects.toMatchObject({ details: { class: 'conflict' } });
      await store.create({ ...gone, seq: 0 }, 'revive');
      expect(await store.head(gone.id, start)).toMatchObject({ state: 'live', value: { seq: 0 } });
      await expect(store.create(gone, 'revive')).rejects.toMatchObject({ details: { class: 'conflict' } });
      expect(await store.remove(gone.id, start)).toBe(true);
      expect((await store.head(gone.id, start)).state).toBe('deleted');
    });
  });
}

import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import type { ThreadHead } from '../../../src/core/thread.ts';
import { seenRows } from '../../../src/storage/sqlite/read-threads.ts';
import { start, threadWith } from '../../contracts/store-fixtures.ts';
import { sqlitePlace } from '../../support/sqlite-temp.ts';

it('rows that were seen are kept while they fit, those that were not asked for the longest go first', () => {
  const seen = seenRows<{ name: string; bytes: number }>(10);
  const keep = (key: string, name: string, bytes: number) => seen.keep(key, { name, bytes });
  const names = (...keys: string[]) => keys.map(key => seen.get(key)?.name);
  keep('a', 'A', 4);
  keep('b', 'B', 4);
  expect(names('a')).toEqual(['A']);
  keep('c', 'C', 4);
  expect(names('a', 'b', 'c')).toEqual(['A', undefined, 'C']);
  keep('c', 'longer', 6);
  expect(names('a', 'c')).toEqual(['A', 'longer']);
  keep('d', 'too long for all', 11);
  expect(names('a', 'c', 'd')).toEqual(['A', 'longer', undefined]);
  keep('c', 'outgrown', 11);
  expect(names('c')).toEqual([undefined]);
  keep('e', 'E', 10);
  expect(names('a', 'e')).toEqual([undefined, 'E']);
});

it('threads that were read are remembered up to 4 MB, those that were not asked for the longest are read again', async () => {
  const place = await sqlitePlace();
  const store = place.open();
  const heads: ThreadHead[] = [];
  // A letter of two bytes: what counts is what they take, not how many characters they have.
  for (let made = 0; made < 5; made++) heads.push(await threadWith(store, ['я'.repeat(500_000), 'So.']));
  for (const { id } of heads) await store.read(id, start);
  const db = new DatabaseSync(place.file);
  db.exec("UPDATE records SET seal = 'broken' WHERE kind = 'turn'");
  db.close();
  const found: boolean[] = [];
  for (const { id } of heads.toReversed()) {
    await store.read(id, start);
    // The first one that is read again shows that the file is damaged.
    found.push(place.warnings.length === 0);
  }
  expect(found).toEqual([true, true, true, false, false]);
  await place.dispose();
});

import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import type { ThreadHead } from '../../../src/core/thread.ts';
import { seenRows } from '../../../src/storage/sqlite/read-threads.ts';
import { start, threadWith } from '../../contracts/store-fixtures.ts';
import { sqlitePlace } from '../../support/sqlite-temp.ts';

it('rows that were seen are kept while they fit, those that were not asked for the longest go first', () => {
  const seen = seenRows<string>(10);
  seen.keep('a', 'A', 4);
  seen.keep('b', 'B', 4);
  expect(seen.get('a')).toBe('A');
  seen.keep('c', 'C', 4);
  expect(['a', 'b', 'c'].map(seen.get)).toEqual(['A', undefined, 'C']);
  seen.keep('c', 'longer', 6);
  expect(['a', 'c'].map(seen.get)).toEqual(['A', 'longer']);
  seen.keep('d', 'too long for all', 11);
  expect(['a', 'c', 'd'].map(seen.get)).toEqual(['A', 'longer', undefined]);
  seen.keep('c', 'outgrown', 11);
  expect(seen.get('c')).toBeUndefined();
  seen.drop('a');
  seen.keep('e', 'E', 10);
  expect(seen.get('e')).toBe('E');
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

import { expect, it } from 'vitest';
import { seenRows } from '../../../src/storage/sqlite/read-threads.ts';

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

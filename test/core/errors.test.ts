import { expect, it } from 'vitest';
import { asError } from '../../src/core/errors.ts';

it.each([
  ['a text', 'a text'],
  [{ code: 7 }, '{ code: 7 }'],
  [Object.create(null), '[Object: null prototype] {}'],
  [undefined, 'undefined'],
  [Symbol('odd'), 'Symbol(odd)'],
])('whatever is thrown is an error that says it: %o', (thrown, message) => {
  expect(asError(thrown).message).toBe(message);
});

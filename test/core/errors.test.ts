import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { asError, inputError, isAppError } from '../../src/core/errors.ts';

it.each([
  ['a text', 'a text'],
  [{ code: 7 }, '{ code: 7 }'],
  [Object.create(null), '[Object: null prototype] {}'],
  [undefined, 'undefined'],
  [Symbol('odd'), 'Symbol(odd)'],
])('whatever is thrown is an error that says it: %o', (thrown, message) => {
  expect(asError(thrown).message).toBe(message);
});

it('an error of ours is printed without what says nothing', () => {
  const error = inputError('Wrong.', { next: 'Correct it.' });
  expect(isAppError(error)).toBe(true);
  const printed = inspect(error);
  expect(printed).toContain('Correct it.');
  expect(printed).not.toMatch(/Symbol|undefined/);
  expect(inspect(inputError('Wrong.', { cause: new Error('why') }))).toContain('[cause]: Error: why');
});

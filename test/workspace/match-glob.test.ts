import { describe, expect, it } from 'vitest';
import { globMatcher } from '../../src/workspace/find-files.ts';
import { ownTime } from '../support/own-time.ts';

const fits = (glob: string, path: string) => globMatcher(glob)?.(path);

describe('a pattern for paths', () => {
  it.each([
    ['*', '.a', false],
    ['**/*.yml', '.github/x.yml', false],
    ['.github/*', '.github/x.yml', true],
    ['**/b', 'a/.x/b', false],
    ['**', 'a/b', true],
    ['**', '.b/c', false],
    ['**/a', 'a', true],
    ['a/**', 'a/b/c', true],
    ['a/**', 'a', false],
    ['a/**/z', 'a/z', true],
    ['a?', 'ab', true],
    ['?a', '.a', false],
    ['*.{ts,js}', 'a.ts', true],
    ['{a,b{c,d}}', 'bd', true],
    ['a.ts', 'A.ts', false],
    ['x[0-9]', 'x1', true],
    ['x[!0-9]', 'x1', false],
    ['x[]]', 'x]', true],
    ['x[z-a]', 'xz', false],
    ['[b^-[-a]b', '-b', true],
    ['[^]', 'a', false],
    ['[^]', '[^]', true],
    ['a+(b)', 'a+(b)', true],
    ['a**c', 'abc', true],
    ['.*', '.a', true],
    ['**/.a', '.a', true],
    ['*a*b*', 'xxaxxbxx', true],
    ['*ab', 'aab', true],
    ['src/*.ts', 'src/deep/b.ts', false],
  ])('%s and %s: %s', (glob, path, expected) => {
    expect(fits(glob, path)).toBe(expected);
  });

  it('takes no longer for a name that almost fits, and not too many alternatives', () => {
    const began = ownTime();
    expect(fits(`${'*a'.repeat(12)}*b`, 'a'.repeat(250))).toBe(false);
    expect(fits(`${'**/'.repeat(12)}x`, `${'a/'.repeat(120)}y`)).toBe(false);
    expect(ownTime() - began).toBeLessThan(1_000);
    expect(globMatcher(`{${','.repeat(70)}}`)).toBeUndefined();
  });
});

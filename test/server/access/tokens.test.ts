import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { operator } from '../../../src/server/access/caller.ts';
import { createTokens, readTokens } from '../../../src/server/access/tokens.ts';

const ann = 'ann-has-a-long-token';
const bob = 'bob-has-a-long-token';
const sha256 = createHash('sha256').update(bob).digest('hex');
const file = {
  tokens: [
    { name: 'ann', token: ann, owner: 'team', toolsets: ['core'], allow: ['chat'], deny: ['think*'], roots: ['/a'] },
    { name: 'bob', sha256, read_only: true, max_cost_per_day: 2.5 },
  ],
};
const read = (document: unknown) => readTokens(JSON.stringify(document), 'tokens.json');
const both = () => createTokens(read(file));

describe('tokens', () => {
  test('make everybody the operator where there are none', () => {
    const none = createTokens([]);
    expect(none.identify(undefined)).toBe(operator);
    expect(none.identify('Bearer whatever')).toBe(operator);
    expect(none.find('')).toBeUndefined();
  });

  test('stand for owners with permissions', () => {
    expect(both().identify(`Bearer ${ann}`)).toEqual({
      name: 'ann',
      owner: 'team',
      permissions: { readOnly: false, toolsets: ['core'], allow: ['chat'], deny: ['think*'], roots: ['/a'] },
    });
    expect(both().identify(`bearer  ${bob} `)).toEqual({
      name: 'bob',
      owner: 'bob',
      permissions: { readOnly: true, maxCostPerDay: 2.5 },
    });
  });

  test.each([
    [undefined, 'token_missing'],
    ['', 'token_missing'],
    ['Bearer', 'token_missing'],
    ['Bearer ', 'token_missing'],
    [`Basic ${Buffer.from(`x:${ann}`).toString('base64')}`, 'token_missing'],
    [ann, 'token_missing'],
    [`Bearer ${ann} ${bob}`, 'token_missing'],
    [`Bearer ${ann},${bob}`, 'token_missing'],
    [`Bearer ${ann.slice(0, -1)}`, 'token_wrong'],
    [`Bearer ${ann}x`, 'token_wrong'],
    [`Bearer ${ann.toUpperCase()}`, 'token_wrong'],
    [`Bearer ${sha256}`, 'token_wrong'],
    [`Bearer ${'x'.repeat(1_000_000)}`, 'token_wrong'],
  ])('refuse %j', (header, kind) => {
    const found = both().identify(header);
    expect(found).toMatchObject({ status: 401, class: kind });
    expect(JSON.stringify(found)).not.toContain(ann.slice(0, 8));
  });

  test('are rotated: the old one is worth nothing afterwards, the others stay', () => {
    const tokens = both();
    expect(tokens.rotate(ann, 'a-new-token-for-ann')).toBe(true);
    expect(tokens.find(ann)).toBeUndefined();
    expect(tokens.find('a-new-token-for-ann')?.name).toBe('ann');
    expect(tokens.find(bob)?.name).toBe('bob');
  });

  test('are not rotated by who has none, to what could be guessed, or to somebody else’s', () => {
    const tokens = both();
    expect(tokens.rotate('wrong-but-long-enough', 'a-new-token-for-ann')).toBe(false);
    expect(tokens.rotate(ann, 'short')).toBe(false);
    expect(tokens.rotate(ann, 'with a space in the middle')).toBe(false);
    expect(tokens.rotate(ann, bob)).toBe(false);
    expect(tokens.find(ann)?.name).toBe('ann');
  });
});

describe('a file of tokens', () => {
  test.each([
    [{ tokens: [] }, 'tokens'],
    [{}, 'tokens'],
    [{ tokens: [{ name: 'a' }] }, 'either'],
    [{ tokens: [{ name: 'a', token: ann, sha256 }] }, 'either'],
    [{ tokens: [{ name: 'a', token: 'short' }] }, 'at least 16'],
    [{ tokens: [{ name: 'a b', token: ann }] }, 'tokens.0.name'],
    [{ tokens: [{ name: 'a', token: ann, readonly: true }] }, 'readonly'],
    [{ tokens: [{ name: 'a', token: ann, roots: ['relative'] }] }, 'absolute'],
    [{ tokens: [{ name: 'a', token: ann, roots: [] }] }, 'roots'],
    [{ tokens: [{ name: 'a', token: ann, max_cost_per_day: -1 }] }, 'max_cost_per_day'],
    [
      {
        tokens: [
          { name: 'a', token: ann },
          { name: 'a', token: bob },
        ],
      },
      'twice',
    ],
    [
      {
        tokens: [
          { name: 'a', token: ann },
          { name: 'b', token: ann },
        ],
      },
      'twice',
    ],
    [
      {
        tokens: [
          { name: 'a', token: bob },
          { name: 'b', sha256 },
        ],
      },
      'twice',
    ],
  ])('is refused as %j', (document, why) => {
    expect(() => read(document)).toThrow(why);
  });

  test('is never quoted', () => {
    const broken = `{"tokens": [{"name": "ann", "token": "${ann}" oops`;
    expect(() => readTokens(broken, 'tokens.json')).toThrow(/^(?!.*ann-has).*no JSON/);
    expect(() => read({ tokens: [{ name: 'ann', token: `${ann} and a space` }] })).toThrow(/^(?!.*ann-has).*printable/);
  });
});

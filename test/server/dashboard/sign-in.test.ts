import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Caller } from '../../../src/server/access/caller.ts';
import { createTokens, digestOf } from '../../../src/server/access/tokens.ts';
import { createSignIn, isFromHere } from '../../../src/server/dashboard/sign-in.ts';
import { manualClock } from '../../support/clock.ts';

const ann: Caller = { name: 'ann', owner: 'ann', permissions: { readOnly: false } };
const token = 'a-token-of-anns-0123456789;"\\é'.replace('é', '~');
const next = 'another-token-0123456789';

const rig = () => {
  const tokens = createTokens([{ digest: digestOf(token), caller: ann }]);
  return { tokens, signIn: createSignIn({ tokens, clock: manualClock(), random: { uuid: randomUUID } }) };
};
const asking = (headers: Record<string, string>) => new Request('http://localhost/live', { headers });
const cookieOf = (text = '') => ({ cookie: text.split(';')[0] ?? '' });

describe('who came by a cookie', () => {
  it('is known by any token that a header carries, until it is replaced', () => {
    const { tokens, signIn } = rig();
    const request = asking(cookieOf(signIn.enter(asking({}), token)));
    expect(signIn.who(request, undefined)).toMatchObject({ caller: ann, session: expect.any(AbortSignal) });
    const isIn = signIn.watch(request);
    expect([isIn(), signIn.watch(asking({}))()]).toEqual([true, false]);
    tokens.rotate(token, next);
    expect(isIn()).toBe(false);
    expect(signIn.who(request, undefined)).toBeUndefined();
  });

  it('has forms of this session alone, which say nothing of the token', () => {
    const { signIn } = rig();
    const enter = () => asking(cookieOf(signIn.enter(asking({}), token)));
    const [request, other] = [enter(), enter()];
    const own = signIn.who(request, undefined)?.csrf;
    expect(own).toBe(signIn.who(request, undefined)?.csrf);
    expect(own).not.toBe(signIn.who(other, undefined)?.csrf);
    expect(own).not.toBe(signIn.who(asking({}), ann)?.csrf);
    expect(own).not.toContain(token.slice(0, 8));
  });
});

describe('a form', () => {
  it.each([
    [true, {}],
    [true, { origin: 'http://here.test:8765' }],
    [true, { origin: 'https://HERE.test:8765' }],
    [true, { 'sec-fetch-site': 'same-origin', origin: 'http://elsewhere.test' }],
    [false, { origin: 'http://here.test' }],
    [false, { origin: 'http://here.test:8765.evil.test' }],
    [false, { origin: 'null' }],
    [false, { origin: '' }],
    [false, { 'sec-fetch-site': 'same-site', origin: 'http://here.test:8765' }],
    [false, { 'sec-fetch-site': 'cross-site' }],
    [false, { 'sec-fetch-site': 'whatever' }],
  ] as [boolean, Record<string, string>][])('is of this address: %s for %j', (is, headers) => {
    expect(isFromHere(asking({ host: 'here.test:8765', ...headers }))).toBe(is);
  });
});

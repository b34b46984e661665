import { expect, it } from 'vitest';
import { createRememberedSecrets, placesOf } from '../../src/observability/remembered-secrets.ts';

const value = 'q7Zt9Kx2Bv4Lm8Np1Rw5Yc3Hd6';
const kind = 'api_key';

function found(text: string, ...secrets: string[]) {
  const remembered = createRememberedSecrets();
  remembered.add(
    (secrets.length > 0 ? secrets : [value]).map(each => ({ kind, value: each })),
    'thread',
  );
  const spans = new Map(
    remembered.find(text, 'thread').map(({ start, end }) => [`${start}-${end}`, text.slice(start, end)]),
  );
  return [...spans.values()];
}

it.each([
  ['as it is', value],
  ['in other letters', value.toUpperCase()],
  ['backwards', [...value].toReversed().join('')],
  ['with a sign between', [...value].join('-')],
  ['with colors between', `${value.slice(0, 9)}\x1b[31m${value.slice(9)}`],
  ['as escapes of JSON', [...value].map(each => `\\u00${each.charCodeAt(0).toString(16)}`).join('')],
  ['as bytes in hexadecimal', Buffer.from(value).toString('hex')],
  ['as numbered bytes', [...Buffer.from(value)].map(byte => `0x${byte.toString(16)}`).join(', ')],
  ['in base64', Buffer.from(value).toString('base64').replace(/=+$/, '')],
  ['over two lines', `${value.slice(0, 13)}\n${value.slice(13)}`],
])('finds a secret that is printed %s, and nothing around it', (_, printed) => {
  const places = found(`Some words. ${printed} More words.`);
  expect(places.length).toBeGreaterThan(0);
  for (const place of places) expect(printed.includes(place) || place.includes(printed), place).toBe(true);
});

it.each([['&lt;pa&gt;&amp;ss&quot;wo&apos;rd'], ['&#60;pa&#62;&#38;ss&#34;wo&#39;rd'], ["%3Cpa%3E%26ss%22wo'rd"]])(
  'finds a secret with signs that is printed as %s',
  printed => {
    expect(found(`Some words. ${printed} More words.`, `<pa>&ss"wo'rd`)).not.toEqual([]);
  },
);

it('finds each place, and each line of a secret that is long enough', () => {
  const lines = ['first line 1234567890', 'short', 'second line 987654321'];
  expect(found(`${value} and ${value}`).filter(each => each === value)).toHaveLength(2);
  expect(found(`it prints ${lines[2]} alone`, lines.join('\n'))).toContain(lines[2]);
  expect(found('it is short', lines.join('\n'))).toEqual([]);
  expect(placesOf('abababa', 'aba')).toEqual([0, 4]);
});

it('looks for a code everywhere, and for a chosen word only where it was told', () => {
  const remembered = createRememberedSecrets();
  remembered.add(
    [
      { kind, value },
      { kind: 'password', value: 'correct-horse-battery' },
    ],
    'one',
  );
  const kinds = (among?: string) => remembered.find(`${value} correct-horse-battery`, among).map(each => each.kind);
  expect([...new Set(kinds('one'))].toSorted()).toEqual(['api_key', 'password']);
  expect([...new Set(kinds('two'))]).toEqual(['api_key']);
  expect([...new Set(kinds())].toSorted()).toEqual(['api_key', 'password']);
});

it('keeps the newest 256, and what is told again is new', () => {
  const remembered = createRememberedSecrets();
  const nth = (number: number) => `k${String(number).padStart(4, '0')}Zt9Kx2Bv4Lm8Np1Rw5`;
  const add = (number: number) => remembered.add([{ kind, value: nth(number) }], 'thread');
  const isKnown = (number: number) => remembered.find(nth(number), 'thread').length > 0;
  for (let number = 0; number < 256; number++) add(number);
  expect(isKnown(0)).toBe(true);
  add(0);
  add(256);
  expect([0, 1, 2, 256].map(isKnown)).toEqual([true, false, true, true]);
});

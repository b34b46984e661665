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

const signed = `pa<>&ss"wo'rd/+~`;

const eachAs = (write: (code: number) => string, isMeant = /[^a-z]/) =>
  signed.replace(/./gs, each => (isMeant.test(each) ? write(each.charCodeAt(0)) : each));
const hex = (code: number) => code.toString(16);

it.each([
  'pa&lt;&gt;&amp;ss&quot;wo&apos;rd/+~',
  'pa&amp;lt;&amp;gt;&amp;amp;ss&amp;quot;wo&amp;apos;rd/+~',
  "pa%3C%3E%26ss%22wo'rd/%2B~",
  ...[/[^a-z]/, /[<>&'"]/, /'/, /./s].flatMap(isMeant =>
    [
      (code: number) => `%${hex(code)}`,
      (code: number) => `%25${hex(code).toUpperCase()}`,
      (code: number) => `&#${code};`,
      (code: number) => `&#x${hex(code)};`,
      (code: number) => `&#0${code};`,
      (code: number) => `\\u00${hex(code)}`,
      (code: number) => `\\u{${hex(code)}}`,
      (code: number) => `\\x${hex(code)}`,
      (code: number) => `\\${code.toString(8).padStart(3, '0')}`,
      (code: number) => `\\u0026#${code};`,
      (code: number) => `%26%23${code}%3B`,
      (code: number) => `\\u0026#x${hex(code)};`,
      (code: number) => `%26amp%3B%23x${hex(code)}%3B`,
      (code: number) => `\\x26#0${code};`,
    ].map(write => eachAs(write, isMeant)),
  ),
  ...[eachAs(code => ` 0x${hex(code)}`, /./s), Buffer.from(signed).toString('hex')],
  encodeURIComponent(Buffer.from(signed).toString('base64')),
])('finds a secret with signs that is printed as %s', printed => {
  expect(found(`Some words. ${printed} More words.`, signed)).not.toEqual([]);
});

const strange = 'pä55wörd-Σ9x!🔑z';
const bytesAs = (write: (code: number) => string) =>
  [...Buffer.from(strange)].map(byte => (byte > 127 ? write(byte) : String.fromCharCode(byte))).join('');
const unitsAs = (write: (code: number) => string) => strange.replace(/[^\0-\x7f]/g, each => write(each.charCodeAt(0)));
const pointsAs = (write: (code: number) => string) =>
  strange.replace(/[^\0-\x7f]/gu, each => write(each.codePointAt(0) ?? 0));

it.each([
  ...[strange, strange.toUpperCase(), encodeURIComponent(strange), bytesAs(byte => `\\x${hex(byte)}`)],
  ...[bytesAs(byte => `\\${byte.toString(8)}`), unitsAs(unit => `\\u${hex(unit).padStart(4, '0')}`)],
  ...[pointsAs(point => `\\u{${hex(point)}}`), pointsAs(point => `\\U${hex(point).padStart(8, '0')}`)],
  ...[
    pointsAs(point => `&#${point};`),
    pointsAs(point => `&#x${hex(point)};`),
    pointsAs(point => `&#x${hex(point).toUpperCase()};`),
  ],
])('finds a secret with letters beyond ASCII that is printed as %s', printed => {
  expect(found(`Some words. ${printed} More words.`, strange)).not.toEqual([]);
});

const printedAs = (radix: number, before: string) =>
  [...value].map(each => before + each.charCodeAt(0).toString(radix));

/** Text, what of it is found, and the secret where it is another. */
it.each<[string, string, string[], string?]>([
  ['numbered in tens', printedAs(10, '').join(', '), [printedAs(10, '').join(', ')]],
  ['numbered in eights', printedAs(8, '\\').join(''), [printedAs(8, '\\').join('').slice(1)]],
  ['in base64 of three', btoa(`${value}1`), [btoa(`${value}1`)], `${value}1`],
  ['in base64 behind one character', btoa(`x${value}`), [btoa(`x${value}`).slice(2)]],
  ['in base64 behind two characters', btoa(`xy${value}`), [btoa(`xy${value}`).slice(3, -3)]],
  ['in base64 before others', btoa(`${value}yz`), [btoa(`${value}yz`).slice(0, 34)]],
  ['in halves', `${value.slice(0, 13)} and ${value.slice(13)}`, [value.slice(0, 13), value.slice(13)]],
  ['in halves of 12', 'q7Zt9Kx2Bv4L and m8Np1Rw5Yc3H', ['q7Zt9Kx2Bv4L', 'm8Np1Rw5Yc3H'], value.slice(0, 24)],
  ['in halves of 11', 'q7Zt9Kx2Bv4 and Lm8Np1Rw5Yc', [], value.slice(0, 22)],
  ['of signs', '#!$%&/()=', ['#!$%&/()='], '#!$%&/()='],
  ['of six letters and digits', 'ab12cd', ['ab12cd'], 'ab-12-cd'],
  ['of five letters and digits', 'ab12c', [], 'ab-12-c'],
  ['of a line of 12', 'port-8080xyz', ['port-8080xyz'], 'port-8080xyz\nand more'],
  ['of a line of 11', 'port-8080xy', [], 'port-8080xy\nand more'],
  ['of a line that tells nothing', 'a'.repeat(12), [], `${'a'.repeat(12)}\nand more`],
  ['of six letters and digits as numbers', '61 31 62 32 63 33', ['61 31 62 32 63 33'], '#a!1?b*2-c3'],
  ['with a letter of two bytes', 'p\\u03a3ss-9x', ['p\\u03a3ss-9x'], 'pΣss-9x'],
  ['of three digits among signs', 'id 495051, v 49.50.51, order 616263', [], '#?!*12-3'],
  ['with numbers without a semicolon', 'p&#39w&#38d&#34x9Q7z', ['p&#39w&#38d&#34x9Q7z'], `p'w&d"x9Q7z`],
  ['that tells nothing', '1234567', [], '1234567'],
])('finds a secret %s, as far as it goes', (_, printed, places, secret = value) => {
  expect(found(`Words. ${printed} Words.`, secret).toSorted()).toEqual(places.toSorted());
});

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
  remembered.add([{ kind: 'password', value: 'correct-horse-battery' }], 'two');
  for (const among of ['one', 'two']) expect(kinds(among)).toContain('password');
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

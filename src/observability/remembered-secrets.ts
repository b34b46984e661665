import { remember } from '../core/concurrency.ts';
import { isDistinctiveSecret, mostThatFit } from '../core/text.ts';
import type { Span } from './secret-tokens.ts';

interface Known {
  value: string;
  kind: string;
  /** Undefined: everywhere. */
  scope: string | undefined;
  /** As `condense` leaves them. */
  forms: readonly string[];
}

/** Secrets of which the newest are kept. */
const maxSecrets = 256;

/** A shorter form would stand in ordinary texts. */
const leastForm = 6;

const leastPart = 12;

/** Secrets that are known by their values, in whatever form a program may print them. */
export function createRememberedSecrets() {
  const known = new Map<string, Known>();
  return {
    add(secrets: readonly { kind: string; value: string }[], among: string): void {
      for (const { kind, value } of secrets) {
        // Others must not lose words of their texts to a password that somebody chose.
        const isCode = /^\S{16,}$/.test(value) && /\d/.test(value) && /[A-Za-z]/.test(value);
        const scope = isCode ? undefined : among;
        const parts = [value, ...value.split('\n').filter(line => line.length >= leastPart)];
        const forms = [...new Set(parts.filter(isDistinctiveSecret).flatMap(formsOf))];
        if (forms.length === 0) continue;
        remember(known, `${scope ?? ''}\0${value}`, { value, kind, scope, forms }, maxSecrets);
      }
    },
    /** Without a scope all are looked for. */
    find(text: string, among?: string): Span[] {
      const likely = [...known.values()].filter(({ scope }) => among === undefined || (scope ?? among) === among);
      if (likely.length === 0) return [];
      const { condensed, placeOf } = condense(text);
      return likely.flatMap(({ value, kind, forms }) => {
        // Surer finds name the kind, so that a placeholder stays the same where the rules find the secret too.
        const span = (start: number, end: number): Span => ({ start, end, kind, rank: 9 });
        const plain = placesOf(text, value).map(at => span(at, at + value.length));
        const others = forms.flatMap(form =>
          placesOf(condensed, form).map(at => span(placeOf(at), placeOf(at + form.length - 1) + 1)),
        );
        return [...plain, ...others];
      });
    },
  };
}

export function placesOf(text: string, part: string): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) places.push(at);
  return places;
}

/** The numbers of spaces and signs, which some programs escape and others do not. */
const sign = String.raw`(?:2[\da-f]|3[a-f]|40|5[b-f]|60|7[b-e])`;
const decimalSign = '0{0,4}(?:3[2-9]|4[0-7]|5[89]|6[0-4]|9[1-6]|12[3-6])';

const octalSign = '(?:0(?:4[0-7]|5[0-7]|7[2-7])|1(?:00|3[3-7]|40|7[3-6]))';

/** What stands before a number, and around the name, of an entity of HTML, be it escaped itself. */
const percent = '%(?:25){0,4}';
const escaped = String.raw`(?:${percent}|\\u\{?0{0,4}|\\x)`;
const end = `(?:;|${escaped}3b)`;
const entity = String.raw`(?:&|${escaped}26\}?)(?:amp${end}){0,4}`;
const hash = `(?:#|${escaped}23)`;

/** Escaped signs, what introduces another escaped character, control sequences, and what is looked at. */
const pieces = new RegExp(
  [
    String.raw`${entity}(?:${hash}(?:${decimalSign}(?:${end}|(?!\d))|x0{0,4}${sign}${end}|x?0{0,4})|(?:amp|lt|gt|quot|apos)${end})`,
    String.raw`(?:${percent}|\\x|\\u00(?:0000)?)${sign}|\\u\{0{0,4}${sign}\}|\\${octalSign}`,
    String.raw`\\u\{?0{0,7}|\\x|0x|\\0(?=[67][0-7])|\p{Cc}\[[\d;?]*[A-Za-z]|([\p{L}\p{N}]+)`,
  ].join('|'),
  'giu',
);

/** Letters and digits alone, in lower case: what stands between the pieces of a secret does not hide it. */
function condense(text: string): { condensed: string; placeOf(at: number): number } {
  const parts: string[] = [];
  const starts: number[] = [];
  const places: number[] = [];
  let length = 0;
  for (const { 1: run, index } of text.matchAll(pieces)) {
    if (run === undefined) continue;
    const lower = run.toLowerCase();
    // Some letters are more than one in lower case.
    parts.push(lower.length === run.length ? lower : run);
    starts.push(length);
    places.push(index);
    length += run.length;
  }
  const placeOf = (at: number) => {
    const run = mostThatFit(starts.length - 1, index => (starts[index] ?? 0) <= at);
    return (places[run] ?? 0) + at - (starts[run] ?? 0);
  };
  return { condensed: parts.join(''), placeOf };
}

/** A secret as base64, by the place in which it stands among other bytes. */
export function base64Forms(value: string): string[] {
  const bytes = Buffer.from(value);
  return [0, 1, 2].map(before => {
    // The first and the last characters depend on what stands around the secret.
    const code = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    return code.slice(Math.ceil((before * 8) / 6), (before + bytes.length) % 3 === 0 ? undefined : -1);
  });
}

/** A secret in the forms that programs give it, condensed. */
function formsOf(value: string): string[] {
  const bytes = Buffer.from(value);
  const base64 = base64Forms(value);
  const half = Math.ceil(value.length / 2);
  const halves = value.length >= 2 * leastPart ? [value.slice(0, half), value.slice(half)] : [];
  // Where each character is a number, signs may be left out as escaped ones are.
  const bare = value.replace(/[ -/:-@[-`{-~]/g, '');
  const numbers = [bytes, ...(bare.length < leastForm ? [] : [Buffer.from(bare)])].flatMap(all => [
    all.toString('hex'),
    ...[8, 10].map(radix => [...all].map(byte => byte.toString(radix)).join('')),
  ]);
  return [
    ...[value, [...value].reverse().join(''), encodeURIComponent(value.toWellFormed()), JSON.stringify(value)],
    ...[...numbers, ...base64, ...halves, ...escapedForms(value)],
  ]
    .map(form => condense(form).condensed)
    .filter(form => form.length >= leastForm);
}

/** Letters beyond ASCII as numbers, without the zeros before them: of their UTF-16 units, of their code points, of their bytes. */
function escapedForms(value: string): string[] {
  const beyond = /[^\0-\x7f]/gu;
  if (!beyond.test(value)) return [];
  const point = (letter: string) => letter.codePointAt(0) ?? 0;
  return [
    value.replace(/[^\0-\x7f]/g, unit => `\\u${unit.charCodeAt(0).toString(16)}`),
    value.replace(beyond, letter => `\\u{${point(letter).toString(16)}}`),
    value.replace(beyond, letter => `&#${point(letter)};`),
    value.replace(beyond, letter => [...Buffer.from(letter)].map(byte => `\\${byte.toString(8)}`).join('')),
  ];
}

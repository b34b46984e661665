import type { Span } from './spans.ts';

/** How names of passwords and keys end, in any case: `password`, `DB_PASSWORD`, `dbPassword`, `api-key`. */
const name = '(password|passwd|passphrase|pwd|secret|api[_-]?key)';
/** Also within JSON that is a text of JSON. */
const quote = '\\\\{0,3}["\'`]';
/** Every quantifier is bounded: what is read for one name is of constant length. */
const quoted = new RegExp(
  `${name}(?:${quote})?\\s{0,4}(=>|:=|[:=])\\s{0,4}(${quote})([^"'\`\\s\\\\]{4,128})(?=\\\\{0,3}["'\`])`,
  'gi',
);
/** As settings stand in YAML, in .env and .properties files, and in connection strings. */
const bare = new RegExp(`${name}(=|:[ \\t]{1,4})([^\\s"'\`\\\\(){}<>[\\],;&$|]{6,128})(?=([\\s;&]|$))`, 'gi');

/** Values that are written down where the name of a password or a key says what they are. */
export const assignmentFinders: readonly ((text: string) => Span[])[] = [
  text =>
    [...text.matchAll(quoted)].flatMap(({ 0: whole, 1: named = '', 2: sign = '', 4: value = '', index }) =>
      isLiteral(value, isPassword(named), sign !== ':') ? [spanOf(named, index + whole.length, value)] : [],
    ),
  text =>
    [...text.matchAll(bare)].flatMap(({ 0: whole, 1: named = '', 2: sign = '', 3: value = '', index }) => {
      const end = index + whole.length;
      const stands = sign === '=' ? beginsField(text, index) : endsLine(text, end) && beginsLine(text, index);
      return stands && isBareLiteral(value, isPassword(named)) ? [spanOf(named, end, value)] : [];
    }),
];

function spanOf(named: string, end: number, value: string): Span {
  return { start: end - value.length, end, kind: isPassword(named) ? 'password' : 'secret', rank: 3 };
}

function isPassword(named: string): boolean {
  return /^p/i.test(named);
}

/** What stands for a value that somebody is to fill in, or that comes from elsewhere. */
const placeholder =
  /[<>{}]|\$[\w({]|%[(%]|^(?:\$|%|\.\.|\*+$|xx+|\[)|(.)\1{3}|change.?(?:me|it|this)|your|example|placeholder|dummy|redacted|masked|insert|replace|not.?(?:set|needed|used|required)|todo|env[.:]|process\.|vault:|secretref|^(?:ref|arn|file|https?):/i;
/** Words of forms, types and tests. */
const word =
  /^(?:string|text|hidden|required|optional|boolean|number|object|undefined|null|none|true|false|missing|invalid|default|unknown|value|label|input|field|enabled|disabled|always|never|password|passwd|passphrase|secret|token|credentials?|api.?key)$/i;
const path = /^(?:~?[./\\]|[A-Za-z]:[\\/])|\/.*\//;
/** Names of algorithms have digits as passwords do. */
const algorithm = /^(?:sha|md|aes|base|utf|hmac|[hrep]s|ed|rsa|pbkdf|argon|x)[-_]?\d/i;
/** `auth.password.label`, `settings/secret`, `current-password`, `clientSecret`: words that name something. */
const naming = /^[a-z]+(?:[-_.:/][a-z]+)*$/i;

/** `my-app-v1-test-4`: the name of something, with numbers. */
const numbered = /^(?:[a-z]+\d{0,3}|\d{1,3})(?:[-_.](?:[a-z]+\d{0,3}|\d{1,3})){1,30}$/i;

/** `assigned`: by a sign that no description of a form or of a type is written with. */
function isLiteral(value: string, password: boolean, assigned: boolean): boolean {
  if (placeholder.test(value) || word.test(value) || path.test(value) || algorithm.test(value)) return false;
  if (!/[\x21-\x7e]/.test(value) || /^[\d.,:]{0,5}$/.test(value)) return false;
  const isName = naming.test(value);
  if (!password) return !isName && !numbered.test(value) && value.length >= 8 && isMixed(value);
  if (!isName) return /\d/.test(value) || /[!#$%^&*+=?~@]/.test(value);
  return assigned && /^[a-z]{6,}$/.test(value) && !/pass|secret|pwd|key/.test(value);
}

function isBareLiteral(value: string, password: boolean): boolean {
  // An access to a member, a number or a call: code, not a setting.
  const isCode = /^[A-Za-z_]\w*\.[A-Za-z_]|^[\d.]+$|[=:]$/.test(value);
  return !isCode && isMixed(value) && isLiteral(value, password, false);
}

function isMixed(value: string): boolean {
  return /\d/.test(value) && /[A-Za-z]/.test(value);
}

/** A field of a line: the identifier that ends with the name stands at its beginning, or behind a blank or a sign that parts fields. */
function beginsField(text: string, at: number): boolean {
  const from = nameStart(text, at);
  return from === 0 || /[\s;&?]/.test(text.charAt(from - 1));
}

const longestName = 60;

/** Where the identifier begins that goes on at a place. */
function nameStart(text: string, at: number): number {
  let from = at;
  while (from > 0 && at - from < longestName && /[\w.-]/.test(text.charAt(from - 1))) from--;
  return from;
}

function beginsLine(text: string, at: number): boolean {
  const from = nameStart(text, at);
  const before = text.slice(Math.max(0, from - 45), from);
  const line = before.slice(before.lastIndexOf('\n') + 1);
  return (line.length < before.length || from <= 45) && /^[ \t]{0,40}(?:- )?["']?$/.test(line);
}

function endsLine(text: string, at: number): boolean {
  return /^[ \t]{0,8}(?:#|\r?\n|$)/.test(text.slice(at, at + 12));
}

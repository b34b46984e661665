import type { Span } from './secret-tokens.ts';

interface Context {
  kind: string;
  /** Ends with the secret, its only group. Every quantifier is bounded, or ends where nothing has to follow. */
  pattern: RegExp;
  accept?(value: string): boolean;
}

/** What names a secret in code, in settings and in JSON. */
const name =
  '(?:(?:api|access|secret|private|auth|client|account|signing|encryption|master|service|refresh|session|id)[_-]?(?:key|token|secret)|apikey|password|passwd|passphrase|pwd|secret|token|credential)';

/** Also within JSON that is a text of JSON. */
const quote = '\\\\{0,3}["\'`]';

/** Secrets that are known by what stands around them. */
const contexts: readonly Context[] = [
  {
    kind: 'bearer_token',
    pattern: /\b(?:[Bb]earer|BEARER)(?:[ \t]|%20){1,4}([\w.~+/-]{12,}={0,2})/g,
    accept: isCode,
  },
  {
    kind: 'authorization',
    pattern:
      /\bauthorization\\{0,3}["']?\s{0,3}[:=,]\s{0,3}\\{0,3}["']?(?:basic|token|bearer|apikey|digest)\s{1,3}([\w.~+/-]{8,}={0,2})/gi,
    accept: value => isCode(value) || value.endsWith('='),
  },
  {
    kind: 'api_key',
    pattern:
      /\b(?:x-|x-goog-)?(?:api-key|auth-token|access-token|private-token)\\{0,3}["']?\s{0,3}[:=,]\s{0,3}\\{0,3}["']?([\w+/-]{16,}={0,2})/gi,
    accept: looksRandom,
  },
  {
    kind: 'url_password',
    // A path into which an address was made has one slash less.
    pattern: /(?::\/|(?<=[A-Za-z]{2}):)\/[^\s/:@"'`<>\\]{0,128}:([^\s/"'`<>\\]{1,256})(?=@)/g,
    // Neither a template nor a placeholder, nor a port with a query that has an `@` in it.
    accept: value => !/^(?:[$%{*]|\[masked:|\d{1,5}[?#,])/.test(value),
  },
  {
    kind: 'url_secret',
    pattern:
      /[?&](?:api[_-]?key|key|access[_-]?token|token|auth|sig|signature|client_secret|password|x-amz-signature|x-amz-security-token)=([^&\s"'`<>#\\]{16,})/gi,
    accept: looksRandom,
  },
  {
    kind: 'aws_secret_key',
    pattern: /secret_?access_?key\\{0,3}["']?\s{0,3}[:=]\s{0,3}\\{0,3}["']?([A-Za-z0-9/+]{40})(?![\w/+=])/gi,
  },
  {
    kind: 'azure_key',
    pattern: /\b(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,}={0,2})/g,
  },
  {
    kind: 'webhook',
    pattern:
      /\b(?:hooks\.slack\.com\/(?:services|workflows)|discord(?:app)?\.com\/api\/webhooks|outlook\.office\.com\/webhook)\/([\w/@-]{20,})/g,
  },
  {
    kind: 'secret',
    pattern: new RegExp(
      `${name}(?:${quote})?\\s{0,4}(?:=>|:=|[:=])\\s{0,4}${quote}([^"'\`\\s\\\\{}<>()$[\\]]{16,512})(?=\\\\{0,3}["'\`])`,
      'gi',
    ),
    accept: looksRandom,
  },
  {
    kind: 'secret',
    pattern: /(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)=([\w+/.~!@%^*-]{16,}={0,2})/g,
    accept: looksRandom,
  },
];

/** One finder a context, so that a long text can be gone through with pauses. */
export const contextFinders: readonly ((text: string) => Span[])[] = contexts.map(({ kind, pattern, accept }) =>
  finderOf(kind, pattern, accept),
);

function finderOf(kind: string, pattern: RegExp, accept: Context['accept']) {
  return (text: string): Span[] => {
    const spans: Span[] = [];
    for (const { 0: whole, 1: captured = '', index } of text.matchAll(pattern)) {
      const start = index + whole.length - captured.length;
      // What ends a sentence is not part of the secret: it would get another placeholder there than elsewhere.
      const value = captured.replace(/[.,;]$/, '');
      if (value !== '' && (accept?.(value) ?? true)) {
        spans.push({ start, end: start + value.length, kind, rank: 2 });
      }
    }
    return spans;
  };
}

/** A word with digits in it, or a random one; not `Bearer AuthenticationScheme`. */
function isCode(value: string): boolean {
  const digits = value.match(/\d/g)?.length ?? 0;
  return digits >= 3 || (digits >= 1 && value.length >= 16) || (value.length >= 16 && changeRate(value) >= 0.3);
}

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** Whether a text is a machine's choice and not a word, a path, a date, a UUID or a template. */
function looksRandom(value: string): boolean {
  const bare = value.slice(0, 512).replace(/[^A-Za-z0-9]/g, '');
  const letters = bare.match(/[A-Za-z]/g)?.length ?? 0;
  const enough = bare.length >= 16 && letters >= 4 && bare.length - letters >= 2;
  return enough && !uuid.test(value) && changeRate(bare) >= 0.3 && entropy(bare) >= 3;
}

/** How often capitals, small letters and digits take turns: about half the time in random text, seldom in names. */
function changeRate(text: string): number {
  let changes = 0;
  for (let at = 1; at < text.length; at++) if (classOf(text, at) !== classOf(text, at - 1)) changes++;
  return changes / Math.max(1, text.length - 1);
}

function classOf(text: string, at: number): 'digit' | 'capital' | 'other' {
  const code = text.charCodeAt(at);
  if (code >= 48 && code <= 57) return 'digit';
  return code >= 65 && code <= 90 ? 'capital' : 'other';
}

/** Bits a character. */
function entropy(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  return [...counts.values()].reduce((sum, count) => sum - (count / text.length) * Math.log2(count / text.length), 0);
}

/** How names of passwords and keys end, in any case: `password`, `DB_PASSWORD`, `dbPassword`, `api-key`. */
const assignedName = '(password|passwd|passphrase|pwd|secret|api[_-]?key)';

/** What kind of value it is, where a language wants that said before the sign: `: &'static str`, `: Optional[str]`, ` string`. */
const typed =
  "(?:[ \\t]{0,2}:[ \\t]{0,2}(?:&'static )?&?[a-z][\\w.<>?|[\\]]{0,40}(?=[ \\t]{0,2}=)|[ \\t]string(?=[ \\t]{0,2}=))";

/** Every quantifier is bounded: what is read for one name is of constant length. */
const quoted = new RegExp(
  `${assignedName}(?:${quote}\\]?)?${typed}?\\s{0,4}(=>|:=|[:=])\\s{0,4}(${quote})([^"'\`\\s\\\\]{4,128})(?=\\\\{0,3}["'\`])`,
  'gi',
);

/** As settings stand in YAML, in .env and .properties files, and in connection strings, which may be quoted as a whole. */
const bare = new RegExp(
  `${assignedName}(=|:[ \\t]{1,4})([^\\s"'\`\\\\(){}<>[\\],;&$|]{6,128})(?=([\\s;&"'\`\\\\]|$))`,
  'gi',
);

/** In XML, as an element or as what is named by an attribute, and in the words of SQL and of Gradle. */
const labelledSecrets: readonly RegExp[] = [
  new RegExp(`${assignedName}>([^\\s<>"'\`]{6,128})(?=</)`, 'gi'),
  new RegExp(`${assignedName}["']\\s{1,4}value=["']([^\\s<>"'\`]{6,128})(?=["'])`, 'gi'),
  new RegExp(`${assignedName}[ \\t]{1,4}'([^\\s"'\`\\\\]{6,128})(?=')`, 'gi'),
  /\bidentified()[ \t]{1,4}by[ \t]{1,4}'([^\s"'`\\]{6,128})(?=')/gi,
];

/** Values that are written down where the name of a password or a key says what they are. */
export const assignmentFinders: readonly ((text: string) => Span[])[] = [
  text =>
    [...text.matchAll(quoted)].flatMap(({ 0: whole, 1: named = '', 2: sign = '', 4: value = '', index }) =>
      !(sign !== '=' && label.test(value)) && isLiteral(value, isPassword(named), sign !== ':')
        ? [spanOf(named, index + whole.length, value)]
        : [],
    ),
  text =>
    [...text.matchAll(bare)].flatMap(({ 0: whole, 1: named = '', 2: sign = '', 3: value = '', index }) => {
      const end = index + whole.length;
      const stands = sign === '=' ? beginsField(text, index) : endsLine(text, end) && beginsLine(text, index);
      return stands && isBareLiteral(value, isPassword(named)) ? [spanOf(named, end, value)] : [];
    }),
  ...labelledSecrets.map(
    pattern => (text: string) =>
      [...text.matchAll(pattern)].flatMap(({ 0: whole, 1: named = '', 2: value = '', index }) =>
        isBareLiteral(value, isPassword(named)) ? [spanOf(named, index + whole.length, value)] : [],
      ),
  ),
];

function spanOf(named: string, end: number, value: string): Span {
  return { start: end - value.length, end, kind: isPassword(named) ? 'password' : 'secret', rank: 3 };
}

function isPassword(named: string): boolean {
  return !/^[sa]/i.test(named);
}

/** What stands for a value that somebody is to fill in, or that comes from elsewhere. */
const placeholder =
  /[<>{}]|\$[\w({]|%[(%]|^(?:\$|%|\.\.|\*+$|xx+|\[)|(.)\1{3}|change.?(?:me|it|this)|your|example|placeholder|dummy|redacted|masked|insert|replace|not.?(?:set|needed|used|required)|todo|env[.:]|process\.|vault:|secretref|^(?:ref|arn|file|https?):/i;

/** Words of forms, types and tests. */
const word =
  /^(?:string|text|hidden|required|optional|boolean|number|object|undefined|null|none|true|false|missing|invalid|default|unknown|value|label|input|field|enabled|disabled|always|never|hashed|encrypted|bcrypt|confirmed|nullable|password|passwd|passphrase|secret|token|credentials?|api.?key)$/i;

const path = /^(?:~?[./\\]|[A-Za-z]:[\\/]|v\d{1,2}\/|@[a-z]+(?::[a-z]+)?\/)|\/.*\//i;

/** What finds a field of a page, or names one before: `#user-password`, `input[type=password]`, `@password`. */
const selector = /^(?:input|form|div)?(?:[#.@][a-z]+(?:[-_][a-z]+)*|\[[\w-]{1,40}[*^$~|]?=[^\]]{0,100}\])$/i;

/** What a field has to keep to: `required|min:8|confirmed`, `min=8,max=20`. */
const rule =
  /^(?:required|nullable|sometimes|bail|string|confirmed|hashed|omitempty|min|max|len|min_?length|max_?length|between|size)[|:=,]/i;

/** What stands beside a field: `Passwort?`, `Required!`. */
const label = /^\p{Lu}\p{Ll}+[!?*:.…]{1,3}$/u;

/** Names of algorithms have digits as passwords do. */
const algorithm = /^(?:sha|md|aes|base|utf|hmac|[hrep]s|ed|rsa|pbkdf|argon|x)[-_]?\d/i;

/** `auth.password.label`, `settings/secret`, `current-password`, `clientSecret`: words that name something. */
const naming = /^[a-z]+(?:[-_.:/][a-z]+)*$/i;

/** `my-app-v1-test-4`: the name of something, with numbers. */
const numbered = /^(?:[a-z]+\d{0,3}|\d{1,3})(?:[-_.](?:[a-z]+\d{0,3}|\d{1,3})){1,30}$/i;

/** `assigned`: by a sign that no description of a form or of a type is written with. */
function isLiteral(value: string, password: boolean, assigned: boolean): boolean {
  if (placeholder.test(value) || word.test(value) || path.test(value) || algorithm.test(value)) return false;
  if (selector.test(value) || rule.test(value)) return false;
  if (!/[\x21-\x7e]/.test(value) || /^[\d.,:]{0,5}$/.test(value)) return false;
  const isName = naming.test(value);
  if (!password) return !isName && !numbered.test(value) && value.length >= 8 && isMixed(value);
  if (!isName) return /\d/.test(value) || /[!#$%^&*+=?~@]/.test(value);
  return assigned && /^[a-z]{6,}$/.test(value) && !/pass|secret|pwd|key/.test(value);
}

function isBareLiteral(value: string, password: boolean): boolean {
  // An access to a member, a number, a call or a type: code, not a setting.
  const isCode =
    /^[A-Za-z_]\w*\.[A-Za-z_]|^[\d.]+$|[=:]$|^(?:u?int|float)\d{1,3}(?:_t)?$|^[A-Z][a-z]+\d{1,3}(?:[A-Z][a-z]+)+$/.test(
      value,
    );
  return !isCode && isMixed(value) && isLiteral(value, password, false);
}

function isMixed(value: string): boolean {
  return /\d/.test(value) && /[A-Za-z]/.test(value);
}

/** A field of a line: the identifier that ends with the name stands at its beginning, or behind a blank or a sign that parts fields; also in a patch. */
function beginsField(text: string, at: number): boolean {
  const from = nameStart(text, at);
  return from === 0 || /[\s;&?]$|(?:^|\n)\+$/.test(text.slice(Math.max(0, from - 2), from));
}

const maxNameLength = 60;

/** Where the identifier begins that goes on at a place. */
function nameStart(text: string, at: number): number {
  let from = at;
  while (from > 0 && at - from < maxNameLength && /[\w.-]/.test(text.charAt(from - 1))) from--;
  return from;
}

function beginsLine(text: string, at: number): boolean {
  const from = nameStart(text, at);
  const before = text.slice(Math.max(0, from - 45), from);
  const line = before.slice(before.lastIndexOf('\n') + 1);
  return (line.length < before.length || from <= 45) && /^\+?[ \t]{0,40}(?:- )?["']?$/.test(line);
}

function endsLine(text: string, at: number): boolean {
  return /^[ \t]{0,8}(?:#|\r?\n|$)/.test(text.slice(at, at + 12));
}

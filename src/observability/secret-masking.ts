import { createHmac } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asError, configError, errorCode } from '../core/errors.ts';
import type { AppEvent } from '../core/events.ts';
import { isUuid } from '../core/ids.ts';
import type { Mask, Masked, MaskedPlace, Random } from '../core/ports.ts';
import { findEncoded, findKeyLines, findPrivateKeys } from './private-keys.ts';
import { base64Forms, createRememberedSecrets, placesOf } from './remembered-secrets.ts';
import { assignmentFinders, findContexts } from './secret-contexts.ts';
import { base64Runs, findTokens, groupsOf, joinSpans, matchesOf, type Span } from './secret-tokens.ts';

export interface TextMask {
  /** Masks the secrets within the name of a field. */
  name(text: string): string;
  /** Masks the secrets within a text, or answers what is to stand in its place. */
  text(text: string): unknown;
  /** What stands in the place of bytes. */
  bytes(bytes: Uint8Array): unknown;
  /** Masks a text that is a secret as a whole. */
  whole(text: string): string;
}

/** Names of headers and of fields whose value is a secret, whatever it looks like. */
const secretName =
  /^(?:proxy-)?authorization$|^(?:set-)?cookie$|^(?:x-|x-goog-)?api[-_]?key$|^(?:x-)?(?:access|auth|refresh|id|session|private|bearer)[-_]?token$|^(?:client|app)[-_]?secret$|^(?:private|secret|access)[-_]?key$|^(?:password|passwd|passphrase|secret)$/i;

const deepest = 12;

/** A copy made of plain data: errors with their causes, maps, headers and addresses become records and texts. */
export function maskValue(value: unknown, mask: TextMask, above: readonly object[] = []): unknown {
  switch (typeof value) {
    case 'string':
      return mask.text(value);
    case 'bigint':
      return String(value);
    case 'symbol':
    case 'function':
      return `[${typeof value}]`;
    case 'object':
      return value === null ? null : copyObject(value, mask, above);
    default:
      return value;
  }
}

function copyObject(value: object, mask: TextMask, above: readonly object[]): unknown {
  if (above.includes(value)) return '[circular]';
  if (above.length >= deepest) return '[too deep]';
  const path = [...above, value];
  if (Array.isArray(value) || value instanceof Set) return Array.from(value, each => maskValue(each, mask, path));
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof URL) return mask.text(value.href);
  if (value instanceof Map || value instanceof Headers) return copyFields([...value.entries()], mask, path);
  if (ArrayBuffer.isView(value)) return mask.bytes(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  if (value instanceof Error) return copyFields([...errorFields(value), ...fields(value)], mask, path);
  return copyFields(fields(value), mask, path);
}

function copyFields(
  entries: readonly (readonly [unknown, unknown])[],
  mask: TextMask,
  path: readonly object[],
): object {
  const copy: Record<string, unknown> = {};
  for (const [key, plain] of entries) {
    const name = String(key);
    const value = secretName.test(name) ? hide(plain, mask, path) : maskValue(plain, mask, path);
    // An ordinary field, also where its name would set the prototype.
    if (name === '__proto__')
      Object.defineProperty(copy, name, { value, enumerable: true, configurable: true, writable: true });
    else copy[mask.name(name)] = value;
  }
  return copy;
}

function hide(value: unknown, mask: TextMask, path: readonly object[]): unknown {
  if (typeof value === 'string')
    return value === '' || /^\[masked:\w+:[0-9a-f]{8}\]$/.test(value) ? value : mask.whole(value);
  return Array.isArray(value) ? value.map(entry => hide(entry, mask, path)) : maskValue(value, mask, path);
}

/** An error's own words are not enumerable. */
function errorFields(error: Error): [string, unknown][] {
  const { name, message, stack, cause } = error;
  const errors: unknown = error instanceof AggregateError ? error.errors : undefined;
  return Object.entries({ name, message, stack, cause, errors }).filter(([, value]) => value !== undefined);
}

const fields = (value: object): [string, unknown][] =>
  Object.keys(value).map(key => {
    try {
      return [key, Reflect.get(value, key)];
    } catch {
      // A getter that throws must not stop the rest from being told.
      return [key, '[unreadable]'];
    }
  });

export interface MaskParts {
  /** Keys the hashes of a scope, so that a placeholder can't be tried against guesses. Not itself a value to mask. */
  secret: string | ((scope: string) => string);
  /** The operator's own keys: masked wherever they stand, whatever they look like. */
  keys: readonly string[];
}

export type SecretMask = ReturnType<typeof createMask>;

type Finder = (text: string) => Span[];

/** Longer texts are gone through with pauses: each detector takes a few milliseconds a megabyte. */
const pauseFrom = 262_144;
/** Of several texts together. */
const pauseAfter = 65_536;
const nextTurn = () => new Promise<0>(resolve => setImmediate(resolve, 0));

/** Of everything that is told to observers. */
export const logScope = 'log';

/** Names of fields, tools, models and calls come again with every event: so many of those without a secret are remembered. */
const rememberedTexts = 2_000;

const rememberedLength = 64;

/** Secrets of before that are still masked: whoever makes new ones all the time must not slow everything down. */
const maxFormer = 64;

export function createMask({ secret, keys }: MaskParts) {
  // Local servers take any key, and people give them words (`lm-studio`, `not-needed`) that stand in every other text.
  const own = keyFinder(keys.filter(key => key.length >= 8 && !/^[a-z]{1,15}(?:[-_ ][a-z]{1,15})*$/.test(key)));
  let knownKeys = keyFinder([]);
  const plain = [own, (text: string) => knownKeys(text), findTokens, findContexts];
  const known = withReadable(plain);
  const all = withReadable([...plain, ...assignmentFinders]);
  let remembered: ReturnType<typeof createRememberedSecrets> | undefined;
  const keyOf = typeof secret === 'string' ? () => secret : secret;
  const placeholder = (kind: string, value: string, scope: string): string => {
    const hash = createHmac('sha256', keyOf(scope)).update(`${scope}\0${value}`).digest('hex').slice(0, 8);
    return `[masked:${kind}:${hash}]`;
  };

  const replace = (text: string, scope: string, spans: readonly Span[]): Masked => {
    if (spans.length === 0) return { text, found: {} };
    const found: Record<string, number> = {};
    const parts: string[] = [];
    const places: MaskedPlace[] = [];
    let done = 0;
    for (const { start, end, kind } of joinSpans(spans)) {
      const instead = placeholder(kind, text.slice(start, end), scope);
      parts.push(text.slice(done, start), instead);
      places.push({ start, end, kind, placeholder: instead });
      found[kind] = (found[kind] ?? 0) + 1;
      done = end;
    }
    return { text: parts.join('') + text.slice(done), found, places };
  };

  const recalled = (text: string, scope: string): Span[] =>
    remembered?.find(text, scope === logScope ? undefined : scope) ?? [];
  /** Masks a short text, without a pause. */
  const maskSync = (text: string, scope: string): Masked =>
    replace(text, scope, [...foundBy(all, text), ...recalled(text, scope)]);

  /** Short texts in which nothing was found, by any rule and in any scope. */
  const clean = new Set<string>();
  let sincePause = 0;
  const mask: Mask = async (text, scope, by) => {
    // A key that cannot be used is told of with the first text, whether there is a secret in it or not.
    keyOf(scope);
    if (clean.has(text)) return { text, found: {} };
    const spans: Span[] = [];
    for (const find of by === 'model' ? known : all) {
      for (const span of find(text)) spans.push(span);
      if (text.length >= pauseFrom) await nextTurn();
    }
    sincePause += text.length;
    if (sincePause >= pauseAfter) sincePause = await nextTurn();
    if (by !== 'rules') spans.push(...(remembered?.find(text, scope) ?? []));
    return replace(text, scope, spans);
  };

  const maskForLog = (text: string): string => {
    if (clean.has(text)) return text;
    // Each call has IDs of its own, in which no pattern finds anything.
    const masked = isUuid(text)
      ? replace(text, logScope, [...own(text), ...knownKeys(text), ...recalled(text, logScope)])
      : maskSync(text, logScope);
    if (masked.text === text && text.length <= rememberedLength) {
      if (clean.size >= rememberedTexts) clean.clear();
      clean.add(text);
    }
    return masked.text;
  };
  const forLog = { name: maskForLog, text: maskForLog, whole: (text: string) => placeholder('secret', text, logScope) };

  /** A copy of plain data with all its texts masked, and fields that are named like secrets (headers, passwords) whole. */
  function maskDeep(value: AppEvent): AppEvent;
  function maskDeep(value: unknown): unknown;
  function maskDeep(value: unknown): unknown {
    return maskValue(value, { ...forLog, bytes: bytes => `[${bytes.byteLength} bytes]` });
  }
  /** The same for large data: what `lift` answers stands in the place of bytes and of texts longer than `over` characters, which it gets unmasked. */
  const maskLifting = (value: unknown, over: number, lift: (part: string | Uint8Array) => unknown): unknown =>
    maskValue(value, { ...forLog, bytes: lift, text: text => (text.length > over ? lift(text) : maskForLog(text)) });
  let current: readonly string[] = [];
  let former: readonly string[] = [];
  /** Secrets that came up while the process runs, all of them each time; those that were told of before are masked for a while yet. */
  const know = (secrets: readonly string[]): void => {
    const now = new Set(secrets);
    former = [...former, ...current].filter(secret => !now.has(secret)).slice(-maxFormer);
    current = secrets;
    knownKeys = keyFinder([...current, ...former]);
    clean.clear();
  };
  mask.remember = (secrets, scope) => {
    remembered ??= createRememberedSecrets();
    remembered.add(secrets, scope);
    clean.clear();
  };
  return { mask, maskSync, maskDeep, maskLifting, know };
}

function foundBy(finds: readonly ((text: string) => Span[])[], text: string): Span[] {
  const found: Span[] = [];
  for (const find of finds) for (const span of find(text)) found.push(span);
  return found;
}

function findKeys(text: string, find: Finder = () => []): Span[] {
  const runs = base64Runs(text);
  const bodies = text.includes('PRIVATE KEY') ? findPrivateKeys(text) : [];
  return runs.length === 0 ? bodies : [...bodies, ...findKeyLines(text, runs), ...findEncoded(text, runs, find)];
}

/** Goes through a text as it stands, as what its base64 stands for, and as it is read: twice, because a colour may stand in an escape. */
function withReadable(finders: readonly Finder[]): readonly Finder[] {
  const find: Finder = text => [...foundBy(finders, text), ...findKeys(text)];
  const inReadable: Finder = once => [...find(once), ...findInReadable(once, find)];
  return [...finders, text => [...findKeys(text, find), ...findInReadable(text, inReadable)]];
}

/** What is not read as it stands: terminals' control sequences (or rests), characters without a form, escapes of printable ASCII. */
const unread = new RegExp(
  // What each begins with, first: most of a text is passed over by that.
  `(?=[\\x1b\\x9b\\x9d\\\\^[%&\\0-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u00ad\\u034f-\\uffff])(?:${[
    // Colours, also escaped or written as `^[`, and those that have lost their first character.
    '(?:[\\x1b\\x9b]|\\\\{1,4}(?:u001[bB]|x1[bB]|033|e)|\\^\\[)\\[[\\d;:]{0,40}m',
    '\\[\\d[\\d;:]{0,40}m',
    '(?:\\x1b\\[|\\x9b)[\\x30-\\x3f]{0,80}[\\x20-\\x2f]{0,8}[\\x40-\\x7e]',
    // Titles, links and the like, up to their end.
    '(?:\\x1b[\\]PX^_]|\\x9d)[^\\x07\\x1b\\x9c\\n]{0,4096}(?:\\x07|\\x1b\\\\|\\x9c)',
    '\\x1b[\\x20-\\x2f]{0,8}[\\x30-\\x7e]',
    '[\\0-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f]',
    '[\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff9-\\ufffb]|\\udb40[\\udc00-\\udfff]',
    '%(?:25){0,4}([2-7][0-9A-Fa-f])',
    '&(?:amp;){0,4}(?:#(\\d{2,3})|#[xX]0{0,4}([2-7][0-9A-Fa-f])|(quot|amp|lt|gt|apos|colon|equals|sol|num|commat));',
    '\\\\{1,4}(?:u00|x)([2-7][0-9A-Fa-f])|\\\\(/)',
  ].join('|')})`,
  'g',
);

const named = new Map(
  'quot" amp& lt< gt> apos\' colon: equals= sol/ num# commat@'
    .split(' ')
    .map(pair => [pair.slice(0, -1), pair.slice(-1)]),
);

/** Characters on each side of what is not read as it stands: the longest name, sign and value that belong together. */
const reach = 700;

/** Finds in the text as it is read, with their places in the text as it stands. Only the neighbourhoods are read again. */
function findInReadable(text: string, find: (readable: string) => readonly Span[]): Span[] {
  const groups = groupsOf(matchesOf(text, unread), (last, next) => next.index <= endOf(last) + 2 * reach);
  return groups.flatMap(group => {
    const [first, last] = [group[0], group.at(-1)];
    if (!first || !last) return [];
    const start = Math.max(0, first.index - reach);
    const view = readableOf(text, start, Math.min(text.length, endOf(last) + reach), group);
    return find(view.text).map(({ start: from, end: to, ...span }) => {
      return { ...span, start: start + (view.starts[from] ?? 0), end: start + (view.ends[to - 1] ?? 0) };
    });
  });
}

const endOf = ({ 0: whole, index }: RegExpExecArray): number => index + whole.length;

/** The part as it is read, with where each of its characters begins and ends, counted from the beginning of the part. */
function readableOf(text: string, from: number, to: number, escapes: readonly RegExpExecArray[]) {
  const codes = new Uint16Array(to - from);
  const starts = new Int32Array(to - from);
  const ends = new Int32Array(to - from);
  let length = 0;
  const add = (code: number, start: number, end: number) => {
    codes[length] = code;
    starts[length] = start - from;
    ends[length++] = end - from;
  };
  let at = from;
  for (const match of escapes) {
    for (; at < match.index; at++) add(text.charCodeAt(at), at, at + 1);
    at += match[0].length;
    // What is struck over is not read.
    if (match[0] === '\b') length = Math.max(0, length - 1);
    else for (const character of characterOf(match)) add(character.charCodeAt(0), match.index, at);
  }
  for (; at < to; at++) add(text.charCodeAt(at), at, at + 1);
  return { text: Buffer.from(codes.buffer, 0, length * 2).toString('utf16le'), starts, ends };
}

function characterOf([, percent, decimal, hex, name, unicode, slash]: RegExpExecArray): string {
  const code = percent ?? hex ?? unicode;
  if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
  if (decimal !== undefined) return String.fromCharCode(Number(decimal));
  return name === undefined ? (slash ?? '') : (named.get(name) ?? '');
}

/** Looks for the keys themselves, and for how they stand in an address, within JSON, in base64 and as bytes. */
function keyFinder(keys: readonly string[]): Finder {
  const forms = keys.flatMap(key => {
    const [hex, base64] = [Buffer.from(key).toString('hex'), base64Forms(key)];
    const inUrls = base64.map(form => form.replaceAll('+', '-').replaceAll('/', '_'));
    const escaped = [encodeURIComponent(key.toWellFormed()), JSON.stringify(key).slice(1, -1)];
    return [key, ...escaped, ...base64, ...inUrls, hex, hex.toUpperCase()];
  });
  const needles = [...new Set(forms)];
  return text =>
    needles.flatMap(needle =>
      placesOf(text, needle).map(at => ({ start: at, end: at + needle.length, kind: 'own_key', rank: 0 })),
    );
}

/** The key of placeholders, kept in `home`, so that a secret has the same one in every process; else this process has its own. */
export function maskKey(home: string | undefined, random: Random): string {
  const fresh = `${random.uuid()}${random.uuid()}`;
  if (home === undefined) return fresh;
  const file = join(home, 'mask.key');
  const kept = keptKey(file);
  if (kept !== undefined) return kept;
  const draft = `${file}.${random.uuid()}`;
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    // On the disk before it has its name, and linked whole: other processes, also after a power loss, read all of it or none.
    writeFileSync(draft, fresh, { mode: 0o600, flush: true });
    linkSync(draft, file);
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return keptKey(file) ?? fresh;
    // Nothing can be written there. The store says so to the caller; masking goes on with a key of this process.
  } finally {
    if (existsSync(draft)) rmSync(draft);
  }
  return fresh;
}

/** The key that is there; undefined where none is. One that could be guessed is none. */
function keptKey(file: string): string | undefined {
  let problem = 'it is damaged';
  try {
    const key = readFileSync(file, 'utf8');
    if (/^[\x20-\x7e]{32,}\s*$/.test(key)) return key;
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    problem = asError(error).message;
  }
  throw configError(`The key by which secrets are masked cannot be used, ${file}: ${problem}.`, {
    next: `Let this user read it, or run "mv '${file}' '${file}.old'" and try again: a new key is made, and secrets get new placeholders.`,
  });
}

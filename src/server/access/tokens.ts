import { hash, timingSafeEqual } from 'node:crypto';
import { isAbsolute } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { remember } from '../../core/concurrency.ts';
import { configError } from '../../core/errors.ts';
import { isRecord, parsedJson } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import { type Caller, operator, type Refusal, refusalFor } from './caller.ts';

export interface TokenEntry {
  /** SHA-256 of the token. */
  digest: Buffer;
  caller: Caller;
  /** The token itself, once it was seen: for those who mask it, and for nobody else. */
  secret?: string;
}

/** What was ended when other tokens took the place of those before. Names of tokens. */
export interface TokenChange extends ReturnType<typeof changeOf> {
  /** The one that came in the place of another by `rotate`, which ends and changes nothing else. */
  rotated?: TokenEntry;
}

export type Tokens = ReturnType<typeof createTokens>;

/** Shorter ones could be guessed. */
export const shortestToken = 16;

const maxTokenLength = 4_096;

/** `onSecrets` hears of all that are to be masked, each time that there are others. */
export function createTokens(given: readonly TokenEntry[], onSecrets?: (secrets: readonly string[]) => void) {
  let entries: readonly TokenEntry[] = [];
  const listeners: ((change: TokenChange) => void)[] = [];

  function hold(next: readonly TokenEntry[]): void {
    entries = next;
    onSecrets?.(next.flatMap(({ secret }) => secret ?? []));
  }

  function tell(change: TokenChange): void {
    for (const listener of listeners) listener(change);
  }

  function entryOf(token: string): TokenEntry | undefined {
    const digest = digestOf(token.slice(0, maxTokenLength + 1));
    let found: TokenEntry | undefined;
    // All of them, each time: how long this takes says nothing of how far a guess was right.
    for (const entry of entries) if (timingSafeEqual(entry.digest, digest)) found = entry;
    if (found?.secret !== undefined || !found) return found;
    // Its hash was all that was known of it so far.
    const seen = { ...found, secret: token };
    hold(entries.map(entry => (entry === found ? seen : entry)));
    return seen;
  }

  hold(given);
  return {
    /** How many there are; with none, everybody who reaches the endpoint is the operator of this machine. */
    count: () => entries.length,
    /** Whom a bare token stands for. */
    find: (token: string) => entryOf(token)?.caller,
    /** Whom the token of this digest stands for. */
    holder: (digest: Buffer) => entries.find(entry => timingSafeEqual(entry.digest, digest))?.caller,
    /** Who sends this `Authorization` header. */
    identify(authorization: string | undefined) {
      if (entries.length === 0) return operator;
      const token = /^bearer +([^\s,]+) *$/i.exec(authorization ?? '')?.[1];
      if (token === undefined) return missing;
      return entryOf(token)?.caller ?? wrong;
    },
    /** Puts a new token in the place of an old one, for the life of this process; false when the old one is none, or the new one is too short. */
    rotate(old: string, replacement: string) {
      const before = entryOf(old);
      if (!before || !isToken(replacement) || entryOf(replacement)) return false;
      const after = { ...before, digest: digestOf(replacement), secret: replacement };
      hold(entries.map(entry => (entry === before ? after : entry)));
      tell({ ...changeOf([], []), rotated: after });
      return true;
    },
    /** A caller with what he may do by now; undefined where nobody of his name and owner is left. */
    now: (caller: Caller) =>
      entries.length === 0 ? caller : entries.find(({ caller: each }) => isSameOwner(each, caller))?.caller,
    /** Puts what `change` makes of them in their place. An entry that says the same as before keeps its caller. */
    replace(change: (held: readonly TokenEntry[]) => readonly TokenEntry[]) {
      const before = entries;
      const saidBefore = ({ digest, caller }: TokenEntry) =>
        before.find(each => each.digest.equals(digest) && isDeepStrictEqual(each.caller, caller));
      hold(change(before).map(entry => saidBefore(entry) ?? entry));
      const changed = changeOf(before, entries);
      tell(changed);
      return changed;
    },
    onChange: (listener: (change: TokenChange) => void) => void listeners.push(listener),
  };
}

const isSameOwner = (one: Caller, other: Caller): boolean => one.name === other.name && one.owner === other.owner;

function changeOf(before: readonly TokenEntry[], after: readonly TokenEntry[]) {
  const namesOf = (entries: readonly TokenEntry[]) => new Set(entries.map(({ caller }) => caller.name));
  const without = (isKept: (one: TokenEntry, other: TokenEntry) => boolean) =>
    namesOf(before.filter(one => !after.some(other => isKept(one, other))));
  const hasHeir = (one: TokenEntry, other: TokenEntry) => isSameOwner(one.caller, other.caller);
  const ended = without((one, other) => hasHeir(one, other) && one.digest.equals(other.digest));
  return {
    /** What came by them is over: another token has the name, it is another owner's, or there is none any more. */
    ended,
    /** Of these, the ones that nobody of the same owner has: what was kept for them is nobody's. */
    gone: without(hasHeir),
    /** The ones that are new, or may do other things from now on. */
    others: namesOf(after.filter(one => !before.includes(one) && !ended.has(one.caller.name))),
  };
}

export const digestOf = (token: string): Buffer => hash('sha256', token, 'buffer');

/** Whether a text can be a token: long enough, and of letters that a header carries. */
export const isToken = (text: string): boolean =>
  text.length >= shortestToken && text.length <= maxTokenLength && /^[\x21-\x2b\x2d-\x7e]+$/.test(text);

const missing = refusalFor(401, 'token_missing', 'This server requires a token.', {
  next: 'Send it as "Authorization: Bearer TOKEN".',
});

const wrong = refusalFor(401, 'token_wrong', 'Invalid token.', {
  next: 'Ask the operator for a valid token.',
  headers: { 'WWW-Authenticate': 'Bearer realm="polylogue", error="invalid_token"' },
});

const word = z.string().min(1).max(200);

const name = z.string().regex(/^[A-Za-z0-9_.@-]{1,64}$/, 'takes 1 to 64 letters, digits, ".", "_", "@" and "-"');

const entrySchema = z.strictObject({
  name,
  token: z
    .string()
    .refine(isToken, `takes at least ${shortestToken} printable characters without spaces and commas`)
    .optional(),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/i, 'takes 64 hexadecimal digits')
    .optional(),
  owner: name.optional(),
  toolsets: z.array(word).optional(),
  allow: z.array(word).optional(),
  deny: z.array(word).optional(),
  read_only: z.boolean().default(false),
  roots: z.array(z.string().refine(isAbsolute, 'takes absolute paths')).min(1).optional(),
  max_cost_per_day: z.number().nonnegative().optional(),
});

/** Reads the operator's file of tokens; throws an `AppError` that says which entry is wrong, and never shows a token. */
export function readTokens(text: string, path: string): TokenEntry[] {
  const parsed = z.strictObject({ tokens: z.array(entrySchema).min(1) }).safeParse(jsonIn(text, path));
  if (!parsed.success) {
    const found = parsed.error.issues.slice(0, 5);
    throw unusable(path, found.map(each => `${each.path.join('.') || 'the file'}: ${each.message}`).join('; '));
  }
  const entries = parsed.data.tokens.map(entry => entryOf(entry, path));
  const twice = repeated(entries);
  if (twice) throw unusable(path, `"${twice.caller.name}" or its token is listed twice`);
  return entries;
}

/** The first one whose name or token an earlier one has. */
export function repeated(entries: readonly TokenEntry[]): TokenEntry | undefined {
  const isSame = (one: TokenEntry, other: TokenEntry) =>
    one.digest.equals(other.digest) || one.caller.name === other.caller.name;
  return entries.find((entry, at) => entries.slice(0, at).some(earlier => isSame(earlier, entry)));
}

/** The file with another token, as its hash, in this caller's entry; undefined where that no longer has `before`, a hexadecimal digest. */
export function withToken(text: string, path: string, before: string | undefined, { digest, caller }: TokenEntry) {
  const document = jsonIn(text, path);
  if (!isRecord(document) || !Array.isArray(document.tokens)) return undefined;
  const entries: unknown[] = document.tokens;
  const isMeant = (entry: unknown) => isRecord(entry) && entry.name === caller.name && hashIn(entry) === before;
  if (!entries.some(isMeant)) return undefined;
  const tokens = entries.map(entry => {
    if (!isRecord(entry) || !isMeant(entry)) return entry;
    const { token: _old, ...kept } = entry;
    return { ...kept, sha256: digest.toString('hex') };
  });
  return `${JSON.stringify({ ...document, tokens }, undefined, 2)}\n`;
}

function entryOf(entry: z.infer<typeof entrySchema>, path: string): TokenEntry {
  const { name, token, sha256, owner = name, read_only: readOnly, max_cost_per_day: maxCostPerDay, ...rest } = entry;
  if ((token === undefined) === (sha256 === undefined))
    throw unusable(path, `"${name}" needs either "token" or "sha256"`);
  return {
    digest: token === undefined ? Buffer.from(sha256 ?? '', 'hex') : digestOf(token),
    ...(token !== undefined && { secret: token }),
    caller: { name, owner, permissions: { readOnly, maxCostPerDay, ...rest } },
  };
}

/** The digest of an entry's token, in hexadecimal. */
function hashIn({ token, sha256 }: Record<string, unknown>): string | undefined {
  if (typeof token === 'string') return digestOf(token).toString('hex');
  return typeof sha256 === 'string' ? sha256.toLowerCase() : undefined;
}

function jsonIn(text: string, path: string): unknown {
  const value = parsedJson(text);
  if (value === undefined) throw unusable(path, 'it is no JSON');
  return value;
}

const unusable = (path: string, why: string) =>
  configError(`Cannot use the token file ${path}: ${why}.`, {
    next: 'It takes {"tokens": [{"name", "token" or "sha256", "owner", "toolsets", "allow", "deny", "read_only", "roots", "max_cost_per_day"}]}.',
  });

/** Whom a token that came from an address stands for; `authorization` is the header, or `Bearer TOKEN` for one that came otherwise. */
export type Identify = (authorization: string | undefined, address: string | undefined) => Caller | Refusal;

/** Wrong tokens that cost nothing: of one address, and of all. */
const free = { ofOne: 10, ofAll: 200 };

/** Each further one doubles the wait, from 1 s to this. Whoever sends none for so long starts over. */
const maxWaitMs = 900_000;

/** Addresses that are remembered; the one that was quiet longest is forgotten first. */
const maxAddresses = 10_000;

/** `until`: the time from which on a wrong token is told to be wrong again. */
type Tries = { count: number; until: number };

/** Limits how fast tokens can be tried, by address and in all. Right ones are never refused: many clients share one address. */
export function createIdentify(tokens: Pick<Tokens, 'identify'>, clock: Pick<Clock, 'monotonic'>): Identify {
  const byAddress = new Map<string, Tries>();
  let all: Tries | undefined;

  /** Counts one more; answers it with the milliseconds to wait, 0 for none. */
  function counted(before: Tries | undefined, most: number, now: number): Tries & { waitMs: number } {
    const last = before && before.until + maxWaitMs > now ? before : { count: 0, until: now };
    const count = last.count + 1;
    const delay = count > most ? Math.min(1_000 * 2 ** Math.min(count - most - 1, 20), maxWaitMs) : 0;
    return { count, until: now + delay, waitMs: last.until > now ? delay : 0 };
  }

  return (authorization, address = '') => {
    const found = tokens.identify(authorization);
    if (!('status' in found) || found.class !== 'token_wrong') return found;
    const now = clock.monotonic();
    const own = counted(byAddress.get(address), free.ofOne, now);
    const whole = counted(all, free.ofAll, now);
    all = whole;
    remember(byAddress, address, own, maxAddresses);
    const seconds = Math.ceil(Math.max(own.waitMs, whole.waitMs) / 1_000);
    if (seconds === 0) return found;
    const what = 'Too many wrong tokens came from here, or from everywhere, and this is another.';
    const next = `Ask the operator for a valid token, and wait ${seconds} s.`;
    return refusalFor(429, 'wrong_tokens', what, { next, retryAfterSeconds: seconds });
  };
}

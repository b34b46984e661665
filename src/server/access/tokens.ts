import { createHash, timingSafeEqual } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Refusal } from '../guards/refusal.ts';
import type { Caller } from './caller.ts';

/** A token's hash with the caller whom it stands for. */
export interface TokenEntry {
  /** SHA-256 of the token. */
  digest: Buffer;
  caller: Caller;
  /** The token itself, once it was seen: for those who mask it, and for nobody else. */
  secret?: string;
}

/** What was ended when other tokens took the place of those before. Names of tokens. */
export interface TokenChange {
  /** What came by them is over: another token has the name, it is another owner's, or there is none any more. */
  ended: ReadonlySet<string>;
  /** Of these, the ones that nobody of the same owner has: what was kept for them is nobody's. */
  gone: ReadonlySet<string>;
  /** The ones that are new, or may do other things from now on. */
  others: ReadonlySet<string>;
}

export interface Tokens {
  /** How many there are; with none, everybody who reaches the door is the operator of this machine. */
  count(): number;
  /** Who sends this `Authorization` header. */
  identify(authorization: string | undefined): Caller | Refusal;
  /** Whom a bare token stands for. */
  find(token: string): Caller | undefined;
  /** Puts a new token in the place of an old one, for the life of this process; false when the old one is none, or the new one is too short. */
  rotate(old: string, replacement: string): boolean;
  /** A caller with what he may do by now; undefined where nobody of his name and owner is left. */
  now(caller: Caller): Caller | undefined;
  /** Puts what `change` makes of them in their place. An entry that says the same as before keeps its caller. */
  replace(change: (held: readonly TokenEntry[]) => readonly TokenEntry[]): TokenChange;
  /** Calls `listener` each time that they were replaced. */
  onChange(listener: (change: TokenChange) => void): void;
  /** Calls `listener` with the name of each token that was rotated. */
  onRotation(listener: (name: string) => void): void;
}

export interface TokenHooks {
  /** Hears of each token that came in the place of another, so that it can be kept. */
  onRotated?(entry: TokenEntry): void;
  /** Hears of all that are to be masked, each time that there are others. */
  onSecrets?(secrets: readonly string[]): void;
}

/** Shorter ones could be guessed. */
export const shortestToken = 16;
const longestToken = 4_096;

export function createTokens(
  given: readonly TokenEntry[],
  operator: Caller,
  { onRotated, onSecrets }: TokenHooks = {},
): Tokens {
  let entries: readonly TokenEntry[] = [];
  const listeners: ((change: TokenChange) => void)[] = [];
  const ofRotation: ((name: string) => void)[] = [];

  function hold(next: readonly TokenEntry[]): void {
    entries = next;
    onSecrets?.(next.flatMap(({ secret }) => secret ?? []));
  }

  function entryOf(token: string): TokenEntry | undefined {
    const digest = digestOf(token.slice(0, longestToken + 1));
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
    count: () => entries.length,
    find: token => entryOf(token)?.caller,
    identify(authorization) {
      if (entries.length === 0) return operator;
      const token = /^bearer +([^\s,]+) *$/i.exec(authorization ?? '')?.[1];
      if (token === undefined) return missing;
      return entryOf(token)?.caller ?? wrong;
    },
    rotate(old, replacement) {
      const before = entryOf(old);
      if (!before || !isToken(replacement) || entryOf(replacement)) return false;
      const after = { ...before, digest: digestOf(replacement), secret: replacement };
      hold(entries.map(entry => (entry === before ? after : entry)));
      onRotated?.(after);
      for (const listener of ofRotation) listener(after.caller.name);
      return true;
    },
    now: caller =>
      entries.length === 0 ? caller : entries.find(({ caller: each }) => isSameOwner(each, caller))?.caller,
    replace(change) {
      const before = entries;
      hold(change(before).map(entry => unchanged(entry, before) ?? entry));
      const told = changeOf(before, entries);
      for (const listener of listeners) listener(told);
      return told;
    },
    onChange: listener => void listeners.push(listener),
    onRotation: listener => void ofRotation.push(listener),
  };
}

function isSameOwner(one: Caller, other: Caller): boolean {
  return one.name === other.name && one.owner === other.owner;
}

/** The entry that said the same before, with what was learned of it. */
function unchanged(entry: TokenEntry, before: readonly TokenEntry[]): TokenEntry | undefined {
  const same = before.find(({ digest }) => digest.equals(entry.digest));
  return same && isDeepStrictEqual(same.caller, entry.caller) ? same : undefined;
}

function changeOf(before: readonly TokenEntry[], after: readonly TokenEntry[]): TokenChange {
  const namesOf = (entries: readonly TokenEntry[]) => new Set(entries.map(({ caller }) => caller.name));
  const without = (isKept: (one: TokenEntry, other: TokenEntry) => boolean) =>
    namesOf(before.filter(one => !after.some(other => isKept(one, other))));
  const hasHeir = (one: TokenEntry, other: TokenEntry) => isSameOwner(one.caller, other.caller);
  const ended = without((one, other) => hasHeir(one, other) && one.digest.equals(other.digest));
  return {
    ended,
    gone: without(hasHeir),
    others: namesOf(after.filter(one => !before.includes(one) && !ended.has(one.caller.name))),
  };
}

export function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** Whether a text can be a token: long enough, and of letters that a header carries. */
export function isToken(text: string): boolean {
  return text.length >= shortestToken && text.length <= longestToken && /^[\x21-\x2b\x2d-\x7e]+$/.test(text);
}

const missing: Refusal = {
  status: 401,
  class: 'token_missing',
  message: 'This server asks for a token.',
  next: 'Send it as "Authorization: Bearer TOKEN".',
};

const wrong: Refusal = {
  status: 401,
  class: 'token_wrong',
  message: 'This token is not one that the server knows.',
  next: 'Ask the operator for the token that holds now.',
  headers: { 'WWW-Authenticate': 'Bearer realm="polylogue", error="invalid_token"' },
};

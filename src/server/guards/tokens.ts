import { createHash, timingSafeEqual } from 'node:crypto';
import type { Caller } from './caller.ts';
import type { Refusal } from './refusal.ts';

/** A token's hash with the caller whom it stands for. */
export interface TokenEntry {
  /** SHA-256 of the token. */
  digest: Buffer;
  caller: Caller;
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
}

/** Shorter ones could be guessed. */
export const shortestToken = 16;
const longestToken = 4_096;

/** `onRotated` hears of each token that came in the place of another, so that it can be kept. */
export function createTokens(
  given: readonly TokenEntry[],
  operator: Caller,
  onRotated?: (entry: TokenEntry) => void,
): Tokens {
  let entries = [...given];

  function entryOf(token: string): TokenEntry | undefined {
    const digest = digestOf(token.slice(0, longestToken + 1));
    let found: TokenEntry | undefined;
    // All of them, each time: how long this takes says nothing of how far a guess was right.
    for (const entry of entries) if (timingSafeEqual(entry.digest, digest)) found = entry;
    return found;
  }

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
      const after = { ...before, digest: digestOf(replacement) };
      entries = entries.map(entry => (entry === before ? after : entry));
      onRotated?.(after);
      return true;
    },
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

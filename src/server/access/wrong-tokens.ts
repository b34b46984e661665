import { remember } from '../../core/concurrency.ts';
import type { Clock } from '../../core/ports.ts';
import { type Caller, type Refusal, refusalFor } from './caller.ts';
import type { Tokens } from './tokens.ts';

/** Whom a token that came from an address stands for; `authorization` is the header, or `Bearer TOKEN` for one that came otherwise. */
export type Identify = (authorization: string | undefined, address: string | undefined) => Caller | Refusal;

/** Wrong tokens that cost nothing: of one address, and of all. */
const free = { ofOne: 10, ofAll: 200 };

/** Each further one doubles the wait, from 1 s to this. Whoever sends none for so long starts over. */
const maxWaitMs = 900_000;

/** Addresses that are remembered; the one that was quiet longest is forgotten first. */
const maxAddresses = 10_000;

interface Tries {
  count: number;
  /** The time from which on a wrong token is told to be wrong again. */
  until: number;
}

/**
 * Limits how fast tokens can be tried, by address and in all, whichever way they come. Right ones are never refused: programs
 * of this machine, and clients behind one proxy, share an address with whoever guesses there.
 */
export function createIdentify(tokens: Pick<Tokens, 'identify'>, clock: Pick<Clock, 'monotonic'>): Identify {
  const byAddress = new Map<string, Tries>();
  let all: Tries | undefined;

  /** Counts one more; answers it with the milliseconds to wait, 0 for none. */
  function counted(before: Tries | undefined, most: number, now: number): { tries: Tries; waitMs: number } {
    const last = before && before.until + maxWaitMs > now ? before : { count: 0, until: now };
    const count = last.count + 1;
    const delay = count > most ? Math.min(1_000 * 2 ** Math.min(count - most - 1, 20), maxWaitMs) : 0;
    const tries = { count, until: now + delay };
    return { tries, waitMs: last.until > now ? delay : 0 };
  }

  return (authorization, address = '') => {
    const found = tokens.identify(authorization);
    if (!('status' in found) || found.class !== 'token_wrong') return found;
    const now = clock.monotonic();
    const own = counted(byAddress.get(address), free.ofOne, now);
    const whole = counted(all, free.ofAll, now);
    all = whole.tries;
    remember(byAddress, address, own.tries, maxAddresses);
    const seconds = Math.ceil(Math.max(own.waitMs, whole.waitMs) / 1_000);
    return seconds === 0 ? found : tooManyWrong(seconds);
  };
}

const tooManyWrong = (retryAfterSeconds: number): Refusal =>
  refusalFor(429, 'wrong_tokens', 'Too many wrong tokens came from here, or from everywhere, and this is another.', {
    next: `Ask the operator for a valid token, and wait ${retryAfterSeconds} s.`,
    retryAfterSeconds,
  });

import { createHmac, hash, timingSafeEqual } from 'node:crypto';
import type { Random } from '../../core/ports.ts';
import type { Caller } from '../access/caller.ts';
import { digestOf } from '../access/tokens.ts';
import type { RouteServices } from '../http/routes.ts';

/** Who sits before the browser, and how sure that is. */
export interface Signed {
  caller: Caller;
  /** What forms of his carry. */
  csrf: string;
  /** He was known by a session, not by a header of his program or by there being no tokens. Aborted when it ends. */
  session: AbortSignal | undefined;
}

const cookieName = 'polylogue_session';
const loginCookie = 'polylogue_login';

/** A session without requests, and any session, ends after so long. */
const idleMs = 12 * 3_600_000;
const maxAgeMs = 7 * 86_400_000;

/** Sessions of one token; the one that was unused longest makes room for another. */
const maxSessions = 32;

/** A browser that was shown a token. */
interface Session {
  /** Of the token; another one in its place, or another owner, ends the session. */
  digest: Buffer;
  owner: string;
  madeAt: number;
  usedAt: number;
  end: AbortController;
}

/** Cookies of one request by name; of two with one name, the first. */
export function cookiesOf(request: Request): ReadonlyMap<string, string> {
  const pairs = (request.headers.get('cookie') ?? '').split(';').map(pair => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()] as const;
  });
  return new Map(pairs.filter(([name]) => name !== '').toReversed());
}

type SignInParts = Pick<RouteServices, 'tokens' | 'clock'> & { random: Pick<Random, 'uuid'> };

/**
 * Browsers get in by a cookie that names a session of this process, and says nothing of the token: cookies ignore ports, so
 * that other servers of the machine see it. Who holds the session's token is asked anew with each request.
 */
export function createSignIn({ tokens, clock, random }: SignInParts) {
  const secret = random.uuid();
  // By the hash of what the cookie says.
  const sessions = new Map<string, Session>();
  const signOf = (key: string, what: string) => createHmac('sha256', key).update(what).digest('base64url');

  function end(key: string): void {
    sessions.get(key)?.end.abort();
    sessions.delete(key);
  }

  /** Whose a session is; undefined, and over, where it is nobody's any more. */
  function callerOf(key: string): Caller | undefined {
    const session = sessions.get(key);
    if (!session) return undefined;
    const caller = tokens.holder(session.digest);
    const now = clock.monotonic();
    const isFresh = now - session.usedAt < idleMs && now - session.madeAt < maxAgeMs;
    if (caller?.owner === session.owner && isFresh) return caller;
    end(key);
    return undefined;
  }

  tokens.onChange(() => {
    for (const key of [...sessions.keys()]) callerOf(key);
  });

  const sessionName = (request: Request) => (isEncrypted(request) ? `__Host-${cookieName}` : cookieName);
  const idIn = (request: Request) => cookiesOf(request).get(sessionName(request)) ?? '';

  /** Who asks; `known` is whom the endpoint knew by other means. Undefined: nobody yet. */
  function who(request: Request, known: Caller | undefined): Signed | undefined {
    if (known) return { caller: known, csrf: signOf(secret, `form ${known.name}`), session: undefined };
    const id = idIn(request);
    const caller = callerOf(hash('sha256', id));
    const session = sessions.get(hash('sha256', id));
    if (!caller || !session) return undefined;
    session.usedAt = clock.monotonic();
    return { caller, csrf: signOf(id, 'polylogue form'), session: session.end.signal };
  }

  return {
    who,
    /** Tells, for as long as an answer lasts, whether the session that asked for it goes on: it may end by its age alone. */
    watch(request: Request) {
      const key = hash('sha256', idIn(request));
      return () => callerOf(key) !== undefined;
    },
    /** A sign for the form of somebody who is not known yet, and the cookie that goes with it. */
    begin(request: Request, nonce: string) {
      return { csrf: signOf(nonce, 'polylogue login'), cookie: cookie(request, loginCookie, nonce, 600) };
    },
    /** Whether the form is the one that `begin` was for. */
    began(request: Request, csrf: string) {
      const nonce = cookiesOf(request).get(loginCookie);
      return nonce !== undefined && nonce !== '' && isSame(csrf, signOf(nonce, 'polylogue login'));
    },
    /** The cookie of a new session, in the place of the one that the browser had; undefined for what is no token. */
    enter(request: Request, token: string) {
      const owner = tokens.find(token)?.owner;
      if (owner === undefined) return undefined;
      end(hash('sha256', idIn(request)));
      const digest = digestOf(token);
      const own = [...sessions].filter(([, each]) => each.digest.equals(digest));
      const [oldest] = own.toSorted(([, one], [, other]) => one.usedAt - other.usedAt);
      if (oldest && own.length >= maxSessions) end(oldest[0]);
      // Each of them is 122 bits of chance.
      const id = hash('sha256', `${random.uuid()}${random.uuid()}${random.uuid()}`, 'base64url');
      const now = clock.monotonic();
      sessions.set(hash('sha256', id), { digest, owner, madeAt: now, usedAt: now, end: new AbortController() });
      return cookie(request, sessionName(request), id);
    },
    /** Ends the session; the result takes its cookie away. */
    leave(request: Request) {
      end(hash('sha256', idIn(request)));
      return cookie(request, sessionName(request), '', 0);
    },
  };
}

/** Takes the same time wherever two texts differ. */
export const isSame = (a: string, b: string): boolean => timingSafeEqual(digestOf(a), digestOf(b));

/** A cookie for this host alone; without an age it goes with the browser. */
export function cookie(request: Request, name: string, value: string, ageSeconds?: number): string {
  const age = ageSeconds === undefined ? '' : `; Max-Age=${ageSeconds}`;
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict${isEncrypted(request) ? '; Secure' : ''}${age}`;
}

/** Claimed by who sends it, for himself: a false claim only keeps his own cookie back. */
const isEncrypted = ({ url, headers }: Request): boolean =>
  new URL(url).protocol === 'https:' || headers.get('x-forwarded-proto')?.split(',')[0]?.trim() === 'https';

/** Whether the page that sent a form is one of this very address. Programs and old browsers say nothing of it. */
export function isFromHere({ headers }: Request): boolean {
  const site = headers.get('sec-fetch-site');
  if (site !== null) return site === 'same-origin' || site === 'none';
  const origin = headers.get('origin');
  if (origin === null) return true;
  return URL.canParse(origin) && new URL(origin).host === headers.get('host')?.toLowerCase();
}

import { createHmac, hash, timingSafeEqual } from 'node:crypto';
import type { Caller } from '../access/caller.ts';

/** Who sits before the browser, and how sure that is. */
export interface Signed {
  caller: Caller;
  /** What forms of his carry. */
  csrf: string;
  /** He was known by a cookie, not by a header of his program or by there being no tokens. */
  byCookie: boolean;
}

const cookieName = 'polylogue_token';
const loginCookie = 'polylogue_login';
/** Longer than any token that the server takes. */
const maxTokenLength = 8_192;

/** Cookies of one request by name; of two with one name, the first. */
export function cookiesOf(request: Request): ReadonlyMap<string, string> {
  const pairs = (request.headers.get('cookie') ?? '').split(';').map(pair => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()] as const;
  });
  return new Map(pairs.filter(([name]) => name !== '').toReversed());
}

/**
 * Browsers get in by a cookie that holds the token, which scripts can't read and other sites can't have sent. Who holds a
 * token is asked anew with each request (`find`): a rotated one lets nobody in. `secret` is unguessable, of this process.
 */
export function createSignIn({ find, secret }: { find(token: string): Caller | undefined; secret: string }) {
  const signOf = (key: string, what: string) => createHmac('sha256', key).update(what).digest('base64url');

  function tokenIn(request: Request): string | undefined {
    const value = cookiesOf(request).get(cookieName);
    if (value === undefined || value.length > maxTokenLength) return undefined;
    return Buffer.from(value, 'base64url').toString('utf8');
  }

  /** Who asks; `known` is whom the endpoint knew by other means. Undefined: nobody yet. */
  function who(request: Request, known: Caller | undefined): Signed | undefined {
    if (known) return { caller: known, csrf: signOf(secret, `form ${known.name}`), byCookie: false };
    const token = tokenIn(request);
    const caller = token === undefined ? undefined : find(token);
    if (token === undefined || !caller) return undefined;
    // Of the token, so that each of several processes behind one address takes the others' forms.
    return { caller, csrf: signOf(hash('sha256', token), 'polylogue form'), byCookie: true };
  }

  return {
    who,
    /** Tells, for as long as an answer lasts, whether who asked would still be let in, as the same owner. */
    watch(request: Request, known: Caller | undefined) {
      const bearer = /^bearer +([^\s,]+)/i.exec(request.headers.get('authorization') ?? '')?.[1];
      // Where there are no tokens, what stands in the header is none.
      const isToken = bearer !== undefined && find(bearer) !== undefined;
      const now = () => (isToken ? find(bearer) : who(request, known)?.caller)?.owner;
      const first = now();
      return () => first !== undefined && now() === first;
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
    /** The cookie that lets a token's holder in; undefined for what is no token. */
    enter(request: Request, token: string) {
      if (token.length > maxTokenLength || !find(token)) return undefined;
      return cookie(request, cookieName, Buffer.from(token, 'utf8').toString('base64url'));
    },
    leave: (request: Request) => cookie(request, cookieName, '', 0),
  };
}

/** Takes the same time wherever two texts differ. */
export function isSame(a: string, b: string): boolean {
  const [one, other] = [a, b].map(text => Buffer.from(hash('sha256', text), 'hex'));
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}

/** A cookie for this host alone; without an age it goes with the browser. */
export function cookie(request: Request, name: string, value: string, ageSeconds?: number): string {
  const age = ageSeconds === undefined ? '' : `; Max-Age=${ageSeconds}`;
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict${isEncrypted(request) ? '; Secure' : ''}${age}`;
}

/** Claimed by who sends it, for himself: a false claim only keeps his own cookie back. */
function isEncrypted({ url, headers }: Request): boolean {
  return new URL(url).protocol === 'https:' || headers.get('x-forwarded-proto')?.split(',')[0]?.trim() === 'https';
}

/** Whether the page that sent a form is one of this very address. Programs and old browsers say nothing of it. */
export function isFromHere({ headers }: Request): boolean {
  const site = headers.get('sec-fetch-site');
  if (site !== null) return site === 'same-origin' || site === 'none';
  const origin = headers.get('origin');
  if (origin === null) return true;
  return URL.canParse(origin) && new URL(origin).host === headers.get('host')?.toLowerCase();
}

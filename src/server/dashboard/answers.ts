import { isAppError } from '../../core/errors.ts';
import type { Asset } from './assets.ts';
import { barePageText, type Page, pageText, type Theme, type Visit } from './page.ts';
import { problemPage } from './pages/notices.ts';

/** Everything is loaded from here, nothing runs but the one script, nobody frames it, and forms go nowhere else. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const guarded = {
  'X-Content-Type-Options': 'nosniff',
  // Without any referrer, browsers would not say either which page a form comes from.
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
} as const;

const ofPages = {
  ...guarded,
  'Content-Security-Policy': policy,
  'Content-Type': 'text/html; charset=utf-8',
  // It shows what is one person's, and forms that hold for one person.
  'Cache-Control': 'no-store',
} as const;

export function pageAnswer(page: Page, visit: Visit): Response {
  return new Response(pageText(page, visit), { status: page.status ?? 200, headers: ofPages });
}

/** For a reader who is not known. */
export function bareAnswer(page: Page, theme: Theme, cookie?: string): Response {
  const headers = { ...ofPages, ...(cookie !== undefined && { 'Set-Cookie': cookie }) };
  return new Response(barePageText(page, theme), { status: page.status ?? 200, headers });
}

/** Sends the browser on, by GET. */
export function onward(path: string, cookie?: string): Response {
  const headers = { ...guarded, Location: path, 'Cache-Control': 'no-store' };
  return new Response(null, {
    status: 303,
    headers: { ...headers, ...(cookie !== undefined && { 'Set-Cookie': cookie }) },
  });
}

/** The name of an asset changes with what it holds. */
export function assetAnswer({ type, text }: Asset): Response {
  const kept = { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'public, max-age=31536000, immutable' };
  return new Response(text, { headers: { ...guarded, ...kept } });
}

/** What others wrote, as a file: should a browser open it, nothing in it runs or loads. */
export function fileAnswer(
  body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer>,
  type: string,
  name?: string,
): Response {
  return new Response(body, {
    headers: {
      ...guarded,
      'Content-Type': type,
      'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox",
      'Cache-Control': 'no-store',
      ...(name !== undefined && { 'Content-Disposition': `attachment; filename="${name}"` }),
    },
  });
}

const lost = new Set(['THREAD_NOT_FOUND', 'THREAD_EXPIRED', 'INVALID_INPUT_FORMAT']);

/** A failure as a page; undefined for one that nobody foresaw. What is another's looks like what is not there. */
export function problemOf(error: unknown): Page | undefined {
  if (!isAppError(error)) return undefined;
  const { message, kind, details } = error;
  if (lost.has(details.code) && details.class !== 'fork') return nothingHere;
  const statuses = {
    security: 403,
    input: 400,
    limit: 429,
    storage: 503,
    config: 500,
    model: 502,
    cancelled: 499,
    bug: 500,
  };
  return problemPage(statuses[kind], kind === 'security' ? 'Not allowed' : 'That did not work', message, details.next);
}

export const nothingHere = problemPage(
  404,
  'Nothing here',
  'There is nothing of yours at this address. It may have been deleted or expired, or it is of before this process began.',
);

import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isAppError } from '../../core/errors.ts';
import type { Caller } from '../access/caller.ts';
import type { DashboardData, OwnData } from './data.ts';
import { type Child, html, htmlText, line, type Markup } from './html.ts';

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path fill="#4357d6" d="M3 4h11a3 3 0 0 1 3 3v4a3 3 0 0 1-3 3H9l-4 4v-4H3z"/><path fill="#8b97e8" d="M19 9h2v10h-2v3l-3-3h-5l2-3h3a3 3 0 0 0 3-3z"/></svg>`;

const read = (name: string) => readFileSync(new URL(`./${name}`, import.meta.url), 'utf8');

/** What pages load, all of it from here. Pages work without the script, which only follows what happens. */
export const assets = {
  style: asset('style', 'css', 'text/css', read('dashboard.css')),
  script: asset('script', 'js', 'text/javascript', read('dashboard.js')),
  icon: asset('icon', 'svg', 'image/svg+xml', icon),
} as const;

/** `path` is another one for other content, so that a browser may keep it for good. */
function asset(name: string, ending: string, type: string, text: string) {
  return { path: `/assets/${name}-${hash('sha256', text).slice(0, 12)}.${ending}`, type, text };
}

export const themes = ['auto', 'light', 'dark'] as const;

export type Theme = (typeof themes)[number];

/** A page's reader, and what it takes to answer him. */
export interface Visit {
  caller: Caller;
  own: OwnData;
  data: DashboardData;
  url: URL;
  /** Epoch milliseconds. */
  now: number;
  theme: Theme;
  /** Stands in every form. */
  csrf: string;
  /** He came by a cookie, which he may want to be rid of. */
  signedIn: boolean;
}

export interface Page {
  title: string;
  /** Which of the main pages it belongs to. */
  place?: string;
  body: Markup;
  status?: number;
}

const places = [
  ['/', 'Live'],
  ['/calls', 'Calls'],
  ['/threads', 'Threads'],
  ['/providers', 'Providers'],
  ['/spend', 'Spend'],
] as const;

/** A form that changes something: with the sign that it is one of ours. */
export const form = (visit: Pick<Visit, 'csrf'>, action: string, inner: Child, name = ''): Markup =>
  html`<form method="post" action="${action}"${name && html` class="${name}"`}><input type="hidden" name="csrf" value="${visit.csrf}">${inner}</form>`;

function documentAnswer({ title, body, status = 200 }: Page, theme: Theme, cookie?: string): Response {
  const text = htmlText(html`<!doctype html>
<html lang="en"${theme !== 'auto' && html` data-theme="${theme}"`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="${theme === 'auto' ? 'light dark' : theme}">
<title>${title} · Polylogue</title>
<link rel="icon" type="image/svg+xml" href="${assets.icon.path}">
<link rel="stylesheet" href="${assets.style.path}">
<script type="module" src="${assets.script.path}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
${body}
</body>
</html>
`);
  return guardedAnswer(text, { ...ofPages, ...(cookie !== undefined && { 'Set-Cookie': cookie }) }, status);
}

const mark = html`<svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><path class="mark-a" d="M3 4h11a3 3 0 0 1 3 3v4a3 3 0 0 1-3 3H9l-4 4v-4H3z"/><path class="mark-b" d="M19 9h2v10h-2v3l-3-3h-5l2-3h3a3 3 0 0 0 3-3z"/></svg>`;

function themeForm(visit: Visit): Markup {
  const next = html`<input type="hidden" name="back" value="${visit.url.pathname}${visit.url.search}">`;
  const choice = (theme: Theme) =>
    html`<button name="theme" value="${theme}" aria-pressed="${theme === visit.theme ? 'true' : 'false'}">${theme}</button>`;
  const all = html`<div class="switch" role="group" aria-label="Colours">${themes.map(choice)}</div>`;
  return form(visit, '/theme', [next, all]);
}

/** `wait`: seconds until another try is of use. */
export function loginPage(csrf: string, back: string, wrong: boolean, wait: number | undefined): Page {
  const often = wait !== undefined && ` Too many wrong ones came; wait ${wait} s.`;
  return {
    title: 'Sign in',
    status: wait !== undefined ? 429 : wrong ? 401 : 200,
    body: html`<div class="card login"><h1>Polylogue</h1><p class="soft">Sign in with your token to see your calls and threads.</p>
${wrong && html`<div class="notice bad" role="alert"><p>Invalid token.${often}</p></div>`}
<form method="post" action="/login"><input type="hidden" name="csrf" value="${csrf}"><input type="hidden" name="back" value="${back}">
<label class="above" for="token">Token</label><input id="token" type="password" name="token" required autofocus autocomplete="current-password" spellcheck="false">
<button class="main">Sign in</button></form>
<p class="soft small">It is POLYLOGUE_TOKEN of the server, or one that its operator gave you, or the one in the file that "polylogue status" names on its machine. A cookie keeps you signed in until you sign out, close the browser, or the token is replaced; it does not hold the token.</p></div>`,
  };
}

/** Why something is not shown or done, and what would help. */
export const problemPage = (status: number, title: string, message: string, next?: string): Page => ({
  title,
  status,
  body: html`<h1>${title}</h1><p>${message}</p>${next !== undefined && html`<p class="soft">${next}</p>`}<p><a href="/">Back to live calls</a></p>`,
});

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

type Body = ConstructorParameters<typeof Response>[0];

const guardedAnswer = (body: Body, headers: Record<string, string>, status = 200): Response =>
  new Response(body, { status, headers: { ...guarded, ...headers } });

const ofPages = {
  'Content-Security-Policy': policy,
  'Content-Type': 'text/html; charset=utf-8',
  // It shows what is one person's, and forms that hold for one person.
  'Cache-Control': 'no-store',
} as const;

/** A whole page with its head and the way to the others. */
export function pageAnswer(page: Page, visit: Visit): Response {
  const { caller, signedIn, data, theme } = visit;
  const body = html`<header class="bar">
<a class="brand" href="/">${mark}Polylogue</a>
<nav aria-label="Pages">${places.map(([path, name]) => html`<a href="${path}"${path === page.place && html` aria-current="page"`}>${name}</a>`)}</nav>
<div class="who">${themeForm(visit)}${signedIn && form(visit, '/logout', html`<button class="quiet">Sign out</button>`)}</div>
</header>
<main id="main" tabindex="-1">${page.body}</main>
<footer><p>Polylogue ${data.version} · signed in as <strong>${line(caller.name, 60)}</strong>${caller.owner !== caller.name && html`, owner ${line(caller.owner, 60)}`}${caller.permissions.readOnly && ', read-only'}</p></footer>`;
  return documentAnswer({ ...page, body }, theme);
}

/** For a reader who is not known. */
export function bareAnswer(page: Page, theme: Theme, cookie?: string): Response {
  const body = html`<main id="main" class="narrow" tabindex="-1">${page.body}</main>`;
  return documentAnswer({ ...page, body }, theme, cookie);
}

/** Sends the browser on, by GET. */
export function redirectTo(path: string, cookie?: string): Response {
  const cookies = cookie !== undefined && { 'Set-Cookie': cookie };
  return guardedAnswer(null, { Location: path, 'Cache-Control': 'no-store', ...cookies }, 303);
}

/** The name of an asset changes with what it holds. */
export function assetAnswer({ type, text }: ReturnType<typeof asset>): Response {
  const kept = { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'public, max-age=31536000, immutable' };
  return guardedAnswer(text, kept);
}

/** What others wrote, as a file: should a browser open it, nothing in it runs or loads. */
export const fileAnswer = (body: Body, type: string, name?: string): Response =>
  guardedAnswer(body, {
    'Content-Type': type,
    'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox",
    'Cache-Control': 'no-store',
    ...(name !== undefined && { 'Content-Disposition': `attachment; filename="${name}"` }),
  });

const lost = new Set(['THREAD_NOT_FOUND', 'THREAD_EXPIRED', 'INVALID_INPUT_FORMAT']);

/** A failure as a page; undefined for one that nobody foresaw. What is another's looks like what is not there. */
export function problemOf(error: unknown): Page | undefined {
  if (!isAppError(error)) return undefined;
  const { message, kind, details } = error;
  if (lost.has(details.code) && details.class !== 'fork') return notFoundPage;
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
  return problemPage(statuses[kind], kind === 'security' ? 'Not allowed' : 'Request failed', message, details.next);
}

export const noProvider = html`<section class="notice bad"><p><strong>No provider is set up, so no model can answer.</strong> Set an API key where the server runs, or run Ollama, then restart the server:</p>
<pre tabindex="0">export GEMINI_API_KEY=…   # or OPENAI_API_KEY, ANTHROPIC_API_KEY, OLLAMA_HOST
polylogue doctor           # shows what is missing
polylogue serve</pre></section>`;

export const notFoundPage = problemPage(
  404,
  'Not found',
  'This page does not exist or is not yours. It may have been deleted, expired, or belong to an earlier server run.',
);

import type { Caller } from '../access/caller.ts';
import { assets } from './assets.ts';
import type { DashboardData, OwnData } from './data.ts';
import { type Child, html, htmlText, type Markup } from './html.ts';
import { line } from './pages/words.ts';

export const themes = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

/** A page's reader, and what it takes to answer him. */
export interface Visit {
  caller: Caller;
  /** What he may see. */
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
  /** For the title bar. */
  title: string;
  /** Which of the main pages it belongs to. */
  place?: string;
  body: Markup;
  status?: number;
}

const places = [
  ['/', 'Live'],
  ['/threads', 'Threads'],
  ['/providers', 'Providers'],
  ['/spend', 'Spend'],
] as const;

/** A whole page with its head and the way to the others. */
export function pageText(page: Page, visit: Visit): string {
  return documentText({
    title: page.title,
    theme: visit.theme,
    body: html`<header class="bar">
<a class="brand" href="/">${mark}Polylogue</a>
<nav aria-label="Pages">${places.map(([path, name]) => html`<a href="${path}"${current(path === page.place)}>${name}</a>`)}</nav>
<div class="who">${themeForm(visit)}${visit.signedIn && signOut(visit)}</div>
</header>
<main id="main" tabindex="-1">${page.body}</main>
<footer><p>Polylogue ${visit.data.version} · signed in as <strong>${line(visit.caller.name, 60)}</strong>${visit.caller.owner !== visit.caller.name && html`, owner ${line(visit.caller.owner, 60)}`}${visit.caller.permissions.readOnly && ', reading only'}</p></footer>`,
  });
}

/** A page without a reader who is known. */
export function barePageText({ title, body }: Page, theme: Theme): string {
  return documentText({ title, theme, body: html`<main id="main" class="narrow" tabindex="-1">${body}</main>` });
}

/** A form that changes something: with the sign that it is one of ours. */
export function form(visit: Pick<Visit, 'csrf'>, action: string, inner: Child, name = ''): Markup {
  return html`<form method="post" action="${action}"${name && html` class="${name}"`}><input type="hidden" name="csrf" value="${visit.csrf}">${inner}</form>`;
}

function documentText({ title, theme, body }: { title: string; theme: Theme; body: Markup }): string {
  return htmlText(html`<!doctype html>
<html lang="en"${theme !== 'auto' && html` data-theme="${theme}"`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="${theme === 'auto' ? 'light dark' : theme}">
<title>${title} · Polylogue</title>
<link rel="icon" type="image/svg+xml" href="${assets.icon.path}">
<link rel="stylesheet" href="${assets.style.path}">
<script defer src="${assets.script.path}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
${body}
</body>
</html>
`);
}

const mark = html`<svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><path class="mark-a" d="M3 4h11a3 3 0 0 1 3 3v4a3 3 0 0 1-3 3H9l-4 4v-4H3z"/><path class="mark-b" d="M19 9h2v10h-2v3l-3-3h-5l2-3h3a3 3 0 0 0 3-3z"/></svg>`;

function current(is: boolean): Child {
  return is && html` aria-current="page"`;
}

function themeForm(visit: Visit): Markup {
  const next = html`<input type="hidden" name="back" value="${visit.url.pathname}${visit.url.search}">`;
  const choices = themes.map(
    theme =>
      html`<button name="theme" value="${theme}" aria-pressed="${theme === visit.theme ? 'true' : 'false'}">${theme}</button>`,
  );
  return form(visit, '/theme', [next, html`<div class="switch" role="group" aria-label="Colours">${choices}</div>`]);
}

function signOut(visit: Visit): Markup {
  return form(visit, '/logout', html`<button class="quiet">Sign out</button>`);
}

import { html } from '../html.ts';
import type { Page } from '../page.ts';

/** Asks for the token. */
export function loginPage({ csrf, back, wrong }: { csrf: string; back: string; wrong: boolean }): Page {
  return {
    title: 'Sign in',
    status: wrong ? 401 : 200,
    body: html`<div class="card login"><h1>Polylogue</h1><p class="soft">This dashboard shows what is yours. Sign in with your token.</p>
${wrong && html`<div class="notice bad" role="alert"><p>That is no token of this server.</p></div>`}
<form method="post" action="/login"><input type="hidden" name="csrf" value="${csrf}"><input type="hidden" name="back" value="${back}">
<label class="above" for="token">Token</label><input id="token" type="password" name="token" required autofocus autocomplete="current-password" spellcheck="false">
<button class="main">Sign in</button></form>
<p class="soft small">It is POLYLOGUE_TOKEN of the server, or one that its operator gave you. It is kept in a cookie that only this server reads, until you sign out or close the browser.</p></div>`,
  };
}

/** Why something is not shown or done, and what would help. */
export function problemPage(status: number, title: string, message: string, next?: string): Page {
  return {
    title,
    status,
    body: html`<h1>${title}</h1><p>${message}</p>${next !== undefined && html`<p class="soft">${next}</p>`}<p><a href="/">To the live calls</a></p>`,
  };
}

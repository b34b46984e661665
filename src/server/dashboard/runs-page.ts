import type { RunReply } from './data.ts';
import type { Child } from './html.ts';
import { html, line, type Markup } from './html.ts';
import { form, type Page, type Visit } from './page.ts';
import { codeBlock } from './turn-parts.ts';

/** Runs that wait, on the page that shows what goes on. */
export async function waitingPart({ own }: Visit): Promise<Child> {
  const runs = (await own.runs?.list()) ?? [];
  if (runs.length === 0) return undefined;
  return html`<section aria-labelledby="waiting"><h2 id="waiting">Waits for you</h2><div class="stack">${runs.map(({ id, thread, call }) => html`<article class="card call"><p class="tight">The agent wants to use <code>${line(call, 80)}</code> in <a href="/threads/${thread}">its thread</a>.</p><a class="button" href="/runs/${id}">Look and decide</a></article>`)}</div></section>`;
}

/** The question of a run, with what it wants to do, and a button for each answer. */
export function runPage(visit: Visit, id: string, { question, text, isError, thread }: RunReply): Page {
  const link = thread !== undefined && html`<p><a href="/threads/${thread}">Its thread</a></p>`;
  return {
    title: 'An agent asks',
    place: '/',
    status: isError ? 409 : 200,
    body: html`<p class="small"><a href="/">← Live calls</a></p><h1>${question ? 'An agent asks' : isError ? 'Not answered' : 'The agent is done'}</h1>
${question ? asked(visit, id, question) : html`<div class="notice${isError && ' bad'}"><p class="bidi">${line(text, 2_000)}</p></div>`}${link}`,
  };
}

function asked(visit: Visit, id: string, { key, message, decisions }: NonNullable<RunReply['question']>): Markup {
  const [head = '', ...rest] = message.split('\n\n');
  // What an answer covers, where one covers more than this call, and the run's id stand last.
  const tail = rest.splice(decisions.length > 2 ? -2 : -1);
  const body = rest.join('\n\n');
  const language = /^(?:@@ |\+\+\+ )/m.test(body) ? 'diff' : '';
  const button = (decision: string, at: number) =>
    html`<button name="decision" value="${decision}"${at === 0 && html` class="main"`}${at === decisions.length - 1 && html` class="danger"`}>${line(decision, 80)}</button>`;
  return html`<p class="lede bidi">${line(head, 2_000)}</p>${codeBlock(body, language)}<p class="soft small bidi">${line(tail.join(' · '), 400)}</p>
${form(visit, `/runs/${id}`, html`<input type="hidden" name="key" value="${key}"><p class="row">${decisions.map(button)}</p>`)}
<p class="soft small">The answer counts once, for exactly what is shown here. Without one, the run ends in ten minutes.</p>`;
}

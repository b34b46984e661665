import { isThreadId, type ThreadId } from '../../../core/ids.ts';
import type { ThreadHead } from '../../../core/thread.ts';
import { dollars } from '../../../domain/money.ts';
import type { ThreadsData } from '../data.ts';
import { type Child, html, type Markup } from '../html.ts';
import type { Page, Visit } from '../page.ts';
import { ago, amount, empty, line, plural } from './words.ts';

const perPage = 30;
const longestQuery = 300;

/** All threads of the owner, or those that hold some words. */
export async function threadsPage({ url, now }: Visit, threads: ThreadsData): Promise<Page> {
  const words = (url.searchParams.get('q') ?? '').slice(0, longestQuery).trim();
  const [time = '', id = ''] = (url.searchParams.get('before') ?? '').split(':');
  const after = /^\d{1,15}$/.test(time) ? { before: Number(time), ...(isThreadId(id) && { beforeId: id }) } : undefined;
  return {
    title: words === '' ? 'Threads' : 'Threads found',
    place: '/threads',
    body: html`<h1>Threads</h1><p class="lede">What was said, with the files that went along. A thread can be gone on with by its id, with another model too.</p>
<form class="search" role="search" action="/threads"><input type="search" name="q" value="${words}" aria-label="Words that the thread holds" placeholder="Search all turns" autocomplete="off"><button>Search</button></form>
${words === '' ? await all(threads, now, after) : await found(threads, now, words)}`,
  };
}

/** `after`: where the page before ended. */
async function all(
  threads: ThreadsData,
  now: number,
  after: { before: number; beforeId?: ThreadId } | undefined,
): Promise<Markup> {
  const isLater = after !== undefined;
  const heads = await threads.list({ limit: perPage, ...after });
  const last = heads.length === perPage ? heads.at(-1) : undefined;
  if (heads.length === 0)
    return isLater
      ? html`<p>There are no older ones. <a href="/threads">Back to the newest</a></p>`
      : empty(
          'No threads yet.',
          'Each question that your agent asks begins one, or goes on with one by its continuation_id.',
          html`To bring one from elsewhere: <code>polylogue import FILE</code>`,
        );
  return html`<ul class="threads">${heads.map(head => entry(head, now))}</ul>
<p class="row">${isLater && html`<a class="button" href="/threads">Newest</a>`}${last && html`<a class="button" href="/threads?before=${`${last.updatedAt}:${last.id}`}">Older</a>`}</p>`;
}

async function found(threads: ThreadsData, now: number, words: string): Promise<Markup> {
  const hits = await threads.search({ text: words, limit: perPage });
  const back = html`<a href="/threads">Show all</a>`;
  if (hits.length === 0)
    return empty('Nothing was found.', 'All words must occur in one turn; beginnings of words are enough.', back);
  const entries = hits.map(({ thread, seq, snippet }) =>
    entry(
      thread,
      now,
      html`<p class="snippet">${line(snippet, 400)} <a href="/threads/${thread.id}?from=${pageStart(seq)}#turn-${seq}">turn ${seq}</a></p>`,
    ),
  );
  return html`<p>${plural(hits.length, 'thread')}${hits.length === perPage && ' or more'} with “${line(words)}”. ${back}</p><ul class="threads">${entries}</ul>`;
}

/** Turns on one page of a transcript. */
export const turnsPerPage = 20;

/** The first turn of the page that a turn stands on. */
function pageStart(seq: number): number {
  return Math.floor((Math.max(1, seq) - 1) / turnsPerPage) * turnsPerPage + 1;
}

function entry(head: ThreadHead, now: number, more: Child = undefined): Markup {
  const { id, title, toolName, workspace, seq, totals, updatedAt, parent } = head;
  return html`<li class="card"><h2><a class="bidi" href="/threads/${id}">${line(title, 120) || 'Untitled'}</a></h2>
<p class="soft small"><span class="tag">${line(toolName, 60)}</span> ${plural(seq, 'turn')} ${totals.tokens > 0 && `· ${amount(totals.tokens)} tokens `}${totals.costUsd > 0 && `· ${dollars(totals.costUsd)} `}· ${ago(updatedAt, now)} · <span class="bidi">${line(lastPart(workspace), 60)}</span>${parent && ' · a fork'}</p>${more}</li>`;
}

/** A project by the last part of its path. */
export function lastPart(path: string): string {
  return path.split(/[\\/]/).findLast(part => part !== '') ?? path;
}

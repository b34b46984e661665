import type { FileView } from '../../core/file.ts';
import type { ModelMetadata, StoredTurn, Thread, ThreadHead } from '../../core/thread.ts';
import { cursorBehind, endsExchange, exportForms, pageBehind } from '../../core/thread.ts';
import { dollars } from '../../core/usage.ts';
import type { ThreadsData } from './data.ts';
import {
  ago,
  ahead,
  amount,
  type Child,
  duration,
  empty,
  facts,
  filterForm,
  filterIn,
  highlighted,
  html,
  line,
  type Markup,
  pager,
  pill,
  plural,
} from './html.ts';
import { form, type Page, type Visit } from './page.ts';
import { codeBlock, cutTo, renderMarkdown, sources } from './turn-parts.ts';

const perPage = 30;

export async function threadsPage({ url, now }: Visit, threads: ThreadsData): Promise<Page> {
  const words = filterIn(url, 'q').trim();
  return {
    title: words === '' ? 'Threads' : 'Threads found',
    place: '/threads',
    body: html`<h1>Threads</h1><p class="lede">Stored conversations and the files that were sent. Continue one with its continuation_id and any model.</p>
${filterForm(url, 'Search all turns', [])}
${words === '' ? await all(threads, now, url) : await found(threads, now, words)}`,
  };
}

async function all(threads: ThreadsData, now: number, url: URL): Promise<Markup> {
  const after = pageBehind(url.searchParams.get('before') ?? '');
  const heads = await threads.list({ limit: perPage, ...after });
  const last = heads.length === perPage ? heads.at(-1) : undefined;
  if (heads.length === 0)
    return after
      ? html`<p>There are no older ones. <a href="/threads">Back to the newest</a></p>`
      : empty(
          'No threads yet',
          'Every question your agent asks starts a thread or continues one.',
          html`Import one: <code>polylogue import FILE</code>`,
        );
  return html`<ul class="threads">${heads.map(head => entry(head, now))}</ul>
${pager(url, last && { before: cursorBehind(last) })}`;
}

async function found(threads: ThreadsData, now: number, words: string): Promise<Markup> {
  const hits = await threads.search({ text: words, limit: perPage });
  const back = html`<a href="/threads">Show all</a>`;
  if (hits.length === 0) return empty('No matches', 'All words must occur in the same turn. Prefixes match.', back);
  const entries = hits.map(({ thread, seq, snippet }) => {
    const place = html`<p class="snippet">${highlighted(line(snippet, 400), words)} <a href="/threads/${thread.id}?from=${pageStart(seq)}&amp;q=${encodeURIComponent(words)}#turn-${seq}">turn ${seq}</a></p>`;
    return entry(thread, now, place);
  });
  return html`<p>${plural(hits.length, 'thread')}${hits.length === perPage && ' or more'} with “${line(words)}”. ${back}</p><ul class="threads">${entries}</ul>`;
}

export const turnsPerPage = 20;

const pageStart = (seq: number): number => Math.floor((Math.max(1, seq) - 1) / turnsPerPage) * turnsPerPage + 1;

function entry(head: ThreadHead, now: number, more: Child = undefined): Markup {
  const { id, title, toolName, workspace, seq, totals, updatedAt, parent } = head;
  return html`<li class="card"><h2><a class="bidi" href="/threads/${id}">${line(title, 120) || 'Untitled'}</a></h2>
<p class="soft small"><span class="tag">${line(toolName, 60)}</span> ${plural(seq, 'turn')} ${totals.tokens > 0 && `· ${amount(totals.tokens)} tokens `}${totals.costUsd > 0 && `· ${dollars(totals.costUsd)} `}· ${ago(updatedAt, now)} · <span class="bidi">${line(lastPart(workspace), 60)}</span>${parent && ' · a fork'}</p>${more}</li>`;
}

export const lastPart = (path: string): string => path.split(/[\\/]/).findLast(part => part !== '') ?? path;

const maxTurnChars = 20_000;

const maxDiffChars = 8_000;

const shownDiffs = 6;

/** A thread's turns from `from` on, a page of them. */
export async function threadPage(visit: Visit, threads: ThreadsData, thread: Thread): Promise<Page> {
  const first = thread.turns[0]?.seq ?? 1;
  const from = Math.max(first, Math.floor(Number(visit.url.searchParams.get('from') ?? first)) || first);
  const turns = thread.turns.filter(({ seq }) => seq >= from).slice(0, turnsPerPage);
  const shown = await Promise.all(turns.map(turn => turnPart(visit, threads, thread, turn)));
  const pages = turnPager(thread, from);
  const exportLinks = html`<span class="soft small">Export as</span>${exportForms.map(name => html`<a class="button" href="/threads/${thread.id}/export?format=${name}" download>${formNames[name]}</a>`)}`;
  const branches = (await threads.list({ limit: maxBranches })).filter(({ parent }) => parent?.thread === thread.id);
  return {
    title: line(thread.title, 80) || 'Thread',
    place: '/threads',
    body: html`<p class="small"><a href="/threads">← Threads</a></p>
<h1 class="bidi">${line(thread.title, 200) || 'Untitled'}</h1>
${head(thread, visit.now, branches)}
<div class="row actions">${exportLinks}${threads.change && removal(visit, thread)}</div>
${pages}${shown.length > 0 ? shown : html`<p class="soft">No turns on this page.</p>`}${pages}`,
  };
}

/** Forks of a thread are looked for among the newest threads. */
const maxBranches = 200;

function head(thread: Thread, now: number, branches: readonly ThreadHead[]): Markup {
  const { id, toolName, workspace, totals, turns, createdAt, updatedAt, expiresAt, parent } = thread;
  const panels = turns.some(({ modelMetadata }) => modelMetadata?.voices);
  const fork = (each: ThreadHead) =>
    html`<a class="bidi" href="/threads/${each.id}">${line(each.title, 80)}</a> (${comparison(id, each.id)}) `;
  return facts([
    ['continuation_id', html`<code>${id}</code>`],
    ['Started with', line(toolName, 60)],
    ['Project', html`<span class="bidi" title="${line(workspace)}">${line(lastPart(workspace), 60)}</span>`],
    ['Turns', amount(turns.length)],
    ['Tokens', amount(totals.tokens)],
    ['Cost', dollars(totals.costUsd)],
    ['Started', ago(createdAt, now)],
    ['Last used', ago(updatedAt, now)],
    ['Expires', ahead(expiresAt, now)],
    parent && [
      'Forked from',
      html`<a href="/threads/${parent.thread}">turn ${parent.seq} of another</a> (${comparison(thread.id, parent.thread)})`,
    ],
    branches.length > 0 && ['Forks', branches.map(fork)],
    panels && ['Consensus', html`<a href="/threads/${id}/verdicts">Compare verdicts</a>`],
  ]);
}

const comparison = (id: string, other: string): Markup => html`<a href="/threads/${id}/compare/${other}">compare</a>`;

/** Two threads that began as one: what each went on with, side by side. */
export function comparePage({ data, now }: Visit, thread: Thread, other: Thread): Page {
  const ends = thread.turns.findIndex((turn, index) => other.turns[index]?.exchange !== turn.exchange);
  const shared = ends < 0 ? thread.turns.length : ends;
  const part = ({ id, title, turns }: Thread) => {
    const shown = turns.slice(shared).map(turn => {
      const { text, note } = cutTo(turn.content, maxTurnChars, `/threads/${id}/turns/${turn.seq}`);
      return html`<article class="turn card ${turn.role}"><header><h3>${turn.seq}. ${speaker(turn)}</h3><span class="soft">${numbers(turn, now)}</span></header>${renderMarkdown(data.segments, text)}${note}</article>`;
    });
    return html`<section aria-label="${line(title, 80)}"><h2><a class="bidi" href="/threads/${id}">${line(title, 120) || 'Untitled'}</a></h2>${shown.length > 0 ? shown : html`<p class="soft">Nothing follows here.</p>`}</section>`;
  };
  return {
    title: 'Two branches',
    place: '/threads',
    body: html`<p class="small"><a href="/threads/${thread.id}">← Thread</a></p><h1>Two branches</h1><p class="lede">${plural(shared, 'turn')} in common; then:</p><div class="columns">${part(thread)}${part(other)}</div>`,
  };
}

const formNames = { md: 'Markdown', html: 'web page', jsonl: 'JSONL' } as const;

function removal(visit: Visit, { id, turns }: Thread): Markup {
  const sure = html`<p><label><input type="checkbox" name="sure" value="yes" required> Yes, permanently delete all ${plural(turns.length, 'turn')}</label></p><button class="danger">Delete this thread</button>`;
  return html`<details><summary class="button">Delete …</summary><div class="card">${form(visit, `/threads/${id}/delete`, sure)}</div></details>`;
}

function turnPager({ id, turns }: Thread, from: number): Child {
  if (turns.length <= turnsPerPage) return undefined;
  const first = turns[0]?.seq ?? 1;
  const last = turns.at(-1)?.seq ?? 1;
  const to = Math.min(last, from + turnsPerPage - 1);
  const address = (seq: number) => `/threads/${id}?from=${seq}`;
  return html`<p class="row pager">${from > first && html`<a class="button" href="${address(Math.max(first, from - turnsPerPage))}">Earlier turns</a>`}<span class="soft">Turns ${from} to ${to} of ${last}</span>${to < last && html`<a class="button" href="${address(to + 1)}">Later turns</a>`}</p>`;
}

export async function turnPage(visit: Visit, threads: ThreadsData, thread: Thread, turn: StoredTurn): Promise<Page> {
  return {
    title: `Turn ${turn.seq}`,
    place: '/threads',
    body: html`<p class="small"><a class="bidi" href="/threads/${thread.id}?from=${turn.seq}#turn-${turn.seq}">← ${line(thread.title, 80) || 'Thread'}</a></p>
<h1>Turn ${turn.seq}</h1>${await turnPart(visit, threads, thread, turn, Number.POSITIVE_INFINITY)}`,
  };
}

async function turnPart(visit: Visit, threads: ThreadsData, thread: Thread, turn: StoredTurn, limit = maxTurnChars) {
  const address = `/threads/${thread.id}/turns/${turn.seq}`;
  const { text, note } = cutTo(turn.content, limit, address);
  return html`<article class="turn card ${turn.role}" id="turn-${turn.seq}" aria-labelledby="name-${turn.seq}">
<header><h2 id="name-${turn.seq}">${turn.seq}. ${speaker(turn)}</h2>${turn.status !== 'done' && pill(turn.status === 'failed' ? 'bad' : 'warn', turn.status)}<span class="soft">${numbers(turn, visit.now)}</span></header>
${renderMarkdown(visit.data.segments, text, filterIn(visit.url, 'q'))}${note}
${turn.modelMetadata?.voices && html`<p class="small"><a href="/threads/${thread.id}/verdicts#panel-${turn.seq}">Compare verdicts</a></p>`}
${toolCalls(turn.modelMetadata?.toolCalls)}${await files(threads, thread, turn)}${images(turn, address)}${sources(turn.citations)}
${threads.change && endsExchange(thread, turn) && form(visit, `/threads/${thread.id}/fork`, html`<input type="hidden" name="turn" value="${turn.seq}"><button class="quiet small" aria-label="Fork from here, turn ${turn.seq}">Fork from here</button>`, 'fork')}
</article>\n`;
}

function speaker({ role, toolName, modelProvider, modelName }: StoredTurn): string {
  if (role === 'user') return `You, with ${line(toolName, 60)}`;
  return line(modelName === undefined ? toolName : `${modelProvider}:${modelName}`, 120);
}

function numbers({ timestamp, modelMetadata: known }: StoredTurn, now: number): Child {
  const facts = [
    known?.latencyMs !== undefined && duration(known.latencyMs),
    known?.usage && `${amount(known.usage.input)} in, ${amount(known.usage.output)} out`,
    known?.usage && known.usage.cacheRead > 0 && `${amount(known.usage.cacheRead)} from cache`,
    known?.costUsd !== undefined && dollars(known.costUsd),
    known?.effort !== undefined && `effort ${line(known.effort, 20)}`,
  ].filter(Boolean);
  return [ago(timestamp, now), facts.length > 0 && ` · ${facts.join(' · ')}`];
}

/** What a run of the agent did, with what the user decided. */
const toolCalls = (calls: ModelMetadata['toolCalls'] = []): Child =>
  calls.length > 0 &&
  html`<ol class="files" aria-label="Tool calls">${calls.map(({ name, args, outcome, approval, reason }) => html`<li>${pill(outcome === 'ok' ? 'good' : 'bad', outcome)} <code>${line(name, 80)}</code>${approval !== undefined && html` <span class="tag">you decided: ${line(approval, 80)}</span>`} <code class="small soft bidi">${line(args, 300)}</code>${reason !== undefined && html` <span class="soft bidi">${line(reason, 300)}</span>`}</li>`)}</ol>`;

async function files(threads: ThreadsData, thread: Thread, turn: StoredTurn): Promise<Child> {
  if (turn.files.length === 0) return undefined;
  const diffs = turn.files.flatMap(({ form: kind }, index) => (kind === 'diff' ? [index] : [])).slice(0, shownDiffs);
  const items = turn.files.map(async (file, index) => {
    const address = `/threads/${thread.id}/turns/${turn.seq}/files/${index}`;
    const name = html`<code class="bidi">${line(within(thread.workspace, file.path))}</code>`;
    if (diffs.includes(index)) {
      const view = await threads.file(file);
      return html`<li><a href="${address}">${name}</a> <span class="tag">diff</span>${fileText(view, maxDiffChars, address)}</li>`;
    }
    const isShown = file.shown !== undefined || file.base !== undefined;
    const extent = file.range
      ? `lines ${file.range.from}–${file.range.to} of ${file.lines}`
      : plural(file.lines, 'line');
    return html`<li>${isShown ? html`<a href="${address}">${name}</a>` : name} <span class="tag">${file.form}</span> <span class="soft">${file.form !== 'deleted' && extent}</span></li>`;
  });
  return html`<ul class="files" aria-label="Files of turn ${turn.seq}">${await Promise.all(items)}</ul>`;
}

/** A path as it is within its project, where it is in there. */
function within(workspace: string, path: string): string {
  const isInside = workspace !== '' && path.startsWith(workspace) && /^[\\/]./.test(path.slice(workspace.length));
  return isInside ? path.slice(workspace.length + 1) : path;
}

function fileText({ text, language }: FileView, maxLength: number, rest: string): Child {
  if (text === undefined) return html`<p class="soft">Its text is no longer in the store.</p>`;
  const cut = cutTo(text, maxLength, rest);
  return [codeBlock(cut.text, language), cut.note];
}

const maxFileChars = 2_000_000;

export function filePage(thread: Thread, seq: number, view: FileView): Page {
  const back = `/threads/${thread.id}?from=${seq}#turn-${seq}`;
  return {
    title: line(lastPart(view.path), 80),
    place: '/threads',
    body: html`<p class="small"><a href="${back}">← Turn ${seq}</a></p><h1 class="bidi">${line(lastPart(view.path), 120)}</h1>
<p class="lede"><code class="bidi">${line(view.path)}</code> · ${view.extent}</p>${fileText(view, maxFileChars, `/threads/${thread.id}/export?format=jsonl`)}`,
  };
}

const images = ({ images: list, seq }: StoredTurn, address: string): Child =>
  list.map(
    ({ source }, index) =>
      html`<p class="small"><a href="${address}/images/${index}">Image ${index + 1} of turn ${seq}</a> <code class="bidi">${line(source.startsWith('data:') ? 'sent in the call' : source, 200)}</code></p>`,
  );

import { escapeHtml, printablePath, safeCut } from '../../core/text.ts';

const inside = Symbol('markup');

/** HTML that may stand in a page as it is. Only this file makes it, so that nothing read from anywhere passes for it. */
export interface Markup {
  readonly [inside]: string;
}

/** What may stand in a hole of a template; text is escaped, lists stand one after the other. */
export type Child = Markup | string | number | undefined | false | readonly Child[];

/** HTML whose holes can become no markup in an element or a quoted attribute; holes elsewhere are not for what others wrote. */
export function html(strings: TemplateStringsArray, ...children: readonly Child[]): Markup {
  return { [inside]: strings.reduce((text, next, index) => text + rendered(children[index - 1]) + next) };
}

export const htmlText = (markup: Markup): string => markup[inside];

function rendered(child: Child): string {
  if (child === undefined || child === false) return '';
  if (typeof child === 'string') return escapeHtml(child);
  if (typeof child === 'number') return String(child);
  return inside in child ? child[inside] : child.map(rendered).join('');
}

/** A number and its unit stay on one line. */
const nbsp = '\u00a0';

/** 12, 1,234, 56.7 k, 8.9 M. */
export function amount(value: number): string {
  const rounded = Math.round(value);
  if (rounded < 10_000) return rounded.toLocaleString('en-US');
  return rounded < 1_000_000
    ? `${(rounded / 1_000).toFixed(1)}${nbsp}k`
    : `${(rounded / 1_000_000).toFixed(1)}${nbsp}M`;
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}${nbsp}ms`;
  const seconds = ms / 1_000;
  if (seconds < 60) return `${seconds.toFixed(1)}${nbsp}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}${nbsp}min ${Math.floor(seconds % 60)}${nbsp}s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}${nbsp}h ${minutes % 60}${nbsp}min` : `${Math.floor(hours / 24)}${nbsp}days`;
}

/** A point in time, by how long ago it is, with the whole of it for who points at it. */
export function ago(at: number, now: number): Markup {
  const ms = now - at;
  return moment(at, ms < 5_000 ? 'just now' : `${briefly(ms)} ago`);
}

/** The same for what is to come. */
export const ahead = (at: number, now: number): Markup => moment(at, at <= now ? 'over' : `in ${briefly(at - now)}`);

/** In UTC; the script puts the reader's own time there. */
export const clockTime = (at: number): Markup => moment(at, `${iso(at).slice(0, 16).replace('T', ' ')} UTC`, true);

function moment(at: number, words: string, isLocal = false): Markup {
  const whole = iso(at);
  return html`<time datetime="${whole}"${isLocal && html` data-local`} title="${whole.slice(0, 19).replace('T', ' ')} UTC">${words}</time>`;
}

/** Times out of files may be anything. */
function iso(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? '1970-01-01T00:00:00.000Z' : date.toISOString();
}

function briefly(ms: number): string {
  const minutes = ms / 60_000;
  if (minutes < 1) return `${Math.round(ms / 1_000)}${nbsp}s`;
  if (minutes < 60) return `${Math.round(minutes)}${nbsp}min`;
  const hours = minutes / 60;
  return hours < 48 ? `${Math.round(hours)}${nbsp}h` : `${Math.round(hours / 24)}${nbsp}days`;
}

/** Somebody else's words on one line: no line break or right-to-left mark in them does anything to what stands around. */
export function line(text: string, maxLength = 300): string {
  const flat = printablePath(
    safeCut(text, maxLength * 2)
      .replace(/\s+/g, ' ')
      .trim(),
  );
  return flat.length > maxLength ? `${safeCut(flat, maxLength)}…` : flat;
}

/** A text in which words that were searched for stand out. */
export function highlighted(text: string, words: string): Child {
  const wanted = words.split(/\s+/).filter(word => word !== '');
  if (wanted.length === 0) return text;
  const pattern = new RegExp(`(${wanted.map(word => word.replace(/[^\p{L}\p{N}]/gu, '\\$&')).join('|')})`, 'gi');
  return text.split(pattern).map((piece, index) => (index % 2 === 1 ? html`<mark>${piece}</mark>` : piece));
}

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${amount(count)} ${count === 1 ? one : many}`;

export function facts(entries: readonly (readonly [string, Child] | undefined | false)[]): Markup {
  const shown = entries.filter(entry => entry !== undefined && entry !== false);
  return html`<dl class="facts">${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

export type Tone = 'good' | 'bad' | 'warn' | 'plain' | 'busy';

/** A state in a word. The tone is in the sign too, not in the colour alone. */
export const pill = (tone: Tone, word: string): Markup =>
  html`<span class="pill ${tone}"><span aria-hidden="true">${signs[tone]}</span> ${word}</span>`;

const signs: Readonly<Record<Tone, string>> = { good: '✓', bad: '✕', warn: '!', plain: '·', busy: '●' };

/** A table that scrolls by itself where it has no room, by keyboard too. On a telephone each row is a card; roles keep it a table. */
export function table(label: string, heads: readonly string[], rows: readonly (readonly Child[])[]): Markup {
  const cell = (value: Child, index: number) =>
    html`<td role="cell"${value === '–' && html` class="none"`} data-label="${heads[index]}"><div>${value}</div></td>`;
  return html`<div class="scroll" role="region" aria-label="${label}" tabindex="0"><table role="table">
<thead role="rowgroup"><tr role="row">${heads.map(head => html`<th scope="col" role="columnheader">${head}</th>`)}</tr></thead>
<tbody role="rowgroup">${rows.map(row => html`<tr role="row">${row.map(cell)}</tr>\n`)}</tbody>
</table></div>`;
}

/** One thing by which a list is narrowed down: `words` are any, `choices` the only ones. */
export interface Filter {
  name: string;
  words?: readonly string[];
  choices?: readonly string[];
}

/** Searches this page's list; what is typed and chosen stands in its address. */
export function filterForm(url: URL, placeholder: string, filters: readonly Filter[]): Markup {
  const field = ({ name, words = [], choices }: Filter) =>
    choices
      ? html`<select name="${name}" aria-label="${name}"><option value="">any ${name}</option>${choices.map(each => html`<option${each === filterIn(url, name) && html` selected`}>${each}</option>`)}</select>`
      : html`<input type="text" name="${name}" value="${filterIn(url, name)}" aria-label="${name}" placeholder="${name}" list="of-${name}"><datalist id="of-${name}">${words.map(word => html`<option value="${word}">`)}</datalist>`;
  return html`<form class="search" role="search" action="${url.pathname}"><input type="search" name="q" value="${filterIn(url, 'q')}" aria-label="${placeholder}" placeholder="${placeholder}" autocomplete="off">${filters.map(field)}<button>Search</button></form>`;
}

/** What an address says of one of these; empty where it says nothing. */
export const filterIn = ({ searchParams }: URL, name: string): string => (searchParams.get(name) ?? '').slice(0, 300);

/** The way to the next page of a list, and back to its beginning, with the filters as they are. */
export function pager({ pathname, searchParams }: URL, next: Readonly<Record<string, string>> | undefined): Child {
  const at = (cursor: Readonly<Record<string, string>>) => {
    const kept = [...searchParams].filter(([name, value]) => value !== '' && !cursors.has(name));
    const query = new URLSearchParams([...kept, ...Object.entries(cursor)]).toString();
    return query === '' ? pathname : `${pathname}?${query}`;
  };
  const isLater = [...searchParams.keys()].some(name => cursors.has(name));
  return html`<p class="row">${isLater && html`<a class="button" href="${at({})}">Newest</a>`}${next && html`<a class="button" href="${at(next)}">Older</a>`}</p>`;
}

const cursors = new Set(['page', 'before']);

/** What a place without content says: why it is empty, and what would fill it. */
export const empty = (title: string, ...lines: readonly Child[]): Markup =>
  html`<div class="empty"><p class="lead">${title}</p>${lines.map(each => html`<p>${each}</p>`)}</div>`;

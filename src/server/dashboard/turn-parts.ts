import { safeCut } from '../../core/text.ts';
import type { Citation } from '../../core/thread.ts';
import type { DashboardData } from './data.ts';
import { amount, type Child, html, line, type Markup } from './html.ts';

/** Markdown as it reads best without being trusted: headings, bold words and code are shown as such, nothing becomes a link or a picture. */
export function said(stretches: DashboardData['stretches'], markdown: string): Markup {
  return html`${stretches(markdown).map(({ language, text }) =>
    language === undefined ? html`<div class="said">${running(text.trim())}</div>` : codeBlock(text, language),
  )}`;
}

/** The beginning of a long text, and the way to the rest. */
export function cutTo(text: string, maxLength: number, rest: string): { text: string; note: Child } {
  if (text.length <= maxLength) return { text, note: undefined };
  const shown = safeCut(text, maxLength);
  return {
    text: shown,
    note: html`<p class="soft small">${amount(text.length - shown.length)} more characters. <a href="${rest}">Show all of it</a></p>`,
  };
}

export function codeBlock(text: string, language = ''): Markup {
  const inner: Child = language === 'diff' ? text.split('\n').map(diffLine) : text;
  // A line break right behind the tag is dropped by the browser, so that one is put there.
  return html`<pre tabindex="0" aria-label="${language === '' ? 'Code' : `Code, ${line(language, 30)}`}" role="group">
<code>${inner}</code></pre>`;
}

/** Headings and points stand on lines of their own; the other lines break where they were broken. */
function running(text: string): Child {
  const lines = text.split('\n').map(lineOf);
  return lines.map((each, index) => {
    const before = lines[index - 1]?.kind;
    const isBetween = (before === 'text' || before === 'item') && lines[index + 1]?.kind !== 'head';
    if (each.kind === 'gap') return isBetween && html`<span class="gap"></span>`;
    if (each.kind === 'text') return [before === 'text' && '\n', inline(each.text)];
    return html`<span class="${each.kind}">${inline(each.text)}</span>`;
  });
}

function lineOf(text: string): { kind: 'head' | 'item' | 'gap' | 'text'; text: string } {
  if (text.trim() === '') return { kind: 'gap', text: '' };
  const head = /^#{1,6} +(?=\S)/.exec(text)?.[0];
  if (head !== undefined) return { kind: 'head', text: text.slice(head.length) };
  const item = /^ {0,12}[-*] +(?=\S)/.exec(text)?.[0];
  return item === undefined ? { kind: 'text', text } : { kind: 'item', text: text.slice(item.length) };
}

const marked = /`([^`\n]+)`|\*\*([^*\n]+)\*\*/g;

function inline(text: string): Child {
  const pieces: Child[] = [];
  let at = 0;
  for (const match of text.matchAll(marked)) {
    const [whole, code, bold = ''] = match;
    pieces.push(
      text.slice(at, match.index),
      code === undefined ? html`<strong>${bold}</strong>` : html`<code>${code}</code>`,
    );
    at = match.index + whole.length;
  }
  return [...pieces, text.slice(at)];
}

function diffLine(text: string): Child {
  const kind = /^(\+(?!\+\+ )|-(?!-- )|@@)/.exec(text)?.[0];
  if (kind === undefined) return [text, '\n'];
  return [html`<span class="${kind === '+' ? 'add' : kind === '-' ? 'cut' : 'hunk'}">${text}</span>`, '\n'];
}

/** What a model says it read. Only addresses of the web become links, and the reader sees where they lead. */
export function sources(citations: readonly Citation[]): Child {
  if (citations.length === 0) return undefined;
  const items = citations.map(({ title, url, date, snippet }) => {
    const address = webAddress(url);
    const name = line(title, 200) || line(url, 200);
    const shown = address
      ? html`<a href="${address.href}" rel="noopener noreferrer nofollow external">${name}</a> <span class="soft">(${line(address.host, 100)})</span>`
      : html`<span class="bidi">${name}</span>`;
    return html`<li>${shown}${date !== undefined && html` <span class="soft">${line(date, 40)}</span>`}${snippet !== undefined && html`<div class="soft small bidi">${line(snippet, 240)}</div>`}</li>`;
  });
  return html`<div class="sources"><strong>Sources</strong><ol>${items}</ol></div>`;
}

function webAddress(text: string): URL | undefined {
  const url = URL.parse(text);
  return url && (url.protocol === 'https:' || url.protocol === 'http:') ? url : undefined;
}

import { safeCut } from '../../core/text.ts';
import type { Citation } from '../../core/thread.ts';
import type { DashboardData } from './data.ts';
import { amount, type Child, highlighted, html, line, type Markup } from './html.ts';

/** Markdown as it reads best without being trusted: headings, bold words and code are shown as such, nothing becomes a link or a picture. */
export const renderMarkdown = (segments: DashboardData['segments'], markdown: string, words = ''): Markup =>
  html`${segments(markdown).map(({ language, text }) =>
    language === undefined ? html`<div class="said">${running(text.trim(), words)}</div>` : codeBlock(text, language),
  )}`;

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
  const inner: Child = language === 'diff' ? sideBySide(text) : text;
  // A line break right behind the tag is dropped by the browser, so that one is put there.
  return html`<pre${language === 'diff' && html` class="diff"`} tabindex="0" aria-label="${language === '' ? 'Code' : `Code, ${line(language, 30)}`}" role="group">
<code>${inner}</code></pre>`;
}

/** Headings and points stand on lines of their own; the other lines break where they were broken. */
function running(text: string, words: string): Child {
  const lines = text.split('\n').map(lineOf);
  return lines.map((each, index) => {
    const before = lines[index - 1]?.kind;
    const isBetween = (before === 'text' || before === 'item') && lines[index + 1]?.kind !== 'head';
    if (each.kind === 'gap') return isBetween && html`<span class="gap"></span>`;
    if (each.kind === 'text') return [before === 'text' && '\n', inline(each.text, words)];
    return html`<span class="${each.kind}">${inline(each.text, words)}</span>`;
  });
}

function lineOf(text: string): { kind: 'head' | 'item' | 'gap' | 'text'; text: string } {
  if (text.trim() === '') return { kind: 'gap', text: '' };
  const head = /^#{1,6} +(?=\S)/.exec(text)?.[0];
  if (head !== undefined) return { kind: 'head', text: text.slice(head.length) };
  const item = /^ {0,12}[-*] +(?=\S)/.exec(text)?.[0];
  return item === undefined ? { kind: 'text', text } : { kind: 'item', text: text.slice(item.length) };
}

const marked = /`([^`\n]+)`|\*\*([^*\n]+)\*\*/;

function inline(text: string, words: string): Child {
  // Again and again: running text, then code or undefined, then bold words or undefined.
  return text.split(marked).map((piece: string | undefined, index) => {
    const shown = piece && highlighted(piece, words);
    if (!shown || index % 3 === 0) return shown;
    return index % 3 === 1 ? html`<code>${shown}</code>` : html`<strong>${shown}</strong>`;
  });
}

/** The two lines that name a file of a patch; those of a change can look like either. */
const fileHead = /^--- .*\n\+\+\+ .*\n@@/;

/** What was on the left, what is on the right; lines that stayed stand on both sides. */
function sideBySide(text: string): Child {
  const rows: Child[] = [];
  let [cut, added]: [string[], string[]] = [[], []];
  const pair = (left: Child, right: Child) => rows.push(html`<span class="pair">${left}${right}</span>`);
  const flush = () => {
    for (let at = 0; at < Math.max(cut.length, added.length); at++) pair(side('cut', cut[at]), side('add', added[at]));
    [cut, added] = [[], []];
  };
  const lines = text.split('\n');
  for (const [at, each] of lines.entries()) {
    const isHead = [at, Math.max(0, at - 1)].some(from => fileHead.test(lines.slice(from, from + 3).join('\n')));
    const kind = isHead ? undefined : /^(?:[+-]|@@)/.exec(each)?.[0];
    if (kind === '-') cut.push(each);
    else if (kind === '+') added.push(each);
    else {
      flush();
      if (kind) rows.push(side('hunk', each));
      else pair(side('same', each), html`<span class="same twin" aria-hidden="true">${each}</span>`);
    }
  }
  flush();
  return rows;
}

const side = (kind: string, text: string | undefined): Markup =>
  html`<span class="${text === undefined ? 'void' : kind}">${text}</span>`;

/** What a model says it read. Only addresses of the web become links, and the reader sees where they lead. */
export function sources(citations: readonly Citation[]): Child {
  if (citations.length === 0) return undefined;
  const items = citations.map(({ title, url, date, snippet }) => {
    const address = URL.parse(url);
    const name = line(title, 200) || line(url, 200);
    const isOfWeb = address?.protocol === 'https:' || address?.protocol === 'http:';
    const shown = isOfWeb
      ? html`<a href="${address.href}" rel="noopener noreferrer nofollow external">${name}</a> <span class="soft">(${line(address.host, 100)})</span>`
      : html`<span class="bidi">${name}</span>`;
    return html`<li>${shown}${date !== undefined && html` <span class="soft">${line(date, 40)}</span>`}${snippet !== undefined && html`<div class="soft small bidi">${line(snippet, 240)}</div>`}</li>`;
  });
  return html`<div class="sources"><strong>Sources</strong><ol>${items}</ol></div>`;
}

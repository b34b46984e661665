import { hash } from 'node:crypto';
import { escapeHtml, printablePath, safeCut } from '../../core/text.ts';
import type { Citation, ImageRecord, Thread } from '../../core/thread.ts';
import type { Exported, ReadBlob } from './export-jsonl.ts';
import { factsOf, minuteOf, shownFile, speakerOf, splitFences } from './readable.ts';

const style = `
:root { color-scheme: light dark; --ink: #1c2126; --soft: #5b6570; --paper: #fff; --tint: #f3f5f7; --line: #d5dae0; --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e7eb; --soft: #9aa5b1; --paper: #15191d; --tint: #1e242a; --line: #39424c; --link: #7db7f5; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 56rem; background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 0; overflow-wrap: anywhere; }
a { color: var(--link); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
nav ol { list-style: none; padding: 0; columns: 20rem; }
nav a { display: block; text-decoration: none; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
article { margin-top: 1.5rem; padding: 1rem 1.25rem; border: 1px solid var(--line); border-radius: .5rem; }
article.user { background: var(--tint); }
article > p.when { margin: 0 0 .75rem; color: var(--soft); font-size: .85rem; }
.said { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid var(--line); border-radius: .35rem; background: var(--paper); tab-size: 2; }
code { font: .875em/1.5 ui-monospace, monospace; }
details { margin-top: .75rem; }
summary { cursor: pointer; color: var(--soft); overflow-wrap: anywhere; }
img { max-width: 100%; }
@media print { details > * { display: block; } article { break-inside: avoid; } }
`;

/** The styles are let in by their hash, pictures by their data; nothing else, wherever the file is opened. */
const policy = `default-src 'none'; style-src 'sha256-${hash('sha256', style, 'base64')}'; img-src data:; base-uri 'none'; form-action 'none'`;

/** The beginning of a page, up to and with the opening of its body. */
export const pageHead = (title: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head>
<body>
`;

const shownInContents = 70;

const pictures = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

/** A thread to read, as one HTML file that loads nothing and runs nothing; in pieces. */
export async function* exportHtml({ thread, blob }: Exported): AsyncGenerator<string> {
  const title = printablePath(thread.title) || 'Thread';
  const facts = factsOf(thread).map(([name, value]) => `<dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd>`);
  yield `${pageHead(title)}<header>\n<h1>${escapeHtml(title)}</h1>\n<dl>${facts.join('')}</dl>\n</header>\n${contents(thread)}<main>\n`;
  for (const turn of thread.turns) {
    const { seq, role, timestamp, content } = turn;
    yield `<article class="${role}" id="turn-${seq}">\n<h2><a href="#turn-${seq}">${seq}.</a> ${escapeHtml(speakerOf(turn))}</h2>\n`;
    yield `<p class="when">${minuteOf(timestamp)}</p>\n${splitFences(content)
      .map(({ language, text }) =>
        language === undefined ? `<div class="said">${inline(text.trim())}</div>\n` : code(text),
      )
      .join('')}`;
    for (const file of turn.files) {
      const { path, extent, text } = await shownFile(file, blob);
      const name = `<code>${escapeHtml(path)}</code> (${escapeHtml(extent)})`;
      yield text === undefined
        ? `<p>File ${name}</p>\n`
        : `<details>\n<summary>File ${name}</summary>\n${code(text)}</details>\n`;
    }
    for (const image of turn.images) yield await picture(image, blob);
    yield `${sources(turn.citations)}</article>\n`;
  }
  yield '</main>\n</body>\n</html>\n';
}

function contents({ turns }: Thread): string {
  const entries = turns.map(turn => {
    const words = safeCut(printablePath(turn.content.slice(0, 400).replace(/\s+/g, ' ').trim()), shownInContents);
    return `<li><a href="#turn-${turn.seq}">${turn.seq}. ${escapeHtml(speakerOf(turn))}: ${escapeHtml(words)}</a></li>`;
  });
  return `<nav aria-label="Turns">\n<ol>\n${entries.join('\n')}\n</ol>\n</nav>\n`;
}

/** Running text, with what stands between backticks as code. */
const inline = (text: string): string => escapeHtml(text).replace(/`([^`\n]+)`/g, '<code>$1</code>');

function code(text: string): string {
  // A line break right behind the tag is dropped by the reader, so that one is put there.
  return `<pre><code>${escapeHtml(text)}</code></pre>\n`;
}

async function picture({ source, mediaType, blob: hash }: ImageRecord, blob: ReadBlob): Promise<string> {
  const name = escapeHtml(printablePath(source));
  const data = pictures.includes(mediaType) ? await blob(hash) : undefined;
  if (data === undefined || !/^[A-Za-z0-9+/=]*$/.test(data)) return `<p>Image <code>${name}</code></p>\n`;
  return `<figure><img src="data:${mediaType};base64,${data}" alt="${name}"></figure>\n`;
}

function sources(citations: readonly Citation[]): string {
  if (citations.length === 0) return '';
  const list = citations.map(({ title, url }) => {
    const name = escapeHtml(printablePath(title) || printablePath(url));
    return /^https?:\/\//i.test(url)
      ? `<li><a href="${escapeHtml(url)}" rel="noopener noreferrer nofollow external">${name}</a></li>`
      : `<li>${name}</li>`;
  });
  return `<p>Sources</p>\n<ul>\n${list.join('\n')}\n</ul>\n`;
}

import { escapeHtml, printablePath, safeCut } from '../../core/text.ts';
import type { Citation, ImageRecord, StoredTurn, Thread } from '../../core/thread.ts';
import { splitFences } from '../../memory/transfer/readable/fences.ts';
import { pageHead } from '../../memory/transfer/readable/html-page.ts';
import type { Exported, ReadBlob } from './export-jsonl.ts';
import { factsOf, minuteOf, shownFile, speakerOf } from './readable.ts';

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
    yield `<p class="when">${minuteOf(timestamp)}</p>\n${said(content)}`;
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

function said(content: StoredTurn['content']): string {
  return splitFences(content)
    .map(({ language, text }) =>
      language === undefined ? `<div class="said">${inline(text.trim())}</div>\n` : code(text),
    )
    .join('');
}

/** Running text, with what stands between backticks as code. */
function inline(text: string): string {
  return escapeHtml(text).replace(/`([^`\n]+)`/g, '<code>$1</code>');
}

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

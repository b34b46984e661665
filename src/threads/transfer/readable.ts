import { hash } from 'node:crypto';
import type { FileRecord, FileView } from '../../core/file.ts';
import { escapeHtml, linesBetween, printablePath, safeCut } from '../../core/text.ts';
import type { Citation, ImageRecord, Segment, StoredTurn, Thread } from '../../core/thread.ts';
import { usdText } from '../../core/usage.ts';
import { shownBlob } from '../transcript.ts';
import type { Exported, ReadBlob } from './export-jsonl.ts';

const opening = /^ {0,3}(`{3,}|~{3,})/;

/** The fence that a line opens, and the word behind it. Each sign is looked at once: lines may be as long as anybody likes. */
function openingIn(line: string) {
  const [begin = '', fence] = opening.exec(line) ?? [];
  if (fence === undefined) return undefined;
  const info = line.slice(begin.length);
  // Backticks behind backticks are code within a line.
  if (fence.startsWith('`') && info.includes('`')) return undefined;
  return { fence, language: info.trim().split(/\s/, 1)[0] ?? '' };
}

/** Takes fenced code out of Markdown. A fence that nobody closed goes to the end. */
export function splitFences(markdown: string): Segment[] {
  const found: Segment[] = [];
  let lines: string[] = [];
  let open: ReturnType<typeof openingIn>;
  const close = () => {
    const text = lines.join('\n');
    if (open) found.push({ language: open.language, text });
    else if (text.trim() !== '') found.push({ text });
    lines = [];
  };
  for (const line of markdown.split('\n')) {
    const begun = open ? undefined : openingIn(line);
    if (begun) {
      close();
      open = begun;
    } else if (open && closes(line, open.fence)) {
      close();
      open = undefined;
    } else {
      lines.push(line);
    }
  }
  if (open || lines.length > 0) close();
  return found;
}

function closes(line: string, fence: string): boolean {
  const bare = line.trim();
  return bare.length >= fence.length && bare === fence.charAt(0).repeat(bare.length) && /^ {0,3}\S/.test(line);
}

/** A block of code that nothing in `text` can end: its fence is longer than any in it. */
export function fenced(text: string, language = ''): string {
  const fence = '`'.repeat(Math.max(3, longestTicks(text) + 1));
  return `${fence}${language.replace(/[^\w+#.-]/g, '').slice(0, 30)}\n${text.endsWith('\n') || text === '' ? text : `${text}\n`}${fence}`;
}

const longestTicks = (text: string): number => Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));

/** Who speaks, on one line. */
export function speakerOf({ role, toolName, modelProvider, modelName, status }: StoredTurn): string {
  const who = role === 'user' ? 'You' : modelName ? `${modelProvider}:${modelName}` : toolName;
  const how = [toolName, ...(status === 'done' ? [] : [status === 'pending' ? 'unanswered' : status])];
  return printablePath(`${who} (${how.join(', ')})`);
}

export const minuteOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

/** What is known of a thread as a whole: name and value. */
export const factsOf = ({ id, toolName, createdAt, updatedAt, totals, turns, parent }: Thread): [string, string][] => [
  ['Thread', id],
  ['Begun', `${minuteOf(createdAt)} with ${printablePath(toolName)}`],
  ['Last used', minuteOf(updatedAt)],
  ['Turns', String(turns.length)],
  ['Tokens', totals.costUsd > 0 ? `${totals.tokens} (${usdText(totals.costUsd)} USD)` : String(totals.tokens)],
  ...(parent ? [['Forked from', `${parent.thread}, after turn ${parent.seq}`] satisfies [string, string]] : []),
];

const forms: Readonly<Record<string, string>> = {
  deleted: 'deleted',
  unchanged: 'as above',
  changed: 'changed, not shown',
  diff: 'what changed',
};

/** A file as a reader sees it: its name, what of it is shown, and the text where there is one. */
export async function shownFile(file: FileRecord, blob: ReadBlob): Promise<FileView> {
  const { form, lines, range } = file;
  const path = printablePath(file.path);
  const named = { path, language: form === 'diff' ? 'diff' : (/\.([A-Za-z0-9]{1,12})$/.exec(path)?.[1] ?? '') };
  const extent = range ? `lines ${range.from}-${range.to} of ${lines}` : (forms[form] ?? `${lines} lines`);
  const hash = shownBlob(file);
  if (hash === undefined) return { ...named, extent };
  const whole = await blob(hash);
  if (whole === undefined) return { ...named, extent: `${extent}; the text is no longer in the store` };
  const text = range && file.shown === undefined ? linesBetween(whole, range.from, range.to) : whole;
  return { ...named, extent, text };
}

/**
 * Markdown that makes no tags. What is code within its line stays as it is, and so does what is escaped already. A run of
 * backticks without an end in its line may end in a later one: up to the next empty line, nothing counts as code then.
 */
function withoutTags(markdown: string): string {
  let open = false;
  const lines = markdown.split('\n').map(line => {
    if (/^[ \t]*$/.test(line)) open = false;
    const { text, ended } = lineWithoutTags(line, open);
    open ||= !ended;
    return text;
  });
  return lines.join('\n');
}

function lineWithoutTags(line: string, open: boolean): { text: string; ended: boolean } {
  const tokens = /\\|`+|<(?=[A-Za-z/!?])/g;
  const endOf = open ? () => undefined : codeEnds(line);
  let text = '';
  let from = 0;
  let ended = true;
  for (let found = tokens.exec(line); found; found = tokens.exec(line)) {
    const { 0: token, index } = found;
    if (token === '<') {
      text += `${line.slice(from, index)}\\`;
      from = index;
    } else if (token === '\\') {
      // What is escaped is no token.
      tokens.lastIndex = index + 2;
    } else {
      const end = endOf(index, token.length);
      ended &&= end !== undefined;
      tokens.lastIndex = end ?? index + token.length;
    }
  }
  return { text: text + line.slice(from), ended };
}

/** Where code ends that so many backticks begin: behind the next run of as many. Asked from left to right. */
function codeEnds(line: string): (start: number, length: number) => number | undefined {
  const runs = Map.groupBy(line.matchAll(/`+/g), ([run]) => run.length);
  const passed = new Map<number, number>();
  return (start, length) => {
    const same = runs.get(length) ?? [];
    let at = passed.get(length) ?? 0;
    while ((same[at]?.index ?? Number.POSITIVE_INFINITY) <= start) at++;
    passed.set(length, at);
    const next = same[at];
    return next && next.index + length;
  };
}

/** A thread to read, as Markdown; in pieces, one a turn. What was said stands there as Markdown too, and can end nothing of ours. */
export async function* exportMarkdown({ thread, blob }: Exported): AsyncGenerator<string> {
  const facts = factsOf(thread).map(([name, value]) => `- ${name}: ${plain(value)}`);
  yield `# ${plain(printablePath(thread.title) || 'Thread')}\n\n${facts.join('\n')}\n`;
  for (const turn of thread.turns) {
    yield `\n## ${turn.seq}. ${plain(speakerOf(turn))}\n\n${minuteOf(turn.timestamp)}\n\n${contained(turn.content)}\n`;
    for (const file of turn.files) {
      const { path, extent, language, text } = await shownFile(file, blob);
      yield `\n**File** ${codeSpan(path)} (${extent})\n${text === undefined ? '' : `\n${fenced(text, language)}\n`}`;
    }
    yield* notes(turn);
  }
}

function* notes({ images, citations }: StoredTurn): Generator<string> {
  for (const { source, mediaType } of images) yield `\n**Image** ${codeSpan(printablePath(source))} (${mediaType})\n`;
  if (citations.length === 0) return;
  const list = citations.map(({ title, url }) => {
    const name = plain(printablePath(title) || 'source');
    return /^https?:\/\//i.test(url) ? `- [${name}](<${linkTarget(url)}>)` : `- ${name}`;
  });
  yield `\n**Sources**\n\n${list.join('\n')}\n`;
}

/** As it was told, but for what can't stand in a link: escapes that are there already stay. */
const linkTarget = (url: string): string => url.toWellFormed().replace(/[^!#-;=?-[\]_a-z~]/gu, encodeURIComponent);

/** A heading that would pass for a turn of ours. */
const forged = /^( {0,3})(?=##? +\d+\.)/gm;

/** Markdown of somebody else: it makes no tags, and its code stays code to its own end and no further. */
function contained(markdown: string): string {
  // To readers, a carriage return ends a line too.
  return splitFences(markdown.replace(/\r\n?/g, '\n'))
    .map(({ language, text }) =>
      language === undefined ? withoutTags(text).replace(forged, '$1\\') : fenced(text, language),
    )
    .join('\n');
}

/** Text that is no Markdown. */
const plain = (text: string): string => text.replace(/\s+/g, ' ').replace(/[\\`*_[\]<>#|~]/g, '\\$&');

function codeSpan(text: string): string {
  const ticks = '`'.repeat(longestTicks(text) + 1);
  return ticks.length === 1 ? `\`${text}\`` : `${ticks} ${text} ${ticks}`;
}

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
const pageHead = (title: string): string => `<!doctype html>
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

/** Browsers show these, and nothing in them runs. */
export const shownImages = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

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
  const data = shownImages.has(mediaType) ? await blob(hash) : undefined;
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

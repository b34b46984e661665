import { printablePath } from '../../core/text.ts';
import type { StoredTurn } from '../../core/thread.ts';
import type { Exported } from './export-jsonl.ts';
import { factsOf, fenced, minuteOf, shownFile, speakerOf, splitFences } from './readable.ts';

/**
 * Markdown that makes no tags. What is code within its line stays as it is, and so does what is escaped already. A run of
 * backticks without an end in its line may end in a later one: up to the next empty line, nothing counts as code then.
 */
export function withoutTags(markdown: string): string {
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
  const starts = new Map<number, number[]>();
  for (const { 0: run, index } of line.matchAll(/`+/g)) {
    const same = starts.get(run.length);
    if (same) same.push(index);
    else starts.set(run.length, [index]);
  }
  const passed = new Map<number, number>();
  return (start, length) => {
    const same = starts.get(length) ?? [];
    let at = passed.get(length) ?? 0;
    while ((same[at] ?? Number.POSITIVE_INFINITY) <= start) at++;
    passed.set(length, at);
    const next = same[at];
    return next === undefined ? undefined : next + length;
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
    .map(({ language, text }) => (language === undefined ? harmless(text) : fenced(text, language)))
    .join('\n');
}

const harmless = (text: string): string => withoutTags(text).replace(forged, '$1\\');

/** Text that is no Markdown. */
const plain = (text: string): string => text.replace(/\s+/g, ' ').replace(/[\\`*_[\]<>#|~]/g, '\\$&');

function codeSpan(text: string): string {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const ticks = '`'.repeat(longest + 1);
  return longest === 0 ? `${ticks}${text}${ticks}` : `${ticks} ${text} ${ticks}`;
}

import { printablePath } from '../../core/text.ts';
import type { StoredTurn } from '../../core/thread.ts';
import { fenced, splitFences } from '../../memory/transfer/readable/fences.ts';
import { withoutTags } from '../../memory/transfer/readable/no-tags.ts';
import type { Exported } from './export-jsonl.ts';
import { factsOf, minuteOf, shownFile, speakerOf } from './readable.ts';

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
function linkTarget(url: string): string {
  return url.toWellFormed().replace(/[^!#-;=?-[\]_a-z~]/gu, encodeURIComponent);
}

/** A heading that would pass for a turn of ours. */
const forged = /^( {0,3})(?=##? +\d+\.)/gm;
/** Markdown of somebody else: it makes no tags, and its code stays code to its own end and no further. */
function contained(markdown: string): string {
  // To readers, a carriage return ends a line too.
  return splitFences(markdown.replace(/\r\n?/g, '\n'))
    .map(({ language, text }) => (language === undefined ? harmless(text) : fenced(text, language)))
    .join('\n');
}

function harmless(text: string): string {
  return withoutTags(text).replace(forged, '$1\\');
}

/** Text that is no Markdown. */
function plain(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/[\\`*_[\]<>#|~]/g, '\\$&');
}

function codeSpan(text: string): string {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const ticks = '`'.repeat(longest + 1);
  return longest === 0 ? `${ticks}${text}${ticks}` : `${ticks} ${text} ${ticks}`;
}

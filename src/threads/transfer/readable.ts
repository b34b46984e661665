import type { FileRecord, FileView } from '../../core/file.ts';
import { linesBetween, printablePath } from '../../core/text.ts';
import type { StoredTurn, Stretch, Thread } from '../../core/thread.ts';
import { usdText } from '../../core/usage.ts';
import type { ReadBlob } from './export-jsonl.ts';

const opening = /^ {0,3}(`{3,}|~{3,})/;

/** The fence that a line opens, and the word behind it. Each sign is looked at once: lines may be as long as anybody likes. */
function openingIn(line: string): { fence: string; language: string } | undefined {
  const [begin = '', fence] = opening.exec(line) ?? [];
  if (fence === undefined) return undefined;
  const info = line.slice(begin.length);
  // Backticks behind backticks are code within a line.
  if (fence.startsWith('`') && info.includes('`')) return undefined;
  return { fence, language: info.trim().split(/\s/, 1)[0] ?? '' };
}

/** Takes fenced code out of Markdown. A fence that nobody closed goes to the end. */
export function splitFences(markdown: string): Stretch[] {
  const found: Stretch[] = [];
  let lines: string[] = [];
  let open: { fence: string; language: string } | undefined;
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
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language.replace(/[^\w+#.-]/g, '').slice(0, 30)}\n${text.endsWith('\n') || text === '' ? text : `${text}\n`}${fence}`;
}

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
  const hash = form === 'unchanged' || form === 'changed' ? undefined : (file.shown ?? file.base);
  if (hash === undefined) return { ...named, extent };
  const whole = await blob(hash);
  if (whole === undefined) return { ...named, extent: `${extent}; the text is no longer in the store` };
  const text = range && file.shown === undefined ? linesBetween(whole, range.from, range.to) : whole;
  return { ...named, extent, text };
}

import type { FileRecord } from '../../core/file.ts';
import { printablePath } from '../../core/text.ts';
import type { StoredTurn, Thread } from '../../core/thread.ts';
import { usdText } from '../../domain/money.ts';
import type { ReadBlob } from './export-jsonl.ts';

/** Who speaks, on one line. */
export function speakerOf({ role, toolName, modelProvider, modelName, status }: StoredTurn): string {
  const who = role === 'user' ? 'You' : modelName ? `${modelProvider}:${modelName}` : toolName;
  const how = [toolName, ...(status === 'done' ? [] : [status === 'pending' ? 'unanswered' : status])];
  return printablePath(`${who} (${how.join(', ')})`);
}

export function minuteOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** What is known of a thread as a whole: name and value. */
export function factsOf({ id, toolName, createdAt, updatedAt, totals, turns, parent }: Thread): [string, string][] {
  return [
    ['Thread', id],
    ['Begun', `${minuteOf(createdAt)} with ${printablePath(toolName)}`],
    ['Last used', minuteOf(updatedAt)],
    ['Turns', String(turns.length)],
    ['Tokens', totals.costUsd > 0 ? `${totals.tokens} (${usdText(totals.costUsd)} USD)` : String(totals.tokens)],
    ...(parent ? [['Forked from', `${parent.thread}, after turn ${parent.seq}`] satisfies [string, string]] : []),
  ];
}

const forms: Readonly<Record<string, string>> = {
  deleted: 'deleted',
  unchanged: 'as above',
  changed: 'changed, not shown',
  diff: 'what changed',
};

/** A file as a reader sees it: its name, what of it is shown, and the text where there is one. */
export interface ShownFile {
  path: string;
  extent: string;
  language: string;
  text?: string;
}

export async function shownFile(file: FileRecord, blob: ReadBlob): Promise<ShownFile> {
  const { form, lines, range } = file;
  const path = printablePath(file.path);
  const named = { path, language: form === 'diff' ? 'diff' : (/\.([A-Za-z0-9]{1,12})$/.exec(path)?.[1] ?? '') };
  const extent = range ? `lines ${range.from}-${range.to} of ${lines}` : (forms[form] ?? `${lines} lines`);
  const hash = form === 'unchanged' || form === 'changed' ? undefined : (file.shown ?? file.base);
  if (hash === undefined) return { ...named, extent };
  const whole = await blob(hash);
  if (whole === undefined) return { ...named, extent: `${extent}; the text is no longer in the store` };
  const text = range && file.shown === undefined ? linesOf(whole, range.from, range.to) : whole;
  return { ...named, extent, text };
}

function linesOf(text: string, from: number, to: number): string {
  return text
    .split('\n')
    .slice(from - 1, to)
    .join('\n');
}

import { type Originals, placeholder } from '../files/put-back/originals.ts';

/** A text with its secrets in their places again. */
export interface PutBack {
  text: string;
  /** How many placeholders were replaced. */
  count: number;
  /** Those that stay, with the line of the text that they stand on, from 1. */
  left: { placeholder: string; line: number }[];
}

const hunkHead = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** A hunk of a patch, while its lines are read. */
interface Hunk {
  /** Where its head stands in the lines that come out. */
  at: number;
  oldFrom: number;
  oldLines: number;
  newFrom: number;
  newLines: number;
  oldLeft: number;
  newLeft: number;
}

/**
 * Replaces placeholders by what they stand for. A secret of several lines was one line to whoever wrote the text: within a
 * patch each of its lines gets the line's mark, and the numbers of the hunks say so.
 */
export function putBack(text: string, originals: Originals): PutBack {
  const out: string[] = [];
  const left: PutBack['left'] = [];
  let count = 0;
  let hunk: Hunk | undefined;
  let shift = { old: 0, new: 0 };

  const restored = (line: string, number: number): string => {
    const missed = new Set<string>();
    const result = line.replace(placeholder, found => {
      const original = originals.get(found);
      if (original === undefined) missed.add(found);
      else count++;
      return original ?? found;
    });
    for (const found of missed) left.push({ placeholder: found, line: number });
    return result;
  };

  for (const [index, line] of text.split('\n').entries()) {
    if (hunk && hunk.oldLeft <= 0 && hunk.newLeft <= 0) hunk = undefined;
    const head = hunk ? undefined : hunkHead.exec(line);
    if (line.startsWith('--- ') && !hunk) shift = { old: 0, new: 0 };
    const mark = line.charAt(0);
    if (head) {
      hunk = hunkOf(head, out.length, shift);
      out.push(restored(line, index + 1));
    } else if (hunk && (mark === ' ' || mark === '+' || mark === '-' || line === '')) {
      const lines = restored(line.slice(1), index + 1).split('\n');
      out.push(...(line === '' ? [''] : lines.map(each => mark + each)));
      grow(hunk, mark, lines.length - 1, shift);
    } else {
      if (hunk && mark !== '\\') hunk = undefined;
      out.push(...restored(line, index + 1).split('\n'));
    }
    if (hunk) out[hunk.at] = headOf(hunk, out[hunk.at] ?? '');
  }
  return { text: out.join('\n'), count, left };
}

function hunkOf([, oldFrom, oldLines = '1', newFrom, newLines = '1']: RegExpExecArray, at: number, shift: Shift): Hunk {
  return {
    at,
    oldFrom: Number(oldFrom) + shift.old,
    oldLines: Number(oldLines),
    newFrom: Number(newFrom) + shift.new,
    newLines: Number(newLines),
    oldLeft: Number(oldLines),
    newLeft: Number(newLines),
  };
}

interface Shift {
  old: number;
  new: number;
}

/** Counts a line off, and what it has become longer by on. */
function grow(hunk: Hunk, mark: string, more: number, shift: Shift): void {
  if (mark !== '+') {
    hunk.oldLeft--;
    hunk.oldLines += more;
    shift.old += more;
  }
  if (mark !== '-') {
    hunk.newLeft--;
    hunk.newLines += more;
    shift.new += more;
  }
}

function headOf({ oldFrom, oldLines, newFrom, newLines }: Hunk, line: string): string {
  return line.replace(hunkHead, `@@ -${oldFrom},${oldLines} +${newFrom},${newLines} @@`);
}

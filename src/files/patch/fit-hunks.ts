import { structuredPatch } from 'diff';
import type { Hunk } from '../../workspace/git/patch.ts';

export type Fitted = { ok: true; lines: string[]; added: number; removed: number } | { ok: false; reason: string };

/** Lines that may be added and removed in all; the work grows with the square of it. */
const maxChangedLines = 4_000;
const maxMs = 2_000;

/**
 * The hunks of one file as git wants them, for the file as it is now: with right numbers, three lines around them, and the
 * file's line ends. A hunk whose old lines stand nowhere, or at several places of which its head names none, does not fit.
 */
export function fitHunks(hunks: readonly Hunk[], text: string): Fitted {
  const crlf = /\r\n/.test(text) && !/(?:^|[^\r])\n/.test(text);
  const lines = text.split('\n');
  const endsWhole = lines.at(-1) === '';
  if (endsWhole) lines.pop();
  const after: string[] = [];
  let behind = 0;
  for (const hunk of hunks) {
    const marked = withLineEnds(hunk.lines, crlf);
    const old = marked.filter(line => !line.startsWith('+')).map(line => line.slice(1));
    const place = placeOf(old, lines, hunk.from, behind);
    if (typeof place === 'string') return { ok: false, reason: place };
    const fresh = marked.filter(line => !line.startsWith('-')).map(line => line.slice(1));
    after.push(...lines.slice(behind, place), ...fresh);
    behind = place + old.length;
  }
  const touchesEnd = behind === lines.length;
  after.push(...lines.slice(behind));
  const ends = after.length > 0 && (endsWhole || touchesEnd);
  return between(text, `${after.join('\n')}${ends ? '\n' : ''}`);
}

/** The only hunk that a new file has. */
export function newFileHunk(hunks: readonly Hunk[]): Fitted {
  const lines = hunks.flatMap(hunk => hunk.lines).filter(line => !line.startsWith('\\'));
  if (lines.some(line => !line.startsWith('+'))) return { ok: false, reason: 'a new file has lines that are not new' };
  return { ok: true, lines: [`@@ -0,0 +1,${lines.length} @@`, ...lines], added: lines.length, removed: 0 };
}

function between(before: string, after: string): Fitted {
  const patch = structuredPatch('a', 'b', before, after, '', '', {
    context: 3,
    maxEditLength: maxChangedLines,
    timeout: maxMs,
  });
  if (!patch) return { ok: false, reason: `it changes more than ${maxChangedLines} lines` };
  const { hunks } = patch;
  const lines = hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines: body }) => [
    `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`,
    ...body,
  ]);
  const count = (mark: string) => hunks.flatMap(hunk => hunk.lines).filter(line => line.startsWith(mark)).length;
  return { ok: true, lines, added: count('+'), removed: count('-') };
}

function withLineEnds(lines: readonly string[], crlf: boolean): string[] {
  return lines.filter(line => !line.startsWith('\\')).map(line => (crlf && !line.endsWith('\r') ? `${line}\r` : line));
}

/** The index at which the old lines stand; a reason where nobody can tell. */
function placeOf(old: readonly string[], lines: readonly string[], stated: number | undefined, behind: number) {
  const wanted = stated === undefined ? undefined : stated - 1;
  if (old.length === 0) {
    // Without a line around it, only an empty file says where it belongs.
    return lines.length === 0 ? 0 : 'a hunk has no line of the file around what it adds';
  }
  const places: number[] = [];
  for (let at = behind; at + old.length <= lines.length; at++) {
    if (old.every((line, index) => lines[at + index] === line)) places.push(at);
  }
  const [first] = places;
  if (first === undefined) return `the lines it changes are not there (near line ${stated ?? '?'})`;
  if (wanted !== undefined && places.includes(wanted)) return wanted;
  return places.length === 1 ? first : `the lines it changes stand at ${places.length} places`;
}

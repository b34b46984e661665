import { isAbsolute, join, relative, sep } from 'node:path';
import type { LineRange, TextFile } from '../../core/file.ts';
import { linesBetween } from '../../core/text.ts';
import { isSkip } from '../../files/skip.ts';
import { readFile } from '../../workspace/read-file.ts';
import type { Sandbox } from '../../workspace/sandbox.ts';
import type { CheckedEvidence, Diagnosis } from '../modes/diagnose/diagnosis.ts';

export interface EvidencePlace {
  sandbox: Sandbox;
  root: string;
  maxFileBytes: number;
  signal: AbortSignal;
}

/** Models count lines badly: what they quote may stand a few lines away. */
const tolerance = 3;

/** Holds what is named as evidence against the files: a line that is there after all is corrected, others are marked. */
export async function checkEvidence(place: EvidencePlace, evidence: Diagnosis['evidence']): Promise<CheckedEvidence[]> {
  const read = new Map<string, TextFile | undefined>();
  const checked: CheckedEvidence[] = [];
  for (const { file, line, text } of evidence) {
    const path = isAbsolute(file) ? file : join(place.root, file);
    if (!read.has(path)) read.set(path, await textOf(place, path));
    const found = read.get(path);
    const shown = found ? relative(place.root, found.path).split(sep).join('/') : file;
    const at = found && lineOf(found, line, text);
    checked.push({
      file: shown.startsWith('..') ? file : shown,
      line: at ?? line,
      ...(text !== '' && { text }),
      checked: at !== undefined,
    });
  }
  return checked;
}

async function textOf({ sandbox, maxFileBytes, signal }: EvidencePlace, path: string): Promise<TextFile | undefined> {
  const file = await readFile(sandbox, path, { maxBytes: maxFileBytes, signal });
  return isSkip(file) ? undefined : file;
}

/** The line on which the text stands, nearest to the one that was named; undefined where it stands nowhere near. */
function lineOf({ text: whole, lines }: TextFile, line: number, quoted: string): number | undefined {
  if (line > lines) return undefined;
  const wanted = flat(quoted);
  if (wanted === '' || wanted.includes('[masked:')) return line;
  const range: LineRange = { from: Math.max(1, line - tolerance), to: Math.min(lines, line + tolerance) };
  const near = linesBetween(whole, range.from, range.to).split('\n');
  const places = near.flatMap((each, index) => {
    const here = flat(each);
    return here !== '' && (here.includes(wanted) || wanted.includes(here)) ? [range.from + index] : [];
  });
  return places.toSorted((a, b) => Math.abs(a - line) - Math.abs(b - line))[0];
}

function flat(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

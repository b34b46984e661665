import { isAbsolute, join, relative, sep } from 'node:path';
import { objectIn } from '../../../calls/reply.ts';
import type { LineRange, TextFile } from '../../../core/file.ts';
import { isRecord, type JsonObject, textIn } from '../../../core/json.ts';
import { linesBetween } from '../../../core/text.ts';
import { isSkip } from '../../../workspace/paths.ts';
import { readFile } from '../../../workspace/read-file.ts';
import type { Sandbox } from '../../../workspace/sandbox.ts';

/** What a model makes of an error, before anything of it was checked. */
export interface Diagnosis {
  /** False: what was sent does not say what went wrong. */
  canTell: boolean;
  summary: string;
  rootCause: string;
  evidence: { file: string; line: number; text: string }[];
  impact: string;
  recommendation: string;
  /** What would have to be sent, where nobody can tell. */
  needs: string[];
  /** A unified diff. */
  patch?: string;
}

/** The form that models are asked for. */
export const diagnosisForm = `Answer with one JSON object and nothing else:
{"can_tell": true or false,
 "summary": "what happened, in one or two sentences",
 "root_cause": "why, down to the statement that is wrong",
 "evidence": [{"file": "path as it stands above", "line": 12, "text": "that line, as it is there"}],
 "impact": "what else this breaks, and for whom",
 "recommendation": "what to do",
 "needs": ["only where you can't tell: what would have to be sent"],
 "patch": "PATCH"}
Rest on what stands above: the error and the files. Where they do not say what went wrong, set can_tell to false, leave root_cause empty and say in needs what is missing; a guess is worse than that.`;

export const patchForm =
  'In place of PATCH: the smallest unified diff that mends the cause, with paths as they stand above, three lines of context, and each context line exactly as it is in the file. Leave the key out where you are not sure, or where the cause is not in these files.';

export const noPatchForm = 'Leave the key "patch" out.';

const maxEvidence = 20;

/** The diagnosis in a model's answer; undefined where it holds none. */
export function readDiagnosis(text: string): Diagnosis | undefined {
  const object = objectIn(text);
  if (!object) return undefined;
  const summary = textIn(object.summary).trim();
  const rootCause = textIn(object.root_cause).trim();
  if (summary === '' && rootCause === '') return undefined;
  const patch = textIn(object.patch).trim();
  const canTell = object.can_tell !== false && rootCause !== '';
  return {
    canTell,
    summary,
    rootCause: canTell ? rootCause : '',
    evidence: evidenceIn(object.evidence),
    impact: textIn(object.impact).trim(),
    recommendation: textIn(object.recommendation).trim(),
    needs: listIn(object.needs),
    ...(canTell && patch !== '' && patch !== 'PATCH' && { patch: textIn(object.patch) }),
  };
}

function evidenceIn(value: unknown): Diagnosis['evidence'] {
  const items: unknown[] = Array.isArray(value) ? value : [];
  return items
    .filter(isRecord)
    .map(({ file, line, text }) => ({ file: textIn(file).trim(), line: Number(line), text: textIn(text).trim() }))
    .filter(({ file, line }) => file !== '' && Number.isInteger(line) && line > 0)
    .slice(0, maxEvidence);
}

function listIn(value: unknown): string[] {
  const items: unknown[] = Array.isArray(value) ? value : [value];
  return items.map(item => textIn(item).trim()).filter(item => item !== '');
}

/** One place that is named as evidence, held against the file. */
export interface CheckedEvidence extends JsonObject {
  file: string;
  line: number;
  text?: string;
  /** False: there is no such line, or it says something else. */
  checked: boolean;
}

/** The keys of a reply. */
export function diagnosisDocument(diagnosis: Diagnosis, evidence: readonly CheckedEvidence[]): JsonObject {
  const { canTell, summary, rootCause, impact, recommendation, needs } = diagnosis;
  return {
    summary,
    root_cause: canTell ? rootCause : "can't tell from this",
    evidence: [...evidence],
    impact: impact || undefined,
    recommendation: recommendation || undefined,
    needs: needs.length > 0 ? needs : undefined,
  };
}

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

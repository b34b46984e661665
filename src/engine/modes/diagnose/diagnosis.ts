import { isRecord, type JsonObject, textIn } from '../../../core/json.ts';
import { objectIn } from '../../special-status.ts';

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

const mostEvidence = 20;

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
    .slice(0, mostEvidence);
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

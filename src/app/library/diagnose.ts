import { isErrorCode } from '../../calls/reply.ts';
import { AppError, type ErrorCode, type ErrorKind } from '../../core/errors.ts';
import { isRecord, type JsonObject, numberIn, recordIn, recordsIn, textIn, textsIn } from '../../core/json.ts';
import type { ShortenOptions } from './shorten.ts';

/** An error to be analyzed. */
export interface ErrorRequest extends Pick<ShortenOptions, 'model' | 'signal'> {
  /** What the failing program wrote, whole. */
  stderr: string;
  /** The command that failed. */
  command?: string;
  /** More files that concern the error. Those that the output names are included anyway. */
  files?: readonly string[];
}

/** A model's analysis of an error; its evidence was checked against the files. */
export interface ErrorAnalysis {
  /** False: what was sent does not say what went wrong; `needs` says what is missing. */
  canTell: boolean;
  /** What failed, in a sentence or two. */
  summary: string;
  /** Why it failed; empty where `canTell` is false. */
  rootCause: string;
  /** `checked`: that line of that file says so. */
  evidence: { file: string; line: number; text: string; checked: boolean }[];
  /** What the failure affects. */
  impact: string;
  /** What to do about it. */
  recommendation: string;
  /** What to send for a better diagnosis; empty: nothing. */
  needs: string[];
}

/** A diagnosis with the patch that follows from it. */
export interface GeneratedPatch {
  /** What failed and why. */
  analysis: ErrorAnalysis;
  /** A unified diff that `git apply` takes in the project as it is now. Absent: there is none, or it was withheld. */
  patch?: { diff: string; files: { path: string; added: number; removed: number }[] };
  /** Why a patch that a model wrote is not shown. */
  withheld?: string;
}

/** A diagnosis in the words of the tool → the library's. */
export function analysisIn(document: JsonObject): ErrorAnalysis {
  const canTell = document.status === 'diagnosed' || document.status === 'partial';
  return {
    canTell,
    summary: textIn(document.summary ?? document.content),
    rootCause: canTell ? textIn(document.root_cause) : '',
    evidence: recordsIn(document.evidence).map(({ file, line, text, checked }) => ({
      file: textIn(file),
      line: numberIn(line),
      text: textIn(text),
      checked: checked === true,
    })),
    impact: textIn(document.impact),
    recommendation: textIn(document.recommendation),
    needs: textsIn(document.needs),
  };
}

export function patchIn(document: JsonObject): GeneratedPatch {
  const analysis = analysisIn(document);
  const { patch, patch_withheld: withheld } = document;
  if (!isRecord(patch)) return { analysis, ...(typeof withheld === 'string' && { withheld }) };
  if (typeof patch.diff !== 'string') return { analysis, withheld: textIn(patch.note) };
  const files = recordsIn(patch.files).map(({ path, added, removed }) => {
    return { path: textIn(path), added: numberIn(added), removed: numberIn(removed) };
  });
  return { analysis, patch: { diff: patch.diff, files } };
}

/** Who must act; the caller where it is nobody of these. */
const kinds: Readonly<Partial<Record<ErrorCode, ErrorKind>>> = {
  SECURITY: 'security',
  API_ERROR: 'model',
  LIMIT: 'limit',
  CANCELLED: 'cancelled',
  INTERRUPTED: 'cancelled',
  STORAGE: 'storage',
  CONFIG: 'config',
  INTERNAL_SERVER_ERROR: 'bug',
};

/** The error that a tool's reply tells of, to be thrown; with all facts of the one that was `thrown`, where it was not kept for later. */
export function errorIn({ error }: JsonObject, thrown: AppError | undefined): AppError {
  const facts = recordIn(error);
  if (thrown) return new AppError(thrown.kind, textIn(facts.message), { ...thrown.details, next: textIn(facts.next) });
  const code = isErrorCode(facts.code) ? facts.code : 'INTERNAL_SERVER_ERROR';
  return new AppError(kinds[code] ?? 'input', textIn(facts.message), {
    code,
    class: textIn(facts.class),
    next: textIn(facts.next),
    ...(typeof facts.retryable === 'boolean' && { retryable: facts.retryable }),
  });
}

import { jsonrepair } from 'jsonrepair';
import { isRecord } from '../core/json.ts';

/** What a model may answer instead of an answer: a request to the caller, as a JSON object with one of these statuses. */
const specialStatuses = new Set([
  'files_required_to_continue',
  'full_codereview_required',
  'focused_review_required',
  'test_sample_needed',
  'more_tests_required',
  'investigation_paused',
  'refactoring_paused',
  'no_bug_found',
]);

/** The JSON object in a model's answer: bare, fenced, or between prose; slightly broken ones are mended. */
export function objectIn(text: string): Record<string, unknown> | undefined {
  const fenced = /```(?:json)?\s*\n([\s\S]*?)\n?```/.exec(text)?.[1];
  const braces = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1);
  for (const candidate of [text.trim(), fenced?.trim(), braces]) {
    if (!candidate?.startsWith('{')) continue;
    const parsed = parse(candidate);
    if (parsed) return parsed;
  }
  return undefined;
}

function parse(text: string): Record<string, unknown> | undefined {
  for (const read of [JSON.parse, (broken: string) => JSON.parse(jsonrepair(broken))]) {
    try {
      const value: unknown = read(text);
      if (isRecord(value)) return value;
    } catch {
      // Not JSON, or beyond repair: the caller treats the answer as text.
    }
  }
  return undefined;
}

/** The special status that an answer as a whole consists of. Prose that merely quotes one is an answer. */
export function specialStatus(text: string): { status: string; object: Record<string, unknown> } | undefined {
  const trimmed = text.trim();
  if (!trimmed.startsWith('{') && !trimmed.startsWith('```')) return undefined;
  const object = objectIn(trimmed);
  const status = object?.status;
  return object && typeof status === 'string' && specialStatuses.has(status) ? { status, object } : undefined;
}

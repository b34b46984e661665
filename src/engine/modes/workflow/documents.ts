import { basename } from 'node:path';
import { objectIn, readControlStatus, requestedInputs } from '../../../calls/reply.ts';
import type { Step, StepFacts, WorkflowMode, WorkflowProgress } from '../../../calls/tool.ts';
import { isRecord, type JsonObject, jsonOf, parsedJson } from '../../../core/json.ts';
import { cutMiddle } from '../../../core/text.ts';
import type { Thread } from '../../../core/thread.ts';
import { levelOf } from './step-progress.ts';

type Facts = StepFacts<Record<string, unknown>>;

/** The keys that every reply to a step has. */
export const stepDocument = (tool: string, mode: WorkflowMode, step: Step, progress: WorkflowProgress): JsonObject => ({
  status: `${tool}_in_progress`,
  step_number: step.stepNumber,
  total_steps: progress.totalSteps,
  next_step_required: step.nextStepRequired,
  [mode.words.status]: {
    files_checked: progress.filesChecked.length,
    relevant_files: progress.relevantFiles.length,
    relevant_context: progress.relevantContext.length,
    issues_found: progress.issuesFound.length,
    images_collected: progress.images.length,
    current_confidence: progress.confidence,
    ...(mode.words.bySeverity && { [mode.words.bySeverity]: bySeverity(progress.issuesFound) }),
    ...mode.counters?.(step, progress),
  },
});

function bySeverity(issues: readonly Record<string, unknown>[]): JsonObject {
  const groups = Map.groupBy(issues, ({ severity }) => String(severity ?? 'unrated').toLowerCase());
  return Object.fromEntries([...groups].map(([severity, { length }]) => [severity, length]));
}

const endOrExtend =
  'If nothing is left to find, set next_step_required to false; if more is needed, raise total_steps.';

/** The reply to a step after which the caller works on. */
export function pauseDocument(tool: string, mode: WorkflowMode, { step, args, progress }: Facts, stale: boolean) {
  const guided = args.confidence === undefined ? { ...step, confidence: levelOf(step, mode.levels) } : step;
  const actions = mode.requiredActions(guided, args, progress);
  return {
    status: mode.words.pause,
    [mode.words.required]: true,
    required_actions: [...actions],
    next_steps:
      `Do the ${actions.length} required actions first, with your own tools. Then call ${tool} again with ` +
      `step_number ${progress.lastStep + 1}, the continuation_id, and what is new: findings with evidence, the files you read.` +
      `${stale ? ' This step added nothing new: gather new evidence, or set next_step_required to false.' : ''} ${endOrExtend}`,
    ...(stale && { no_new_evidence: true }),
    ...(step.relevantFiles.length > 0 && {
      file_context: {
        type: 'reference_only',
        note: `Files noted: ${step.relevantFiles.map(path => basename(path)).join(', ')}`,
        context_optimization: `Files are referenced and not embedded${mode.expert ? '; the expert gets their full content at the last step' : ''}.`,
      },
    }),
  };
}

/** What the caller contributed at the earlier steps of a run. */
export const workSince = (thread: Thread, tool: string, afterSeq: number): string[] =>
  thread.turns.flatMap(({ seq, toolName, role, status, content }) =>
    seq > afterSeq && toolName === tool && role === 'user' && status === 'done' ? [content] : [],
  );

/** Most that is repeated of the caller's own words. */
const summaryChars = 8_000;

/** What the steps came to, as the tool's own summary object. */
const summaryOf = ({ step, progress, work }: Facts): JsonObject => ({
  initial_request: progress.request,
  steps_taken: progress.lastStep,
  files_examined: progress.filesChecked,
  relevant_files: progress.relevantFiles,
  relevant_context: progress.relevantContext,
  issues_found: progress.issuesFound.map(issue => jsonOf(issue)),
  // The only step says its task once more, which stands above. Callers know their own words, and the thread has all of them.
  work_summary: cutMiddle(work.length > 1 ? work.join('\n\n') : step.findings, summaryChars),
});

/** The reply to the last step when the caller's own certainty was enough. */
export function skippedDocument(mode: WorkflowMode, facts: Facts): JsonObject {
  const { step, progress } = facts;
  const words = mode.words.skipped ?? { status: 'local_work_complete', reason: 'skipped' };
  return {
    status: words.status,
    [mode.words.complete]: true,
    [mode.words.summary]: {
      ...summaryOf(facts),
      final_analysis: cutMiddle(step.hypothesis ?? step.findings, summaryChars),
      confidence_level: words.level ?? progress.confidence,
    },
    skip_expert_analysis: true,
    expert_analysis: {
      status: words.reason,
      reason: `${words.because ?? `You are ${progress.confidence}`}; no expert was asked. To have it checked all the same, send the step again ${words.because ? 'as external' : 'with less confidence'}.`,
    },
    next_steps: 'Present the result with its evidence, then continue with the task.',
  };
}

export function expertDocument(
  mode: WorkflowMode,
  facts: Facts,
  compat: boolean,
  { text, embedded, known, partial }: { text: string; embedded: number; known: number; partial: boolean },
): JsonObject {
  const document: JsonObject = {
    file_context: {
      type: 'fully_embedded',
      files_embedded: embedded,
      context_optimization: `Full content of ${embedded} files was embedded for the expert; ${known} more were in the conversation already.${partial ? ' Others were shortened or left out: metadata.files says which and why.' : ''}`,
    },
    [mode.words.complete]: true,
    [mode.words.summary]: summaryOf(facts),
  };
  const special = readControlStatus(text);
  if (special && special.status !== 'no_bug_found')
    return {
      ...document,
      status: special.status,
      content: JSON.stringify(special.object),
      ...requestedInputs(special.object),
      next_steps: afterSpecial(special),
      ...mode.verdict?.(facts, text),
    };
  return {
    ...document,
    status: compat ? 'calling_expert_analysis' : 'expert_analysis_complete',
    expert_analysis: expertAnalysis(mode, text),
    next_steps: `Present both views. Check the expert’s points against the code before you act on them, the most severe first.${mode.expert?.after && !special ? ` ${mode.expert.after}` : ''}`,
    important_considerations:
      'The expert saw only what it was sent. If you disagree with it, tell the user where and why.',
    ...mode.verdict?.(facts, text),
  };
}

/** What to do about an expert's request: its own word for it, else ours. */
function afterSpecial({ status, object }: { status: string; object: Record<string, unknown> }): string {
  if (typeof object.next_steps === 'string' && object.next_steps !== '') return object.next_steps;
  return status === 'files_required_to_continue'
    ? 'Resend this step with the same continuation_id and the requested files in relevant_files.'
    : 'The expert declined; "content" says why. Follow its advice or narrow the task, then resend this step with the same continuation_id.';
}

function expertAnalysis(mode: WorkflowMode, text: string): JsonObject {
  // Who was not asked for JSON may write some among prose, which would be lost.
  const object = mode.expert?.json ? objectIn(text) : parsedJson(text.trim().replace(/^```(?:json)?\s|```$/g, ''));
  if (isRecord(object)) return jsonOf({ ...object, ...mode.expert?.fillIn?.(object) });
  return { status: 'analysis_complete', raw_analysis: text, format: 'text', note: 'The answer is plain text.' };
}

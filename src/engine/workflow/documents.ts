import type { JsonObject } from '../../domain/json.ts';
import type { Thread } from '../../domain/thread.ts';
import type { Answered } from '../call-record.ts';
import type { Step, WorkflowProgress, WorkflowShape } from '../define.ts';
import { objectIn, specialStatus } from '../special-status.ts';

type Shape = WorkflowShape<Record<string, unknown>>;

/** The keys that every reply to a step has. */
export function stepDocument(tool: string, shape: Shape, step: Step, progress: WorkflowProgress): JsonObject {
  return {
    status: `${tool}_in_progress`,
    step_number: step.stepNumber,
    total_steps: progress.totalSteps,
    next_step_required: step.nextStepRequired,
    [shape.words.status]: {
      files_checked: progress.filesChecked.length,
      relevant_files: progress.relevantFiles.length,
      relevant_context: progress.relevantContext.length,
      issues_found: progress.issuesFound.length,
      images_collected: 0,
      current_confidence: progress.confidence,
      ...shape.counters?.(step, progress),
    },
  };
}

/** The reply to a step after which the caller works on. */
export function pauseDocument(tool: string, shape: Shape, step: Step, nothingNew: boolean): JsonObject {
  const actions = shape.requiredActions(step);
  return {
    status: shape.words.pause,
    [shape.words.required]: true,
    required_actions: actions,
    next_steps:
      `Do the ${actions.length} required actions first, with your own tools. Then call ${tool} again with ` +
      `step_number ${step.stepNumber + 1}, the continuation_id, and what is new: findings with evidence, the files you read.`,
    ...(nothingNew && { no_new_evidence: true }),
    ...(step.relevantFiles.length > 0 && {
      file_context: {
        type: 'reference_only',
        note: `Files noted: ${step.relevantFiles.map(path => path.split('/').at(-1)).join(', ')}`,
        context_optimization: 'The files are read when the expert is asked.',
      },
    }),
  };
}

/** What the steps came to, as the tool's own summary object. */
export function summaryOf(progress: WorkflowProgress, thread: Thread, tool: string, step: Step): JsonObject {
  const before = thread.turns.filter(
    turn => turn.seq > progress.afterSeq && turn.toolName === tool && turn.role === 'user',
  );
  return {
    initial_request: progress.request,
    steps_taken: progress.lastStep,
    files_examined: progress.filesChecked,
    relevant_files: progress.relevantFiles,
    relevant_context: progress.relevantContext,
    issues_found: progress.issuesFound.map(issue => ({ ...jsonOf(issue) })),
    work_summary: [...before.map(turn => turn.content), `Step ${step.stepNumber}: ${step.findings}`].join('\n\n'),
  };
}

function jsonOf(value: Record<string, unknown>): JsonObject {
  const copy: JsonObject = JSON.parse(JSON.stringify(value));
  return copy;
}

/** The reply to the last step when the caller's own certainty was enough. */
export function skippedDocument(shape: Shape, progress: WorkflowProgress, summary: JsonObject, step: Step): JsonObject {
  const words = shape.words.skipped ?? { status: 'local_work_complete', reason: 'skipped' };
  return {
    status: words.status,
    [shape.words.complete]: true,
    [shape.words.summary]: {
      ...summary,
      final_analysis: step.hypothesis ?? step.findings,
      confidence_level: progress.confidence,
    },
    skip_expert_analysis: true,
    expert_analysis: {
      status: words.reason,
      reason: `You are ${progress.confidence}; no expert was asked. Send use_assistant_model: true to have it checked all the same.`,
    },
    next_steps: 'Present the result with its evidence and go on to the work itself.',
  };
}

/** The reply to the last step when no expert was wanted, or none can be had. */
export function declinedDocument(shape: Shape, why: string): JsonObject {
  return { status: 'local_work_complete', [shape.words.complete]: true, next_steps: why };
}

/** The reply to the last step with the expert's view. */
export function expertDocument(shape: Shape, summary: JsonObject, compat: boolean, answered: Answered): JsonObject {
  const { text } = answered.answer;
  const { embedded, unchanged, changed } = answered.files;
  const document: JsonObject = {
    file_context: {
      type: 'fully_embedded',
      files_embedded: embedded.length + changed.length,
      context_optimization: `${unchanged.length} more stood in the conversation already.`,
    },
    [shape.words.complete]: true,
    [shape.words.summary]: summary,
  };
  const special = specialStatus(text);
  if (special && special.status !== 'no_bug_found') {
    return {
      ...document,
      status: special.status,
      content: JSON.stringify(special.object),
      next_steps:
        'Supply what the expert asks for (files in relevant_files) and send the step again with the same continuation_id.',
    };
  }
  return {
    ...document,
    status: compat ? 'calling_expert_analysis' : 'expert_analysis_complete',
    expert_analysis: expertAnalysis(shape, text),
    next_steps:
      'Present both views. Check the expert’s points against the code before you act on them, the gravest first.',
    important_considerations: 'The expert saw only what it was sent. Say so where you disagree, and why.',
  };
}

function expertAnalysis(shape: Shape, text: string): JsonObject {
  const object = shape.expert.json ? objectIn(text) : undefined;
  if (object) return jsonOf(object);
  return { status: 'analysis_complete', raw_analysis: text, format: 'text', note: 'The answer is plain text.' };
}

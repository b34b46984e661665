import { inputError } from '../../domain/error.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { AskPlan, LocalPlan, Plan, Resumed } from '../call-record.ts';
import type { Step, WorkflowProgress, WorkflowShape } from '../define.ts';
import { contributionOf } from '../workflow/contribution.ts';
import {
  declinedDocument,
  expertDocument,
  pauseDocument,
  skippedDocument,
  stepDocument,
  summaryOf,
} from '../workflow/documents.ts';
import { advance, bringsNothingNew, checkOrder, readProgress, writeProgress } from '../workflow/progress.ts';
import { stepOf } from '../workflow/step.ts';

type Shape = WorkflowShape<Record<string, unknown>>;

export interface WorkflowSettings {
  /** Ask the expert although the caller is certain. */
  expertAtCertain: boolean;
  /** Say `calling_expert_analysis` for a finished expert call, as older callers expect. */
  compat: boolean;
}

interface StepCall {
  tool: string;
  shape: Shape;
  step: Step & { useExpert?: boolean };
  progress: WorkflowProgress;
  call: Resumed;
  contribution: string;
  document: JsonObject;
}

/** One step of a workflow. State is the thread's: two callers, two daemons or a restart in between give the same answers. */
export function planWorkflow(
  shape: Shape,
  call: Resumed,
  missing: readonly string[],
  settings: WorkflowSettings,
): Plan {
  const tool = call.tool.name;
  const step = stepOf(call.args);
  const before = readProgress(call.thread.workflows[tool]);
  checkOrder(tool, step, before, call.common.continuationId !== undefined);
  checkFirst(tool, shape, step, call.args);
  const progress = advance(before, step, call.thread.seq);
  const document: JsonObject = {
    ...stepDocument(tool, shape, step, progress),
    ...(missing.length > 0 && { files_not_found: [...missing] }),
  };
  const contribution = contributionOf(step, shape.brief?.(call.args) ?? []);
  const stepCall = { tool, shape, step, progress, call, contribution, document };
  if (step.nextStepRequired) {
    return local(stepCall, pauseDocument(tool, shape, step, bringsNothingNew(before, step)), true);
  }
  const summary = summaryOf(progress, call.thread, tool, step);
  if (step.useExpert === false)
    return local(stepCall, declinedDocument(shape, 'Present what you found, with its evidence.'));
  if (shape.certain(step) && shape.words.skipped && step.useExpert !== true && !settings.expertAtCertain) {
    return local(stepCall, skippedDocument(shape, progress, summary, step));
  }
  return ask(stepCall, summary, settings);
}

function checkFirst(tool: string, shape: Shape, step: Step, args: Record<string, unknown>): void {
  if (step.stepNumber !== 1) return;
  const absent = (shape.neededAtFirst ?? []).filter(name => args[name] === undefined || isEmptyList(args[name]));
  if (absent.length === 0) return;
  throw inputError(`The first step of ${tool} needs ${absent.join(', ')}.`, {
    code: 'MISSING_PARAMETER',
    next: `Send step 1 again with ${absent.join(', ')}.`,
    validationErrors: absent.map(field => ({ field, error: 'missing in step 1' })),
  });
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** A run that is over leaves no state: the next step 1 begins anew anyway, and a stray step is told so. */
function local({ tool, progress, contribution, document }: StepCall, ending: JsonObject, goesOn = false): LocalPlan {
  const state = goesOn ? writeProgress(progress) : null;
  return { kind: 'local', contribution, workflow: { tool, state }, document: { ...document, ...ending } };
}

function ask(stepCall: StepCall, summary: JsonObject, settings: WorkflowSettings): AskPlan {
  const { tool, shape, progress, contribution, document } = stepCall;
  return {
    kind: 'ask',
    contribution,
    tail: tailOf(shape, progress),
    files: progress.relevantFiles,
    category: shape.category,
    effort: shape.effort,
    workflow: { tool, state: null },
    local: { ...document, [shape.words.complete]: true, [shape.words.summary]: summary },
    withoutModel: {
      ...document,
      ...declinedDocument(
        shape,
        'Present what you found. No model is configured, so no expert was asked: set a key (OPENAI_API_KEY, ANTHROPIC_API_KEY, …) or CUSTOM_API_URL to have one.',
      ),
    },
    conclude: answered => ({ ...document, ...expertDocument(shape, summary, settings.compat, answered) }),
  };
}

function tailOf(shape: Shape, progress: WorkflowProgress): string {
  const hypotheses = progress.hypotheses.map(
    ({ step, hypothesis, confidence }) => `step ${step} (${confidence}): ${hypothesis}`,
  );
  return [
    shape.expert.role,
    `The task, as it was given: ${progress.request}`,
    hypotheses.length > 0 && `Hypotheses so far:\n${hypotheses.join('\n')}`,
    'The caller’s findings are in the conversation above; judge them by the files.',
  ]
    .filter(Boolean)
    .join('\n\n');
}

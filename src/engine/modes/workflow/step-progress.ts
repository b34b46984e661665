import { z } from 'zod';
import { quietWorkflowFields, workflowFields } from '../../../calls/fields.ts';
import type { Step, WorkflowProgress } from '../../../calls/tool.ts';
import { inputError } from '../../../core/errors.ts';
import { isRecord, type JsonObject, numberIn, textIn, textsIn } from '../../../core/json.ts';
import type { WorkflowState } from '../../../core/thread.ts';

/**
 * What a thread remembers of a workflow; undefined when there is none or it was written by something else. `fields` are the
 * tool's own, by which settings are judged: an imported thread may say anything.
 */
export function readProgress(
  state: WorkflowState | undefined,
  fields: Readonly<z.ZodRawShape>,
): WorkflowProgress | undefined {
  if (!state || typeof state.lastStep !== 'number') return undefined;
  return {
    lastStep: state.lastStep,
    totalSteps: numberIn(state.totalSteps),
    request: textIn(state.request),
    afterSeq: numberIn(state.afterSeq),
    filesChecked: textsIn(state.filesChecked),
    relevantFiles: textsIn(state.relevantFiles),
    relevantContext: textsIn(state.relevantContext),
    issuesFound: records(state.issuesFound),
    images: textsIn(state.images),
    hypotheses: records(state.hypotheses).map(({ step, hypothesis, confidence }) => ({
      step: numberIn(step),
      hypothesis: textIn(hypothesis),
      confidence: textIn(confidence),
    })),
    confidence: textIn(state.confidence),
    evidence: textIn(state.evidence),
    settings: soundSettings(objectOf(state.settings), fields),
    kept: objectOf(state.kept),
    asked: state.asked === true,
  };
}

function soundSettings(settings: JsonObject, fields: Readonly<z.ZodRawShape>): JsonObject {
  const isSound = ([name, value]: [string, unknown]) => {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    return field !== undefined && z.safeParse(field, value).success;
  };
  return Object.fromEntries(Object.entries(settings).filter(isSound));
}

function objectOf(value: WorkflowState[string]): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}

function records(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/**
 * Refuses a step that does not follow the last one. The first step of a run is 1; a finished or new run begins there. A
 * revision may bear an old number or the next one; a last step whose expert was asked may come again with what was wanted.
 */
export function checkOrder(tool: string, step: Step, before: WorkflowProgress | undefined, threadGiven: boolean): void {
  const expected = before ? before.lastStep + 1 : 1;
  if (before && step.revises !== undefined) checkRevised(tool, step.revises, before.lastStep);
  if (step.stepNumber === 1 || step.stepNumber === expected) return;
  if (before && step.revises !== undefined && step.stepNumber < expected) return;
  if (before?.asked && step.stepNumber === before.lastStep) return;
  if (!before && !threadGiven) {
    throw inputError(
      `${tool} was sent step ${step.stepNumber} without continuation_id, so the steps before it are unknown.`,
      {
        next: 'Send the continuation_id that the reply to step 1 gave, "last" for the newest thread of this project, or begin again with step_number 1.',
        validationErrors: [{ field: 'continuation_id', error: 'missing', allowed: ['the id of step 1', 'last'] }],
      },
    );
  }
  throw inputError(
    `${tool} expected step ${expected}${expected > 1 ? ' (or 1, to begin again)' : ''}, not ${step.stepNumber}.`,
    {
      next: `Send step_number ${expected}.`,
      validationErrors: [
        { field: 'step_number', error: `out of order: ${step.stepNumber}`, allowed: [String(expected), '1'] },
      ],
    },
  );
}

function checkRevised(tool: string, revises: number, lastStep: number): void {
  if (revises <= lastStep) return;
  throw inputError(`${tool} can't revise step ${revises}: the last one so far is ${lastStep}.`, {
    next: `Name the step to revise, 1 to ${lastStep}, or send step ${lastStep + 1} as a step of its own.`,
    validationErrors: [
      { field: 'revises_step_number', error: `no such step: ${revises}`, allowed: [`1 to ${lastStep}`] },
    ],
  });
}

/** What is known after a step. Step 1 begins anew, whatever the thread remembers, unless it revises. */
export function advance(before: WorkflowProgress | undefined, step: Step, afterSeq: number): WorkflowProgress {
  const known = step.stepNumber === 1 && step.revises === undefined ? undefined : before;
  const hypothesis = step.hypothesis
    ? [{ step: step.stepNumber, hypothesis: step.hypothesis, confidence: step.confidence }]
    : [];
  return {
    lastStep: Math.max(known?.lastStep ?? 0, step.stepNumber),
    totalSteps: Math.max(step.totalSteps, step.stepNumber, known?.lastStep ?? 0),
    request: known?.request ?? step.step,
    afterSeq: known?.afterSeq ?? afterSeq,
    filesChecked: union(known?.filesChecked, step.filesChecked),
    relevantFiles: union(known?.relevantFiles, step.relevantFiles),
    relevantContext: union(known?.relevantContext, step.relevantContext),
    issuesFound: unionBy(known?.issuesFound, step.issuesFound),
    images: union(known?.images, step.images),
    // A step that comes again says what it thinks now.
    hypotheses: [...(known?.hypotheses ?? []).filter(({ step: at }) => at !== step.stepNumber), ...hypothesis],
    confidence: step.confidence,
    evidence: evidenceOf(step),
    settings: known?.settings ?? {},
    kept: known?.kept ?? {},
    asked: false,
  };
}

export function bringsNothingNew(before: WorkflowProgress | undefined, step: Step): boolean {
  return step.stepNumber > 1 && before !== undefined && before.evidence === evidenceOf(step);
}

function evidenceOf(step: Step): string {
  return JSON.stringify([step.findings, step.filesChecked, step.relevantFiles, step.confidence]);
}

function union(a: readonly string[] = [], b: readonly string[] = []): string[] {
  return [...new Set([...a, ...b])];
}

function unionBy(a: readonly Record<string, unknown>[] = [], b: readonly Record<string, unknown>[] = []) {
  const byText = new Map([...a, ...b].map(issue => [JSON.stringify(issue), issue]));
  return [...byText.values()];
}

const fields = z.object({
  ...workflowFields,
  ...quietWorkflowFields,
  findings: workflowFields.findings.optional(),
  // Each tool has checked it against its own words.
  confidence: z.string().optional(),
  images: z.array(z.string()).optional(),
  is_step_revision: z.boolean().optional(),
  revises_step_number: z.int().optional(),
});

/** The common part of a workflow tool's validated arguments. */
export function stepOf(args: Record<string, unknown>, unsure = 'low'): Step & { useExpert?: boolean } {
  const given = fields.parse(args);
  return {
    step: given.step,
    stepNumber: given.step_number,
    totalSteps: given.total_steps,
    nextStepRequired: given.next_step_required,
    findings: given.findings ?? '',
    filesChecked: given.files_checked ?? [],
    relevantFiles: given.relevant_files ?? [],
    relevantContext: given.relevant_context ?? [],
    issuesFound: given.issues_found ?? [],
    images: given.images ?? [],
    confidence: given.confidence ?? unsure,
    hypothesis: given.hypothesis,
    revises: revised(given),
    useExpert: given.use_assistant_model,
  };
}

/** Hosts that fill in every field send a number beside `is_step_revision: false`: that revises nothing. */
function revised(given: z.output<typeof fields>): number | undefined {
  if (given.is_step_revision === false) return given.revises_step;
  return given.revises_step ?? given.revises_step_number ?? (given.is_step_revision ? given.step_number : undefined);
}

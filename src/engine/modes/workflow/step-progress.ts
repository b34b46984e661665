import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { type Step, type WorkflowProgress, workflowProgress } from '../../../calls/tool.ts';
import type { JsonObject } from '../../../core/json.ts';
import type { WorkflowState } from '../../../core/thread.ts';

/**
 * What a thread remembers of a workflow; undefined when there is none or it was written by something else. `fields` are the
 * tool's own, by which settings are judged: an imported thread may say anything.
 */
export function readProgress(state: WorkflowState | undefined, fields: Readonly<z.ZodRawShape>) {
  // Threads of earlier versions have another word for the end.
  const progress = workflowProgress.safeParse({ ended: state?.asked === true, ...state }).data;
  return progress && { ...progress, settings: soundSettings(progress.settings, fields) };
}

function soundSettings(settings: JsonObject, fields: Readonly<z.ZodRawShape>): JsonObject {
  const isSound = ([name, value]: [string, unknown]) => {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    return field !== undefined && z.safeParse(field, value).success;
  };
  return Object.fromEntries(Object.entries(settings).filter(isSound));
}

/** Whether a step belongs to the run that the thread remembers. Step 1 begins a new run, unless it revises. */
export const isSameRun = (before: WorkflowProgress | undefined, step: Step): before is WorkflowProgress =>
  before !== undefined && (step.stepNumber > 1 || step.revises !== undefined);

/**
 * What the caller should know of a step that does not follow the last one; undefined: it does. Each is taken as it comes. `isForked`:
 * the thread has steps of the tool, but not what they gathered; `asks`: the last step may be sent again, to ask the expert again.
 */
export function orderWarning(
  tool: string,
  step: Step,
  before: WorkflowProgress | undefined,
  { isForked, asks }: { isForked: boolean; asks: boolean },
): string | undefined {
  const { stepNumber: number, revises } = step;
  if (!before && number === 1) return undefined;
  if (!before)
    return isForked
      ? `This fork has the text of the earlier steps of ${tool}, but not their lists: name relevant files and issues again, and of a plan each step.`
      : `Step ${number} is the first of ${tool} in this thread. If others came before it, send the continuation_id that step 1 gave, or "last".`;
  const { lastStep, ended } = before;
  if (!isSameRun(before, step))
    return ended
      ? undefined
      : `Step 1 began a new run; what came before stays in the conversation (${lastStep} steps). Send revises_step: 1 to correct a first step instead.`;
  if (revises !== undefined)
    return revises > lastStep
      ? `Step ${revises} does not exist, so nothing was revised: this step was added.`
      : undefined;
  if (number > lastStep + 1) return `Step ${number} followed step ${lastStep}: what lies between was not done here.`;
  return number > lastStep || step.branch !== undefined || (asks && ended && number === lastStep)
    ? undefined
    : `Step ${number} had come before: this one was added to it. Send revises_step: ${number} to replace it; the next step is ${lastStep + 1}.`;
}

export function advance(before: WorkflowProgress | undefined, step: Step, afterSeq: number): WorkflowProgress {
  const known = isSameRun(before, step) ? before : undefined;
  const { replaced, ...lists } = gathered(known, step);
  const held = (known?.hypotheses ?? []).filter(({ step: at }) => !replaced.includes(at));
  const hypothesis = step.hypothesis
    ? [{ step: step.stepNumber, hypothesis: step.hypothesis, confidence: step.confidence }]
    : [];
  return {
    lastStep: Math.max(known?.lastStep ?? 0, step.stepNumber),
    totalSteps: Math.max(step.totalSteps, step.stepNumber, known?.lastStep ?? 0),
    request: step.revises === 1 ? step.step : (known?.request ?? step.step),
    afterSeq: known?.afterSeq ?? afterSeq,
    ...lists,
    hypotheses: held.some(each => isDeepStrictEqual(each, hypothesis[0])) ? held : [...held, ...hypothesis],
    confidence: step.confidence,
    evidence: evidenceOf(step),
    known: known?.known ?? false,
    settings: known?.settings ?? {},
    kept: known?.kept ?? {},
    ended: !step.nextStepRequired,
  };
}

export const repeatsEvidence = (before: WorkflowProgress | undefined, step: Step): boolean =>
  isSameRun(before, step) && before.evidence === evidenceOf(step);

const evidenceOf = (step: Step): string =>
  JSON.stringify([step.findings, step.filesChecked, step.relevantFiles, step.confidence]);

type StepLists = Omit<WorkflowProgress['steps'][number], 'numbers'>;

/** The lists of all steps. A revision takes the place of its step, whose files and code stay where it names none. */
function gathered(known: WorkflowProgress | undefined, step: Step) {
  const before = known?.steps ?? [];
  const revised = before.filter(({ numbers }) => step.revises !== undefined && numbers.includes(step.revises));
  const given = (list: (lists: StepLists) => string[]) => (list(step).length > 0 ? list(step) : revised.flatMap(list));
  const current = {
    numbers: [...new Set([step.stepNumber, ...revised.flatMap(({ numbers }) => numbers)])],
    filesChecked: given(lists => lists.filesChecked),
    relevantFiles: given(lists => lists.relevantFiles),
    relevantContext: given(lists => lists.relevantContext),
    issuesFound: step.issuesFound,
    images: given(lists => lists.images),
  };
  const steps = [...before.filter(each => !revised.includes(each)), current];
  /** What no step is known to have given stays: the tool's own issues, and what earlier versions stored. */
  function all<Item>(list: (lists: StepLists) => Item[]): Item[] {
    const attributed = new Set(before.flatMap(list).map(item => JSON.stringify(item)));
    const rest = (known ? list(known) : []).filter(item => !attributed.has(JSON.stringify(item)));
    return [...new Map([...rest, ...steps.flatMap(list)].map(item => [JSON.stringify(item), item])).values()];
  }
  return {
    // What earlier revisions of the same step supposed is taken back too.
    replaced: [step.revises, ...revised.flatMap(({ numbers }) => numbers)],
    steps,
    filesChecked: all(lists => lists.filesChecked),
    relevantFiles: all(lists => lists.relevantFiles),
    relevantContext: all(lists => lists.relevantContext),
    issuesFound: all(lists => lists.issuesFound),
    images: all(lists => lists.images),
  };
}

const defaultLevels = ['exploring', 'medium', 'high', 'very_high', 'almost_certain'] as const;

/** For guidance, where no level is told: the first third of the steps explores, the last concludes. `levels`: the tool's five words. */
export function levelOf({ stepNumber, totalSteps }: Step, levels: readonly string[] = defaultLevels): string {
  const explored = Math.floor(totalSteps / 3);
  const rank =
    stepNumber >= totalSteps
      ? 4
      : stepNumber <= explored
        ? 0
        : 1 + Math.floor(((stepNumber - explored - 1) * 3) / (totalSteps - explored - 1));
  return levels[rank] ?? '';
}

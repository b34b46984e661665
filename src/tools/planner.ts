import { z } from 'zod';
import { hiddenFields, quietWorkflowFields, stepFields, wordsOf, workflowFields } from '../calls/fields.ts';
import { defineTool, type Step, type WorkflowProgress } from '../calls/tool.ts';
import type { JsonObject } from '../core/json.ts';

const stepNumber = z.int().min(1).optional();
const { revises_step } = quietWorkflowFields;

const fields = {
  ...stepFields,
  is_step_revision: z.boolean().optional(),
  revises_step_number: stepNumber,
  is_branch_point: z.boolean().optional(),
  branch_from_step: stepNumber,
  branch_id: z.string().describe('On every step of the branch').optional(),
  more_steps_needed: z.boolean().optional(),
  continuation_id: workflowFields.continuation_id,
};

type Arguments = z.output<z.ZodObject<typeof fields>>;

export const planner = defineTool({
  name: 'planner',
  title: 'Plan',
  description: 'Plan large work in steps, with branches and revisions. Returns and stores the plan; no model.',
  toolset: 'core',
  effects: { writes: false, destroys: false, network: false, idempotent: false },
  fields,
  accepts: { ...hiddenFields, model: workflowFields.model, use_assistant_model: z.boolean().optional(), revises_step },
  mode: {
    kind: 'workflow',
    words: wordsOf('planner', 'planner', { pause: 'pause_for_planning' }),
    requiredActions: step => (step.stepNumber >= step.totalSteps ? conclusion : (thoughtsAt(step) ?? onwards)),
    counters: (_step, { kept }) => ({ current_confidence: 'planning', step_history_length: entriesIn(kept).length }),
    keep: (kept, step, args) => ({ entries: withStep(entriesIn(kept), step, args).map(entry => ({ ...entry })) }),
    keys: ({ step, progress }) => ({ step_content: step.step, ...(step.nextStepRequired && pauseOf(step, progress)) }),
    metadata({ args, progress }) {
      const entries = entriesIn(progress.kept);
      const { is_step_revision = false, is_branch_point = false, more_steps_needed = false, ...others } = args;
      const { revises_step_number, branch_from_step, branch_id } = others;
      return {
        ...{ branches: branchesOf(entries), step_history_length: entries.length },
        ...{ is_step_revision, revises_step_number, is_branch_point, branch_from_step, branch_id, more_steps_needed },
      };
    },
    finish({ progress }) {
      const entries = entriesIn(progress.kept);
      const branches = branchesOf(entries);
      const revised = entries.filter(entry => entry.revisedBy.length > 0).length;
      const plan = planText(progress.request, entries);
      const facts = [
        `${entries.length} steps`,
        branches.length > 0 && `${branches.length} branches (${branches.join(', ')})`,
        revised > 0 && `${revised} revised`,
      ].filter(Boolean);
      return {
        turn: plan,
        document: {
          status: 'planning_complete',
          planning_complete: true,
          plan,
          plan_summary: `The plan is complete: ${facts.join(', ')}.`,
          output: {
            instructions: 'Present "plan" to the user as a whole, branches as alternatives to choose from.',
            format: 'step_by_step_planning',
            presentation_guidelines: {
              completed_plans:
                'Headings, lists and plain ASCII diagrams; no emoji; no guesses at time or cost unless asked.',
              step_content: 'Say of each step what it needs, what it brings and how one sees that it is done.',
              continuation: 'The thread has the whole plan: any tool can be given its continuation_id.',
            },
          },
          next_steps: 'Present the plan, ask which branch to take where there are several, and offer to carry it out.',
        },
      };
    },
  },
});

/** A step in its place in the plan. */
const entry = z.object({
  step: z.number(),
  text: z.string(),
  branch: z.string().optional(),
  /** The step that the branch leaves from; on the first entry of a branch. */
  from: z.number().optional(),
  /** Numbers of the steps whose text took this one's place, oldest first. */
  revisedBy: z.array(z.number()),
});

type Entry = z.infer<typeof entry>;

const entriesIn = (kept: JsonObject): Entry[] => z.array(entry).safeParse(kept.entries).data ?? [];

/** The plan with one more step: a revision takes the place of what it revises, whatever number it bears itself. */
function withStep(entries: readonly Entry[], step: Step, args: Arguments): Entry[] {
  const { revises } = step;
  // Branches may count alike: the step of the branch that is named is meant, else any.
  const meant = entries.filter(entry => entry.step === revises || entry.revisedBy.includes(revises ?? 0));
  const old = meant.find(({ branch }) => branch === args.branch_id) ?? meant[0];
  if (old)
    return entries.map(entry =>
      entry === old ? { ...entry, text: step.step, revisedBy: [...entry.revisedBy, step.stepNumber] } : entry,
    );
  const added = { step: step.stepNumber, text: step.step, ...placeOf(entries, args), revisedBy: [] };
  // A step that is sent again, word for word, is in the plan already.
  const isThere = entries.some(
    ({ step, text, branch }) => step === added.step && text === added.text && branch === args.branch_id,
  );
  return isThere ? [...entries] : [...entries, added];
}

/** A step belongs to the branch it names. One that marks a branch point and names no branch is part of the trunk. */
function placeOf(entries: readonly Entry[], { branch_id, branch_from_step }: Arguments): Partial<Entry> {
  if (branch_id === undefined) return {};
  if (entries.some(entry => entry.branch === branch_id)) return { branch: branch_id };
  const from = branch_from_step ?? entries.findLast(entry => entry.branch === undefined)?.step;
  if (from === undefined) return { branch: branch_id };
  const left = entries.find(entry => entry.step === from || entry.revisedBy.includes(from));
  // A step that did not come in this thread is named as the caller names it.
  return { branch: branch_id, from: left?.step ?? from };
}

const branchesOf = (entries: readonly Entry[]): string[] => [...new Set(entries.flatMap(({ branch }) => branch ?? []))];

/** Trunk first, then each branch by itself, in the order in which they were begun. */
function planText(request: string, entries: readonly Entry[]): string {
  const trunk = entries.filter(entry => entry.branch === undefined).map(entry => section('##', entry));
  const branches = branchesOf(entries).map(branch => {
    const steps = entries.filter(entry => entry.branch === branch);
    const from = steps[0]?.from === undefined ? '' : ` (from step ${steps[0].from})`;
    return [`## Branch "${branch}"${from}`, ...steps.map(entry => section('###', entry))].join('\n\n');
  });
  const title = request.split('\n', 1)[0]?.trim() ?? '';
  return [`# Plan: ${title.length > 100 ? `${title.slice(0, 99)}…` : title}`, ...trunk, ...branches].join('\n\n');
}

function section(level: string, { step, text, revisedBy }: Entry): string {
  const others = revisedBy.filter(number => number !== step);
  const note =
    revisedBy.length === 0 ? '' : others.length > 0 ? ` (revised in step ${others.join(', ')})` : ' (revised)';
  return `${level} Step ${step}${note}\n\n${text}`;
}

/** The first steps of a larger plan decide it: they are thought over before the next one. */
const thoughtsAt = ({ stepNumber, totalSteps }: Step): string[] | undefined =>
  totalSteps >= 5 ? deepThoughts[stepNumber - 1] : undefined;

function pauseOf(step: Step, { lastStep, totalSteps }: WorkflowProgress): JsonObject {
  const deep = thoughtsAt(step);
  const left = Math.max(0, totalSteps - lastStep);
  const go = `call planner with step_number ${lastStep + 1} and the continuation_id`;
  const more = 'Set next_step_required to false when the plan is complete; raise total_steps if it needs more.';
  if (!deep) return { next_steps: `Steps left: about ${left}. Then ${go}. ${more}` };
  return {
    status: 'pause_for_deep_thinking',
    thinking_required: true,
    required_thinking: deep,
    next_steps: `Answer these in your plan, without calling another tool, then ${go}. ${more}`,
  };
}

const deepThoughts = [
  [
    'State the goal and what is out of scope',
    'Compare two or three approaches with their cost',
    'List the constraints: stack, people, compatibility, data',
    'Define how success will be measured',
    'Name what could make it fail, and how early that would show',
  ],
  [
    'Choose the approach, and give the reason',
    'Divide it into three to five phases, each useful alone',
    'List what depends on what',
    'List what each phase needs that is not there yet',
    'Name the chain of steps that decides how long the whole takes',
  ],
  [
    'Check that the plan leads to everything that was asked for',
    'Name its gaps, and the step that closes each',
    'State what is done differently if a risk comes true',
    'List the very first things to do',
    'Name files, interfaces and tests instead of directions from here on',
  ],
];

const onwards = [
  'Look at what is there already, where the next step touches it',
  'Work out the next step: what it does, needs and changes',
  'Revise an earlier step if this one shows it to be wrong; open a branch where there are two good ways',
];

const conclusion = ['Check that every requirement has a step', 'Set next_step_required to false'];

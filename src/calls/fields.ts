import { z } from 'zod';

const list = (text: string) => z.array(z.string()).describe(text).optional();

/** Fields of every tool that asks a model. */
export const modelField = z.string().describe('Name, alias or provider:model[:effort]').optional();
/** The field that names the thread to continue. */
export const continuationId = z.string().describe('Thread to continue, or "last"').optional();
/** The field for files whose text is sent to the model. */
export const filePaths = list('Files or directories; file.ts:10-80 for lines');

/** Advertised by four tools, and taken by all that ask a model. */
export const webSearchField = z.boolean().optional();

/** What a step is, in every tool that works in steps. */
export const stepFields = {
  step: z.string().min(1).describe('Step 1: the task'),
  step_number: z.int().min(1),
  total_steps: z.int().min(1),
  next_step_required: z.boolean(),
};

const confidence = z.enum(['exploring', 'low', 'medium', 'high', 'very_high', 'almost_certain', 'certain']).optional();

/** Fields of every tool whose steps gather evidence; what they have in common is said once, in the server's instructions. */
export const workflowFields = {
  ...stepFields,
  findings: z.string(),
  files_checked: z.array(z.string()).optional(),
  relevant_files: z.array(z.string()).optional(),
  issues_found: z.array(z.record(z.string(), z.unknown())).describe('[{severity, description}]').optional(),
  confidence,
  use_assistant_model: z.boolean().optional(),
  continuation_id: z.string().optional(),
  model: z.string().optional(),
};

/** What a review looks at between its first step and its last, one a step. */
const reviewConcerns = [
  'Check correctness: boundaries, wrong states, errors that are swallowed or mistaken for success',
  'Check security: input that is trusted, rights, secrets, unsafe defaults',
  'Check concurrency and resources: races, leaks, limits, cancellation',
  'Check performance where it is felt: hot paths, queries in loops, growth',
  'Check tests: what no test notices, and which tests can not fail',
] as const;

const rate = 'Rate each issue: critical, high, medium or low, with file and line';

/** What a review has its caller do before the next step; `again` where the thread knew all of it before the first. */
export const reviewActions =
  (todo: Record<'first' | 'again' | 'last', readonly string[]> & { second?: readonly string[] }) =>
  (
    step: { stepNumber: number; totalSteps: number },
    _args: unknown,
    { known }: { known: boolean },
  ): readonly string[] => {
    if (step.stepNumber === 1) return known ? todo.again : todo.first;
    if (step.stepNumber >= step.totalSteps) return todo.last;
    const concern = reviewConcerns[(step.stepNumber - 2) % reviewConcerns.length] ?? '';
    return [concern, ...(step.stepNumber === 2 ? (todo.second ?? []) : []), rate];
  };

/** How reviews weigh what they find. */
export const severity = {
  /** What experts rate by. */
  scale:
    'Severity: CRITICAL: data loss, an exploitable hole, a broken main path. HIGH: a bug in foreseeable use. MEDIUM: fails rarely, or makes the next change risky. LOW: fix when you next touch this code.',
  filter: z.enum(['critical', 'high', 'medium', 'low', 'all']).optional(),
  /** What an expert is told of that filter. */
  lowest: (filter: string | undefined, what: string) =>
    filter &&
    !/^all$/i.test(filter) &&
    `Report only ${what} of severity ${filter}${/^critical$/i.test(filter) ? '' : ' and above'}`,
};

/** Fields that only some workflow tools advertise, and all of them take. */
export const quietWorkflowFields = {
  relevant_context: list('Relevant functions and methods'),
  hypothesis: z.string().optional(),
  images: z.array(z.string()).optional(),
  revises_step: z.int().min(1).describe('Number of the step this one replaces').optional(),
};

export const stance = z.enum(['for', 'against', 'neutral']);

/** Fields of a panel: `prompt` asks all at once, `step_number` one model a call. */
export const panelFields = {
  prompt: z.string().describe('Proposal; asks all models at once').optional(),
  models: z
    .array(
      z.union(
        [
          // Hosts that check calls themselves let a plain text through only where it stands here.
          z.string(),
          z.object({ model: z.string(), stance: stance.optional(), stance_prompt: z.string().optional() }),
        ],
        'expected "id", "id:against" or {"model", "stance"}',
      ),
    )
    .describe('"id", "id:against" or objects; absent: three vendors')
    .optional(),
  relevant_files: list('Shown to all models'),
  rounds: z.int().min(1).max(2).describe('2: revise after seeing other verdicts').optional(),
  synthesizer: z.string().optional(),
  max_cost_usd: z.number().optional(),
  step: z.string().min(1).describe('Instead of prompt: one model per call. Step 1: proposal').optional(),
  step_number: stepFields.step_number.optional(),
  total_steps: stepFields.total_steps.optional(),
  next_step_required: z.boolean().optional(),
  findings: z.string().describe('Your view; not sent to models').optional(),
  continuation_id: z.string().optional(),
};

/** What callers of a panel may send besides; the last three say what the thread knows better, and are not read. */
export const quietPanelFields = {
  images: z.array(z.string()).optional(),
  use_assistant_model: z.boolean().optional(),
  current_model_index: z.int().optional(),
  model_responses: z.array(z.unknown()).optional(),
};

/** Accepted by every tool that asks a model, advertised by none: hosts know them, models need not. */
export const hiddenFields = {
  /** From 0 to 1, where the model takes one. */
  temperature: z.number().min(0).max(1).optional(),
  /** How hard the model thinks. */
  thinking_mode: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']).optional(),
  /** True: the model may search the web, where it can. */
  use_websearch: webSearchField,
  /** What the model sees of the thread: all of it, the files alone, or nothing. */
  context: z.enum(['thread', 'files', 'none']).optional(),
  /** True: another model may answer for the one that is named; false: no other may, even for one that was chosen. */
  allow_fallback: z.boolean().optional(),
  /** US dollars for the call as a whole. */
  max_cost_usd: z.number().optional(),
  /** Includes the places in the project that concern the question, as far as they fit. */
  use_search: z.boolean().optional(),
};

/** What a tool, a workflow unless `all` says otherwise, takes besides the fields that it advertises. */
export const unadvertised = (
  fields: z.ZodRawShape,
  all: z.ZodRawShape = { ...hiddenFields, ...workflowFields, ...quietWorkflowFields },
): z.ZodRawShape => Object.fromEntries(Object.entries(all).filter(([name]) => !Object.hasOwn(fields, name)));

/** What the tools share that work in steps and only read, beside what each says of itself; `renamed` are older names of its own. */
export const inSteps = <const Fields extends z.ZodRawShape>(fields: Fields, renamed: Record<string, string> = {}) => ({
  effects: { writes: false, destroys: false, network: true, idempotent: false },
  fields,
  accepts: unadvertised(fields),
  renamed: { files: 'relevant_files', absolute_file_paths: 'relevant_files', ...renamed },
});

/** The words of one workflow's replies: callers switch on them. */
export interface WorkflowWords {
  /** `status` of a step after which work goes on. */
  pause: string;
  /** Flag set with it. */
  required: string;
  /** Key of the object with the counters. */
  status: string;
  /** Flag set by the last step. */
  complete: string;
  /** Key of the object that sums the work up. */
  summary: string;
  /** Key of the counts of issues by severity, beside the counters. */
  bySeverity?: string;
  /** The reply when the expert was not needed; absent: it is always asked. */
  skipped?: {
    status: string;
    /** The expert's `status`. */
    reason: string;
    /** Why nobody was asked, as the beginning of a sentence; absent: the caller's confidence. */
    because?: string;
    /** `confidence_level` of the summary; absent: the caller's confidence. */
    level?: string;
  };
}

/** The words of a workflow's replies: `pause_for_validation`, `precommit_required`, `validation_status` and so on. */
export const wordsOf = (tool: string, work: string, others: Partial<WorkflowWords> = {}): WorkflowWords => ({
  pause: `pause_for_${work}`,
  required: `${tool}_required`,
  status: `${work}_status`,
  complete: `${work}_complete`,
  summary: `complete_${work}`,
  ...others,
});

/** Fields of the tools that put one text to several models. */
export const modelsField = z.array(z.string()).optional();
export const promptFile = z.string().min(1);

/** What callers of other servers call the same. */
export const promptFileNames = {
  file: 'file_path',
  abs_file_path: 'file_path',
  models: 'models_prefixed_by_provider',
} as const;

export const outputFields = {
  output_dir: z.string().describe('Default: responses/ next to the file').optional(),
  overwrite: z.boolean().describe('Default: new names').optional(),
};

/** The names of arguments that name files. */
export const fileFields = /(^|_)(files?|paths?|images?|directory|file_ids)(_|$)/;

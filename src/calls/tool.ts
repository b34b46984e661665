import { z } from 'zod';
import type { JobReply } from '../core/job.ts';
import { isRecord, type JsonObject } from '../core/json.ts';
import type { Effort } from '../core/model.ts';
import type { KeptReply, ToolListing } from '../core/tool-host.ts';
import type { Category } from '../models/routing/roster.ts';
import type { Tracer } from '../workspace/call-graph/tracer.ts';
import type { Git } from '../workspace/git/git.ts';
import type { ActionContext } from './action-context.ts';
import { quietWorkflowFields, type WorkflowWords, workflowFields } from './fields.ts';

/** One text to several models at once, each by itself and without a thread; every model has an entry of its own in the reply. */
export interface FanoutMode extends Pick<AskingMode, 'category'> {
  kind: 'fanout';
  /** Where the text comes from: the field `text`, or the file that `file_path` names. */
  from: 'text' | 'file';
  /** Where the answers go: into the reply, or into files, one a model. */
  to: 'reply' | 'files';
  /** What an additional model, which reads the question with all answers and decides, is told. */
  decision?: string;
}

export type { ProviderState } from '../models/call/models.ts';
export type { KeptDocument, VendorCache } from '../models/vendor-services.ts';
export type { TracedProject } from '../workspace/call-graph/tracer.ts';
export type { ChangedFile, RepositoryChanges } from '../workspace/git/changes.ts';
export type { ActionContext, UploadOutcome } from './action-context.ts';

/** What a tool does to the world; the protocol's annotations are derived from it. */
export interface Effects {
  /** Changes files or threads. */
  writes: boolean;
  /** May remove what was there. */
  destroys: boolean;
  /** Talks to a model or the network. */
  network: boolean;
  /** The same call again changes nothing more. */
  idempotent: boolean;
}

/** A tool whose models are asked once. */
interface AskingMode {
  /** Category of the model if the call names none. */
  category: Category;
  effort: Effort;
  /** What each model is told to do, after everything else but the form of its answer. */
  role: string;
}

/** One question, one answer. */
export interface PromptMode<Args> extends AskingMode {
  kind: 'prompt';
  /** The text that becomes the caller's turn; absent: the field `prompt`. */
  question?(args: Args): string;
  /** For tools about documents: their files, uploads and provider. */
  documents?(args: Args): DocumentQuestion;
  /** Models that may generate code are told how to hand it over as a file. */
  generatesCode?: boolean;
}

/** What a question about documents is about. */
export interface DocumentQuestion {
  /** Paths as the caller named them. */
  files: readonly string[];
  /** Ids of documents that were uploaded before. */
  fileIds?: readonly string[];
  /** Provider whose models answer if the caller names none; absent: depends on the type and length of the files. */
  provider?: string;
}

const sentStep = z.object({
  ...workflowFields,
  ...quietWorkflowFields,
  findings: workflowFields.findings.optional(),
  // Each tool has checked it against its own words.
  confidence: z.string().optional(),
  is_step_revision: z.boolean().optional(),
  revises_step_number: z.int().optional(),
  branch_id: z.string().optional(),
});

/** A step as the caller sent it. */
export type Step = ReturnType<typeof stepOf>;

/** The common part of a workflow tool's validated arguments; `unsure`: the confidence of a step that names none. */
export function stepOf(args: Record<string, unknown>, unsure = 'low') {
  const given = sentStep.parse(args);
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
    /** The earlier step that this one takes the place of. */
    revises: revised(given),
    /** The branch of a plan that it belongs to; steps of different branches may have the same numbers. */
    branch: given.branch_id,
    useExpert: given.use_assistant_model,
  };
}

/** Hosts that fill in every field send a number beside `is_step_revision: false`: that revises nothing. */
function revised(given: z.output<typeof sentStep>): number | undefined {
  if (given.is_step_revision === false) return given.revises_step;
  return given.revises_step ?? given.revises_step_number ?? (given.is_step_revision ? given.step_number : undefined);
}

/** What the functions of a workflow tool receive. */
export interface StepFacts<Args> {
  step: Step;
  args: Args;
  /** This step included. */
  progress: WorkflowProgress;
  /** What the caller contributed at each step of this run, this one included. */
  work: readonly string[];
  /** What the tool itself found at this step. */
  evidence?: Evidence;
}

/** What a tool that gathers evidence may use in one call, within the roots. */
export interface EvidenceContext {
  /** The folder that relative paths start from. */
  root: string;
  /** Keys masks: the thread's id. */
  scope: string;
  signal: AbortSignal;
  git: Git;
  /** Call graphs of the project's sources. */
  trace: Tracer;
}

/** What a tool found out by itself. The engine masks all of it. */
export interface Evidence {
  /** Keys for the reply to this step. */
  document: JsonObject;
  /** Take the place of those that the tool found at an earlier step; they count like the caller's. */
  issues?: readonly Record<string, unknown>[];
  /** Lines for the caller's turn, which everybody after it reads. */
  turn?: readonly string[];
  /** For the expert alone, what matters most first. What has no room is cut or left out, and named. */
  forExpert?: readonly EvidencePiece[];
  /** Why there is nothing to work on, and what to do: the work ends with it, and no expert is asked. */
  nothing?: string | undefined;
}

export interface EvidencePiece {
  title: string;
  text: string;
}

/** `found`: the source files in a step's relevant files and directories; `gone`: counted files that are no longer there. */
export type StepFiles = Readonly<Record<'found' | 'gone', readonly string[]>>;

/** The caller works in steps; the last one may ask an expert. */
export interface WorkflowMode<Args = Record<string, unknown>> {
  kind: 'workflow';
  /** Which models suit the expert; absent: `extended_reasoning`. */
  category?: Category;
  /** How hard the expert thinks; absent: `high`. */
  effort?: Effort;
  words: WorkflowWords;
  /** What to do before the next step. */
  requiredActions(step: Step, args: Args, progress: WorkflowProgress): readonly string[];
  /** The confidence of a step that names none; absent: `low`. */
  unsure?: string;
  /** The words for five stages of the work, by which steps without a confidence are guided; absent: those of confidence. */
  levels?: readonly string[];
  /** Whether the caller's own certainty, or its settings, make the expert unnecessary; absent: never. */
  certain?(step: Step, args: Args, settings: Partial<Args>): boolean;
  /** What a call is about that has these fields and neither a step nor a question; absent: there is no such call. */
  asks?: string;
  /** Fields that the first step can't do without. */
  neededAtFirst?: readonly string[];
  /** Counters of this tool beside the common ones. */
  counters?(step: Step, state: WorkflowProgress): JsonObject;
  /** Names of the tool's own fields that hold for all later steps, until one says otherwise. */
  settings?: readonly string[];
  /** What the expert should know of the settings; one line each, whatever is empty left out. */
  brief?(settings: Partial<Args>): (string | false | undefined)[];
  /** What the expert should read besides the relevant files. */
  files?(settings: Partial<Args>): string[];
  /** The files that the tool counts, by what it kept so far; absent: it counts none, and `keep` is told of no files. */
  counted?(kept: JsonObject): readonly string[];
  /** What the tool keeps of its own from step to step: what it kept so far (nothing at the first step), this step, its files. */
  keep?(kept: JsonObject, step: Step, args: Args, files: StepFiles): JsonObject;
  /** Why a last step can't be the last: the keys of a reply after which the work goes on. Absent or undefined: it can. */
  unfinished?(facts: StepFacts<Args>): JsonObject | undefined;
  /** Keys of its own in the reply to every step; they win over the common ones. */
  keys?(facts: StepFacts<Args>): JsonObject;
  /** Facts of its own for the reply's metadata, where no model was asked. */
  metadata?(facts: StepFacts<Args>): JsonObject;
  /** Looks for itself, at the first step, at the last, and when its settings change; `settings` are the tool's own fields that hold. */
  evidence?(settings: Partial<Args>, context: EvidenceContext): Promise<Evidence>;
  /** Keys with which the work ends; `answer` is the expert's, where one was asked. */
  verdict?(facts: StepFacts<Args>, answer?: string): JsonObject;
  /** Absent: no expert is asked after the last step, and `finish` ends the work. */
  expert?: {
    /** What the expert is told to do, after everything else. */
    role: string;
    /** The answer is asked for as a JSON object. */
    json: boolean;
    /** Keys of the object with what the expert need not write out. */
    fillIn?(answer: Record<string, unknown>): Record<string, unknown>;
    /** What the caller does with the answer; absent: it presents both views. */
    after?: string;
  };
  /** The end of work without an expert: the reply's keys, and the turn that everybody after it reads. */
  finish?(facts: StepFacts<Args>): { document: JsonObject; turn: string };
}

const texts = z.array(z.string());

const stepLists = {
  filesChecked: texts,
  relevantFiles: texts,
  relevantContext: texts,
  issuesFound: z.array(z.record(z.string(), z.unknown())),
  images: texts,
};

/** What a workflow has gathered so far, all steps together, as a thread remembers it. */
export const workflowProgress = z.object({
  lastStep: z.number(),
  totalSteps: z.number(),
  request: z.string(),
  /** The thread's turn before its first step. */
  afterSeq: z.number(),
  ...stepLists,
  /** What each step gave of these lists, by the numbers that a revision may name it by. Threads of earlier versions have none. */
  steps: z.array(z.object({ numbers: z.array(z.number()), ...stepLists })).default([]),
  hypotheses: z.array(z.object({ step: z.number(), hypothesis: z.string(), confidence: z.string() })),
  confidence: z.string(),
  /** Of the last step: findings, files and confidence. Equal to the next one's when that brought nothing new. */
  evidence: z.string(),
  /** The thread had all files of the first step before it. */
  known: z.boolean(),
  /** The tool's own fields that hold on. */
  settings: z.custom<JsonObject>(isRecord),
  /** What the tool keeps of its own. */
  kept: z.custom<JsonObject>(isRecord),
  /** Whether the last step said that no other is needed; such a step may come again. */
  ended: z.boolean(),
});

export type WorkflowProgress = z.infer<typeof workflowProgress>;

/** Several models judge one proposal, each by itself; then their verdicts are brought together. */
export interface PanelMode extends AskingMode {
  kind: 'panel';
  /** Added to the role: the side a model takes, and where it must leave it. A caller's own words come on top. */
  stances: Readonly<Record<'for' | 'against' | 'neutral', string>>;
  /** What a model is told when it sees the verdicts of the others. */
  review: string;
  /** What the model is told that brings the verdicts together; its answer is asked for as a JSON object. */
  synthesis: string;
}

/** An error message becomes a diagnosis: evidence is checked against the files, a patch by git. */
export interface DiagnoseMode extends AskingMode {
  kind: 'diagnose';
}

/** Several tools under one name: a call goes to the one that a field names, with the other arguments as they are. */
export interface AliasMode {
  kind: 'alias';
  /** The field that names the tool. */
  by: string;
  /** The tools it may name. */
  to: readonly string[];
}

/** How a tool works: the engine has one mode of execution for each `kind`. */
export type ToolMode<Args = Record<string, unknown>> =
  | PromptMode<Args>
  | WorkflowMode<Args>
  | PanelMode
  | FanoutMode
  | DiagnoseMode
  /** No model: the handler does the work. */
  | { kind: 'action'; run(args: Args, context: ActionContext): Promise<JsonObject> }
  /** Returns the reply of another call unchanged. */
  | { kind: 'passThrough'; run(args: Args, context: ActionContext): Promise<JobReply & { kept?: KeptReply }> }
  | AliasMode
  /** Another vendor's agent with a command line works on the request; the tool's fields are those of `clink`. */
  | { kind: 'externalCli' }
  /** A model works with tools of its own, round by round, within what the operator and the user allow. */
  | { kind: 'agent' };

const plain = {
  /** Its calls take a `continuation_id`. */
  continues: true,
  /** Its calls are recorded before they do anything: no thread holds their question. */
  recordsFirst: false,
  /** It may change files of the project by itself. */
  edits: false,
};

/** What is the same for all tools of a kind, for code that does not execute it. */
export const kindTraits: Readonly<Record<ToolMode['kind'], typeof plain>> = {
  action: { ...plain, continues: false, recordsFirst: true },
  agent: { ...plain, recordsFirst: true, edits: true },
  alias: plain,
  diagnose: plain,
  externalCli: plain,
  fanout: { ...plain, continues: false, recordsFirst: true },
  panel: plain,
  passThrough: { ...plain, continues: false, recordsFirst: true },
  prompt: plain,
  workflow: plain,
};

/** What a tool is called, takes and does. */
export interface ToolDefinition<Fields extends z.ZodRawShape = z.ZodRawShape> {
  /** File name and tool name. */
  name: string;
  /** For people. */
  title: string;
  /** One sentence, written for the model that searches tools. */
  description: string;
  /** Group by which POLYLOGUE_TOOLSETS offers it. */
  toolset: 'core' | 'code' | 'wrapper' | 'agent' | 'files' | 'ops';
  /** `internal`: never listed; `manager`: also used to choose models. */
  tier: 'user' | 'manager' | 'internal';
  /** Whether it writes, destroys, uses the network, and can be repeated. */
  effects: Effects;
  /** Offered only where one of these providers is configured; absent: everywhere. */
  needs?: readonly string[];
  /** Where one of these is installed, and the operator chose no toolsets, it is offered whatever its toolset. */
  programs?: readonly string[];
  /** Advertised in `tools/list`. */
  fields: Fields;
  /** Where the tool writes only by these fields: a read-only server offers it without them. */
  writesBy?: readonly string[];
  /** The fields of a tool with a part that only reads, as a read-only server offers it: their values allow nothing else. */
  readingFields?: z.ZodRawShape;
  /** Where `fields` are those: the ones of the whole tool, so that a call that would write is told why it may not. */
  writingFields?: z.ZodRawShape;
  /** Accepted, but not advertised. */
  accepts?: z.ZodRawShape;
  /** Older names of fields → theirs. */
  renamed?: Readonly<Record<string, string>>;
  /** How it works: by a question to a model, in steps, or by its own function. */
  mode: ToolMode<z.output<z.ZodObject<Fields>>>;
}

/** What the start needs of a tool, generated from its definition: no definition is loaded to list the tools. */
export interface OfferedTool extends Pick<ToolDefinition, 'name' | 'toolset' | 'tier' | 'needs' | 'programs'> {
  isWorkflow: boolean;
  listing: ToolListing;
  /** On a read-only server; null: not offered there. Absent: the same. */
  readOnly?: ToolListing | null;
  /** Where generated code is written; absent: the same. */
  writing?: ToolListing;
}

type ToolDraft<Fields extends z.ZodRawShape> = Omit<ToolDefinition<Fields>, 'tier'> &
  Partial<Pick<ToolDefinition, 'tier'>>;

/** A tool is one file that exports one of these, its `definition`; it is of the tier `user` unless it says otherwise. */
export function defineTool<const Fields extends z.ZodRawShape>(definition: ToolDraft<Fields>): ToolDefinition<Fields> {
  return { tier: 'user', ...definition };
}

interface ActionDraft<Fields extends z.ZodRawShape, Accepts extends z.ZodRawShape>
  extends Omit<ToolDraft<Fields>, 'mode'> {
  accepts?: Accepts;
  run(
    args: z.output<z.ZodObject<Fields>> & z.output<z.ZodObject<Accepts>>,
    context: ActionContext,
  ): Promise<JsonObject>;
}

/** A tool whose work `run` does; no model is asked. */
export const defineAction = <
  const Fields extends z.ZodRawShape,
  const Accepts extends z.ZodRawShape = Record<never, never>,
>({
  run,
  ...tool
}: ActionDraft<Fields, Accepts>): ToolDefinition<Fields> => defineTool({ ...tool, mode: { kind: 'action', run } });

/** The steps of a tool that works in steps; undefined for any other. */
export const workflowOf = ({ mode }: Pick<ToolDefinition, 'mode'>): WorkflowMode | undefined =>
  'requiredActions' in mode ? mode : undefined;

/** The tools behind a name that stands for several; undefined for any other. */
export const aliasOf = ({ mode }: Pick<ToolDefinition, 'mode'>): AliasMode | undefined =>
  'to' in mode && 'by' in mode ? mode : undefined;

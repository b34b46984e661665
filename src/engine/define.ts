import type { z } from 'zod';
import type { JsonObject } from '../domain/json.ts';
import type { Effort } from '../domain/model.ts';
import type { Principal } from '../domain/request.ts';
import type { Thread, ThreadHead } from '../domain/thread.ts';
import type { Category } from '../models/routing/roster.ts';
import type { ProviderState } from '../models/team.ts';

export type { ProviderState };

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

/** One question, one answer. */
export interface PromptShape<Args> {
  kind: 'prompt';
  category: Category;
  effort: Effort;
  /** The text that becomes the caller's turn. */
  question(args: Args): string;
  /** What the model is told to do, after everything else. */
  role: string;
}

/** A step as the caller sent it, in the workflow tools' common words. */
export interface Step {
  step: string;
  stepNumber: number;
  totalSteps: number;
  nextStepRequired: boolean;
  findings: string;
  filesChecked: string[];
  relevantFiles: string[];
  relevantContext: string[];
  issuesFound: Record<string, unknown>[];
  confidence: string;
  hypothesis?: string;
}

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
  /** `status` and the expert's `status` when the expert was not needed; absent: it is always asked. */
  skipped?: { status: string; reason: string };
}

/** The caller works in steps; the last one may ask an expert. */
export interface WorkflowShape<Args> {
  kind: 'workflow';
  category: Category;
  effort: Effort;
  words: WorkflowWords;
  /** What to do before the next step. */
  requiredActions(step: Step): string[];
  /** Whether the caller's own certainty makes the expert unnecessary. */
  certain(step: Step): boolean;
  /** Fields that the first step can't do without. */
  neededAtFirst?: readonly string[];
  /** Counters of this tool beside the common ones. */
  counters?(step: Step, state: WorkflowProgress): JsonObject;
  /** What the expert should know of the tool's own fields; one line each. */
  brief?(args: Args): string[];
  expert: {
    /** What the expert is told to do, after everything else. */
    role: string;
    /** The answer is asked for as a JSON object. */
    json: boolean;
  };
}

/** What a workflow has gathered so far, all steps together. */
export interface WorkflowProgress {
  lastStep: number;
  totalSteps: number;
  request: string;
  /** The thread's turn before its first step. */
  afterSeq: number;
  filesChecked: string[];
  relevantFiles: string[];
  relevantContext: string[];
  issuesFound: Record<string, unknown>[];
  hypotheses: { step: number; hypothesis: string; confidence: string }[];
  confidence: string;
  /** Of the last step: findings, files and confidence. Equal to the next one's when that brought nothing new. */
  evidence: string;
}

/** No model: the handler does the work. */
export interface ActionShape<Args> {
  kind: 'action';
  run(args: Args, context: ActionContext): Promise<JsonObject>;
}

/** What a handler may touch. */
export interface ActionContext {
  principal: Principal;
  signal: AbortSignal;
  threads: ThreadActions;
  models: ModelActions;
  product: ProductFacts;
  /** The most tokens of the reply; what is longer comes in pages. */
  replyTokens: number;
}

export interface ThreadActions {
  find(reference: string): Promise<Thread>;
  list(query: { everywhere: boolean; limit: number; before?: number }): Promise<ThreadHead[]>;
  search(query: {
    text: string;
    everywhere: boolean;
    limit: number;
  }): Promise<{ thread: ThreadHead; seq: number; snippet: string }[]>;
  fork(thread: Thread, upToSeq: number): Promise<ThreadHead>;
  remove(thread: Thread): Promise<boolean>;
}

export interface ModelActions {
  providers(): Promise<ProviderState[]>;
  defaultModel: string;
}

export interface ProductFacts {
  version: string;
  catalogueVersion: string;
  nodeVersion: string;
  platform: string;
  store: string;
  roots: readonly string[];
  tools: readonly string[];
}

export interface ToolDefinition<Fields extends z.ZodRawShape = z.ZodRawShape> {
  /** File name and tool name. */
  name: string;
  title: string;
  /** One sentence, written for the model that searches tools. */
  description: string;
  toolset: 'core' | 'code' | 'wrapper' | 'agent' | 'files' | 'ops';
  tier: 'user' | 'manager' | 'internal';
  effects: Effects;
  /** Advertised in `tools/list`. */
  fields: Fields;
  /** Accepted, but not advertised. */
  accepts?: z.ZodRawShape;
  /** Older names of fields → theirs. */
  renamed?: Readonly<Record<string, string>>;
  shape:
    | PromptShape<z.output<z.ZodObject<Fields>>>
    | WorkflowShape<z.output<z.ZodObject<Fields>>>
    | ActionShape<z.output<z.ZodObject<Fields>>>;
}

/** Typed identity; a tool is one file that exports one of these. */
export function defineTool<const Fields extends z.ZodRawShape>(
  definition: ToolDefinition<Fields>,
): ToolDefinition<Fields> {
  return definition;
}

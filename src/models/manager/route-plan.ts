import type { ModelInfo } from '../../core/model.ts';

/** What a call is about, as far as the choice of a model goes. */
const routeClasses = [
  'explicit',
  'vision',
  'long_context',
  'documents',
  'search',
  'chat',
  'agent',
  'code',
  'reasoning',
] as const;
export type RouteClass = (typeof routeClasses)[number];

/** What a model that was asked for its opinion may say; nothing else is taken from it. */
export const tellableClasses = ['chat', 'search', 'code', 'reasoning'] as const;
export type TellableClass = (typeof tellableClasses)[number];

/** A call as the AI manager sees it. */
export interface RouteTask {
  tool: string;
  /** What is asked, in the caller's words. */
  text: string;
  /** Files and directories as the caller named them. */
  files: readonly string[];
  images: number;
  /** `use_websearch`; absent: the caller did not say. */
  useWebsearch?: boolean;
  /** The model is to call functions of ours. */
  callsFunctions?: boolean;
  /** Prompt, named files and what is sent of the thread, in o200k tokens. */
  estimatedTokens: number;
  /** Somebody reads the answer as it arrives. */
  watched?: boolean;
  /** The model that the caller named, when it named one. */
  model?: string;
  /** The class that a model told for a text that the rules leave open. */
  told?: TellableClass;
}

/** The task, and among what may be chosen. */
export interface ManagerRequest extends RouteTask {
  /** Models that may be chosen without being named, in the order in which the tool's category has them. */
  models: readonly ModelInfo[];
  searches(model: ModelInfo): boolean;
  /** Providers of which nothing good is to be expected now come last. */
  isUnwell?(provider: string): boolean;
  /** `auto`: questions about now search too; `asked`: only calls that say so; `off`: none. */
  webSearch: 'auto' | 'asked' | 'off';
  /** For questions about the present year. */
  year: number;
}

/** One rule, and what it said to the task. */
export interface RuleTrace {
  rule: string;
  fired: boolean;
  /** Why, where it fired. */
  because?: string;
}

/** What the call needs and likes, before a name becomes a model. */
export interface RoutePlan {
  /** Of the first rule that fired. */
  class: RouteClass;
  /** The text leaves the class open: a model may be asked, and until then this is the answer. */
  unclear: boolean;
  needs: {
    vision: boolean;
    /** Tokens that must fit, answer included. */
    window: number;
    search: boolean;
  };
  /** Provider ids, the most wanted first; only those that have a model for it. */
  prefers: string[];
  tools: { webSearch: boolean; files: boolean };
  /** How named files reach the model. */
  context: 'inline' | 'provider_files' | 'summarize';
  /** The answer goes out as it arrives. */
  stream: boolean;
  /** Why, one clause each. */
  reasons: string[];
  /** All rules, in their order. */
  rules: RuleTrace[];
}

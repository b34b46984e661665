import type { Effort, ModelInfo } from '../../core/model.ts';
import type { RoutePlan, RouteTask } from '../manager/route-plan.ts';

/** What a tool is after: depth, speed, or something between. */
export type Category = 'extended_reasoning' | 'fast_response' | 'balanced';

/** Which model a call asks for, and what it must be able to do. */
export interface ModelRequest {
  /** As the caller typed it. Absent: the default model; `auto`: chosen here whatever the default is. */
  name?: string;
  category: Category;
  needs: {
    /** Tokens that must fit, answer included. */
    window?: number;
    /** Images are part of the prompt. */
    vision?: boolean;
    /** The web is to be searched. */
    search?: boolean;
  };
  /** Models that are not to be chosen; one that is named is taken all the same. */
  avoid?(model: ModelInfo): boolean;
  /** Models that fail at this moment: chosen only after all others. */
  ailing?(model: ModelInfo): boolean;
  /**
   * True: other models may answer for the one that is named. False: none may, even for one that was chosen here. Absent: for a
   * named one only the same model at another provider.
   */
  allowFallback?: boolean;
  /** What the call is about; the AI manager makes a plan of it. Absent: the category alone decides. */
  task?: RouteTask;
  /** The manager's plan; needs and preferences of an automatic choice. */
  plan?: RoutePlan;
  /** Providers whose models an automatic choice puts in front, the most wanted first. */
  prefers?: readonly string[];
  /** From `thinking_mode`: the nearest that the model takes is used. A suffix of the name wins over it. */
  effort?: Effort;
}

/** A provider as routing sees it. */
export interface RosterProvider {
  id: string;
  /** Short forms of the id that may stand before the colon. */
  names: readonly string[];
  configured: boolean;
  /** On this machine or network. */
  local: boolean;
  /** Never chosen automatically. */
  onlyByName: boolean;
  /** Its models are meant only where its id stands before the colon. */
  onlyByPrefix?: boolean;
  /** Whether a model of it can search the web by itself; absent: none can. */
  searches?(model: ModelInfo): boolean;
  /** Whether the roster's models are all it serves; then a name that is not among them does not exist. */
  listComplete: boolean;
}

/** Everything there is to choose from. */
export interface Roster {
  /** Configured or not. */
  providers: readonly RosterProvider[];
  /** Catalogue with its overlays. A local endpoint's models are only those it said it has. */
  models: readonly ModelInfo[];
}

/** What the operator decided. */
export interface RoutingPolicy {
  /** Name for calls without one; `auto` or absent: chosen by category. */
  defaultModel?: string;
  /** By provider id: the only models of it that may be used. Absent or empty: all. */
  allowed: Readonly<Record<string, readonly string[]>>;
  /** Never used, wherever they are served. `provider:model` refuses it at that provider alone. */
  denied: readonly string[];
  /** Nothing may leave this machine or network. */
  localOnly: boolean;
  prefer: 'quality' | 'speed' | 'cost';
  /** When the web may be searched: for questions about now too, only where a call says so, or never. Absent: `auto`. */
  webSearch?: 'auto' | 'asked' | 'off';
  /** Unknown ids of vendors whose list is known pass through too. */
  allowUnknown: boolean;
  /** Started with --offline: only the offline providers and local endpoints are used. */
  offline: boolean;
}

/** In this order a name is served, and ties are broken; the setting makes a provider usable. */
const order: readonly (readonly [id: string, setting: string])[] = [
  ['google', 'GEMINI_API_KEY'],
  ['openai', 'OPENAI_API_KEY'],
  ['azure', 'AZURE_OPENAI_API_KEY'],
  ['xai', 'XAI_API_KEY'],
  ['anthropic', 'ANTHROPIC_API_KEY'],
  ['groq', 'GROQ_API_KEY'],
  ['deepseek', 'DEEPSEEK_API_KEY'],
  ['moonshot', 'MOONSHOT_API_KEY'],
  ['zhipu', 'ZHIPUAI_API_KEY'],
  ['minimax', 'MINIMAX_API_KEY'],
  ['dial', 'DIAL_API_KEY'],
  ['custom', 'CUSTOM_API_URL'],
  ['ollama', 'OLLAMA_HOST'],
  ['openrouter', 'OPENROUTER_API_KEY'],
];

/** Smaller is asked first. Providers of the operator's own stand with `custom`. */
export function priorityOf(provider: string): number {
  const at = order.findIndex(([id]) => id === provider);
  return at === -1 ? order.findIndex(([id]) => id === 'custom') : at;
}

/** The setting that makes a provider usable, for the sentence that says what to do; undefined for unlisted providers. */
export function settingOf(provider: string): string | undefined {
  return order.find(([id]) => id === provider)?.[1];
}

/** Finds a provider by its id or a short name, in any case. */
export function findProvider<Named extends Pick<RosterProvider, 'id' | 'names'>>(
  { providers }: { providers: readonly Named[] },
  name: string,
): Named | undefined {
  const wanted = name.trim().toLowerCase();
  return providers.find(({ id }) => id === wanted) ?? providers.find(({ names }) => names.includes(wanted));
}

/** Whether a provider is one of those that answer without any vendor. */
export function isOffline(provider: string): boolean {
  return provider === 'offline' || provider.startsWith('offline-');
}

/** Aggregators, endpoints of one's own and deployments: what a listing names is never all they serve. */
const openEnded = new Set(['openrouter', 'custom', 'azure', 'dial']);

/** Whether an id that the roster does not know may exist at this provider all the same. */
export function mayServeMore(provider: RosterProvider): boolean {
  return openEnded.has(provider.id) || !provider.listComplete;
}

import type { FaultScope } from './errors.ts';
/** How hard a model should think. Each provider maps it to what its wire knows. */
export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
/** How hard a model thinks. */
export type Effort = (typeof efforts)[number];

/** What a model may be sent. */
export type InputKind = 'text' | 'image' | 'pdf' | 'audio' | 'video';

/** US dollars per million tokens. What is left out costs as much as other input. */
export interface Rates {
  in: number;
  out: number;
  cacheRead?: number;
  cacheWrite?: number;
  /** For what stays in the vendor's cache for an hour instead of minutes; absent: as `cacheWrite`. */
  cacheWriteHour?: number;
}

/** What a model costs: the rates of small inputs, and those of larger ones. */
export interface Price extends Rates {
  /** What calls with a long input cost, all of their tokens; the longest input last. */
  tiers?: readonly PriceTier[];
}

/** Holds for inputs of more tokens than `above`, cached ones included. */
export type PriceTier = Rates & { above: number };

/** What a vendor announced of a model. Days are UTC, as YYYY-MM-DD. */
export interface ModelLife {
  /** From this day on the vendor advises against it; absent: from the announcement on, where there is one. */
  deprecated?: string;
  /** From this day on it is not served. */
  retired?: string;
  /** Id of the vendor's model that takes its place. */
  replacedBy?: string;
  priceFrom?: { day: string; price: Price };
}

/** What the catalogue knows of one model of one provider. */
export interface ModelInfo {
  /** Id of the provider that serves it, e.g. `openai`. */
  provider: string;
  /** The vendor's own id, sent as it stands. */
  id: string;
  /** The maker's id of the model, where `id` is the name of a deployment; absent: `id` is it. */
  deployed?: string;
  /** For people. */
  name: string;
  /** Lower case, unique within the catalogue. */
  aliases: readonly string[];
  /** Context window in tokens: input and output together. */
  window: number;
  /** Nobody told the window; it is a careful guess. */
  windowAssumed?: boolean;
  /** Maximum tokens of its answer. */
  maxOutput: number;
  /** Kinds of input that it takes. */
  input: readonly InputKind[];
  /** The efforts it takes, ours; empty when it does not reason or the vendor says nothing. */
  efforts: readonly Effort[];
  /** The effort that the operator's models file names for calls that set none; absent: that of the tool. */
  usualEffort?: Effort;
  /** Thinking budget in tokens for models that take one instead of an effort. */
  thinkingBudget?: { min: number; max: number };
  /** Whether it thinks before it answers. */
  reasoning: boolean;
  /** `none`: the vendor refuses a temperature. `range`: 0 to 2 as given. */
  temperature: 'range' | 'none';
  /** Whether it can call tools. */
  tools: boolean;
  /** US dollars per million tokens; absent: not known. */
  price?: Price;
  /** 1 to 20: how good we think it is; orders the automatic choice. */
  score: number;
  /** Whether it is asked to hand over generated code as files. */
  allowCodeGeneration: boolean;
  /** `deprecated`: the vendor advises against it; `retired`: not served. */
  status: 'active' | 'deprecated' | 'retired';
  /** Its vendor's own list, which was fetched, does not name it: it is asked by name alone. */
  unlisted?: true;
  /** What the vendor announced of its end and prices; absent: nothing. */
  life?: ModelLife;
}

/** A model that may answer this call, with how it is to be asked. */
export interface Candidate {
  model: ModelInfo;
  effort?: Effort;
  /** Tokens. */
  thinkingBudget?: number;
  /** Why it was chosen, for the reply's `routing_reason`. */
  reason: string;
  /** Nobody named it: AUTO_COST_LIMIT holds. */
  auto?: true;
  /** Maximum tokens of a prompt that the limits on costs allow; absent: its window decides alone. */
  maxPrompt?: number;
}

/** At least one, best first. */
export type Candidates = readonly [Candidate, ...Candidate[]];

/** The model of a candidate or an answer, as callers name it. */
export const modelName = ({ model }: { model: ModelInfo }): string => `${model.provider}:${model.id}`;

/** From this window on a larger part goes to content: the answer no longer needs 40 %. */
const wideWindow = 300_000;

export const hasWideWindow = (window: number): boolean => window >= wideWindow;

/** Tokens of a model's window that are kept for its answer. */
export const answerTokens = ({ window, maxOutput }: Pick<ModelInfo, 'window' | 'maxOutput'>): number =>
  Math.min(maxOutput, Math.floor(window * (hasWideWindow(window) ? 0.2 : 0.4)));

/**
 * `closed`: asked as usual. `open`: not asked until its pause is over. `half_open`: the pause is over, and one call tries
 * whether it works again. `quarantined`: the key was refused; not asked until the configuration changes, a listing with the
 * key succeeds, or a day went by.
 */
export type BreakerState = 'closed' | 'open' | 'half_open' | 'quarantined';

/** How one thing at a provider does. Numbers are of this process; the state is that of all processes on one store. */
export interface Health {
  provider: string;
  /** Absent: all that this provider serves under its key. */
  model?: string;
  /** What the record is about: a key at an address, an account, a model, or a model under a key. */
  scope: FaultScope;
  state: BreakerState;
  /** Attempts that ended within the last 30 s, and how many of them failed in a way that counts here. */
  calls: number;
  failures: number;
  /** Failures since the last success; of what another process found, those that it counted. */
  consecutive: number;
  /** Milliseconds of a whole answer, a moving average; absent before the first. */
  latencyMs?: number;
  /** What kind of failure the last one was: `bad_upstream`, `rate_limit`… */
  class?: string;
  /** Epoch milliseconds of the last change of `state`; of the first attempt where it never changed. */
  since: number;
  /** Seconds until it may be asked again; absent when it may, and for a quarantine. */
  retryAfterSeconds?: number;
  /** Why it is not asked, as a sentence without its end; absent when it is. */
  why?: string;
}

/** What a provider is set up for and what its models can do. Never a key, nor anything else that is secret. */
export interface ProviderCapabilities {
  id: string;
  title: string;
  configured: boolean;
  /** On this machine or network. */
  local: boolean;
  /** Its keys by the name of their variable, and whether each is set. */
  keys: Record<string, boolean>;
  /** What is to be set to have it, for people: the first that does it; absent where no variable does. */
  setting?: string;
  /** Addresses that settings name, without what may be secret in them; none: the vendor's own. */
  endpoints: string[];
  models: number;
  /** What at least one of its models can. */
  can: { vision: boolean; documents: boolean; search: boolean; thinking: boolean; caching: boolean; tools: boolean };
  /** Seconds since it last listed its models; absent: it never did. */
  listedSecondsAgo?: number;
}

import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4ProviderTool,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import type { Effort, InputKind, ModelInfo } from '../core/model.ts';
import type { OptionSpec } from '../core/option.ts';
import type { Clock, SharedState } from '../core/ports.ts';
import type { CallLimits, ModelQuestion, WebSearch } from './ask-model.ts';
import type { UsesIn } from './fees/counted-uses.ts';

/** A model behind the AI SDK's contract; only `doStream` is used. */
export type LanguageModel = LanguageModelV4;

/** What a provider gets to connect with: the values of its own options, by their names in `options`. */
export type ProviderSettings = Readonly<Record<string, string | undefined>>;

/** How a call wants to be answered, in our words. */
export interface CallParams {
  model: ModelInfo;
  effort?: Effort;
  /** Tokens. */
  thinkingBudget?: number;
  maxOutputTokens: number;
  /** Equal for all calls whose prompts share a beginning: the thread's id. */
  cacheKey?: string;
  /** The model may search the web; only given to models that `searches` says yes to. */
  webSearch?: WebSearch;
  /** The call itself, for a provider whose models work where the caller is. */
  about?: Pick<ModelQuestion, 'reqId' | 'tool' | 'root' | 'program'>;
}

/** A model as the vendor's own listing tells of it. */
export interface LiveModel {
  id: string;
  /** Tokens, when the listing says so. */
  window?: number;
  /** What it reads, when the listing says so. */
  input?: readonly InputKind[];
  /** Whether it thinks before it answers, when the listing says so. */
  reasoning?: boolean;
}

/** Sizes as they travel, in base64. */
export interface ImageLimits {
  /** Images in one request. */
  most: number;
  /** Of one image. */
  bytes: number;
  /** Of all images of a request together. */
  allBytes: number;
  /** Media types that it takes; absent: PNG, JPEG, GIF and WebP. */
  types?: readonly string[];
}

/** What an account at a vendor has left, in the currency in which the vendor bills it. */
export interface AccountBalance {
  available: number;
  /** The part of it that was given. */
  voucher: number;
  /** Below zero when it is owed. */
  cash: number;
}

/** An open door to one vendor. Holds no request state; any number of calls may use it at once. */
export interface Connection {
  /** The model behind the AI SDK's contract; only `doStream` is used. */
  languageModel(model: ModelInfo): LanguageModelV4;
  /** What the vendor wants said in its own words for these parameters: effort, thinking, cache key, store. */
  providerOptions(params: CallParams): SharedV4ProviderOptions;
  /** The vendor's own tools for these parameters, run at the vendor: web search. Absent where its words in `providerOptions` do. */
  vendorTools?(params: CallParams): LanguageModelV4ProviderTool[];
  /** Finds in its stream what the vendor charges for beside tokens; absent where that is nothing. */
  usesIn?: UsesIn;
  /** Options that mark the end of a cached stretch on a message part; absent where the vendor wants no marks. */
  cacheMark?: SharedV4ProviderOptions;
  /** `system` where the model takes instructions after the conversation; `user` elsewhere. */
  tailRole(model: ModelInfo): 'system' | 'user';
  /** What the vendor takes of images in one request; absent: what nearly all take. */
  imageLimits?(model: ModelInfo): ImageLimits;
  /** `system` where the vendor wants the text of documents as system messages; absent: as the user's. */
  documentRole?: 'system';
  /** The vendor wants thoughts that it did not sign back with the calls that they led to. Absent: it wants none. */
  echoesThoughts?: true;
  /** The vendor's live list. Absent where there is none. */
  list?(signal: AbortSignal): Promise<LiveModel[]>;
  /** What the vendor counts as the input tokens of a call, which it does not answer. Absent where it counts for nobody. */
  countTokens?(model: ModelInfo, call: LanguageModelV4CallOptions): Promise<number>;
  /** What is left to be spent there. Absent where the vendor does not tell. Throws an `AppError`. */
  balance?(signal: AbortSignal): Promise<AccountBalance>;
  /** Gives back what it holds at the vendor for a thread that is no more; absent where that is nothing. */
  forget?(thread: string): Promise<void>;
  /** Gives back what it holds at the vendor; absent where that is nothing. Waits a few seconds at the most, and never throws. */
  close?(): Promise<void>;
}

/** What a connection that keeps something at its vendor needs. */
export interface ConnectAround {
  clock: Clock;
  /** Shared with the other processes on the store. */
  state: SharedState;
}

/** What the reference tells of a provider beside its settings. */
export interface ProviderDocs {
  /** Where calls go, as method and address. */
  endpoint: string;
  /** What differs from what one would expect, a sentence each. */
  quirks: readonly string[];
  /** The vendor's documents that this was written from. */
  source: string;
}

export interface ProviderDefinition {
  /** Lower case; stands before the colon in `provider:model` and in replies as `provider_used`. */
  id: string;
  /** Short forms of the id that callers may type. */
  names: readonly string[];
  /** For people. */
  title: string;
  /** Its settings, by the name under which `connect` gets them. */
  options: Readonly<Record<string, OptionSpec>>;
  /** Whether the settings are enough to try. Placeholders were dropped before. */
  configured(settings: ProviderSettings): boolean;
  /** Loads the vendor's package and connects; called once, on first use. Without `around` nothing is kept at the vendor. */
  connect(settings: ProviderSettings, around?: ConnectAround): Promise<Connection>;
  /** Models that the settings bring along (a custom endpoint's, the offline ones), `known` being the others: those of the catalogue. */
  models?(settings: ProviderSettings, known: readonly ModelInfo[]): ModelInfo[];
  /** Whether a model of it can search the web by itself; absent: none can. */
  searches?(model: ModelInfo, settings: ProviderSettings): boolean;
  /** For the reference. */
  docs?: ProviderDocs;
  /** Serves others' models under their names: a listed one that nothing is known of is like the maker's own. */
  servesOthers?: boolean;
  /** Has no list of its models to ask for. */
  unlisted?: boolean;
  /** What its listing names is never all that it serves. */
  openEnded?: boolean;
  /** Tokens taken for models whose window neither the settings' entry nor the listing tells; `assumed`: nobody set them. */
  fallbackWindow?(settings: ProviderSettings): { tokens: number; assumed: boolean };
  /** Only what its live list names exists there: the catalogue's other models of this provider are left out. */
  listDecides?: boolean;
  /** What it caches is sent to it once more: in one call a prompt may be paid to be kept, and to be read. */
  cachesApart?(settings: ProviderSettings): boolean;
  /** On this machine or network: its time limits are wider. */
  local?(settings: ProviderSettings): boolean;
  /**
   * Its models run on this very machine, not merely behind an address of it: they are shown the secrets that others see masked.
   * Absent: nobody can tell.
   */
  runsHere?(settings: ProviderSettings): boolean;
  /** Chosen only by name, never automatically. */
  onlyByName?: boolean;
  /** Its models are meant only where its id stands before the colon: their names are other things' names too. */
  onlyByPrefix?: boolean;
  /** Ids of its models that are here now, for a provider whose models come and go with the machine; absent: all of them. */
  present?(): Promise<ReadonlySet<string>>;
  /** What makes it usable, where no setting does: `install …`. */
  setUp?: string;
  /** Time limits of its own, in place of those of all models. */
  limits?(model: ModelInfo): CallLimits;
}

/** Typed identity; a provider is one file that exports one of these. */
export function defineProvider<Definition extends ProviderDefinition>(definition: Definition): Definition {
  return definition;
}

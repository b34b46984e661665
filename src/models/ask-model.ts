import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import type { ThreadId } from '../core/ids.ts';
import type { Message, SaidPart } from '../core/message.ts';
import type { Candidate, ModelInfo } from '../core/model.ts';
import type { AttemptRecord, Citation, ToolCallRecord } from '../core/thread.ts';
import type { Usage } from '../core/usage.ts';

/** Time limits of one call, in milliseconds. */
export interface CallLimits {
  /** Until the first byte of the answer. */
  firstByteMs: number;
  /** Between two chunks. */
  idleMs: number;
  /** From the first attempt to the last byte, retries and waits included. */
  totalMs: number;
  /** `totalMs` is CALL_TIMEOUT_SECONDS, and is not widened. */
  exact?: boolean;
}

/** What a search of the web may bring along. */
export interface WebSearch {
  /** The most results that one search hands to the model. */
  maxResults: number;
  /** The most searches of one call. */
  maxRounds: number;
  /** How much of the pages found is handed to the model, where the vendor lets one say; absent: its own measure. */
  contentSize?: 'low' | 'medium' | 'high';
}

/** How a program is wanted to answer (`cli:gemini`); other models are not told. */
export interface CliOptions {
  /** A role of its configuration. */
  role?: string;
  /** It may change files. */
  mayWrite: boolean;
}

/** A tool that the model may call; whoever asks runs it. */
export interface ToolSpec {
  /** `a-z`, `A-Z`, `0-9`, `_` and `-`, at most 64 characters. */
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  inputSchema: Readonly<Record<string, unknown>>;
}

export interface ModelQuestion {
  reqId: string;
  tool: string;
  /** Who asks, and for which thread (absent for calls without one): what is spent counts there. Absent: for nobody. */
  payer?: { owner: string; thread?: ThreadId };
  /** How many questions of the same call, this one included, still want a part of what it may cost; absent: this one alone. */
  sharers?: number;
  /** The caller's project: where a program works that answers. Absent: the project of this process. */
  root?: string;
  cli?: CliOptions;
  /** The model may search the web, where its provider can. */
  webSearch?: WebSearch;
  /** A program reads the answer: a piece of it is of no use. Absent: it is. */
  wholeOnly?: boolean | undefined;
  /** In order of preference; a later one is asked only when an earlier one failed for good. */
  candidates: readonly Candidate[];
  messages: readonly Message[];
  /** What is different of the question for a later candidate, whose window may not hold it; absent or undefined: nothing. */
  promptFor?(candidate: Candidate): Promise<Partial<Pick<ModelQuestion, 'messages' | 'maxOutputTokens'>> | undefined>;
  /** Nobody is asked before; where it rejects, nobody is, and so does the answer. */
  ready?: Promise<void>;
  /** It is not worth a second attempt at the same candidate. */
  once?: boolean;
  /** What the model may call; the candidates must be able to. Absent: nothing. */
  tools?: readonly ToolSpec[];
  /** `none`: it sees the tools, for calls of them stand in the messages, and may call none. Absent: as it likes. */
  toolChoice?: 'none';
  maxOutputTokens: number;
  temperature?: number;
  /** Of the likeliest words, above 0 and at most 1; left out where the model takes no temperature either. */
  topP?: number;
  /** As a program of the AI SDK set it; what a vendor does not take is left out, with a warning. */
  program?: Pick<LanguageModelV4CallOptions, 'responseFormat' | 'stopSequences' | 'seed' | 'toolChoice'>;
  cacheKey?: string;
  /** Absent: the policy's own limits for the model. */
  limits?: Partial<CallLimits>;
  signal: AbortSignal;
  /** Gets the text as it arrives. Once it was called, nobody is asked again: what was passed on can't be taken back. */
  onText?: (delta: string) => void;
  /** Told right before the first text what is known to be wrong with the question. */
  onStart?: (warnings: readonly string[]) => void;
  /** Told of an attempt that failed and was charged for all the same, at once; the answer's own usage is in the answer. */
  onWaste?: (waste: Waste) => void;
  onAttempt?: (attempt: AttemptRecord) => void;
  /** Told before each request: from then on a vendor may charge for it. */
  onSent?: () => void;
  /** Told of the text as it arrives, for progress alone: a retry may begin it anew. */
  onProgress?: (delta: string) => void;
}

/** What an attempt cost that brought no answer. */
export type Waste = Pick<ModelAnswer, 'model' | 'usage' | 'costUsd'>;

export interface ModelAnswer {
  text: string;
  /** With `tools`: all that it said, its thoughts and calls included, as it is to stand in the next question. */
  said?: readonly SaidPart[];
  model: ModelInfo;
  candidate: Candidate;
  usage: Usage;
  /** US dollars; absent: the model has no known price. */
  costUsd?: number;
  finish: { kind: 'stop' | 'tool_calls' | 'length' | 'content_filter' | 'other'; raw?: string };
  /** True when the stream broke after text had arrived: `text` is what came. */
  partial: boolean;
  citations: Citation[];
  couldSearch?: boolean;
  attempts: AttemptRecord[];
  latencyMs: number;
  /** Of it, waiting for a place to run in; absent: none. */
  queuedMs?: number;
  /** What the provider could not do as asked, one sentence each. */
  warnings: string[];
  /** Of a run of the agent. */
  toolCalls?: ToolCallRecord[];
  /** What a program told of how it answered. */
  providerMetadata?: Readonly<Record<string, unknown>>;
}

/** How a vendor tells that the window was full before the model was done: there is no room to go on in. */
export const fullWindow = 'model_context_window_exceeded';

/** How Anthropic tells that it broke a long search off: what came is no whole answer, and not cut in the middle of a word either. */
export const pausedTurn = 'pause_turn';

/** Asks a model. Throws an `AppError` of kind `model`, `cancelled` or `config`. */
export type AskModel = (question: ModelQuestion) => Promise<ModelAnswer>;

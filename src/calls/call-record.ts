import type { Skip } from '../core/file.ts';
import type { RequestId } from '../core/ids.ts';
import type { JsonObject } from '../core/json.ts';
import type { Message } from '../core/message.ts';
import type { Candidates, Effort } from '../core/model.ts';
import type { Compaction, Thread, Turn, WorkflowState } from '../core/thread.ts';
import type { ToolRequest } from '../core/tool-host.ts';
import type { CliOptions, ModelAnswer, WebSearch } from '../models/ask-model.ts';
import type { Category } from '../models/routing/roster.ts';
import type { ThreadChange } from '../storage/store.ts';
import type { Budget } from '../threads/compaction.ts';
import type { Threads } from '../threads/threads.ts';
import type { Sandbox } from '../workspace/sandbox.ts';
import type { CommonArguments } from './arguments.ts';
import type { EvidencePiece, ToolDefinition } from './tool.ts';

/** Tells the client how a call is getting on. */
export interface Progress {
  /** What the call does now; told at once. */
  stage(message: string): void;
  /** Said beside the stage, which goes on. */
  note(message: string): void;
  /** Text that streams in; told every few seconds. */
  streamed(delta: string): void;
}

/** A call whose arguments were understood. The record of a call only grows: each step of the pipeline adds its part. */
export interface ParsedCall {
  reqId: RequestId;
  request: ToolRequest;
  signal: AbortSignal;
  progress: Progress;
  /** Monotonic milliseconds. */
  startedAt: number;
  tool: ToolDefinition;
  args: Record<string, unknown>;
  common: CommonArguments;
  warnings: string[];
}

/** What a call is compared with that came before, and what its caller may see. */
export interface CallWorld {
  threads: Threads;
  sandbox: Sandbox;
  /** Home directory, for `~` in paths. */
  home: string;
  maxFileBytes: number;
  /** Turns that may stand in a prompt. */
  maxTurns: number;
  /** The most tokens of one reply. */
  replyTokens: number;
}

export interface ThreadedCall extends ParsedCall {
  thread: Thread;
}

/** A turn that no model answers. */
export interface LocalTurn {
  /** What the caller contributed; becomes a turn. */
  contribution: string;
  /** Images as the caller named them: paths or data URLs. */
  images?: readonly string[];
  workflow?: { tool: string; state: WorkflowState | null };
  document: JsonObject;
  /** The tool's own facts, beside those of every reply. */
  metadata?: JsonObject;
}

/** What a model is asked, once tool and thread of a call are known. */
export interface ModelTurn extends Pick<LocalTurn, 'contribution' | 'images' | 'workflow'> {
  /** What the model is told first; absent: what every model is. */
  preamble?: string;
  /** Comes after everything else and is never stored. */
  tail: string;
  /** Added to the tail for a model that may generate code. */
  codeTail?: string;
  /** Files and directories as the caller named them. */
  files: readonly string[];
  /** Without one of them there is nothing to ask about. */
  aboutFiles?: boolean;
  /** Ids of documents that were uploaded before. */
  fileIds?: readonly string[];
  /** The provider whose models answer first unless the caller names one, and that reads the documents. */
  provider?: string;
  /** Models of others may answer instead where none of that provider's holds all of it. */
  anyProvider?: boolean;
  /** What the tool found out by itself; as much as has room becomes part of the turn. */
  evidence?: readonly EvidencePiece[];
  /** For a program that answers. */
  cli?: CliOptions;
  /** A program reads the answer, as `wholeOnly` of a question to a model says. */
  wholeOnly?: boolean | undefined;
  /** How many images of earlier turns the model is to see; those are not sent again. Absent: each is sent as it is named. */
  earlierImages?: number;
  category: Category;
  effort: Effort;
}

/** Where the exchange of a call stands in its thread, from its question on. */
export interface PendingExchange {
  /** As the call saw it last. */
  thread: Thread;
  turn: Turn;
  /** How many of its turns were sent to a model. */
  sent: number;
}

export interface RoutedCall extends ThreadedCall {
  plan: ModelTurn;
  candidates: Candidates;
  requestedModel: string;
  corrected?: { from: string; to: string };
  webSearch?: WebSearch;
}

/** What was done with the files of a call. */
export interface FileReport {
  embedded: string[];
  /** Files that had no room whole: what they declare, or what they say, was sent. */
  outlined: string[];
  summarised: string[];
  /** What a search brought: paths with lines. */
  found: string[];
  unchanged: string[];
  changed: string[];
  skipped: Skip[];
  /** Kind of secret → how many were masked. */
  masked: Record<string, number>;
}

/** What a summary took; it is part of what the thread costs. */
export interface SummaryCost {
  /** `provider:model`. */
  model: string;
  tokens: number;
  /** US dollars; absent: the model has no known price. */
  costUsd?: number;
}

export interface PreparedCall extends RoutedCall {
  turn: Turn;
  messages: Message[];
  blobs: NonNullable<ThreadChange['blobs']>;
  compaction?: Compaction;
  files: FileReport;
  budget: Budget & { historyUsed: number; filesUsed: number };
  history: { turns: number; sent: number; summarised: number; trimmed: number; summary?: SummaryCost };
  /** Titles of the evidence that had no room, or not whole. */
  evidenceLeftOut: string[];
}

export interface AnsweredCall extends PreparedCall {
  /** With its secrets masked. */
  answer: ModelAnswer;
  /** What the model wrote; for files of the project alone, never for a reply or the store. */
  said: string;
}

import type { AppError } from '../../core/errors.ts';
import type { Skip } from '../../core/file.ts';
import type { Message } from '../../core/message.ts';
import type { Usage } from '../../core/usage.ts';
import type { Retrieve, Retrieved } from '../../engine/conversation.ts';
import type { AgentEvent, AgentToolCall, GateVerdict, PendingCall } from '../../engine/modes/agent/agent.ts';
import type { AgentTool } from '../../engine/modes/agent/local-tools/agent-tool.ts';
import type { Extensions } from '../extensions.ts';

export type { Retrieve, Retrieved };

/** How a Polylogue of a program's own is set up. */
export interface PolylogueOptions extends Extensions {
  /** Settings by their environment variables (docs/reference/options.md), such as `OPENAI_API_KEY`; they override `env`. */
  settings?: Readonly<Record<string, string | undefined>>;
  /** The environment; absent: that of this process. `{}` for one that depends on nothing but `settings`. */
  env?: Readonly<Record<string, string | undefined>>;
  /** POLYLOGUE_HOME: database, logs, caches. Absent: as the settings say. */
  home?: string;
  /** The project: where relative paths start, and all that may be read. Absent: the working directory's. */
  root?: string;
  /** Gets a line for each thing that an operator should know; absent: nobody does. */
  log?(line: string): void;
}

/** The layers of a system prompt, in this order: base, project, custom. */
export interface SystemLayers {
  /** Takes the place of the text that models are told by default. */
  base?: string;
  /** False: no base text, unless `base` is given. Default: true. */
  useDefaultBase?: boolean;
  /** A file of the project whose text follows the base, such as `AGENTS.md`; one that is not there adds nothing. */
  projectMarker?: string;
  /** What this program wants its models to know. */
  custom?: string;
}

/** Limits and sampling of one `send`. */
export interface SendParams {
  /** 0 to 2; default 0, where the model takes one. */
  temperature?: number;
  /** Above 0, at most 1; default: the vendor's, which is 1. */
  topP?: number;
  /** Tokens of one answer; default 8,192, more for models that think. */
  maxTokens?: number;
  /** Characters of a tool's output that stay in later rounds; default 8,000. */
  truncLimit?: number;
  /** Rounds with tools before the closing answer; default 10. */
  maxRounds?: number;
  /** US dollars that all questions of one `send` may cost together. Absent: the limits of the settings alone. */
  maxCostUsd?: number;
}

/** What holds for each `send` that does not say otherwise. */
export interface SendDefaults {
  /** Layers of the system prompt. Default: the base text alone. */
  system?: SystemLayers;
  /** A name, an alias or `provider:model[:effort]`; default: DEFAULT_MODEL, else chosen by the task. */
  model?: string;
  /** Where relative paths start; default: the project. Within it. */
  baseDir?: string;
  /** Limits and sampling. Default: each member's own. */
  params?: SendParams;
  /**
   * What the model may call: tools of this program, and Polylogue's own by name (`read_file`, `list_dir`, `search_text`, `glob`,
   * `git_diff`, `write_file`, `apply_patch`, `run_command` …; `reads`: those that only read, `all`: all of them). Of its own, what
   * changes anything is done only if `onToolCall` allows it. Default: nothing.
   */
  tools?: readonly (AgentTool | string)[];
  /** Asked before each call of a tool: it is made as it is, with other arguments, or not made and the model is told why. */
  onToolCall?(call: PendingCall): GateVerdict | Promise<GateVerdict>;
  /** Text as it arrives, secrets masked. */
  onChunk?(delta: string): void;
  /** Told of the error with which `send` rejects, and of a `check` of a tool that fails. */
  onError?(error: AppError | Error): void;
  /** Told of a call of `apply_patch` or `write_file` that changed files. */
  onPatch?(call: AgentToolCall): void;
  /**
   * Includes what the project's search index finds for the message, or what `retrieve` finds: passages of this program's own
   * search, each a text or `{ source, text }`; their secrets are masked. Default: false.
   */
  rag?: boolean | { retrieve: Retrieve };
  /** Lets the model ask this program, by a tool `ask_question`; the answer is told to the model. Absent: it can't ask. */
  onQuestion?(question: ModelAsks): string | Promise<string>;
}

/** What a model wants to know before it goes on. */
export interface ModelAsks {
  /** The question, as the model wrote it. */
  question: string;
  /** Answers that it suggests; empty: any. */
  options: readonly string[];
  /** Aborted when the request ends. */
  signal: AbortSignal;
}

/** One message with everything that is sent with it. */
export interface SendRequest extends SendDefaults {
  /** The question or task. */
  message: string;
  /** Material that comes before the files and the message. */
  context?: string;
  /** Files to include, with line numbers: absolute, from `baseDir`, or lines of one (`path:10-80`). */
  files?: readonly string[];
  /** Earlier turns: the `turns` of earlier results, one after the other. */
  history?: readonly Message[];
  /** False: `onChunk` is not called, and an answer that broke off may be asked for again. Default: whether `onChunk` is given. */
  stream?: boolean;
  /** Aborting it ends the request. Absent: only `cleanup` does. */
  signal?: AbortSignal;
}

/** The answer to one `send`. */
export interface SendResult {
  /** The answer of the model. */
  text: string;
  /** What this request added to the conversation; `history` of the next one together with what was there. */
  turns: Message[];
  /** Tokens of all its model calls together. */
  usage: Usage;
  /** US dollars; absent: nobody knows the price. */
  costUsd?: number;
  /** Calls of tools, in their order; empty: none. */
  toolCalls: AgentToolCall[];
  /** `done`, or why it ended before the model was done. */
  stopReason: string;
  /** Who answered, as `provider:model`. */
  model: string;
  /** Named files that were not included, with the reason. */
  skipped: Skip[];
  /** What you should know of the answer, a sentence each; empty: nothing. */
  warnings: string[];
}

/** What can be listened to. Every event says which `conversation` it belongs to. */
export interface PolylogueEvents {
  /** A model is asked; `round` counts from 1, `closing` is true for the last answer without tools. */
  request: Extract<AgentEvent, { type: 'request' }> & Owned;
  /** A `model` answered: its `text`, how many `calls` it makes, `usage` in tokens, and `costUsd`, absent where nobody knows the price. */
  response: Extract<AgentEvent, { type: 'response' }> & Owned;
  /** A model calls a tool, which has not run yet. */
  tool_call: Extract<AgentEvent, { type: 'tool_call' }> & Owned;
  /** A call of a tool is over. */
  tool_result: Extract<AgentEvent, { type: 'tool_result' }> & Owned;
  /** Files that the model has seen changed, and it is told so. */
  refresh: Extract<AgentEvent, { type: 'refresh' }> & Owned;
  /** The conversation is too long for its model: so many of its oldest entries are not sent. */
  trim: Extract<AgentEvent, { type: 'trim' }> & Owned;
  /** What of a request came out of the vendor's cache, and what was put there, in tokens. */
  cache: { type: 'cache'; round: number; read: number; written: number } & Owned;
  /** A `send` failed and rejects with the same error, or a `check` of a tool failed. */
  error: { type: 'error'; error: AppError | Error } & Owned;
}

/** What every event has in addition to its own members: the ID of its `conversation`. */
export interface Owned {
  conversation: string;
}

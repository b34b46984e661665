import type { FileRecord } from './file.ts';
import { type ExchangeId, isThreadId, type Sha256, type ThreadId } from './ids.ts';
import type { JsonObject } from './json.ts';
import type { Usage } from './usage.ts';

/** Only `done` exchanges enter prompts; all of them are readable. */
export const exchangeStatuses = ['pending', 'done', 'failed', 'interrupted'] as const;

export type ExchangeStatus = (typeof exchangeStatuses)[number];

export interface ThreadTotals {
  /** Input and output tokens of all its calls. */
  tokens: number;
  costUsd: number;
}

/** What is known of a thread without its turns. */
export interface ThreadHead {
  id: ThreadId;
  /** Where it was forked off: turns up to `seq` (included) of `thread` come before its own. */
  parent?: { thread: ThreadId; seq: number };
  /** Who may see it. `local` where there are no accounts. */
  owner: string;
  /** Absolute path of the project it belongs to. */
  workspace: string;
  /** The tool that created it. */
  toolName: string;
  title: string;
  createdAt: number;
  updatedAt: number;
  expiresAt: number;
  /** The arguments of the creating call, without model and thread. */
  initialContext: JsonObject;
  totals: ThreadTotals;
  /** Number of the newest turn, from 1; 0 while there is none. */
  seq: number;
}

export interface ImageRecord {
  /** Path, or `data:` for an image that was sent in the call. */
  source: string;
  mediaType: string;
  /** Blob with the bytes in base64. */
  blob: Sha256;
}

export interface Citation {
  title: string;
  url: string;
  snippet?: string;
  date?: string;
  provider: string;
}

/** One model's place in a panel, and where what it said stands in the turn's content. */
export interface PanelistRecord {
  /** What the others knew it by: A, B, C … */
  expert: string;
  /** As `provider:model`; as it was typed where nobody serves it. */
  model: string;
  /** The side it was given. */
  stance: string;
  /** `skipped`: it was not asked. */
  status: 'success' | 'error' | 'skipped';
  /** `support`, `oppose`, or the option it chose, in lower case; absent where it did not say. */
  position?: string;
  /** 0 to 10, by its own word. */
  confidence?: number;
  latencyMs?: number;
  costUsd?: number;
  /** The first character of its text within the content, and the one behind its last. */
  from: number;
  to: number;
}

/** Facts of the model call that made an assistant turn. */
export interface ModelMetadata {
  requested?: string;
  effort?: string;
  /** Tokens, for a model that takes a number instead of an effort. */
  thinkingBudget?: number;
  finishReason?: string;
  usage?: Usage;
  costUsd?: number;
  latencyMs?: number;
  /** It could search the web. */
  webSearch?: boolean;
  /** Everyone who was asked, as `provider:model`, where several were. */
  asked?: string[];
  /** The verdicts of a panel that stand in this turn, in their order. */
  voices?: PanelistRecord[];
  /** What a run of the agent did, in the order of its calls. */
  toolCalls?: ToolCallRecord[];
}

/** One call of a tool in a run of the agent. */
export interface ToolCallRecord {
  name: string;
  /** As JSON, at most 300 characters. */
  args: string;
  outcome: 'ok' | 'failed' | 'refused' | 'invalid';
  /** What the user decided; absent: nobody was asked. */
  approval?: string;
  /** Why it was not run. */
  reason?: string;
}

/** One stored entry of a thread: never changed once it is written. */
export interface Turn {
  seq: number;
  role: 'user' | 'assistant';
  /** Readable text: the question, the caller's findings, or the model's whole answer. */
  content: string;
  timestamp: number;
  exchange: ExchangeId;
  toolName: string;
  modelProvider?: string;
  modelName?: string;
  modelMetadata?: ModelMetadata;
  files: FileRecord[];
  images: ImageRecord[];
  citations: Citation[];
  /** Estimate for the turn as it stands in prompts, its files included, by o200k: what it costs is known without reading it. */
  tokens: number;
}

/** The `toolName` of a turn that stands in the place of one that was damaged on the disk, and says so. */
export const damagedTool = 'damaged';

/** One attempt at a model, as replies and the store keep it. */
export interface AttemptRecord {
  provider: string;
  model: string;
  /** `skipped`: it was not asked, because of its breaker or because too many were waiting. */
  outcome: 'ok' | 'retry' | 'failed' | 'skipped';
  class?: string;
  /** Epoch milliseconds of its end. */
  at: number;
  elapsedMs: number;
  /** What it is billed for; absent: nothing. */
  usage?: Usage;
  /** US dollars; absent: nothing, or nobody knows. */
  costUsd?: number;
  /** What came then: `retry`, the next candidate as `provider:model`, or `none`. */
  next?: string;
}

/** How an exchange ended, and the attempts at models that it took. */
export interface ExchangeEnd {
  status: ExchangeStatus;
  /** Absent: none, or nobody kept them. */
  attempts?: readonly AttemptRecord[];
}

/** A turn as it is read back, with how its exchange ended. */
export interface StoredTurn extends Turn, ExchangeEnd {}

/** A turn that is kept in the prompt, but not whole. */
export interface Trim {
  seq: number;
  /** At most this many characters of its content, cut in the middle. Absent: the content is whole. */
  chars?: number;
}

/**
 * How prompts are rebuilt from a thread that outgrew a window: the first request, then `summary` for the turns up to
 * `upToSeq`, then the later ones whole, but for `trims` (whose files are left out too).
 */
export interface Compaction {
  /** The window class it was made for, in tokens; prompts of this class and smaller ones use it. */
  window: number;
  upToSeq: number;
  summary: string;
  trims: Trim[];
  createdAt: number;
}

/** What a workflow tool remembers of its steps in one thread. */
export type WorkflowState = JsonObject;

export interface Thread extends ThreadHead {
  turns: StoredTurn[];
  compactions: Compaction[];
  /** By tool name. */
  workflows: Record<string, WorkflowState>;
}

/** What a fork is without where the thread that it begins with is gone; undefined: nothing. */
export function lostBeginning({ turns, seq }: Pick<Thread, 'turns' | 'seq'>): string | undefined {
  const lost = (turns[0]?.seq ?? seq + 1) - 1;
  return lost > 0 ? `Turns 1 to ${lost} of this thread are gone with the one that it was forked off.` : undefined;
}

/** A fork keeps whole exchanges: whether one is complete with this turn. */
export function endsExchange({ turns }: Pick<Thread, 'turns'>, { seq, exchange, status }: StoredTurn): boolean {
  const next = turns[turns.findIndex(turn => turn.seq === seq) + 1];
  return status === 'done' && next?.exchange !== exchange;
}

/** The blobs without which the turns cannot be shown again. */
export const blobsOfTurns = (turns: readonly Turn[]): Set<Sha256> =>
  new Set(
    turns.flatMap(({ files, images }) => [
      ...files.flatMap(({ base, shown }) => [base ?? [], shown ?? []].flat()),
      ...images.map(({ blob }) => blob),
    ]),
  );

/** The forms in which a thread is exported. */
export const exportForms = ['md', 'html', 'jsonl'] as const;

export type ExportFormat = (typeof exportForms)[number];

/** A part of Markdown: running text, or the inside of a fenced block of code. */
export interface Segment {
  /** The word behind the opening fence; absent for running text. */
  language?: string;
  text: string;
}

/** A place in a list of threads, the newest first: behind this one. */
export const cursorBehind = ({ updatedAt, id }: ThreadHead): string => `${updatedAt}:${id}`;

/** Where a page begins; undefined for what is no such place. A time alone is what earlier versions gave. */
export function pageBehind(cursor: string): { before: number; beforeId?: ThreadId } | undefined {
  const [, time, id = ''] = /^(\d{1,15})(?::(.+))?$/.exec(cursor) ?? [];
  if (time === undefined || (id !== '' && !isThreadId(id))) return undefined;
  return { before: Number(time), ...(isThreadId(id) && { beforeId: id }) };
}

import type { AppEvent } from './events.ts';
import type { ThreadId } from './ids.ts';
import type { JsonObject } from './json.ts';

/** Time as the rooms see it; tests hand in one that they move. */
export interface Clock {
  /** Milliseconds since the epoch, as the machine has it: it may jump. For what is shown and compared with times of files. */
  now(): number;
  /** Milliseconds that never jump. For durations and time limits. */
  monotonic(): number;
  /** Milliseconds since the epoch as all processes on one store count them. For what expires there, and for durations that they share. */
  storeTime(): number;
  /** Which start of the machine this is, and the milliseconds since, sleep included. */
  sinceBoot(): { boot: string; ms: number };
  /** Resolves after `ms`; rejects at once with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `run` once after `ms` without keeping the process alive; the result cancels it. */
  after(ms: number, run: () => void): () => void;
}

export interface Random {
  uuid(): string;
  /** At least 0, below 1. */
  fraction(): number;
}

/** Tells the observers that something happened. Never throws, never waits. */
export type Emit = (event: AppEvent) => void;

/** One thing that was said to a model, a tool or a program, or that came back. */
export interface ExchangeNote {
  /** The call that it belongs to. */
  reqId: string;
  /** Shared by a request and all that came of it. */
  exchange: string;
  direction: 'out' | 'in';
  kind: 'request' | 'response' | 'error' | 'tool_call' | 'tool_result' | 'refresh' | 'cache';
  /** The tool of ours that the call is of. */
  tool: string;
  provider: string;
  model: string;
  /** Plain data (records, lists, texts, numbers, bytes) that nobody changes afterwards; its secrets are masked before it is kept. */
  payload: object;
}

/** Keeps a note of what was said. Never throws, never waits. Absent where nobody wants to know: then nothing is to be made up for it. */
export type LogExchange = (note: ExchangeNote) => void;

/** A note as it was kept. */
export interface ExchangeLine extends Omit<ExchangeNote, 'kind' | 'payload'> {
  /** Epoch milliseconds. */
  at: number;
  /** An `ExchangeNote` kind, as far as this version wrote it. */
  kind: string;
  /** Long texts and bytes are missing in a list, and in their places in what `find` answers. */
  payload: Readonly<Record<string, unknown>>;
}

/** A request and what came of it. */
export interface ExchangeRecord extends Omit<ExchangeNote, 'direction' | 'kind' | 'payload'> {
  /** Epoch milliseconds of the request. */
  at: number;
  /** `open`: nothing came back yet, or ever. */
  outcome: 'ok' | 'error' | 'open';
  elapsedMs?: number;
  /** In their order. */
  lines: readonly ExchangeLine[];
}

/** Which exchanges are meant: at most `limit`, of these only. */
export interface ExchangeFilter {
  limit: number;
  reqId?: string;
  tool?: string;
  provider?: string;
  model?: string;
}

/** What was said to models, as far as it was kept. */
export interface ExchangeReader {
  /** The newest first. */
  list(filter: ExchangeFilter): Promise<ExchangeRecord[]>;
  /** One exchange as a whole; undefined when there is none. */
  find(exchange: string): Promise<ExchangeRecord | undefined>;
  /** Removes all of it. */
  clear(): Promise<void>;
}

/** An event with the time at which it happened; its texts are masked. */
export interface RecentEvent {
  /** Milliseconds since the epoch. */
  at: number;
  event: AppEvent;
}

/** The newest `limit` events of one owner's calls in this process that hold all the words, oldest first. */
export type Recent = (query: { owner: string; words: readonly string[]; limit: number }) => RecentEvent[];

/** A call of this process, as its events tell of it. */
export interface WatchedCall {
  reqId: string;
  tool: string;
  owner: string;
  /** Name of the client, when it told. */
  client?: string;
  /** Epoch milliseconds. */
  startedAt: number;
  /** True: it is made of what its thread keeps, and has no ID. */
  stored?: true;
  /** Absent while it runs. */
  endedAt?: number;
  /** Absent: its arguments were not understood (yet), or its reader may not use threads. */
  about?: Pick<Extract<AppEvent, { type: 'call.about' }>, 'text' | 'workspace' | 'thread' | 'seq'>;
  /** Its events, oldest first; of a call with very many, the newest are left out, but never the last one of all. */
  events: readonly RecentEvent[];
  /** How many were left out. */
  omitted: number;
}

/** The calls of this process, those under way and the latest that ended. Nobody hears of another owner's. */
export interface WatchedCalls {
  /** Those under way first, then the newest. */
  list(owner: string): readonly WatchedCall[];
  find(owner: string, reqId: string): WatchedCall | undefined;
  /** Calls `listener` with the id of each call of this owner of which there is news, until `signal` is aborted. */
  subscribe(owner: string, listener: (reqId: string) => void, signal: AbortSignal): void;
}

/** A text whose secrets were replaced by stable placeholders, and how many of each kind were. */
export interface Masked {
  text: string;
  /** Kind of secret → count, e.g. `{ github_token: 1 }`. Empty when nothing was found. */
  found: Record<string, number>;
  /** Where the secrets stood in the text that was given, in order and without overlap. */
  places?: readonly MaskedPlace[];
}

export interface MaskedPlace {
  start: number;
  /** Behind its last character. */
  end: number;
  kind: string;
  /** What stands there now. */
  placeholder: string;
}

/**
 * Replaces the secrets in a text by `[masked:KIND:HASH]`. The hash is keyed by `scope` (a thread id): the same secret gets
 * the same placeholder within one scope, so that a file masked twice stays byte-identical. What a model wrote (`by: 'model'`) holds
 * no password that is only known by its name: it never saw one, and those of the tests and examples that it writes are its own.
 * With `rules`, only what is recognised is masked, and nothing that was remembered.
 */
export interface Mask {
  (text: string, scope: string, by?: 'model' | 'rules'): Promise<Masked>;
  /**
   * These were written to a file: they are masked by their values from now on, also in other forms (base64, hexadecimal,
   * escaped, reversed, in pieces). Long codes everywhere, others under their scope and in logs.
   */
  remember?(secrets: readonly { kind: string; value: string }[], scope: string): void;
}

/** Texts as vectors, for finding what is near in meaning. */
export interface Embedder {
  /** `provider:model`: vectors of different models can't be compared. */
  model: string;
  /** One vector a text, in their order, all of one length. Without a payer the operator pays. Throws an `AppError`. */
  embed(
    texts: readonly string[],
    signal: AbortSignal,
    payer?: { owner: string; thread?: ThreadId },
  ): Promise<Float32Array[]>;
}

/**
 * Small facts that outlive a call and, where the store is shared, belong to all processes on it: breakers, rate windows, ids of
 * uploads, caches at vendors. Keys are words joined by slashes, the most general first (`breaker/openai/key`). No secrets.
 */
export interface SharedState {
  /** The value as it is now; undefined when there is none or its time ended. */
  get(key: string): Promise<JsonObject | undefined>;
  /** All values whose keys begin with `prefix`, by key. */
  list(prefix: string): Promise<ReadonlyMap<string, JsonObject>>;
  /**
   * Replaces a value by what `change` makes of it, as one step that no other process can come between; `change` may be asked
   * several times and must do nothing else. Undefined removes the value. It lives `ttlMs` from now. Answers the new value.
   */
  change(
    key: string,
    ttlMs: number,
    change: (before: JsonObject | undefined) => JsonObject | undefined,
  ): Promise<JsonObject | undefined>;
}

/** A text that outlasts the process: for what could be had again, such as facts about models. */
export interface KeptText {
  /** Undefined when there is none, or it can't be read. */
  read(): Promise<string | undefined>;
  /** As a whole or not at all. Rejects when it can't be written. */
  write(text: string): Promise<void>;
}

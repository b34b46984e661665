import type { ExchangeId, JobId, Sha256, ThreadId } from '../core/ids.ts';
import type { Job } from '../core/job.ts';
import type { JsonObject } from '../core/json.ts';
import type { OptionSpec } from '../core/option.ts';
import type { Clock, Random } from '../core/ports.ts';
import type { Compaction, ExchangeEnd, Thread, ThreadHead, Turn, WorkflowState } from '../core/thread.ts';
import type { SpendLedger } from '../core/usage.ts';

/** What a store knows of an id. A tombstone tells an expired thread from one that never was. */
export type Lookup<Found> =
  | { state: 'live'; value: Found }
  | { state: 'expired'; expiredAt: number }
  | { state: 'deleted'; deletedAt: number }
  | { state: 'unknown' };

/**
 * One atomic change of a thread: all of it becomes durable, or none. What it costs depends on what is new, never on how
 * long the thread is.
 */
export interface ThreadChange {
  /** The thread's `seq` that the change was made on; another one is refused with STORAGE, class `conflict`. */
  baseSeq: number;
  /** Who makes the change: it is refused like one of another `baseSeq` while somebody else holds the thread's lease. */
  holder?: string;
  /** New turns; their `seq` runs from `baseSeq + 1` without a gap. */
  turns?: Turn[];
  /** Sets how an exchange ended, new or old. */
  exchange?: ExchangeEnd & { id: ExchangeId };
  /** Replaces one tool's workflow state; null removes it. */
  workflow?: { tool: string; state: WorkflowState | null };
  compaction?: Compaction;
  /** Texts that turns of this change refer to. Content-addressed: one that is there already costs nothing. */
  blobs?: { sha256: Sha256; text: string }[];
  /** Epoch milliseconds. */
  updatedAt: number;
  expiresAt: number;
  /** When it is made, by the time that `expiresAt` goes by; absent: `updatedAt`. */
  now?: number;
  title?: string;
  /** Added to the totals. */
  tokens?: number;
  costUsd?: number;
}

export interface ListQuery {
  owner: string;
  /** Absent: all of the owner's. */
  workspace?: string;
  limit: number;
  /** Only threads updated before this time (epoch milliseconds): the next page. */
  before?: number;
  /** With `before`: threads of that very time count too whose ids are smaller than this one. */
  beforeId?: ThreadId;
  /** Threads that expired by then are left out. */
  now: number;
}

export interface SearchQuery extends ListQuery {
  /** Words, all of which must occur; matched without case, by word beginnings. */
  text: string;
}

export interface SearchHit {
  thread: ThreadHead;
  seq: number;
  /** About 160 characters around the first match. */
  snippet: string;
}

/** Threads of one owner that nobody used since. */
export interface Unused {
  owner: string;
  /** Epoch milliseconds; a thread that was used then counts as used. */
  since: number;
}

/** What a prune takes. */
export interface Prunable {
  threads: number;
  /** Texts that no other thread refers to. */
  blobs: number;
  /** Of these threads and texts as they are stored, about. */
  bytes: number;
}

/** How a job ends. */
export interface JobEnd extends Pick<Job, 'thread' | 'reply' | 'updatedAt' | 'expiresAt'> {
  status: Exclude<Job['status'], 'running'>;
}

/** One small fact of the shared state (core/ports.ts). Losing one costs a little time, never a thread. */
export interface Fact {
  value: JsonObject;
  /** Grows with each change of any fact and is never used twice, so that it also tells one that was removed and came again. */
  version: number;
}

/** Replaces a fact if it is still what its reader saw. */
export interface FactSwap {
  key: string;
  /** The version that was seen; 0: there was none, or its time had ended. */
  version: number;
  /** Absent: the fact is removed. */
  value?: JsonObject;
  /** Epoch milliseconds. */
  expiresAt: number;
  now: number;
  /**
   * Nothing waits for it: a store that gathers its writes may let it wait a moment for the next one, before which it
   * takes effect all the same. Absent: it is written at once.
   */
  unhurried?: boolean;
}

/** What a store says of itself, or the server behind it. Holds no credentials. */
export interface StoreInspection {
  /** Which one it is, or what can be done with it, e.g. `Redis 7.0.15 at localhost:6379, a single server`. */
  text: string;
  /** What should be otherwise, with what to do: a sentence or two each. */
  warnings: string[];
}

/**
 * Where threads live. Every store passes test/contracts/store-suite.ts. All methods may be called at once from many calls
 * and, where the store is shared, from many processes; none of them ever shows a "busy" to its caller. What one store is asked to
 * change in one thread takes effect, and is answered, in the order of the asking, awaited or not. Failures are `AppError`s of kind `storage`: `unavailable`, `storage_full`, `corrupt`, `conflict`.
 */
export interface Store {
  /** `sqlite`, `redis`, `memory`, or the name of one from outside. */
  readonly kind: string;
  /** Hours a thread lives after its last use, unless the operator says otherwise. */
  readonly defaultTimeoutHours: number;

  /**
   * Writes a new, empty thread. An id that exists is refused with class `conflict`; one of which there is a tombstone too,
   * unless it is to `revive`: then the tombstone goes.
   */
  create(head: ThreadHead, over?: 'revive'): Promise<void>;
  /** Head, turns (with the status of their exchange), compactions and workflow states. */
  read(id: ThreadId, now: number): Promise<Lookup<Thread>>;
  /** Head alone, in the same time for a thread of any length. */
  head(id: ThreadId, now: number): Promise<Lookup<ThreadHead>>;
  /** Applies a change; resolves once it is durable. Answers the thread's new `seq`. An id that is not live is refused with class `conflict`. */
  commit(id: ThreadId, change: ThreadChange): Promise<number>;
  /** Blobs by hash; one that is not there is missing from the map. */
  blobs(hashes: readonly Sha256[]): Promise<Map<Sha256, string>>;

  /** Live threads, the newest `updatedAt` first. */
  list(query: ListQuery): Promise<ThreadHead[]>;
  /** Full-text search over the turns of `done` exchanges; the best match of each thread, newest thread first. */
  search(query: SearchQuery): Promise<SearchHit[]>;
  /** Removes a thread with the jobs that worked on it, and leaves a tombstone; false when it was not live. */
  remove(id: ThreadId, now: number): Promise<boolean>;
  /**
   * Turns threads that expired by `now` into tombstones, drops blobs nobody refers to, expired jobs and facts, what the ledger keeps no longer, and tombstones older than 90 days.
   * Answers how many threads went. A thread that a stored fork begins with stays, readable at its own time, until the fork went.
   * With `unused`, threads go too that were not used for long, whenever they expire.
   */
  prune(now: number, unused?: Unused): Promise<number>;
  /** What `prune` would take, at the same time and with the same choice. */
  prunable(now: number, unused?: Unused): Promise<Prunable>;

  /** Writes a new job; resolves once it is durable. An id that exists is refused with class `conflict`. */
  createJob(job: Job): Promise<void>;
  /** A job, or undefined when there is none or it expired by `now`. */
  job(id: JobId, now: number): Promise<Job | undefined>;
  /** The owner's jobs, the newest `createdAt` first. Those that expired by `now` are left out. */
  jobs(query: Pick<ListQuery, 'owner' | 'limit' | 'now'>): Promise<Job[]>;
  /** Ends a running job, once: false when it is not running any more, or not there. Members that are left out stay. */
  endJob(id: JobId, end: JobEnd): Promise<boolean>;

  /**
   * Takes or renews a right that one holder has at a time: to run an exchange on a thread, or (under its own name) to be the
   * process that runs certain jobs. True when nobody else holds it, or `holder` does already.
   * It lapses `ttlMs` after `now`, so that a holder that died blocks nobody for long. `unhurried`: as with a fact.
   */
  lease(id: string, holder: string, ttlMs: number, now: number, unhurried?: boolean): Promise<boolean>;
  /** Gives it back; does nothing when `holder` does not hold it. */
  release(id: string, holder: string, unhurried?: boolean): Promise<void>;

  /** A fact, or undefined when there is none or its time ended by `now`. */
  fact(key: string, now: number): Promise<Fact | undefined>;
  /** The facts whose keys begin with `prefix`, by key. */
  facts(prefix: string, now: number): Promise<Map<string, Fact>>;
  /** True when it took effect; false when the fact is another one by now, in whichever process it was changed. */
  swapFact(swap: FactSwap): Promise<boolean>;

  /**
   * Another text after any change of a thread or a job, whichever process made it: for who wants to know cheaply whether to
   * look again. It may be another one without such a change, too.
   */
  mark(): Promise<string>;

  /** What calls cost, and what is reserved for those under way. */
  readonly spend: SpendLedger;

  /** Epoch milliseconds by the server behind the store, which machines share whose own times differ; absent where there is none. */
  time?(): Promise<number>;

  /** Begins to open what the first use would open: that may take long while other work goes on. The first use reports what failed. */
  open?(): void;

  /** Makes ready what the first use takes long to make, and opens nothing: a process that is never asked leaves no trace. */
  warm?(): void;

  /** Opens the store as a call would, and says what an operator should know of it; rejects with what a call would fail with. */
  inspect?(): Promise<StoreInspection>;

  /**
   * Checks all that is stored and replaces what is damaged, in a store that is a file. Answers what was found and done, as
   * sentences.
   */
  repair?(): Promise<{ isReplaced: boolean; text: string }>;

  /** Copies all that is stored, as it is at one moment, into an empty file that can take this one's place; where the store is a file. */
  backUp?(file: string): Promise<void>;

  /** Closes files and connections; later calls are refused. */
  close(): Promise<void>;
}

/** Methods of a store as they are where nothing has to be waited for. */
export type AtOnce<Name extends keyof Store> = {
  [Key in Name]: Store[Key] extends (...given: infer Given) => Promise<infer Result>
    ? (...given: Given) => Result
    : never;
};

/** What a store that outlasts its processes has as its `defaultTimeoutHours`. */
export const lastingTimeoutHours = 720;

/** What a store from outside works with. */
export interface StoreContext {
  /** The time, which tests may set. */
  clock: Clock;
  /** UUIDs, and numbers from 0 to below 1. */
  random: Random;
  /** Told to the operator. */
  onWarning(message: string): void;
}

/** A kind of store from outside the package, chosen by its name (`POLYLOGUE_STORE`). */
export interface StoreDefinition {
  /** Lower case; the word that `POLYLOGUE_STORE` takes for it. */
  name: string;
  /** Its settings, by the name under which `open` gets them; absent: none. */
  options?: Readonly<Record<string, OptionSpec>>;
  /** The store, as a `Store` is to be. Called once, at the start, which has no side effects: it opens on first use. */
  open(settings: Readonly<Record<string, string | undefined>>, context: StoreContext): Store | Promise<Store>;
}

/** Returns `definition`, typed; a store from outside is one of these. */
export function defineStore<Definition extends StoreDefinition>(definition: Definition): Definition {
  return definition;
}

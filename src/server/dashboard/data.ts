import type { FileRecord, FileView } from '../../core/file.ts';
import type { ThreadId } from '../../core/ids.ts';
import type { Health, ProviderCapabilities } from '../../core/model.ts';
import type { WatchedCall } from '../../core/ports.ts';
import type { ExportFormat, ImageRecord, Segment, StoredTurn, Thread, ThreadHead } from '../../core/thread.ts';
import type { SpendRow } from '../../core/usage.ts';
import type { Caller } from '../access/caller.ts';

/** All that the dashboard shows, and the little that it changes. */
export interface DashboardData {
  /** What one caller may see: none of it is another owner's, but for how providers do, which is everybody's. */
  of(caller: Caller): OwnData;
  /** Takes Markdown apart into running text and blocks of code. */
  segments(markdown: string): Segment[];
  version: string;
}

export interface OwnData {
  /** The owner's calls in this process; those of threads that the caller may not use are among them. */
  calls: {
    /** Those under way first, then the newest. */
    list(): readonly WatchedCall[];
    find(reqId: string): WatchedCall | undefined;
    /** Calls `listener` with the id of a call of which there is news, until `signal` is aborted. */
    subscribe(listener: (reqId: string) => void, signal: AbortSignal): void;
  };
  /** Absent: this caller may not use threads. */
  threads?: ThreadsData;
  /** Absent: the caller may not use the tool `agent`, may not use threads, or may only read. */
  runs?: RunsData;
  providers(): Promise<ProviderView[]>;
  /** Asks a provider for its list of models now, and says in words what came of it; throws an `AppError`. Absent: the caller may only read. */
  tryProvider?(id: string, signal: AbortSignal): Promise<string>;
  /** What vendors keep of the owner's threads, the newest first. */
  caches(): Promise<CacheView[]>;
  /** The owner's sums, by day, tool, model and thread, from a day (`2026-01-31`, UTC) on; absent: the day that a limit counts now. */
  spend(from?: string): Promise<SpendRow[]>;
  /** US dollars that vendors' caches saved in these, as far as prices are known. */
  saved(rows: readonly SpendRow[]): Promise<number>;
}

/** The owner's runs of the agent that wait for an answer, in any process on the store. */
export interface RunsData {
  /** `call`: what it wants to do; `exchange`: of its task in the thread; `since`: epoch milliseconds. */
  list(): Promise<readonly { id: string; thread: ThreadId; call: string; exchange: string; since: number }[]>;
  /** Has the question shown once more, as a call of the tool `agent` with the run's id does. */
  question(id: string, signal: AbortSignal): Promise<RunReply>;
  /** Answers the question that was shown, once; the run goes on, whether or not it is waited for. */
  answer(id: string, key: string, decision: string): Promise<RunReply>;
}

/** What the tool `agent` replied. */
export interface RunReply {
  /** What happened or is to be done, where nothing is asked. */
  text: string;
  isError: boolean;
  thread?: string;
  /** Absent: nothing is asked (any more). */
  question?: { key: string; message: string; decisions: readonly string[] };
}

type ThreadPage = { limit: number; before?: number; beforeId?: ThreadId };

/** The owner's threads, of all projects. All but `list` and `search` throw an `AppError` for a thread that is not his. */
export interface ThreadsData {
  /** The newest first; `before`: epoch milliseconds of the last use, for the next page. */
  list(query: ThreadPage): Promise<ThreadHead[]>;
  search(query: ThreadPage & { text: string }): Promise<{ thread: ThreadHead; seq: number; snippet: string }[]>;
  read(id: string): Promise<Thread>;
  /** The project of each of these threads, by its id; those that are gone are left out. */
  projects(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** What a turn showed of a file of its own. */
  file(file: FileRecord): Promise<FileView>;
  /** Undefined for a picture that is gone, or of a kind that browsers don't show. */
  image(image: ImageRecord): Promise<Uint8Array | undefined>;
  export(id: string, form: ExportFormat): Promise<AsyncIterable<string>>;
  /** Absent: the caller may only read. */
  change?: {
    /** A new thread that begins with the turns up to this one; throws where no exchange ends there. */
    fork(thread: Thread, turn: StoredTurn): Promise<ThreadHead>;
    /** Waits for the calls that work on it. */
    remove(thread: Thread, signal: AbortSignal): Promise<void>;
  };
}

export interface ProviderView extends ProviderCapabilities {
  /** What is known of how it does; empty where nothing was asked of it lately. */
  health: readonly Health[];
}

export interface CacheView {
  provider: string;
  model: string;
  thread: string;
  tokens: number;
  messages: number;
  /** Epoch milliseconds. */
  created: number;
  expires: number;
  /** Paths. */
  files: readonly string[];
}

import type { ThreadId } from '../core/ids.ts';
import type { Job } from '../core/job.ts';
import type { JsonObject } from '../core/json.ts';
import type { Health, ProviderCapabilities } from '../core/model.ts';
import type { RecentEvent } from '../core/ports.ts';
import type { ExportFormat, Thread, ThreadHead } from '../core/thread.ts';
import type { Principal } from '../core/tool-host.ts';
import type { SpendRow } from '../core/usage.ts';
import type { ProviderState } from '../models/call/models.ts';
import type { KeptDocument, SearchHit, SearchRequest, VendorCache } from '../models/vendor-services.ts';
import type { Store } from '../storage/store.ts';

/** What a tool may do with threads as files, bound to one caller; files are read and written inside the roots alone. */
export interface TransferActions {
  /** Keys of the reply. Without a path the file's text is among them, where it fits. */
  export(request: { continuationId: string; format: ExportFormat; outputPath?: string }): Promise<JsonObject>;
  import(request: { filePath: string; asNew: boolean }): Promise<JsonObject>;
}

/** What became of one file that was to be uploaded. */
export type UploadOutcome =
  | { filename: string; fileId: string; status: string; bytes: number; fresh: boolean; text: string }
  | { filename: string; error: { code: string; message: string; next?: string } };

/** Documents at the vendor, for one caller. All of it throws an `AppError`. */
export interface UploadActions {
  /** In the order of the paths. One that fails does not stop the others; when all do, the first failure is thrown. */
  add(paths: readonly string[]): Promise<UploadOutcome[]>;
  list(): Promise<KeptDocument[]>;
  /** False when the vendor had it no more. */
  remove(id: string): Promise<boolean>;
}

/** Searches the web without a model. Throws an `AppError`. */
export interface WebActions {
  provider: string;
  search(request: SearchRequest): Promise<SearchHit[]>;
}

/** What a handler may touch. */
export interface ActionContext {
  /** The caller: owner of threads, project directory and client. */
  principal: Principal;
  /** Aborted when the call is cancelled. */
  signal: AbortSignal;
  /** Epoch milliseconds. */
  now: number;
  /** The caller's threads. */
  threads: ThreadActions;
  /** The caller's jobs. */
  jobs: JobActions;
  /** Providers and their models. */
  models: ModelActions;
  /** Health, limits and spending of this process. */
  ops: OpsActions;
  /** Threads as files. */
  transfer: TransferActions;
  /** Documents at a vendor that reads them. */
  uploads: UploadActions;
  /** Absent: no provider that searches is configured. */
  web?: WebActions;
  /** Versions and settings that `version` shows. */
  product: ProductFacts;
  /** Maximum tokens of the reply; a longer one comes in pages. */
  replyTokens: number;
}

export interface ThreadActions {
  find(reference: string): Promise<Thread>;
  /** The same without its turns, also of one that is too damaged to be read. */
  head(reference: string): Promise<ThreadHead>;
  list(query: { everywhere: boolean; limit: number; before?: number; beforeId?: ThreadId }): Promise<ThreadHead[]>;
  search(query: { text: string; everywhere: boolean; limit: number }): ReturnType<Store['search']>;
  fork(thread: Thread, upToSeq: number): Promise<ThreadHead>;
  remove(thread: Pick<Thread, 'id'>): Promise<boolean>;
}

/** The caller's own jobs. */
export interface JobActions {
  /** A job once it ended, or as it stands after `ms`; never longer than the client waits for a call. */
  wait(id: string, ms: number): Promise<Job>;
  cancel(id: string): Promise<Job>;
  /** What a job that runs in this process is at. */
  stage(job: Job): string | undefined;
}

export interface ModelActions {
  /** With `fresh`, vendors whose own list of models is old are asked for it. */
  providers(options?: { fresh?: boolean }): Promise<ProviderState[]>;
  defaultModel: string;
}

/** How this process is. Events, jobs and spending are the caller's own. */
export interface OpsActions {
  uptimeMs(): number;
  /** The sums of today, by tool, model and thread. */
  spentToday(): Promise<SpendRow[]>;
  /** What the operator set: US dollars, and calls a minute by tool. */
  limits: { perRequest?: number; perThread?: number; perDay?: number; rates: ReadonlyMap<string, number> };
  runningJobs(): Promise<Job[]>;
  recent(query: { words: readonly string[]; limit: number }): RecentEvent[];
  capabilities(): Promise<ProviderCapabilities[]>;
  /** How providers and models do, as far as is known here and where the store is shared. */
  health(): Promise<Health[]>;
  /** Beginnings of the caller's threads that are kept at vendors, the newest first. */
  caches(): Promise<VendorCache[]>;
}

export interface ProductFacts {
  version: string;
  catalogueVersion: string;
  nodeVersion: string;
  platform: string;
  store: string;
  roots: readonly string[];
  tools: readonly string[];
}

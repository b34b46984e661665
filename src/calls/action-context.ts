import type { ThreadId } from '../core/ids.ts';
import type { Job } from '../core/job.ts';
import type { RecentEvent } from '../core/ports.ts';
import type { Thread, ThreadHead } from '../core/thread.ts';
import type { Principal } from '../core/tool-host.ts';
import type { SpendRow } from '../core/usage.ts';
import type { ProviderState } from '../models/call/models.ts';
import type { ProviderCapabilities } from '../models/catalogue/survey.ts';
import type { SearchHit } from '../models/extras/glm/search-hits.ts';
import type { VendorCache } from '../models/vendor-services.ts';
import type { SearchRequest } from '../providers/zhipu/services.ts';
import type { TransferActions } from './actions/transfers.ts';
import type { UploadActions } from './actions/uploads.ts';

/** Searches the web without a model. Throws an `AppError`. */
export interface WebActions {
  /** Id of the provider that searches. */
  provider: string;
  search(request: SearchRequest): Promise<SearchHit[]>;
}

/** What a handler may touch. */
export interface ActionContext {
  principal: Principal;
  signal: AbortSignal;
  /** Epoch milliseconds. */
  now: number;
  threads: ThreadActions;
  jobs: JobActions;
  models: ModelActions;
  ops: OpsActions;
  /** Threads as files. */
  transfer: TransferActions;
  /** Documents at a vendor that reads them. */
  uploads: UploadActions;
  /** Absent: no provider that searches is configured. */
  web?: WebActions;
  product: ProductFacts;
  /** The most tokens of the reply; what is longer comes in pages. */
  replyTokens: number;
}

export interface ThreadActions {
  find(reference: string): Promise<Thread>;
  list(query: { everywhere: boolean; limit: number; before?: number; beforeId?: ThreadId }): Promise<ThreadHead[]>;
  search(query: {
    text: string;
    everywhere: boolean;
    limit: number;
  }): Promise<{ thread: ThreadHead; seq: number; snippet: string }[]>;
  fork(thread: Thread, upToSeq: number): Promise<ThreadHead>;
  remove(thread: Thread): Promise<boolean>;
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

import type { Clock, Emit, Mask } from '../../core/ports.ts';
import type { Turn } from '../../core/thread.ts';
import type { AskModel } from '../../models/ask-model.ts';
import type { CountPrompt } from '../../models/call/models.ts';
import type { Resolution } from '../../models/routing/resolve.ts';
import type { ModelRequest } from '../../models/routing/roster.ts';
import type { DocumentLibrary } from '../../models/vendor-services.ts';
import type { Store } from '../../storage/store.ts';
import type { Sandbox } from '../../workspace/sandbox.ts';
import type { SearchIndexes } from '../../workspace/search-index/search-index.ts';
import type { WorkPool } from '../../workspace/workers/worker-pool.ts';
import type { FileShortener } from './shorten-files.ts';

/** What it takes to make a prompt. */
export interface ContextServices {
  store: Store;
  sandbox: Sandbox;
  /** Threads for work on the processor. */
  pool: WorkPool;
  /** Makes files short that have no room. */
  condenser: FileShortener;
  /** Where what stands in the files of a workspace. */
  indexes: Pick<SearchIndexes, 'of'>;
  mask: Mask;
  clock: Clock;
  emit: Emit;
  newExchange(): Turn['exchange'];
  /** Tokens of texts, counted: slow, and only asked for where an estimate can't decide. */
  countTokens(texts: readonly string[], signal?: AbortSignal): Promise<number>;
  /** A vendor that reads documents for its models; absent: none is configured. */
  documents?: DocumentLibrary;
  /** The same by the vendor of the model, where it counts; undefined where it does not, or did not answer. */
  countPrompt?: CountPrompt;
  /** Who sums up what has no room; absent: nobody, an extract is made. */
  summaries?: SummaryOptions;
  /** Home directory, for `~` in paths. */
  home: string;
  preamble: string;
  maxTurns: number;
  maxFileBytes: number;
  maxNamedFiles: number;
}

/** Who sums up what a prompt has no room for. */
export interface SummaryOptions {
  /** A model's name; `auto`: a cheap one of the provider that is asked anyway. */
  model: string;
  route(request: ModelRequest): Promise<Resolution>;
  ask: AskModel;
  clock: Clock;
  emit: Emit;
}

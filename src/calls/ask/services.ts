import type { Effort } from '../../core/model.ts';
import type { Clock, Emit, Mask } from '../../core/ports.ts';
import type { AskModel, WebSearch } from '../../models/ask-model.ts';
import type { ModelService } from '../../models/call/models.ts';
import type { Classify } from '../../models/routing/classifier.ts';
import type { Resolution } from '../../models/routing/resolve.ts';
import type { ModelRequest } from '../../models/routing/roster.ts';
import type { Meter } from '../../models/spend-meter.ts';
import type { DocumentLibrary } from '../../models/vendor-services.ts';
import type { Store } from '../../storage/store.ts';
import type { SearchIndexes } from '../../workspace/search-index/search-index.ts';
import type { WorkPool } from '../../workspace/workers/worker-pool.ts';
import type { CallWorld } from '../call-record.ts';
import type { FileShortener } from './shorten-files.ts';

/** What a call needs of the product. `composeEngine` makes one for all callers with the same permissions. */
export interface CallServices extends CallWorld, Pick<Meter, 'reserve' | 'attempts'> {
  /** Asks a model within the limits on cost, and records what was spent. */
  askModel: AskModel;
  route(request: ModelRequest): Promise<Resolution>;
  /** US dollars that the limits on costs leave for the models of a call that nobody names. */
  leftToSpend: Meter['left'];
  /** Asks a small model what a question is about, where the rules of routing leave that open. */
  classify: Classify;
  webSearch: SearchSettings;
  /** Whether a provider's models run on this machine: they are shown the secrets of files. */
  runsHere(providerId: string): boolean;
  /** By tool: the effort of its model when the call names none; absent: the tool's own. */
  efforts: Readonly<Record<string, Effort>>;
  store: Store;
  /** Worker threads for CPU-bound work. */
  pool: WorkPool;
  fileShortener: FileShortener;
  indexes: Pick<SearchIndexes, 'of'>;
  mask: Mask;
  clock: Clock;
  emit: Emit;
  /** Exact token count of texts. Slow: only for cases that an estimate cannot decide. */
  countTokens(texts: readonly string[], signal?: AbortSignal): Promise<number>;
  /** The provider that reads documents for its models; absent: none is configured. */
  documents?: DocumentLibrary;
  /** Exact token count of a prompt by the model's vendor; undefined if the vendor does not count or does not respond. */
  countPrompt?: ModelService['countPrompt'];
  /** Name of the model that summarizes long threads; `auto`: a cheap one of the provider that is asked; absent: none. */
  compactionModel?: string;
  preamble: string;
  maxNamedFiles: number;
}

/** Whether and how models may search the web. */
export interface SearchSettings extends WebSearch {
  when: 'auto' | 'asked' | 'off';
}

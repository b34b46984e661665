import type { CallExplanation, RouteQuestion } from '../calls/ask/explain-call.ts';
import type { ToolHost } from '../core/tool-host.ts';
import type { SpendRow } from '../core/usage.ts';
import type { SendMessage } from '../engine/conversation.ts';
import type { Telemetry } from '../observability/observability.ts';
import type { Store } from '../storage/store.ts';
import type { OwnTransfer } from '../threads/transfer/transfer.ts';
import type { Roots } from '../workspace/roots.ts';
import type { SearchIndexes } from '../workspace/search-index/search-index.ts';
import type { DaemonService, DaemonSettings } from './compose-daemon.ts';
import type { ComposedModels } from './compose-models.ts';
import type { ObservabilityServices } from './compose-observability.ts';

/** All of it, running. */
export interface Product extends ObservabilityServices {
  host: ToolHost;
  /** What a host tells its model of the tools as a whole. */
  instructions: string;
  /** The project that this process serves; the working directory when no project was found. */
  root: string;
  /** What may be read, and why. */
  readable: Roots;
  /** What the one client of this process uses who lists these directories, as `file://` addresses, and his project. */
  projectOf(listed: readonly string[]): Promise<{ host: ToolHost; root: string }>;
  /** Loads what the first call needs, in slices between which others have their turn. What goes wrong is told by that call. */
  warm(): Promise<void>;
  /** The search index of a folder within the roots. */
  searchIndex: SearchIndexes['of'];
  models: Pick<
    ComposedModels,
    'namesOfNone' | 'providers' | 'ping' | 'balance' | 'refresh' | 'warnings' | 'health' | 'caches'
  >;
  /** What is set up badly, as far as it has turned up. */
  warned: Telemetry['warned'];
  /** Who would answer a call, and why. */
  explainRoute(question: RouteQuestion, signal: AbortSignal): Promise<CallExplanation>;
  /** What commands of an agent run in: the name of a sandbox, or `none: ` and why; rejects where one is required. */
  commandSandbox(): Promise<string>;
  /** What a server behind the store says of itself; absent where there is none. */
  inspectStore: Store['inspect'];
  /** Serves many clients over HTTP; rejects where it may not, or can't. */
  openDaemon(options: DaemonSettings): Promise<DaemonService>;
  /** What the operator's own calls cost since a day (`2026-01-31`, UTC). */
  spent(from: string): Promise<SpendRow[]>;
  /** The operator's own threads as files, and what is over with. */
  transfer: OwnTransfer;
  /** Sends one message of a conversation that its caller keeps. */
  converse: SendMessage;
  /** Lets jobs end within their grace time (none once `hurry` is aborted), stores and closes everything. */
  close(hurry?: AbortSignal): Promise<void>;
}

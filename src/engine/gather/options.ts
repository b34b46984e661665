import type { Clock, Emit, Mask } from '../../domain/ports.ts';
import type { Turn } from '../../domain/thread.ts';
import type { Sandbox } from '../../files/sandbox.ts';
import type { Store } from '../../memory/store.ts';
import type { DocumentLibrary } from '../../models/extras/documents/document-library.ts';
import type { CountPrompt } from '../../models/sources/count-prompt.ts';

/** What it takes to make a prompt. */
export interface ComposeOptions {
  store: Store;
  sandbox: Sandbox;
  mask: Mask;
  clock: Clock;
  emit: Emit;
  newExchange(): Turn['exchange'];
  /** Tokens of texts, counted: slow, and only asked for where an estimate can't decide. */
  countTokens(texts: readonly string[]): Promise<number>;
  /** A vendor that reads documents for its models; absent: none is configured. */
  documents?: DocumentLibrary;
  /** The same by the vendor of the model, where it counts; undefined where it does not, or did not answer. */
  countPrompt?: CountPrompt;
  /** Home directory, for `~` in paths. */
  home: string;
  preamble: string;
  maxTurns: number;
  maxFileBytes: number;
  maxNamedFiles: number;
}

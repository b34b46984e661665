import type { SymbolKind } from '../../workspace/outline/outline.ts';
import type { Language } from '../outline/language.ts';

/** Work on the processor that may take longer than the other calls of a process should wait. Plain values: threads get copies. */
export type Job =
  | { kind: 'symbols'; path: string; language: Language; text: string }
  | { kind: 'diff'; path: string; before: string; after: string }
  | { kind: 'count'; texts: readonly string[] };

/** Something that a source file declares. */
export interface FoundSymbol {
  name: string;
  kind: SymbolKind;
  /** Lines, from 1. */
  from: number;
  to: number;
  /** How many symbols it stands in. */
  depth: number;
}

/** What each kind of job comes to. */
export interface JobResults {
  /** In the order of the source. */
  symbols: FoundSymbol[];
  /** Undefined: the texts are too far apart. */
  diff: string | undefined;
  /** Tokens by o200k, or a few more. */
  count: number;
}

export type JobAnswer = { done: JobResults[Job['kind']] } | { failure: string };

import type { LineRange } from '../../core/file.ts';
import type { Language } from '../outline/language.ts';
import type { KnownFile } from '../refresh.ts';

/** A file to be put into the index, as it may be stored: masked. Its path is relative to the workspace, with slashes. */
export interface FileToIndex extends KnownFile {
  text: string;
  language?: Language;
  /** What a hit in it counts for, at most 1. */
  weight: number;
}

/** A stretch of a file that answers a search. */
export interface Hit extends LineRange {
  /** Relative to the workspace, with slashes. */
  path: string;
  name: string;
  text: string;
  score: number;
}

/** What the thread of an index is asked, one at a time. */
export type IndexJob =
  | { op: 'files' }
  | { op: 'put'; files: readonly FileToIndex[] }
  /** The text is the same, the time of the last change is not. */
  | { op: 'touch'; files: readonly KnownFile[] }
  | { op: 'remove'; paths: readonly string[] }
  | { op: 'clear' }
  | { op: 'counts'; model?: string }
  /** Chunks that have no vector of this model. */
  | { op: 'bare'; model: string; limit: number }
  | { op: 'embed'; model: string; vectors: readonly { id: number; vector: Float32Array }[] }
  | { op: 'search'; words: readonly string[]; near?: { model: string; vector: Float32Array }; limit: number }
  | { op: 'close' };

export interface IndexResults {
  files: KnownFile[];
  put: undefined;
  touch: undefined;
  remove: undefined;
  clear: undefined;
  counts: { files: number; chunks: number; vectors: number };
  bare: { id: number; text: string }[];
  embed: undefined;
  search: Hit[];
  close: undefined;
}

export interface IndexThreadOptions {
  /** The database; undefined: in memory alone. */
  file?: string;
}

/** `damaged`: the database was no good and has been emptied; what was asked for can be asked again. */
export type IndexFailure = { failure: string; full: boolean; damaged: boolean };

import type { Sha256 } from './ids.ts';

/** Why a file that was named or found was not read. */
export type SkipCode =
  | 'not_found'
  | 'outside_roots'
  | 'secret'
  | 'binary'
  | 'too_large'
  | 'not_regular'
  | 'unreadable'
  | 'bad_path'
  | 'bad_range'
  | 'empty_directory'
  | 'too_many_files'
  | 'over_budget';

/** A file that was left out, said to the caller in every reply. */
export interface Skip {
  path: string;
  code: SkipCode;
  /** One sentence: what is wrong and what would be allowed. */
  reason: string;
}

/** Whether a file is, by its name, a picture that models are shown. */
export const isPicture = (path: string): boolean => /\.(?:png|jpe?g|gif|webp)$/i.test(path);

/** Lines `from` to `to`, both counted from 1 and included. */
export interface LineRange {
  from: number;
  to: number;
}

/** What a file was when it was read. */
export interface Fingerprint {
  /** Bytes. */
  size: number;
  /** Milliseconds since the epoch. */
  mtimeMs: number;
  /** Of the bytes on disk (unmasked): tells whether they changed since. */
  sha256: Sha256;
}

/** A text file, read whole. Line ends are `\n`, a byte-order mark is removed. */
export interface TextFile extends Fingerprint {
  /** Absolute, with every symbolic link resolved. */
  path: string;
  text: string;
  lines: number;
  /** The text was read out of a document (PDF, Office, a picture of text); size and hash are the document's. */
  document?: boolean;
}

/**
 * How a file stands in a turn: its text, some of its lines, what changed since the thread last had it, what it declares or
 * says where it had no room (it does not count as sent then), or a note alone: that it is gone, that the text above is still
 * right, or that it changed and there was no room to show how.
 */
export const fileForms = ['full', 'range', 'diff', 'outline', 'summary', 'deleted', 'unchanged', 'changed'] as const;

/** A file as one turn sent it. Its text is a blob of the store, so that the turn can be rendered again byte for byte. */
export interface FileRecord extends Fingerprint {
  path: string;
  form: (typeof fileForms)[number];
  lines: number;
  /** Blob with the whole masked text: the base of the next diff. Only where text was shown. */
  base?: Sha256;
  /** Blob with exactly what the turn showed, where that is not simply `base` with line numbers: a diff, an outline, a summary. */
  shown?: Sha256;
  range?: LineRange;
  /** Its text was read out of a document and stands in a message of its own before the turn. */
  document?: boolean;
}

/** What a turn showed of a file, to be read. */
export interface FileView {
  path: string;
  /** How much of it, in words. */
  extent: string;
  /** `diff`, or the ending of its name. */
  language: string;
  /** Absent: nothing of it was shown, or it is no longer in the store. */
  text?: string;
}

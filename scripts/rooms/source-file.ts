import { blankCode } from './blank-code.ts';
import { type FoundImport, findImports } from './find-imports.ts';

/** A broken rule at one place, and what to do. */
export interface Violation {
  /** As in the tree that was checked, e.g. `src/tools/chat.ts`. */
  path: string;
  /** Counted from 1. */
  line: number;
  rule: 'imports' | 'packages' | 'globals' | 'size' | 'cycle' | 'name' | 'syntax' | 'place';
  message: string;
}

/** A file below src/, read for the checks. */
export interface SourceFile {
  path: string;
  /** Below src/: `tools/chat.ts`. */
  place: string;
  text: string;
  /** The text with comments, strings and regular expressions blanked. */
  code: string;
  generated: boolean;
  imports: FoundImport[];
}

export function isCode(path: string): boolean {
  return /\.(ts|tsx|mts|js|mjs)$/.test(path);
}

export function readSource(path: string, text: string): SourceFile {
  const code = isCode(path) ? blankCode(text) : '';
  return {
    path,
    place: path.replace(/^src\//, ''),
    text,
    code,
    generated: /\.gen\.\w+$/.test(path),
    imports: findImports(text, code),
  };
}

/** Whether a place (a path below src/) is one of the named rooms, folders or files, or lies in one. */
export function isIn(place: string, names: readonly string[]): boolean {
  return names.some(name => place === name || place.startsWith(`${name}/`));
}

import { posix } from 'node:path';
import { blankCode } from './blank-code.ts';
import { type FoundImport, findImports } from './find-imports.ts';

/** A broken rule at one place, and how to fix it. */
export interface Violation {
  /** As in the tree that was checked, e.g. `src/tools/chat.ts`. */
  path: string;
  /** Counted from 1. */
  line: number;
  rule: 'imports' | 'packages' | 'globals' | 'size' | 'cycle' | 'name' | 'syntax' | 'place' | 'budget';
  message: string;
}

/** A file below src/ as the checks read it. */
export interface SourceFile {
  path: string;
  /** The path below src/: `tools/chat.ts`. */
  place: string;
  text: string;
  /** The text with comments, strings and regular expressions blanked. */
  code: string;
  lines: number;
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
    lines: text.split('\n').length - (text.endsWith('\n') ? 1 : 0),
    generated: /\.gen\.\w+$/.test(path),
    imports: findImports(text, code),
  };
}

/** Returns the file that a relative import names, below src/; `../x` for a file outside src/. */
export function targetOf(file: SourceFile, specifier: string): string {
  return posix.normalize(posix.join(posix.dirname(file.place), specifier));
}

/** Returns the folder of a place, cut to `depth` folders; an empty text for a file directly below src/. */
export function folderOf(place: string, depth = Number.POSITIVE_INFINITY): string {
  return place.split('/').slice(0, -1).slice(0, depth).join('/');
}

/** Returns true when a place (a path below src/) is one of the named folders or files, or is inside one. */
export function isIn(place: string, names: readonly string[]): boolean {
  return names.some(name => place === name || place.startsWith(`${name}/`));
}

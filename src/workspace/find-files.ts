import { relative, sep } from 'node:path';
import { inParallel } from '../core/concurrency.ts';
import { inputError, throwIfAborted } from '../core/errors.ts';
import type { Skip } from '../core/file.ts';
import { printablePath } from '../core/text.ts';
import { isSkip } from '../files/skip.ts';
import { globMatcher } from '../files/walk/match-glob.ts';
import { readFile } from './read-file.ts';
import type { Sandbox } from './sandbox.ts';
import { walkDirectory } from './walk.ts';

export interface FindRequest {
  /** Absolute: a directory, or a file. */
  start: string;
  /** What the path below `start` has to match; absent: all. */
  glob?: string;
  signal: AbortSignal;
}

export interface TextMatch {
  path: string;
  /** From 1. */
  line: number;
  text: string;
}

const walkLimits = { maxDepth: 100, maxEntries: 200_000 };
const atOnce = 8;
const searchedBytes = 1024 * 1024;

/** Judges paths; throws for patterns that nobody needs, and that would be turned into very many others. */
function matcherOf(glob: string): (path: string) => boolean {
  const count = (pattern: RegExp) => glob.match(pattern)?.length ?? 0;
  const plain = !/[()]/.test(glob) && count(/\{/g) <= 2 && count(/\*/g) <= 12 && !/\{[^}]*\.\./.test(glob);
  const matches = plain ? globMatcher(glob.includes('/') ? glob : `**/${glob}`) : undefined;
  if (matches) return matches;
  throw inputError(`"${printablePath(glob)}" is no pattern that is taken.`, {
    next: 'Write it with *, **, ? and at most two {a,b}, such as src/**/*.{ts,tsx}.',
  });
}

/** The project's files below a directory, absolute, in the order of a walk; a refusal where there is nothing to walk. */
export async function findFiles(sandbox: Sandbox, { start, glob, signal }: FindRequest): Promise<string[] | Skip> {
  const matches = glob === undefined ? undefined : matcherOf(glob);
  const located = await sandbox.locate(start);
  if (isSkip(located)) return located;
  if (located.kind === 'file') return [located.path];
  const { files } = await walkDirectory(sandbox, located.path, walkLimits, signal);
  if (!matches) return files;
  return files.filter(path => matches(relative(located.path, path).split(sep).join('/')));
}

/** The lines of those files that hold one of the words, at most `most`; `masked` sees the text of each file before anybody else. */
export async function findText(
  sandbox: Sandbox,
  request: FindRequest & { words: readonly string[]; sameCase: boolean; most: number },
  masked: (text: string) => Promise<string>,
): Promise<{ matches: TextMatch[]; complete: boolean } | Skip> {
  const files = await findFiles(sandbox, request);
  if (isSkip(files)) return files;
  const { words, sameCase, most, signal } = request;
  const folded = (text: string) => (sameCase ? text : text.toLowerCase());
  const wanted = words.map(folded);
  const holds = (text: string) => wanted.some(word => folded(text).includes(word));
  const matches: TextMatch[] = [];
  for (let at = 0; at < files.length && matches.length <= most; at += atOnce) {
    throwIfAborted(signal);
    const found = await inParallel(files.slice(at, at + atOnce), atOnce, async path => {
      const file = await readFile(sandbox, path, { maxBytes: searchedBytes, signal });
      if (isSkip(file) || !holds(file.text)) return [];
      const lines = (await masked(file.text)).split('\n');
      return lines.flatMap((text, index) => (holds(text) ? [{ path, line: index + 1, text }] : []));
    });
    matches.push(...found.flat());
  }
  return { matches: matches.slice(0, most), complete: matches.length <= most };
}

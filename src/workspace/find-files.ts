import { inParallel } from '../core/concurrency.ts';
import { inputError, limitError } from '../core/errors.ts';
import type { Skip } from '../core/file.ts';
import { decodeText, printablePath } from '../core/text.ts';
import { isSkip, slashedFrom } from './paths.ts';
import { locateNamed, type NamedPlace, readFile, readPieces } from './read-file.ts';
import type { Sandbox } from './sandbox.ts';
import { classifyFile, walkDirectory } from './walk.ts';

const atOnce = 8;

/** Which of these paths name nothing inside the roots. Whether something outside them exists is not told. */
export async function missingPaths(sandbox: Sandbox, paths: readonly string[], place: NamedPlace): Promise<string[]> {
  const verdicts = await inParallel(paths, atOnce, async input => {
    const found = await locateNamed(sandbox, input, place);
    // What may not be read is not told apart from what is there.
    return isSkip(found) && ['not_found', 'bad_path'].includes(found.code) ? [input] : [];
  });
  return verdicts.flat();
}

/**
 * The files that references stand for, without reading them: a file is itself, whatever it holds; of a folder, the source
 * files below it. Absolute and resolved, each once, in the order named. What is not there or may not be read is left out.
 * Throws LIMIT for more than `maxFiles`; 1,000 unless told.
 */
export async function listSourceFiles(
  sandbox: Sandbox,
  references: readonly string[],
  { maxFiles = 1_000, signal, ...place }: NamedPlace & { maxFiles?: number; signal?: AbortSignal },
): Promise<string[]> {
  const sourceFiles = async (input: string) => {
    const found = await locateNamed(sandbox, input, place);
    if (isSkip(found)) return [];
    if (found.kind === 'file') return [found.path];
    const { files } = await walkDirectory(sandbox, found.path, { signal });
    return files.filter(path => classifyFile(slashedFrom(found.path, path)) === 'source');
  };
  const lists = await inParallel([...new Set(references)], atOnce, sourceFiles, signal);
  const files = [...new Set(lists.flat())];
  if (files.length <= maxFiles) return files;
  const message = `The named directories hold ${files.length} source files; the limit of one count is ${maxFiles}.`;
  throw limitError('files', message, {
    next: 'Name a directory with fewer files, and the others in a later run.',
    data: { named: files.length, limit: maxFiles },
  });
}

const maxAlternatives = 64;

/**
 * Tells paths with `/` that fit a pattern of `*`, `**`, `?`, `[a-z]` and `{a,b}`; names that begin with a dot have to be named so.
 * No pattern and no name makes it slow: the work grows with the product of their lengths at most. Undefined: too many alternatives.
 */
export function globMatcher(glob: string): ((path: string) => boolean) | undefined {
  const globs = alternatives([glob.replaceAll('\\', '/')]);
  if (globs === undefined) return undefined;
  const compiled = globs.map(one => {
    const names = one.split('/');
    // Something has to be there below the folder.
    const whole = names.at(-1) === '**' ? [...names, '*'] : names;
    return whole.map(name => (name === '**' ? '**' : nameExpression(name)));
  });
  return path => {
    const names = path.split('/');
    return compiled.some(steps => fitsPath(steps, names));
  };
}

/** Undefined: there are too many. */
function alternatives(globs: readonly string[]): readonly string[] | undefined {
  if (globs.length > maxAlternatives) return undefined;
  const next = globs.flatMap(glob => {
    const [group = '', inner] = /\{([^{}]*,[^{}]*)\}/.exec(glob) ?? [];
    return inner === undefined ? [glob] : inner.split(',').map(each => glob.replace(group, () => each));
  });
  return next.length === globs.length ? globs : alternatives(next);
}

/** The pattern of one name. What a look-ahead finds is final, so that only the last `*` is tried again: no name takes long. */
function nameExpression(glob: string): RegExp {
  const parts = [''];
  for (const place of glob.match(/\*+|\[(?:[!^].|[^!^])[^\]]*\]|./gs) ?? []) {
    if (place.startsWith('*')) parts.push('');
    else
      parts.push(`${parts.pop()}${place.length > 1 ? classExpression(place) : place === '?' ? '.' : escaped(place)}`);
  }
  const tail = parts.pop();
  const [head, ...between] = parts;
  const found = between.map((part, index) => `(?=(.*?${part}))\\${index + 1}`).join('');
  const hidden = glob.startsWith('.') ? '' : '(?!\\.)';
  return new RegExp(`^${hidden}${head === undefined ? tail : `${head}${found}.*${tail}`}$`, 's');
}

/** `[a-z]` and `[!a-z]`. A range that goes backwards has nothing. */
function classExpression(place: string): string {
  const not = /^\[[!^]/.test(place);
  const ranges = place.slice(not ? 2 : 1, -1).match(/.-.|./gs) ?? [];
  const forwards = ranges.map(([from = '', , to = from]) => (from <= to ? `${escaped(from)}-${escaped(to)}` : ''));
  return `[${not ? '^' : ''}${forwards.join('')}]`;
}

const escaped = (char: string): string => char.replace(/[\\^$.*+?()[\]{}|-]/, '\\$&');

/** Where in the path each step may begin: `**` lets it begin at every name from there on that has no dot before it. */
function fitsPath(steps: readonly (RegExp | '**')[], names: readonly string[]): boolean {
  let reached = [true, ...names.map(() => false)];
  for (const step of steps) {
    const next = reached.map(() => false);
    for (const [at, name] of [...names, undefined].entries()) {
      if (step === '**') {
        const before = names[at - 1];
        next[at] = reached[at] === true || (next[at - 1] === true && before?.startsWith('.') === false);
      } else if (reached[at] && name !== undefined) next[at + 1] = step.test(name);
    }
    reached = next;
  }
  return reached.at(-1) === true;
}

export interface FindRequest {
  /** Absolute: directories, or files. */
  starts: readonly string[];
  /** What the path below one of them has to match; absent: all. */
  glob?: string;
  signal: AbortSignal;
}

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

/** The project's files below directories, absolute, in the order of a walk; a refusal where there is nothing to walk. */
export async function findFiles(sandbox: Sandbox, { starts, glob, signal }: FindRequest): Promise<string[] | Skip> {
  const matches = glob === undefined ? () => true : matcherOf(glob);
  const found: string[] = [];
  for (const start of starts) {
    const located = await sandbox.locate(start);
    if (isSkip(located)) return located;
    if (located.kind === 'file') found.push(located.path);
    else {
      const { files } = await walkDirectory(sandbox, located.path, { signal });
      for (const path of files) if (matches(slashedFrom(located.path, path))) found.push(path);
    }
  }
  return found;
}

const headBytes = 8_192;

/** Whether a file that is too large to be read is no text, by its beginning. */
async function beginsBinary(sandbox: Sandbox, path: string): Promise<boolean> {
  const opened = await sandbox.open(path);
  if (isSkip(opened)) return false;
  for await (const piece of readPieces(opened, path)) {
    return decodeText(Buffer.from(piece.subarray(0, headBytes))) === undefined;
  }
  return false;
}

/**
 * The lines (from 1) of those files that hold one of the words, at most `max`, and the texts that were not searched; `masked` sees the
 * text of each file before anybody else. `maxBytes` is for one file alone.
 */
export async function findText(
  sandbox: Sandbox,
  request: FindRequest & { words: readonly string[]; sameCase: boolean; max: number; maxBytes: number },
  masked: (text: string) => Promise<string>,
) {
  const files = await findFiles(sandbox, request);
  if (isSkip(files)) return files;
  const { words, sameCase, max, signal } = request;
  const folded = (text: string) => (sameCase ? text : text.toLowerCase());
  const wanted = words.map(folded);
  const holds = (text: string) => wanted.some(word => folded(text).includes(word));
  const matches: { path: string; line: number; text: string }[] = [];
  const unsearched: string[] = [];
  const maxBytes = files.length === 1 ? request.maxBytes : searchedBytes;
  for (let at = 0; at < files.length && matches.length <= max; at += atOnce) {
    const found = await inParallel(files.slice(at, at + atOnce), atOnce, async path => {
      const file = await readFile(sandbox, path, { maxBytes, signal });
      if (isSkip(file) && file.code !== 'binary' && !(await beginsBinary(sandbox, path))) unsearched.push(path);
      if (isSkip(file) || !holds(file.text)) return [];
      const lines = (await masked(file.text)).split('\n');
      return lines.flatMap((text, index) => (holds(text) ? [{ path, line: index + 1, text }] : []));
    });
    matches.push(...found.flat());
  }
  return { matches: matches.slice(0, max), complete: matches.length <= max, unsearched };
}

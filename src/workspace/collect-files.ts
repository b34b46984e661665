import { inParallel } from '../core/concurrency.ts';
import { limitError } from '../core/errors.ts';
import type { LineRange, Skip, TextFile } from '../core/file.ts';
import { isSkip, type PathReference, skip, slashedFrom } from './paths.ts';
import { clampRange, locateNamed, type NamedReadOptions, readFile } from './read-file.ts';
import type { Located, Sandbox } from './sandbox.ts';
import { classifyFile, classRank, type WalkOptions, walkDirectory } from './walk.ts';

export interface CollectOptions extends NamedReadOptions, Pick<WalkOptions, 'maxEntries' | 'late'> {
  /** Maximum references in one call. */
  maxNamedFiles: number;
  /** Files taken from one directory; 2,000 unless told. */
  maxFilesPerDirectory?: number;
  /** Bytes of all files taken from directories together; 32 MB unless told. Named files are not counted. */
  maxDirectoryBytes?: number;
  /** Which files of directories are read; all unless told. */
  wanted?(path: string): boolean;
}

export interface CollectedFile extends TextFile {
  /** True when the caller named it, false when it was found in a directory. */
  named: boolean;
  /** The lines that were asked for. Absent: all of them. */
  range?: LineRange;
}

export type Collection = Awaited<ReturnType<typeof collectFiles>>;

/** A file found in a directory that may be read. `rank`: the place of its kind in the order. */
type Candidate = Pick<Located, 'path' | 'size'> & { rank: number };

const maxConcurrent = 8;
const skipsShown = 20;

/**
 * Reads the files and directories that a caller named. Each file comes once, whatever names lead to it: the named ones in the
 * order named; then what directories had, by kind (source first), the smaller first.
 */
export async function collectFiles(sandbox: Sandbox, references: readonly string[], options: CollectOptions) {
  const unique = [...new Set(references)];
  const { maxNamedFiles: limit, signal } = options;
  if (unique.length > limit)
    throw limitError('files', `Too many paths: ${unique.length} named, a call takes at most ${limit}.`, {
      next: `Name at most ${limit}, or name the directory that holds them.`,
      data: { named: unique.length, limit },
    });

  const located = await inParallel(unique, maxConcurrent, input => locateNamed(sandbox, input, options), signal);
  const skipped: Skip[] = [];
  const names: NamedFile[] = [];
  const directories = new Map<string, NamedFile>();
  for (const found of located) {
    if (isSkip(found)) skipped.push(found);
    else if (found.kind === 'file') names.push(found);
    else if (!found.range) directories.set(found.path, found);
    else skipped.push(skip(found.input, 'bad_range', 'A directory has no lines; name it without a range.'));
  }
  const named = Map.groupBy(names, ({ path }) => path);
  const files: CollectedFile[] = [];
  for (const read of await inParallel([...named], maxConcurrent, file => readNamed(sandbox, ...file, options))) {
    if (read.file) files.push(read.file);
    skipped.push(...read.skipped);
  }

  const seen = new Set(named.keys());
  const candidates: Candidate[] = [];
  for (const directory of directories.values()) {
    const found = await searchDirectory(sandbox, directory, seen, options);
    candidates.push(...found.candidates);
    skipped.push(...shortened(found.skipped));
  }
  const read = await readCandidates(sandbox, candidates, options);
  return { files: [...files, ...read.files], skipped: [...skipped, ...shortened(read.skipped)] };
}

type NamedFile = Pick<PathReference, 'input' | 'path' | 'range'>;

/**
 * A file named twice is one file: whole if it was once named whole, else all ranges. Several ranges become the one that spans
 * them; those that do not exist are reported.
 */
async function readNamed(sandbox: Sandbox, path: string, names: readonly NamedFile[], options: CollectOptions) {
  const file = await readFile(sandbox, path, options);
  if (isSkip(file)) return { skipped: [skip(names[0]?.input ?? path, file.code, file.reason)] };
  const skipped: Skip[] = [];
  let span: LineRange | undefined;
  for (const asked of names) {
    if (!asked.range) return { file: { ...file, named: true }, skipped: [] };
    const range = clampRange(asked.input, asked.range, file.lines);
    if (isSkip(range)) skipped.push(range);
    else span = { from: Math.min(range.from, span?.from ?? range.from), to: Math.max(range.to, span?.to ?? range.to) };
  }
  return span ? { file: { ...file, named: true, range: span }, skipped } : { skipped };
}

/** What a directory offers, at most `maxFilesPerDirectory`; marks it as seen. */
async function searchDirectory(sandbox: Sandbox, named: NamedFile, seen: Set<string>, options: CollectOptions) {
  const { path: directory, input } = named;
  const { maxFilesPerDirectory = 2_000, wanted = () => true, signal } = options;
  const { files, skipped } = await walkDirectory(sandbox, directory, options);
  if (files.length === 0)
    skipped.push(skip(input, 'empty_directory', 'It has no file that is neither ignored, hidden nor build output.'));
  const ranked = files
    .filter(path => !seen.has(path) && wanted(path))
    .map(path => ({ path, rank: classRank(classifyFile(slashedFrom(directory, path))) }))
    .sort((a, b) => a.rank - b.rank);
  if (ranked.length > maxFilesPerDirectory) {
    const left = ranked.length - maxFilesPerDirectory;
    const reason = `${left} of its ${ranked.length} files were left out (at most ${maxFilesPerDirectory} of a directory are read); name those you need.`;
    skipped.unshift(skip(input, 'too_many_files', reason));
  }
  const taken = ranked.slice(0, maxFilesPerDirectory);
  const measured = async (file: (typeof taken)[number]) => {
    const found = await sandbox.locate(file.path);
    return isSkip(found) ? found : { ...file, size: found.size };
  };
  const candidates = withoutSkips(await inParallel(taken, maxConcurrent, measured, signal), skipped);
  for (const { path } of candidates) seen.add(path);
  return { candidates, skipped };
}

/** Reads the best candidates until the bytes for directories are used up. */
async function readCandidates(sandbox: Sandbox, candidates: Candidate[], options: CollectOptions) {
  const budget = options.maxDirectoryBytes ?? 32 * 1024 * 1024;
  const { maxBytes, signal } = options;
  const reason = `Files of directories have ${budget} bytes together; name it to read it.`;
  const skipped: Skip[] = [];
  const chosen: Candidate[] = [];
  let used = 0;
  for (const candidate of candidates.sort(byRank)) {
    // a file that is too large is refused when it is opened and uses nothing up
    const cost = candidate.size > maxBytes ? 0 : candidate.size;
    if (used + cost > budget) skipped.push(skip(candidate.path, 'over_budget', reason));
    else {
      used += cost;
      chosen.push(candidate);
    }
  }
  const outcomes = await inParallel(chosen, maxConcurrent, async candidate => {
    const file = await readFile(sandbox, candidate.path, { maxBytes, signal });
    if (isSkip(file)) return file;
    // Only the text may tell that a tool wrote a file.
    const kind = classifyFile(candidate.path, file.text);
    return { ...file, rank: kind === 'generated' ? classRank(kind) : candidate.rank };
  });
  const files = withoutSkips(outcomes, skipped)
    .sort(byRank)
    .map(({ rank: _, ...file }): CollectedFile => ({ ...file, named: false }));
  return { files, skipped };
}

/** What was not refused; refusals are added to `skipped`. */
const withoutSkips = <Found extends object>(found: readonly (Found | Skip)[], skipped: Skip[]): Found[] =>
  found.flatMap(each => {
    if (!isSkip(each)) return [each];
    skipped.push(each);
    return [];
  });

const byRank = (a: Candidate, b: Candidate): number => a.rank - b.rank || a.size - b.size || (a.path < b.path ? -1 : 1);

/** The first of many skips, and one that counts the others by their code. */
function shortened(skips: Skip[]): Skip[] {
  if (skips.length <= skipsShown) return skips;
  const rest = skips.slice(skipsShown);
  const counts = [...Map.groupBy(rest, each => each.code)].sort(([, a], [, b]) => b.length - a.length);
  const detail = counts.map(([code, list]) => `${list.length} ${code}`).join(', ');
  const reason = `This and ${rest.length - 1} more were left out: ${detail}.`;
  const code = counts[0]?.[0];
  return code ? [...skips.slice(0, skipsShown), { path: rest[0]?.path ?? '', code, reason }] : skips;
}

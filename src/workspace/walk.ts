import { basename, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { inParallel } from '../core/concurrency.ts';
import { throwIfAborted } from '../core/errors.ts';
import type { Skip } from '../core/file.ts';
import type { IgnoreChain, IgnoreContext } from './ignore-rules.ts';
import { chainAbove, chainWeight, enterDirectory, isIgnored, isSameChain } from './ignore-rules.ts';
import { isSkip, skip } from './paths.ts';
import { locateNamed, type NamedReadOptions } from './read-file.ts';
import type { Entry, Listing, Sandbox } from './sandbox.ts';

/**
 * Which folders a walk does not enter, unless one was named itself:
 * - hidden ones: the name begins with a dot (hidden files are read like others);
 * - folders whose name can hardly mean anything but dependencies, output or caches;
 * - folders with a name that is just as often source, when a file in them shows that a tool made them;
 * - any folder that is tagged as a cache by a CACHEDIR.TAG file.
 * What git ignores is left out besides. Anything else is entered, so that `vendor/` or `out/` with real code is not lost.
 */
const buildFolders: readonly string[] = [
  ...['node_modules', 'bower_components', 'jspm_packages', '__pycache__', 'dist', 'build', 'target'],
  ...['coverage', 'htmlcov', 'DerivedData'],
];

/** Name of a folder → names of entries, one of which gives it away. */
const markedFolders = new Map(
  Object.entries({
    env: ['pyvenv.cfg'],
    venv: ['pyvenv.cfg'],
    virtualenv: ['pyvenv.cfg'],
    vendor: ['modules.txt', 'autoload.php', 'bundle'],
    out: ['_next', 'production', 'build.ninja', 'args.gn'],
    site: ['sitemap.xml', 'sitemap.xml.gz'],
    _build: ['doctrees', '.doctrees', 'dev', 'prod', 'log'],
    obj: ['project.assets.json'],
  }),
);

const cacheTag = 'CACHEDIR.TAG';

/** By its name alone. */
export const isSkippedFolder = (name: string): boolean =>
  name.startsWith('.') || name.endsWith('.egg-info') || buildFolders.includes(name);

/** What a file is for, the most telling first: the order in which the files of a directory are sent. */
const fileClasses = ['source', 'test', 'doc', 'config', 'log', 'generated'] as const;

export type FileClass = (typeof fileClasses)[number];

/** The names of each; of several that fit, the least telling counts. */
const fileNames: Readonly<Record<FileClass, RegExp>> = {
  source:
    /\.(?:[cm]?[jt]sx?|vue|svelte|astro|py|pyi|ipynb|rb|php|java|kts?|scala|groovy|clj[cs]?|cs|fs|vb|go|rs|zig|c|h|cc|cpp|cxx|hh|hpp|m|mm|swift|dart|lua|r|jl|ex|exs|erl|hs|ml|mli|elm|nim|pl|pm|sh|bash|zsh|fish|ps1|bat|cmd|sql|graphql|gql|proto|tf|hcl|html?|css|scss|sass|less|asm|s|sol|cu|glsl|wgsl|v|sv|vhd|f90|pas|d|cr|nix)$/i,
  test: /(?:^test_|[._-](?:test|spec|tests)(?:\.[^.]+)+$|_test\.[^.]+$|Tests?\.(?:java|kt|cs|swift|scala)$)/,
  doc: /(?:\.(?:md|mdx|rst|adoc|txt|tex|org|asciidoc)|^(?:readme|changelog|license|licence|notice|authors|contributing)(?:\.[^.]*)?)$/i,
  config: /^(?:requirements.*|constraints|cmakelists)\.txt$/i,
  log: /\.(?:log|logs|out|err|csv|tsv|jsonl|ndjson|trace|dump)(?:\.\d+)?$/i,
  generated:
    /^(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|go\.sum|gradle\.lockfile|packages\.lock\.json)$|(?:\.min\.(?:js|mjs|css)|\.map|\.snap|\.lock|\.lockb|[._]pb2?(?:_grpc)?\.(?:go|py|ts|js|h|cc)|\.g\.dart|\.gen\.[^.]+|[._-]generated\.[^.]+|\.tsbuildinfo)$/i,
};

const testFolders = /(?:^|\/)(?:tests?|__tests__|specs?|__mocks__|fixtures|testdata)\//i;

const generatedText =
  /@generated\b|\bcode generated\b.{0,200}\bdo not edit\b|\bautomatically generated\b.{0,200}\bdo not (?:edit|modify)\b/i;

/** By its path below the directory that was named; `text`, when it is known, may show that a tool wrote it. */
export function classifyFile(path: string, text = ''): FileClass {
  const name = basename(path);
  if (generatedText.test(text.slice(0, 2_000))) return 'generated';
  const kind = fileClasses.findLast(each => fileNames[each].test(name));
  if ((kind ?? 'source') === 'source' && testFolders.test(path)) return 'test';
  // configuration and whatever nobody knows
  return kind ?? 'config';
}

export const classRank = (kind: FileClass): number => fileClasses.indexOf(kind);

export interface WalkOptions {
  /** Entries looked at in all; 200,000 unless told. */
  maxEntries?: number;
  /** True once the walk has taken long enough; absent: it may take its time. */
  late?: (() => boolean) | undefined;
  signal?: AbortSignal | undefined;
  memory?: WalkMemory;
}

/** `chain`: the rules that hold in the folder above. */
type Folder = Pick<Visit, 'chain'> & { path: string };

/** What was in one folder. */
interface Visit {
  /** Those of its own rules and of the folders above it. */
  chain: IgnoreChain;
  files: string[];
  folders: string[];
  skipped: Skip[];
  entries: number;
  /** Of its entries, those that may bring rules. */
  rules: ReadonlySet<string>;
  /** The folder's `ctimeMs` before it was listed. */
  ctimeMs: number;
}

/** What a walk remembers for the next one: a folder in which nothing was added, taken away or renamed is not listed again. */
export interface WalkMemory {
  folders: Map<string, Visit>;
  rules: NonNullable<IgnoreContext['before']>;
  /** When the walk begins, epoch milliseconds. */
  now: number;
}

/** Milliseconds: the time of a change is no finer than this on some disks, so that another one could have the same. */
const timeGrain = 2_000;
const ruleFiles: readonly string[] = ['.git', '.gitignore', '.polylogueignore'];
/** Levels of folders below the start. */
const maxDepth = 100;
const openAtOnce = 8;
const linksJudged = 100;
/** Comparisons of an entry with a rule after which others get their turn. */
const workBetweenPauses = 50_000;

/**
 * Everything below a directory that a reader would call part of the project. Symbolic links are not followed (what they lead
 * to inside the directory is found by its own name), so there are no circles; each one is reported.
 */
export async function walkDirectory(sandbox: Sandbox, start: string, options: WalkOptions) {
  const { maxEntries = 200_000, late, signal, memory } = options;
  /** Absolute paths of regular files, shallow ones first, then by name. */
  const files: string[] = [];
  /** What was left out for another reason than the rules for ignored, hidden and build folders. */
  const skipped: Skip[] = [];
  const report = (problem: Skip) => skipped.push(problem);
  const context: IgnoreContext = { sandbox, report, signal, before: memory?.rules };
  const stop = (at: Folder | undefined, reason: string) => {
    report(skip(at?.path ?? start, 'too_many_files', reason));
    return { files, skipped };
  };
  let level: Folder[] = [{ path: start, chain: await chainAbove(context, start) }];
  let left = maxEntries;
  const before = new Map(memory?.folders);
  memory?.folders.clear();
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth)
      return stop(level[0], `Folders more than ${maxDepth} levels down were not read; name those you need.`);
    const below: Folder[] = [];
    for (let at = 0; at < level.length; at += openAtOnce) {
      throwIfAborted(signal);
      if (late?.())
        return stop(level[at], 'Looking through this tree took too long; name the files or directories you need.');
      const listings = await inParallel(level.slice(at, at + openAtOnce), openAtOnce, async folder => ({
        folder,
        listing:
          (await unchanged(context, folder, before)) ?? (await listed(sandbox, folder.path, start, left, memory?.now)),
      }));
      for (const { folder, listing } of listings) {
        if (isSkip(listing)) {
          report(listing);
          continue;
        }
        const visit = 'chain' in listing ? listing : await visited(context, folder, listing, folder.path === start);
        left -= visit.entries;
        for (const file of visit.files) files.push(file);
        for (const problem of visit.skipped) report(problem);
        for (const path of visit.folders) below.push({ path, chain: visit.chain });
        if ('chain' in listing || (listing.complete && left >= 0)) {
          memory?.folders.set(folder.path, visit);
          continue;
        }
        return stop(folder, `Only ${maxEntries} entries were looked at; name the files or directories you need.`);
      }
    }
    level = below;
  }
  return { files, skipped };
}

/** What is known of a folder, where it is still so. */
async function unchanged(context: IgnoreContext, folder: Folder, before: ReadonlyMap<string, Visit>) {
  const known = before.get(folder.path);
  if (!known) return undefined;
  const located = await context.sandbox.locate(folder.path);
  if (isSkip(located) || located.path !== folder.path || located.ctimeMs !== known.ctimeMs) return undefined;
  const chain = await enterDirectory(context, folder.chain, folder.path, known.rules);
  return isSameChain(chain, known.chain) ? known : undefined;
}

/** `ctimeMs`: NaN where it tells nothing, and equals nothing. */
async function listed(sandbox: Sandbox, path: string, start: string, limit: number, now: number | undefined) {
  const located = now !== undefined && (await sandbox.locate(path));
  const isOld = located && !isSkip(located) && located.ctimeMs < now - timeGrain;
  const listing = await sandbox.list(path, limit);
  if (isSkip(listing)) return listing;
  // It was a folder when the one above was listed.
  if (listing.path !== path && path !== start) return linkSkip(path);
  return { ...listing, ctimeMs: isOld ? located.ctimeMs : Number.NaN };
}

/** Sorts one folder's entries into files, folders to enter, and what is reported. */
async function visited(context: IgnoreContext, folder: Folder, listing: Listing & { ctimeMs: number }, named: boolean) {
  const names = new Set(listing.entries.map(entry => entry.name));
  const rules = new Set(ruleFiles.filter(name => names.has(name)));
  const marks = [cacheTag, ...(markedFolders.get(basename(listing.path)) ?? [])];
  const isLeftOut = !named && marks.some(mark => names.has(mark));
  const chain = isLeftOut ? folder.chain : await enterDirectory(context, folder.chain, listing.path, rules);
  const { ctimeMs, entries } = listing;
  const visit: Visit = { chain, files: [], folders: [], skipped: [], entries: entries.length, rules, ctimeMs };
  if (isLeftOut) return visit;
  const pauseEvery = Math.ceil(workBetweenPauses / (chainWeight(chain) + 50));
  let links = 0;
  for (const [index, entry] of entries.entries()) {
    if (index % pauseEvery === pauseEvery - 1) {
      await setImmediate();
      throwIfAborted(context.signal);
    }
    const path = join(listing.path, entry.name);
    const isFolder = entry.kind === 'directory';
    if (isFolder && isSkippedFolder(entry.name)) continue;
    if (isIgnored(chain, path, isFolder)) continue;
    const target = entry.kind === 'link' && links++ < linksJudged && (await context.sandbox.locate(path));
    const problem = target && isSkip(target) ? target : entryProblem(entry, path);
    if (problem) visit.skipped.push(problem);
    else if (isFolder) visit.folders.push(path);
    else visit.files.push(path);
  }
  return visit;
}

function entryProblem(entry: Entry, path: string): Skip | undefined {
  if (entry.kind === 'link') return linkSkip(path);
  if (entry.kind === 'other') return skip(path, 'not_regular', 'It is a pipe, a socket or a device.');
  // the name has bytes that are no UTF-8, so no string leads back to it
  if (entry.name.includes('\ufffd')) return skip(path, 'bad_path', 'Its name is not valid UTF-8; rename it.');
  return undefined;
}

const linkSkip = (path: string): Skip =>
  skip(path, 'not_regular', 'It is a symbolic link, which is not followed inside directories; name it to read it.');

/** Of one directory that is measured: entries looked at, files, and their bytes. */
const maxMeasured = 50_000;
const maxFiles = 2_000;
const maxDirectoryBytes = 32 * 1024 * 1024;
const bytesPerLine = 40;

/**
 * How large the named files and directories are, by the disk's word alone: an estimate where lines were named. What may not be
 * read, or is larger than `maxBytes`, counts nothing.
 */
export async function measureFiles(sandbox: Sandbox, references: readonly string[], options: NamedReadOptions) {
  const { maxBytes, signal } = options;
  const measured = async (input: string) => {
    const named = await locateNamed(sandbox, input, options);
    if (isSkip(named)) return [];
    if (named.kind === 'directory') return measureDirectory(sandbox, named.path, options);
    const { path, size, range } = named;
    if (size > maxBytes) return [];
    return [{ path, bytes: range ? Math.min(size, (range.to - range.from + 1) * bytesPerLine) : size }];
  };
  const found = await inParallel([...new Set(references)], openAtOnce, measured, signal);
  return [...new Map(found.flat().map(file => [file.path, file])).values()];
}

async function measureDirectory(sandbox: Sandbox, directory: string, { maxBytes, signal }: NamedReadOptions) {
  const walk = await walkDirectory(sandbox, directory, { maxEntries: maxMeasured, signal });
  const located = await inParallel(walk.files.slice(0, maxFiles), openAtOnce, sandbox.locate, signal);
  let left = maxDirectoryBytes;
  return located.flatMap(file => {
    if (isSkip(file) || file.size > maxBytes || file.size > left) return [];
    left -= file.size;
    return [{ path: file.path, bytes: file.size }];
  });
}

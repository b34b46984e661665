import { dirname, join, relative } from 'node:path';
import { withDeadline } from '../../core/concurrency.ts';
import { limitError } from '../../core/errors.ts';
import type { Skip } from '../../core/file.ts';
import type { Clock } from '../../core/ports.ts';
import { printablePath } from '../../core/text.ts';
import { type CollectedFile, collectFiles } from '../collect-files.ts';
import { languageOf, otherLanguageOf } from '../outline/outline.ts';
import { isSkip, skip } from '../paths.ts';
import { readFile } from '../read-file.ts';
import { type Sandbox, searchedRoots } from '../sandbox.ts';
import type { GoModule } from './symbols.ts';
import type { TraceRequest } from './trace.ts';
import type { Source, TracedSources, TraceInput } from './trace-sources.ts';

export interface ProjectTrace extends TraceRequest {
  /** Files and directories as the caller named them; none: the whole project, with all roots. */
  files: readonly string[];
  root: string;
  signal: AbortSignal;
}

export type Tracer = ReturnType<typeof createTracer>;

export interface TracerOptions {
  sandbox: Sandbox;
  home: string;
  maxNamedFiles: number;
  clock: Pick<Clock, 'after'>;
  /** Where the parsing is done. */
  pool: { trace(input: TraceInput, signal: AbortSignal): Promise<TracedSources> };
}

/** `traced`: absent without a source to read; `files`: how many were parsed; `broken`: paths with syntax errors. */
export type TracedProject = Awaited<ReturnType<Tracer>>;

/** Of one file and of all: hand-written source is smaller, and a parse stays within a second or two. */
const maxFileBytes = 1024 * 1024;
const maxTotalBytes = 8 * 1024 * 1024;
const maxFiles = 2_000;
/** After it no further file is looked for or parsed. */
const readMs = 20_000;
/** After it there is no answer. */
const totalMs = 60_000;

const tookTooLong = () =>
  limitError('size', `The trace was not done after ${totalMs / 1_000} seconds.`, {
    next: 'Name the relevant files or directories in relevant_files, or trace by reading.',
  });

/** Traces a target through the sources that the caller named, or through the project. */
export function createTracer({ sandbox, home, maxNamedFiles, clock, pool }: TracerOptions) {
  async function traceProject({ root, signal, ...trace }: ProjectTrace, late: TraceInput['late']) {
    /** Languages of files that no grammar here can read. */
    const others = new Set<string>();
    const wanted = (path: string) => {
      const other = otherLanguageOf(path);
      if (other) others.add(other);
      return languageOf(path) !== undefined;
    };
    const collect = (places: readonly string[], maxDirectoryBytes: number) =>
      collectFiles(sandbox, places, {
        ...{ home, maxNamedFiles, root, signal, wanted, maxDirectoryBytes },
        late: () => Atomics.load(late, 0) === 1,
        maxBytes: maxFileBytes,
        maxFilesPerDirectory: maxFiles,
      });
    const isNamed = trace.files.length > 0;
    const own = await collect(isNamed ? trace.files : [root], maxTotalBytes);
    // Other roots have the bytes that the project leaves.
    const left = own.files.reduce((bytes, { size }) => bytes - size, maxTotalBytes);
    const [, ...roots] = isNamed ? [] : await searchedRoots(sandbox, root);
    const rest = await collect(roots.slice(0, maxNamedFiles), left);
    const { sources, over } = withinBytes([...own.files, ...rest.files].filter(file => wanted(file.path)));
    const known = {
      files: sources.length,
      skipped: [...own.skipped, ...rest.skipped, ...over],
      otherLanguages: [...others].sort(),
      broken: [],
    };
    if (sources.length === 0) return { ...known, traced: undefined };
    const goModules = await findGoModules(sandbox, root, sources, signal);
    const { mode, target, hints } = trace;
    const traced = await pool.trace({ root, sources, goModules, request: { mode, target, hints }, late }, signal);
    const reason = `Reading took ${readMs / 1_000} seconds; name fewer files.`;
    const unread = traced.unread.map(path => skip(path, 'over_budget', reason));
    return {
      ...known,
      files: known.files - unread.length,
      skipped: [...known.skipped, ...unread],
      traced,
      broken: traced.broken.map(path => printablePath(relative(root, path))),
    };
  }

  return async (trace: ProjectTrace) => {
    const late = new Int32Array(new SharedArrayBuffer(4));
    const stopReading = clock.after(readMs, () => Atomics.store(late, 0, 1));
    const run = (signal: AbortSignal) => traceProject({ ...trace, signal }, late);
    return withDeadline(clock, totalMs, run, trace.signal, tookTooLong).finally(stopReading);
  };
}

/** Named files are bounded too: nobody waits for fifty megabytes of generated code. */
function withinBytes(files: readonly CollectedFile[]): { sources: Source[]; over: Skip[] } {
  const sources: Source[] = [];
  const over: Skip[] = [];
  let used = 0;
  for (const { path, text, size } of files) {
    const language = languageOf(path);
    if (!language) continue;
    used += size;
    if (used <= maxTotalBytes) sources.push({ path, language, text });
    else over.push(skip(path, 'over_budget', `At most ${maxTotalBytes} bytes of source are traced; name fewer files.`));
  }
  return { sources, over };
}

const goModFileBytes = 256 * 1024;

/** The `go.mod` files above the Go sources: they say which imports are the project's own. */
async function findGoModules(sandbox: Sandbox, root: string, sources: readonly Source[], signal: AbortSignal) {
  const folders = new Set<string>();
  for (const { path, language } of sources) {
    if (language !== 'go') continue;
    for (let at = dirname(path); !folders.has(at); at = dirname(at)) {
      folders.add(at);
      if (at === root || at === dirname(at)) break;
    }
  }
  const found: GoModule[] = [];
  for (const directory of folders) {
    const file = await readFile(sandbox, join(directory, 'go.mod'), { maxBytes: goModFileBytes, signal });
    const importPath = isSkip(file) ? undefined : /^module\s+"?([^\s"]+)/m.exec(file.text)?.[1];
    if (importPath) found.push({ directory, importPath });
  }
  return found;
}

import { dirname, join } from 'node:path';
import type { Skip } from '../../domain/file.ts';
import { type CollectedFile, collectFiles } from '../collect.ts';
import { languageOf, otherLanguageOf } from '../outline/language.ts';
import { readFile } from '../read.ts';
import type { Sandbox } from '../sandbox.ts';
import { isSkip, skip } from '../skip.ts';
import type { GoModule } from './source-set.ts';
import type { TraceRequest } from './trace.ts';
import { traceApart } from './trace-apart.ts';
import type { Source, TracedSources } from './trace-sources.ts';

export interface ProjectTrace extends TraceRequest {
  /** Files and directories as the caller named them; none: the whole project. */
  files: readonly string[];
  root: string;
  home: string;
  maxNamedFiles: number;
  signal: AbortSignal;
}

export interface TracedProject {
  /** Absent when there was no source to read. */
  traced?: TracedSources;
  /** Files that were parsed. */
  files: number;
  skipped: Skip[];
  /** Languages of files that no grammar here can read. */
  otherLanguages: string[];
}

/** Of one file and of all: hand-written source is smaller, and a parse stays within a second or two. */
const maxFileBytes = 1024 * 1024;
const maxTotalBytes = 8 * 1024 * 1024;
const maxFiles = 2_000;

/** Traces a target through the sources that the caller named, or through the project. */
export async function traceProject(sandbox: Sandbox, options: TraceOptions): Promise<TracedProject> {
  const { root, home, maxNamedFiles, signal } = options;
  const others = new Set<string>();
  const wanted = (path: string) => {
    const other = otherLanguageOf(path);
    if (other) others.add(other);
    return languageOf(path) !== undefined;
  };
  const references = options.files.length > 0 ? options.files : [root];
  const { files, skipped } = await collectFiles(sandbox, references, {
    root,
    home,
    maxNamedFiles,
    signal,
    wanted,
    maxBytes: maxFileBytes,
    maxDirectoryBytes: maxTotalBytes,
    maxFilesPerDirectory: maxFiles,
  });
  const { sources, over } = withinBytes(files.filter(file => wanted(file.path)));
  const known = { files: sources.length, skipped: [...skipped, ...over], otherLanguages: [...others].sort() };
  if (sources.length === 0) return known;
  const goModules = await findGoModules(sandbox, root, sources, signal);
  const { mode, target, hints } = options;
  return { ...known, traced: await traceApart({ root, sources, goModules, request: { mode, target, hints } }, signal) };
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
async function findGoModules(
  sandbox: Sandbox,
  root: string,
  sources: readonly Source[],
  signal: AbortSignal,
): Promise<GoModule[]> {
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

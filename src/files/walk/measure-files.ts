import { inParallel } from '../../core/concurrency.ts';
import { throwIfAborted } from '../../core/errors.ts';
import { parsePathReference } from '../../workspace/paths.ts';
import { locateReference } from '../../workspace/read-file.ts';
import type { Sandbox } from '../../workspace/sandbox.ts';
import { walkDirectory } from '../../workspace/walk.ts';
import { isSkip } from '../skip.ts';

export interface MeasureOptions {
  /** Where relative paths start. */
  root: string;
  home: string;
  /** A file that is larger will not be read. */
  maxBytes: number;
  signal?: AbortSignal;
}

/** A file that a reference leads to, unread. */
export interface MeasuredFile {
  path: string;
  /** An estimate where lines were named. */
  bytes: number;
}

const atOnce = 8;
const mostFiles = 2_000;
const mostDirectoryBytes = 32 * 1024 * 1024;
const walkLimits = { maxDepth: 100, maxEntries: 50_000 };
const bytesPerLine = 40;

/** How large the named files and directories are, by the disk's word alone. What may not be read counts nothing. */
export async function measureFiles(
  sandbox: Sandbox,
  references: readonly string[],
  options: MeasureOptions,
): Promise<MeasuredFile[]> {
  const found = await inParallel([...new Set(references)], atOnce, input => measureOne(sandbox, input, options));
  const byPath = new Map(found.flat().map(file => [file.path, file]));
  return [...byPath.values()];
}

async function measureOne(sandbox: Sandbox, input: string, options: MeasureOptions): Promise<MeasuredFile[]> {
  throwIfAborted(options.signal);
  const reference = parsePathReference(input, options.root, options.home);
  if (isSkip(reference)) return [];
  const found = await locateReference(sandbox, reference);
  if (isSkip(found)) return [];
  if (found.kind === 'directory') return measureDirectory(sandbox, found.path, options);
  const { path, size, range } = found;
  if (size > options.maxBytes) return [];
  const bytes = range ? Math.min(size, (range.to - range.from + 1) * bytesPerLine) : size;
  return [{ path, bytes }];
}

async function measureDirectory(sandbox: Sandbox, directory: string, options: MeasureOptions): Promise<MeasuredFile[]> {
  const walk = await walkDirectory(sandbox, directory, walkLimits, options.signal);
  const located = await inParallel(walk.files.slice(0, mostFiles), atOnce, async path => {
    throwIfAborted(options.signal);
    return sandbox.locate(path);
  });
  let left = mostDirectoryBytes;
  return located.flatMap(file => {
    if (isSkip(file) || file.size > options.maxBytes || file.size > left) return [];
    left -= file.size;
    return [{ path: file.path, bytes: file.size }];
  });
}

import { relative, sep } from 'node:path';
import { inParallel } from '../../core/concurrency.ts';
import { limitError, throwIfAborted } from '../../core/errors.ts';
import { parsePathReference } from '../../workspace/paths.ts';
import { locateReference } from '../../workspace/read-file.ts';
import type { Sandbox } from '../../workspace/sandbox.ts';
import { walkDirectory } from '../../workspace/walk.ts';
import { isSkip } from '../skip.ts';
import { classifyFile } from './file-order.ts';

export interface ListOptions {
  /** Where relative paths start. */
  root: string;
  home: string;
  /** Files in all; 1,000 unless told. */
  maxFiles?: number;
  signal?: AbortSignal;
}

const atOnce = 8;
const walkLimits = { maxDepth: 100, maxEntries: 200_000 };

/**
 * The files that references stand for, without reading them: a file is itself, whatever it holds; of a folder, the source
 * files below it. Absolute and resolved, each once, in the order named. What is not there or may not be read is left out.
 */
export async function listSourceFiles(
  sandbox: Sandbox,
  references: readonly string[],
  { root, home, maxFiles = 1_000, signal }: ListOptions,
): Promise<string[]> {
  const lists = await inParallel([...new Set(references)], atOnce, async input => {
    throwIfAborted(signal);
    const reference = parsePathReference(input, root, home);
    if (isSkip(reference)) return [];
    const found = await locateReference(sandbox, reference);
    if (isSkip(found)) return [];
    return found.kind === 'file' ? [found.path] : sourcesBelow(sandbox, found.path, signal);
  });
  const files = [...new Set(lists.flat())];
  if (files.length > maxFiles) throw tooMany(files.length, maxFiles);
  return files;
}

async function sourcesBelow(sandbox: Sandbox, directory: string, signal?: AbortSignal): Promise<string[]> {
  const { files } = await walkDirectory(sandbox, directory, walkLimits, signal);
  return files.filter(path => classifyFile(relative(directory, path).split(sep).join('/')) === 'source');
}

function tooMany(count: number, limit: number): Error {
  return limitError('files', `The named folders hold ${count} source files; at most ${limit} are counted in one go.`, {
    next: 'Name a folder with fewer files, and the others in a later run.',
    data: { named: count, limit },
  });
}

import { basename, relative, resolve, sep } from 'node:path';
import { isAppError } from '../../../core/errors.ts';
import { isSkip } from '../../../files/skip.ts';
import { listSourceFiles } from '../../../files/walk/list-source-files.ts';
import { readFile } from '../../../workspace/read-file.ts';
import type { Sandbox } from '../../../workspace/sandbox.ts';
import type { Frame } from '../../diagnose/read-frames.ts';

/** A file of the project that an error message speaks of. */
export interface FoundFile {
  /** Absolute. */
  path: string;
  /** Lines that the message names, in its order. */
  lines: number[];
}

export interface FindOptions {
  sandbox: Sandbox;
  home: string;
  root: string;
  maxFileBytes: number;
  signal: AbortSignal;
}

const mostFiles = 8;
const mostListed = 20_000;
/** Of longer files, only the surroundings of the lines go along. */
const wholeLines = 800;
const around = 80;
/** Other people's code: its places say nothing that can be mended here. */
const foreign = /(?:^|\/)(?:node_modules|site-packages|dist-packages|\.cargo|rustc|vendor|\.venv)\//;

/**
 * The files of the project that the places mean, the first named first. A message may come from another machine or a
 * container: what is not there as it is written is looked for by the end of its path, and taken if only one file fits.
 */
export async function findFrames(options: FindOptions, frames: readonly Frame[]): Promise<FoundFile[]> {
  const files = new Map<string, FoundFile>();
  let sources: Sources | undefined;
  for (const frame of frames) {
    if (frame.path.startsWith('node:') || foreign.test(frame.path.replaceAll('\\', '/'))) continue;
    let path = frame.folder === undefined ? await asWritten(options, frame.path) : undefined;
    if (path === undefined) {
      sources ??= await sourcesOf(options);
      path = byEnd(frame, sources);
    }
    if (path === undefined || foreign.test(`${relative(options.root, path).split(sep).join('/')}`)) continue;
    const file = files.get(path) ?? { path, lines: [] };
    file.lines.push(frame.line);
    files.set(path, file);
    if (files.size >= mostFiles) break;
  }
  return [...files.values()];
}

/** What is to be read of the files, as a caller would name it. */
export async function referencesOf(options: FindOptions, files: readonly FoundFile[]): Promise<string[]> {
  const references: string[] = [];
  for (const { path, lines } of files) {
    const file = await readFile(options.sandbox, path, { maxBytes: options.maxFileBytes, signal: options.signal });
    if (isSkip(file)) continue;
    if (file.lines <= wholeLines) references.push(path);
    else {
      const from = Math.max(1, Math.min(...lines) - around);
      references.push(`${path}:${from}-${Math.max(from, Math.max(...lines) + around)}`);
    }
  }
  return references;
}

async function asWritten({ sandbox, root }: FindOptions, path: string): Promise<string | undefined> {
  const located = await sandbox.locate(resolve(root, path));
  return isSkip(located) || located.kind !== 'file' ? undefined : located.path;
}

/** Source files of the project by their names; each absolute, and as it is called from the root. */
type Sources = ReadonlyMap<string, readonly { path: string; own: string }[]>;

async function sourcesOf({ sandbox, root, home, signal }: FindOptions): Promise<Sources> {
  const byName = new Map<string, { path: string; own: string }[]>();
  try {
    for (const path of await listSourceFiles(sandbox, [root], { root, home, maxFiles: mostListed, signal })) {
      const named = byName.get(basename(path)) ?? [];
      named.push({ path, own: relative(root, path).split(sep).join('/') });
      byName.set(basename(path), named);
    }
  } catch (error) {
    // A project too large to be searched: only places that are written as they are count.
    if (!isAppError(error) || error.kind !== 'limit') throw error;
  }
  return byName;
}

function byEnd({ path, folder }: Frame, sources: Sources): string | undefined {
  const written = (folder === undefined ? path : `${folder}/${path}`).replaceAll('\\', '/');
  const parts = written.split('/').filter(part => part !== '' && part !== '.' && part !== '..');
  const named = sources.get(parts.at(-1) ?? '') ?? [];
  for (let from = 0; from < parts.length && named.length > 0; from++) {
    const end = parts.slice(from).join('/');
    // A name alone may be anybody's, unless it is that of a file on top of the project.
    const alone = from === parts.length - 1 && parts.length > 1;
    const fitting = named.filter(({ own }) => own === end || (!alone && own.endsWith(`/${end}`)));
    if (fitting.length > 0) return fitting.length === 1 ? fitting[0]?.path : undefined;
  }
  return undefined;
}

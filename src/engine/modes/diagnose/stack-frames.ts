import { basename, resolve } from 'node:path';
import { isAppError } from '../../../core/errors.ts';
import { decoded } from '../../../core/text.ts';
import { listSourceFiles } from '../../../workspace/find-files.ts';
import { isSkip, slashedFrom } from '../../../workspace/paths.ts';
import { readFile } from '../../../workspace/read-file.ts';
import type { ModeServices } from '../mode.ts';

/** A place that an error message names. */
export interface Frame {
  /** As the message has it: absolute, relative, or a bare file name. */
  path: string;
  line: number;
  /** Folders above a bare file name, as its language tells them: `com/acme/shop` of a Java class. */
  folder?: string;
}

const maxFrames = 200;
/** Of one kind; what comes after so many is no news. */
const maxMatches = 2_000;
const maxPathLength = 1_000;

// Each begins with what is rare, and the path is read backwards from there: the work grows with the text and no faster.
/** Python puts the line into words. */
const python = /File "([^"\n]{1,1000})", line (\d{1,7})/g;
/** The JVM names a class and a bare file. */
const java = /\(([\w$]{1,200}\.(?:java|kt|scala|groovy)):(\d{1,7})\)/g;
/** .NET. */
const dotnet = /:line (\d{1,7})/g;
/** Everybody else, such as Node, Go, Rust, Ruby and compilers: `a.ts:3`, `a.ts(3,5)`. */
const usual = /\.[A-Za-z]\w{0,9}(?::(\d{1,7})|\((\d{1,7})(?:,\d{1,7})?\))/g;

/** The places in an error message, in their order, each once. */
export function readFrames(text: string): Frame[] {
  const found: { at: number; frame: Frame }[] = [];
  const add = (at: number, path = '', line = '', folder = '') => {
    const frame = { path, line: Number(line), ...(folder !== '' && { folder }) };
    if (frame.line > 0 && path !== '') found.push({ at, frame });
  };
  for (const { index, 1: path, 2: line } of matches(text, python)) add(index, path, line);
  for (const { index, 1: file, 2: line } of matches(text, java)) add(index, file, line, folderOf(before(text, index)));
  for (const { index, 1: line } of matches(text, dotnet)) {
    const lead = before(text, index);
    const from = lead.lastIndexOf(' in ');
    if (from !== -1) add(index, lead.slice(from + 4).trim(), line);
  }
  for (const { index, 0: whole, 1: colon, 2: bracket } of matches(text, usual)) {
    const lead = before(text, index);
    const path = pathEnding(lead) + (/^\.\w+/.exec(whole)?.[0] ?? '');
    // The JVM's were read above, with their classes.
    const isJava = /\.(?:java|kt|scala|groovy)$/.test(path) && /\([\w$]+$/.test(lead);
    if (!isJava && !path.includes('://')) add(index, path, colon ?? bracket);
  }
  found.sort((a, b) => a.at - b.at);
  const unique = new Map(found.map(({ frame }) => [`${frame.folder ?? ''} ${frame.path} ${frame.line}`, frame]));
  return [...unique.values()].slice(0, maxFrames);
}

function* matches(text: string, pattern: RegExp): Generator<RegExpExecArray> {
  let count = 0;
  for (const match of text.matchAll(pattern)) {
    if (++count > maxMatches) return;
    yield match;
  }
}

/** What stands on the same line before a place. */
function before(text: string, index: number): string {
  const from = Math.max(0, index - maxPathLength);
  const lead = text.slice(from, index);
  return lead.slice(lead.lastIndexOf('\n') + 1);
}

/** `shop/billing` of `at shop.billing.Invoice.gross`. */
function folderOf(lead: string): string {
  const name = lead.slice(lead.lastIndexOf(' ') + 1);
  const owner = name.slice(name.lastIndexOf('/') + 1).replace(/<init>$/, 'init');
  return owner.split('.').slice(0, -2).join('/');
}

/** The path, without its extension, that ends where a text does. */
function pathEnding(lead: string): string {
  let from = lead.length;
  while (from > 0 && !' \t"\'`()<>|*?[]{},;='.includes(lead.charAt(from - 1))) from--;
  const path = lead.slice(from);
  return decoded(path.replace(/^file:\/\/(?:\/(?=[a-z]:))?/i, ''));
}

/** Where the files of a call are, and how they may be read. */
export interface Place extends Pick<ModeServices, 'sandbox' | 'home' | 'maxFileBytes'> {
  root: string;
  signal: AbortSignal;
}

const maxFiles = 8;
const maxListed = 20_000;
/** Of longer files, only the surroundings of the lines go along. */
const wholeLines = 800;
const around = 80;
/** Other people's code: its places say nothing that can be mended here. */
const foreign = /(?:^|\/)(?:node_modules|site-packages|dist-packages|\.cargo|rustc|vendor|\.venv)\//;

/**
 * The files of the project that the places mean, the first named first. A message may come from another machine or a
 * container: what is not there as it is written is looked for by the end of its path, and taken if only one file fits. Paths are
 * absolute; `lines` are those that the message names, in its order.
 */
export async function findFrames(options: Place, frames: readonly Frame[]) {
  const files = new Map<string, { path: string; lines: number[] }>();
  let sources: Sources | undefined;
  for (const frame of frames) {
    if (frame.path.startsWith('node:') || foreign.test(frame.path.replaceAll('\\', '/'))) continue;
    let path = frame.folder === undefined ? await asWritten(options, frame.path) : undefined;
    if (path === undefined) {
      sources ??= await sourcesOf(options);
      path = byEnd(frame, sources);
    }
    if (path === undefined || foreign.test(slashedFrom(options.root, path))) continue;
    const file = files.get(path) ?? { path, lines: [] };
    file.lines.push(frame.line);
    files.set(path, file);
    if (files.size >= maxFiles) break;
  }
  return [...files.values()];
}

/** What is to be read of the files, as a caller would name it. */
export async function referencesOf(place: Place, files: Awaited<ReturnType<typeof findFrames>>) {
  const references: string[] = [];
  for (const { path, lines } of files) {
    const file = await readProjectFile(place, path);
    if (isSkip(file)) continue;
    if (file.lines <= wholeLines) references.push(path);
    else {
      const from = Math.max(1, Math.min(...lines) - around);
      references.push(`${path}:${from}-${Math.max(from, Math.max(...lines) + around)}`);
    }
  }
  return references;
}

export const readProjectFile = ({ sandbox, maxFileBytes: maxBytes, signal }: Place, path: string) =>
  readFile(sandbox, path, { maxBytes, signal });

async function asWritten({ sandbox, root }: Place, path: string): Promise<string | undefined> {
  const located = await sandbox.locate(resolve(root, path));
  return isSkip(located) || located.kind !== 'file' ? undefined : located.path;
}

/** Source files of the project by their names; each absolute, and as it is called from the root. */
type Sources = ReadonlyMap<string, readonly { path: string; own: string }[]>;

async function sourcesOf({ sandbox, root, home, signal }: Place): Promise<Sources> {
  try {
    const paths = await listSourceFiles(sandbox, [root], { root, home, maxFiles: maxListed, signal });
    const named = paths.map(path => ({ path, own: slashedFrom(root, path) }));
    return Map.groupBy(named, ({ path }) => basename(path));
  } catch (error) {
    // A project too large to be searched: only places that are written as they are count.
    if (!isAppError(error) || error.kind !== 'limit') throw error;
    return new Map();
  }
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

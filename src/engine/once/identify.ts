import { stat } from 'node:fs/promises';
import { refuseMisshapen } from '../../calls/call-limits.ts';
import { hashOf } from '../../calls/durable/call-log.ts';
import { inParallel } from '../../core/concurrency.ts';
import type { Sha256 } from '../../core/ids.ts';
import { isRecord } from '../../core/json.ts';
import type { ToolRequest } from '../../core/tool-host.ts';
import { isSkip } from '../../files/skip.ts';
import type { Threads } from '../../threads/threads.ts';
import { parsePathReference } from '../../workspace/paths.ts';
import { locateReference } from '../../workspace/read-file.ts';
import type { Sandbox } from '../../workspace/sandbox.ts';

export interface IdentifyOptions {
  threads: Threads;
  sandbox: Sandbox;
  /** Home directory, for `~` in paths. */
  home: string;
}

/** What a tool changes in the project. */
export interface Touches {
  /** Fields that name where it writes. */
  writesTo: readonly string[];
  /** It may change any file: that one changed since is no sign that the world went on. */
  edits: boolean;
}

/** What makes a call the same as an earlier one. */
export interface Identity {
  /** The calls that it may be the same as are logged under it. */
  key: Sha256;
  /** Of tool and arguments. */
  same: Sha256;
  /** The caller gave it a name of his own. */
  named: boolean;
  /** Folders that it names or searches: what lies in them is looked at when the call comes again. */
  folders: string[];
  /** It changes files itself: no file says whether it is the same call. */
  edits: boolean;
}

/** A longer text is no path. */
const longestPath = 1_024;
/** Fields of many tools whose texts name no file, whatever they look like. */
const pathless = new Set(['model', 'continuation_id', 'thinking_mode']);
const mostPaths = 300;
const atOnce = 8;
const longestName = 200;

/**
 * `writesTo` are the fields that name where the call writes: what it changes there itself makes no other call of it.
 * Undefined where nothing can be said: the call goes its way, and is refused there if it is wrong.
 */
export async function identify(
  options: IdentifyOptions,
  request: ToolRequest,
  { writesTo, edits }: Touches,
): Promise<Identity | undefined> {
  const { name, principal, session } = request;
  try {
    refuseMisshapen(name, request.arguments);
    const same = hashOf(canonical([name, request.arguments]));
    const place = [principal.owner, principal.root];
    const own = session?.idempotencyKey;
    if (own !== undefined && own.length > 0 && own.length <= longestName) {
      return { key: hashOf(canonical(['named', ...place, own])), same, named: true, folders: [], edits };
    }
    const thread = await threadOf(options, request);
    const { files, folders } = edits ? { files: [], folders: [] } : await pathsOf(options, request, writesTo);
    // A search looks into all of the project, whatever it finds there.
    if (!edits && /^\s*true\s*$/i.test(String(request.arguments.use_search))) folders.push(principal.root);
    const key = hashOf(canonical(['same', ...place, same, thread, files]));
    return { key, same, named: false, folders, edits };
  } catch {
    // Such as a thread that is not there, or arguments of a form that is refused: the call itself will be told.
    return undefined;
  }
}

/** What `last` means now; an id is part of the arguments anyway. */
async function threadOf({ threads }: IdentifyOptions, { arguments: args, principal }: ToolRequest): Promise<string> {
  if (args.continuation_id !== 'last') return '';
  const place = { owner: principal.owner, workspace: principal.root };
  return (await threads.findHead('last', place)).id;
}

/** The files that a call names, as they are at this moment, and the folders. */
async function pathsOf(
  { sandbox, home }: IdentifyOptions,
  { arguments: args, principal }: ToolRequest,
  writesTo: readonly string[],
) {
  const read = Object.entries(args).filter(([field]) => !pathless.has(field) && !writesTo.includes(field));
  const texts = [...new Set(read.flatMap(([, value]) => textsIn(value)))].filter(couldBePath).slice(0, mostPaths);
  const folders: string[] = [];
  const files = await inParallel(texts, atOnce, async text => {
    const reference = parsePathReference(text, principal.root, home);
    const found = isSkip(reference) ? reference : await locateReference(sandbox, reference);
    if (isSkip(found)) return [];
    if (found.kind === 'directory') {
      folders.push(found.path);
      return [];
    }
    const { size, mtimeMs, ctimeMs, ino } = await stat(found.path);
    return [[found.path, size, mtimeMs, ctimeMs, ino]];
  });
  return { files: files.flat(), folders };
}

/** Of texts with spaces, only those with a mark that paths have: most others are sentences. */
function couldBePath(text: string): boolean {
  if (text.length === 0 || text.length > longestPath || /[\n\0]/.test(text) || text.startsWith('data:')) return false;
  return !/\s/.test(text) || /[./\\~]/.test(text);
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return isRecord(value) ? Object.values(value).flatMap(textsIn) : [];
}

/** JSON in which the order of an object's keys says nothing. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    isRecord(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );
}

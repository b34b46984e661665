import { stat } from 'node:fs/promises';
import { z } from 'zod';
import { createQueue, inParallel, uncontended } from '../../core/concurrency.ts';
import { inputError } from '../../core/errors.ts';
import { hashOf, type JobId, normalizeId, type Sha256, type ThreadId } from '../../core/ids.ts';
import type { JobReply } from '../../core/job.ts';
import { canonicalJson, isRecord } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import type { ToolRequest } from '../../core/tool-host.ts';
import type { Fact, Store } from '../../storage/store.ts';
import { isSkip } from '../../workspace/paths.ts';
import { locateNamed } from '../../workspace/read-file.ts';
import { assertArgumentShape } from '../call-limits.ts';
import type { CallWorld } from '../call-record.ts';
import { fileFields, outputFields } from '../fields.ts';
import { aliasOf, kindTraits, type ToolDefinition, workflowOf } from '../tool.ts';

/** A call that may come again, until its reply arrived. */
export interface CallOperation {
  id: string;
  /** Of tool and arguments: the same name for another call is refused. */
  same: Sha256;
  /** `interrupted`: nobody works on it any more, and there is no answer. */
  status: 'running' | 'done' | 'interrupted';
  /** The process that works on it: it holds a lease under this name for as long as it does. */
  holder: string;
  /** Its caller is gone without a word: who sends the same call may have it. */
  lost?: boolean;
  /** The program that its caller is; undefined: not known. */
  client?: string | undefined;
  /** When somebody in another process last waited for it (epoch milliseconds). */
  wantedAt?: number;
  /** The thread it works on, and the thread's `seq` before it. Absent: none, or not known yet. */
  thread?: ThreadId;
  baseSeq?: number;
  startedAt: number;
  expiresAt: number;
  reply?: JobReply;
  /** The answer was that it goes on as this job. */
  job?: JobId;
}

/** The calls of one key as they were read. */
export interface LoggedOperation {
  version: number;
  calls: readonly CallOperation[];
}

/** The calls that may come again, in the store: shared by its processes, gone when their time is over. */
export type OperationLog = ReturnType<typeof createOperationLog>;

/** Calls of one key that are kept: the newest. */
const maxCalls = 8;

export function createOperationLog(store: Pick<Store, 'fact' | 'swapFact'>, clock: Clock) {
  const nameOf = (key: Sha256) => `call/${key}`;
  const queue = createQueue();

  /** Calls whose replies arrived while their records still stand, and the keys of those that nobody settles yet. */
  const forgotten = new Set<string>();
  const due = new Map<string, Sha256>();
  const isKept = ({ id }: CallOperation) => !forgotten.has(id);

  async function readAll(key: Sha256): Promise<LoggedOperation> {
    const now = clock.storeTime();
    const fact: Fact | undefined = await store.fact(nameOf(key), now);
    const { body, seal } = fact?.value ?? {};
    // What was damaged on the disk counts as not there: a wrong answer would be worse than none.
    const calls: CallOperation[] = typeof body === 'string' && hashOf(body) === seal ? JSON.parse(body) : [];
    return { version: fact?.version ?? 0, calls: calls.filter(({ expiresAt }) => expiresAt > now) };
  }

  function swap(key: Sha256, version: number, calls: readonly CallOperation[], unhurried = false): Promise<boolean> {
    const kept = calls.slice(-maxCalls);
    const expiresAt = Math.max(0, ...kept.map(call => call.expiresAt));
    const body = JSON.stringify(kept);
    const value = kept.length > 0 ? { body, seal: hashOf(body) } : undefined;
    return store.swapFact({ key: nameOf(key), version, value, expiresAt, now: clock.storeTime(), unhurried });
  }

  const changeAll = (key: Sha256, change: (calls: CallOperation[]) => CallOperation[], unhurried?: boolean) =>
    uncontended('The record of a call', async () => {
      const { version, calls } = await readAll(key);
      const changed = change(calls.filter(isKept));
      const isSame = changed.length === calls.length && changed.every((call, at) => call === calls[at]);
      return isSame || (await swap(key, version, changed, unhurried)) || undefined;
    });

  /** Of one key in the order in which they were asked for. */
  const changeNext: typeof changeAll = (key, change, unhurried) =>
    queue.run(key, () => changeAll(key, change, unhurried));

  return {
    /** Without those that are to be forgotten. */
    async read(key: Sha256): Promise<LoggedOperation> {
      const { version, calls } = await readAll(key);
      return { version, calls: calls.filter(isKept) };
    },
    /**
     * Adds a call; is in the store before anything that is asked of it later. `seen` saves a look. `unhurried`: what is asked
     * later comes soon, and takes it along.
     */
    async add(key: Sha256, call: CallOperation, seen: LoggedOperation, unhurried?: boolean): Promise<void> {
      // Who changes it waits until it is there.
      const turn = queue.enter(key);
      const isAdded = await swap(key, seen.version, [...seen.calls, call], unhurried).finally(async () =>
        (await turn)(),
      );
      if (isAdded) return;
      await changeAll(key, others => [...others.filter(({ id }) => id !== call.id), call]);
    },
    /** The same, only where nothing changed since `seen`: false when another call came before. */
    claim: (key: Sha256, call: CallOperation, { version, calls }: LoggedOperation) =>
      swap(key, version, [...calls, call]),
    /** Changes a call that is there; undefined removes it. */
    change: (key: Sha256, id: string, change: (call: CallOperation) => CallOperation | undefined) =>
      changeNext(key, calls => calls.flatMap(call => (call.id === id ? (change(call) ?? []) : [call]))),
    /** To this process the call is not there any more. Its record goes with the next change of it, or is settled. */
    forget(key: Sha256, id: string): void {
      forgotten.add(id);
      due.set(id, key);
    },
    /** Removes the records of calls that are to be forgotten; those that the store refuses, with the next try. `unhurried`: what is stored next takes it along. */
    async settle(unhurried?: boolean): Promise<void> {
      const leaving = [...due];
      due.clear();
      const settled = leaving.map(([id, key]) =>
        changeNext(key, calls => calls, unhurried).then(
          () => forgotten.delete(id),
          error => {
            due.set(id, key);
            throw error;
          },
        ),
      );
      await Promise.all(settled);
    },
  };
}

/** A reply that did not arrive, and an end without one, are kept for this long. */
const keptMs = 600_000;

export function endedOperation(call: CallOperation, now: number, reply?: JobReply): CallOperation {
  const answered = reply && !reply.isError;
  return { ...call, status: answered ? 'done' : 'interrupted', ...(answered && { reply }), expiresAt: now + keptMs };
}

/** Whether nobody has to hear that a call came to nothing: its caller left it, or another program sends the same. */
export const isForgotten = ({ lost, client }: CallOperation, asker: CallFingerprint): boolean =>
  !asker.named && (lost === true || client !== asker.client);

/** Says that nobody was asked again. */
export function replayedReply({ isError, document }: JobReply): JobReply {
  const facts = isRecord(document.metadata) ? document.metadata : {};
  return { isError, document: { ...document, metadata: { ...facts, replayed: true } } };
}

/** Why a call is refused that bears the name of another one. */
export const refuseUsedKey = (): Error =>
  inputError('This idempotencyKey was given to another call.', {
    class: 'idempotency_key',
    next: 'Give each call a different key, and resend a call with exactly the same arguments.',
    validationErrors: [{ field: '_meta.idempotencyKey', error: 'used for another call' }],
  });

/** What makes a call the same as an earlier one. */
export interface CallFingerprint extends Pick<CallOperation, 'same' | 'client'> {
  /** The calls that it may be the same as are logged under it. */
  key: Sha256;
  /** The caller gave it a name of his own. */
  named: boolean;
  /** Folders that it names or searches: what lies in them is looked at when the call comes again. */
  folders: string[];
  /** It changes files itself: no file says whether it is the same call. */
  edits: boolean;
}

/** A longer text is no path. */
const maxPathLength = 1_024;

/** Fields of many tools whose texts name no file, whatever they look like. */
const pathless = new Set(['model', 'continuation_id', 'thinking_mode']);

const maxPaths = 300;

const maxConcurrent = 8;

const maxKeyLength = 200;

/**
 * `writesTo` are the fields that name where the call writes: what it changes there itself makes no other call of it.
 * Undefined where nothing can be said: the call goes its way, and is refused there if it is wrong.
 */
export async function fingerprintCall(
  options: Pick<CallWorld, 'threads' | 'sandbox' | 'home'>,
  request: ToolRequest,
  { writesTo, edits }: Pick<IdempotencyTraits, 'writesTo' | 'edits'>,
): Promise<CallFingerprint | undefined> {
  const { name, principal, session } = request;
  const client = session?.clientId;
  try {
    assertArgumentShape(name, request.arguments);
    const same = hashOf(canonicalJson([name, request.arguments]));
    const place = [principal.owner, principal.root];
    const own = session?.idempotencyKey;
    if (own !== undefined && own.length > 0 && own.length <= maxKeyLength)
      return { key: hashOf(JSON.stringify(['named', ...place, own])), same, named: true, client, folders: [], edits };
    const isLast = normalizeId(String(request.arguments.continuation_id)) === 'last';
    // What it means now; an id is part of the arguments anyway.
    const thread = isLast
      ? (await options.threads.findHead('last', { owner: principal.owner, workspace: principal.root })).id
      : '';
    const { files, folders } = edits ? { files: [], folders: [] } : await pathsOf(options, request, writesTo);
    // A search looks into all of the project, whatever it finds there.
    if (!edits && /^\s*true\s*$/i.test(String(request.arguments.use_search))) folders.push(principal.root);
    const key = hashOf(JSON.stringify(['same', ...place, same, thread, files]));
    return { key, same, named: false, client, folders, edits };
  } catch {
    // Such as a thread that is not there, or arguments of a form that is refused: the call itself will be told.
    return undefined;
  }
}

/** The files that a call names, as they are at this moment, and the folders. */
async function pathsOf(
  { sandbox, home }: Pick<CallWorld, 'sandbox' | 'home'>,
  { arguments: args, principal }: ToolRequest,
  writesTo: readonly string[],
) {
  const read = Object.entries(args).filter(([field]) => !pathless.has(field) && !writesTo.includes(field));
  const texts = read.flatMap(([field, value]) => textsIn(value).filter(text => couldBePath(text, field)));
  const folders: string[] = [];
  const files = await inParallel([...new Set(texts)].slice(0, maxPaths), maxConcurrent, async text => {
    const found = await locateNamed(sandbox, text, { root: principal.root, home });
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

/** Names of files may have any spaces. Elsewhere a text with spaces needs a mark of paths, not behind a word alone: most are sentences. */
function couldBePath(text: string, field: string): boolean {
  if (text.length === 0 || text.length > maxPathLength || /[\n\0]/.test(text) || text.startsWith('data:')) return false;
  return fileFields.test(field) || !/\s/.test(text) || /[/\\~]|\.\S/.test(text);
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return isRecord(value) ? Object.values(value).flatMap(textsIn) : [];
}

export interface IdempotencyTraits {
  /** Fields that name where it writes. */
  writesTo: readonly string[];
  /** It may change any file: that one changed since is no sign that the world went on. */
  edits: boolean;
  /** Stores its question in a thread before anybody is asked. */
  threaded: boolean;
  /** Looks into the project for itself, whatever the call names. */
  looks: boolean;
  /** Whether a call changes nothing by its arguments, and so may be made again. */
  isRead(args: Record<string, unknown>): boolean;
}

/** The tools that ask somebody who is paid, or do something more each time, and what has to be known of each to do so only once. */
export function idempotencyTraits(tools: readonly ToolDefinition[]): ReadonlyMap<string, IdempotencyTraits> {
  const byName = new Map(tools.map(tool => [tool.name, tool]));
  const traitsOf = (tool: ToolDefinition): IdempotencyTraits => {
    const meant = aliasOf(tool)?.to.flatMap(to => byName.get(to) ?? []) ?? [tool];
    const traits = meant.map(({ mode }) => kindTraits[mode.kind]);
    const reading = tool.readingFields && z.object(tool.readingFields);
    return {
      threaded: !traits.some(({ recordsFirst }) => recordsFirst),
      looks: meant.some(each => workflowOf(each)?.evidence !== undefined),
      edits: traits.some(({ edits }) => edits),
      isRead: args => reading?.safeParse(args).success ?? false,
      writesTo: [...(tool.writesBy ?? []), ...Object.keys(outputFields)],
    };
  };
  const once = tools.filter(({ effects }) => effects.network || !effects.idempotent);
  return new Map(once.map(tool => [tool.name, traitsOf(tool)]));
}

import { statSync } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ErrorCode } from '../core/errors.ts';
import { isRecord } from '../core/json.ts';
import type { Clock } from '../core/ports.ts';
import { addUsage, noUsage, type Usage } from '../core/usage.ts';
import { createOpenCalls, type Observation, type OpenCall, type Sink } from './event-bus.ts';

/** When a file began, by its inode: a name may belong to another file by now. */
export interface FileStart {
  inode: number;
  /** Epoch milliseconds; undefined when its first line does not tell. */
  at: number | undefined;
}

interface FileState {
  size: number;
  mtimeMs: number;
  inode: number;
}

/** Size zero for a file that is not there. */
export async function fileStateOf(path: string): Promise<FileState> {
  try {
    const { size, mtimeMs, ino } = await stat(path);
    return { size, mtimeMs, inode: ino };
  } catch (error) {
    if (isCode(error, 'ENOENT')) return { size: 0, mtimeMs: 0, inode: 0 };
    throw error;
  }
}

/**
 * Moves `file` to `file.1`, the older ones one on, and drops what is over `keep`. One process does it at a time; whoever
 * finds another one at it goes on with the file as it is. Answers whether this one did.
 */
export async function rotateFile(file: string, keep: number, isFull: () => Promise<boolean>): Promise<boolean> {
  const lock = `${file}.lock`;
  if (!(await take(lock, file))) return false;
  try {
    // The other process may just have finished.
    if (!(await isFull())) return false;
    for (let index = keep - 1; index >= 1; index--) await renameIfPresent(`${file}.${index}`, `${file}.${index + 1}`);
    if (keep > 0) await renameIfPresent(file, `${file}.1`);
    else await rm(file, { force: true });
    return true;
  } finally {
    await rm(lock, { force: true });
  }
}

const staleLockMs = 60_000;

async function take(lock: string, file: string): Promise<boolean> {
  try {
    await (await open(lock, 'wx', 0o600)).close();
    return true;
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error;
    // The lines that came in since tell how long the lock has been there: its holder died.
    const [{ mtimeMs: written }, { mtimeMs: locked }] = await Promise.all([fileStateOf(file), fileStateOf(lock)]);
    if (written - locked > staleLockMs) await rm(lock, { force: true });
    return false;
  }
}

async function renameIfPresent(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
  }
}

export function isCode(error: unknown, code: string): boolean {
  return isRecord(error) && error.code === code;
}

export interface LogRules {
  /** The directory of the logs; made with the first line, for its owner alone. */
  folder: string;
  /** A file that reached this size is rotated before the next lines; 20 MiB. */
  maxBytes?: number;
  /** So is one whose first line is older than this many milliseconds; 7 days. */
  maxAgeMs?: number;
  /** How many rotated files are kept; `NAME.jsonl.1` is the youngest; 5. */
  keep?: number;
}

export interface LogRecord {
  /** Milliseconds since the epoch. */
  at: number;
  /** Plain data; its names are written as every log of the product has them: `reqId` → `req_id`. */
  fields: object;
  /** Plain data whose names are written as they are, behind the others. */
  asIs?: object;
}

const week = 7 * 24 * 3_600_000;

/** A file of JSON lines, `NAME.jsonl`, kept open. Several processes may write to one. `onRotated` runs after this one rotated it. */
export function createRotatingLog(
  name: string,
  { folder, maxBytes = 20 * 1024 * 1024, maxAgeMs = week, keep = 5 }: LogRules,
  onRotated: () => Promise<void> = async () => undefined,
) {
  const file = join(folder, `${name}.jsonl`);
  let begun: FileStart | undefined;
  let held: { handle: FileHandle; inode: number } | undefined;

  /** Whether the file as it stands is to be rotated before a line of this time. */
  const isFull = async (at: number): Promise<boolean> => {
    const { size, ino } = statSync(file, { throwIfNoEntry: false }) ?? { size: 0, ino: 0 };
    if (size === 0) return false;
    if (size >= maxBytes) return true;
    if (begun?.inode !== ino) begun = { inode: ino, at: await firstRecordTime(file) };
    return begun.at !== undefined && at - begun.at > maxAgeMs;
  };

  /** Waits for the line that is being written. */
  const close = async (): Promise<void> => {
    const last = held?.handle;
    held = undefined;
    await last?.close();
  };

  /** The file that the name leads to at this moment: another process may have rotated the one that is open. */
  const current = async (): Promise<FileHandle> => {
    if (held && held.inode === statSync(file, { throwIfNoEntry: false })?.ino) return held.handle;
    await close();
    const handle = await openForLines(file);
    held = { handle, inode: (await handle.stat()).ino };
    return handle;
  };

  return {
    /** The file that is written now. */
    file,
    /** The paths of it and of the rotated ones, the youngest first, whether they are there or not. */
    files: () => Array.from({ length: keep + 1 }, (_, index) => (index === 0 ? file : `${file}.${index}`)),
    /**
     * One JSON object a line: `ts`, then the records' own fields. Rejects when they can't be written: then they are lost. False:
     * there were none.
     */
    async append(records: readonly LogRecord[]): Promise<boolean> {
      const last = records.at(-1);
      if (!last) return false;
      if (await isFull(last.at)) {
        const done = await rotateFile(file, keep, () => isFull(last.at));
        begun = undefined;
        if (done) await onRotated();
      }
      await (await current()).appendFile(records.map(lineOf).join(''));
      return true;
    },
    /** Lets go of the file; the next line opens it again. */
    close,
  };
}

async function openForLines(file: string): Promise<FileHandle> {
  try {
    return await open(file, 'a', 0o600);
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    return open(file, 'a', 0o600);
  }
}

function lineOf({ at, fields, asIs }: LogRecord): string {
  return `${JSON.stringify({ ts: new Date(at).toISOString(), ...Object.fromEntries(snakeCased(fields)), ...asIs })}\n`;
}

function snakeCased(record: object): [name: string, value: unknown][] {
  return Object.entries(record).map(([name, value]: [string, unknown]) => [
    name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`),
    isRecord(value) ? Object.fromEntries(snakeCased(value)) : value,
  ]);
}

/** The time of a file's first line; undefined when it does not tell. */
export async function firstRecordTime(file: string): Promise<number | undefined> {
  try {
    const handle = await open(file, 'r');
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(64), 0, 64, 0);
      const [, ts = ''] = /^\{"ts":"([^"]+)"/.exec(buffer.toString('utf8', 0, bytesRead)) ?? [];
      const at = Date.parse(ts);
      return Number.isNaN(at) ? undefined : at;
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

interface Notes {
  /** As `provider:model`, in the order in which they were asked first. */
  models: Set<string>;
  attempts: number;
  usage: Usage;
  /** US dollars of the attempts whose price is known. */
  costUsd: number;
  filesSent: number;
}

/** `activity.jsonl`: one line when a call begins and one with all that it came to when it ends. */
export function createActivity(rules: LogRules, clock: Pick<Clock, 'now'>): Sink {
  const log = createRotatingLog('activity', rules);
  const calls = createOpenCalls<Notes>(() => ({
    models: new Set(),
    attempts: 0,
    usage: noUsage,
    costUsd: 0,
    filesSent: 0,
  }));
  return {
    name: 'activity',
    write: observations =>
      log.append(observations.flatMap(observation => activityLines(observation, calls.of(observation)))),
    close: () =>
      log.append(calls.left().map(call => endOf(clock.now(), call, { status: 'unfinished' }))).finally(log.close),
  };
}

function activityLines({ at, event }: Observation, call: OpenCall<Notes> | undefined): LogRecord[] {
  if (!call) return [];
  const { notes, ...who } = call;
  switch (event.type) {
    case 'call.start':
      return [{ at, fields: { act: 'begin', ...who } }];
    case 'model.attempt':
      if (event.outcome === 'skipped') return [];
      notes.models.add(`${event.provider}:${event.model}`);
      notes.attempts++;
      notes.usage = addUsage(notes.usage, event.usage ?? noUsage);
      notes.costUsd += event.costUsd ?? 0;
      return [];
    case 'files.read':
      notes.filesSent += event.embedded.length;
      return [];
    case 'call.end': {
      const { status, code, elapsedMs } = event;
      return [endOf(at, call, { status, code, elapsedMs })];
    }
    default:
      return [];
  }
}

function endOf(at: number, { notes, ...who }: OpenCall<Notes>, how: object): LogRecord {
  const { models, ...sums } = notes;
  return { at, fields: { act: 'end', ...who, ...how, models: [...models], ...sums } };
}

/** What a call is refused with, as against what goes wrong in one that was allowed. */
const refusals: readonly ErrorCode[] = ['SECURITY', 'LIMIT', 'TOOL_NOT_FOUND'];

/** Why a file is kept from models; anything else (its size, its kind, no such file) is no decision about the caller. */
const forbidden: readonly string[] = ['outside_roots', 'secret', 'not_regular'];

/**
 * `audit.jsonl`: who called what, which files were read and written for it, and what was refused. A `begin` without a `call`
 * is a call whose process died.
 */
export function createAudit(rules: LogRules, clock: Pick<Clock, 'now'>): Sink {
  const log = createRotatingLog('audit', rules);
  const calls = createOpenCalls(() => undefined);
  return {
    name: 'audit',
    write: observations =>
      log.append(observations.flatMap(observation => auditLines(observation, calls.of(observation)))),
    close: () =>
      log
        .append(calls.left().map(call => auditLine(clock.now(), call, 'call', { status: 'unfinished' })))
        .finally(log.close),
  };
}

function auditLine(at: number, { notes: _, ...who }: OpenCall<undefined>, act: string, rest: object = {}): LogRecord {
  return { at, fields: { act, ...who, ...rest } };
}

function auditLines({ at, event }: Observation, call: OpenCall<undefined> | undefined): LogRecord[] {
  if (!call) return [];
  const line = (act: string, refused: boolean, rest: object = {}): LogRecord =>
    auditLine(at, call, act, { decision: refused ? 'refused' : 'allowed', ...rest });
  switch (event.type) {
    case 'call.start':
      return [auditLine(at, call, 'begin')];
    case 'files.read': {
      const refused = event.skipped.filter(({ code }) => forbidden.includes(code));
      return [
        ...(event.embedded.length > 0 ? [line('read', false, { files: event.embedded })] : []),
        ...refused.map(({ path, code }) => line('read', true, { files: [path], reason: code })),
      ];
    }
    case 'files.written': {
      const { path, code } = event;
      const refused = code !== undefined && refusals.includes(code);
      const failed = code !== undefined && !refused;
      return [line('write', refused, { files: [path], ...(failed && { outcome: 'failed' }), reason: code })];
    }
    case 'agent.call': {
      const { name, outcome, args, reason } = event;
      return [line('agent', outcome === 'refused' || outcome === 'invalid', { name, outcome, args, reason })];
    }
    case 'call.end': {
      const { status, code, reason } = event;
      return [line('call', code !== undefined && refusals.includes(code), { status, code, reason })];
    }
    default:
      return [];
  }
}

/** `breadcrumbs.jsonl`: every event with its `type` and its own fields. */
export function createBreadcrumbs(rules: LogRules): Sink {
  const log = createRotatingLog('breadcrumbs', rules);
  return {
    name: 'breadcrumbs',
    write: observations => log.append(observations.map(({ at, event }) => ({ at, fields: event }))),
    close: log.close,
  };
}

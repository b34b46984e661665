import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { type ErrorCode, errorCode } from '../core/errors.ts';
import { snakeCased } from '../core/json.ts';
import type { Clock, RecentEvent } from '../core/ports.ts';
import { addUsage, noUsage, type Usage } from '../core/usage.ts';
import { createOpenCalls, isoTime, type OpenCall, type Sink } from './event-bus.ts';

/** Undefined for a file that is not there. */
export const fileStateOf = (path: string): fs.Stats | undefined => fs.statSync(path, { throwIfNoEntry: false });

/** Moves `file` to `file.1` and older ones on, up to `keep`, in one process at a time. Answers whether it was this one. */
function rotateFile(file: string, keep: number, isFull: () => boolean): boolean {
  const lock = `${file}.lock`;
  if (!take(lock, file)) return false;
  try {
    // The other process may just have finished.
    if (!isFull()) return false;
    for (let index = keep - 1; index >= 1; index--) renameIfPresent(`${file}.${index}`, `${file}.${index + 1}`);
    if (keep > 0) renameIfPresent(file, `${file}.1`);
    else fs.rmSync(file, { force: true });
    return true;
  } finally {
    fs.rmSync(lock, { force: true });
  }
}

const staleLockMs = 60_000;

function take(lock: string, file: string): boolean {
  try {
    fs.closeSync(fs.openSync(lock, 'wx', 0o600));
    return true;
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    // The lines that came in since tell how long the lock has been there: its holder died.
    const [written, locked] = [fileStateOf(file), fileStateOf(lock)];
    if ((written?.mtimeMs ?? 0) - (locked?.mtimeMs ?? 0) > staleLockMs) fs.rmSync(lock, { force: true });
    return false;
  }
}

function renameIfPresent(from: string, to: string): void {
  if (fileStateOf(from)) fs.renameSync(from, to);
}

/** `file`, and the names of as many rotated ones as are kept. */
export const rotatedFiles = (file: string, keep: number): string[] => [
  file,
  ...Array.from({ length: keep }, (_, index) => `${file}.${index + 1}`),
];

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

/** JSON lines in `NAME.jsonl`, written at once, also by several processes: a thread costs more. `onRotated`: after this one rotated it. */
export function createRotatingLog(
  name: string,
  { folder, maxBytes = 20 * 1024 * 1024, maxAgeMs = week, keep = 5 }: LogRules,
  onRotated: () => Promise<void> = async () => undefined,
) {
  const file = join(folder, `${name}.jsonl`);
  /** When the file of this inode began, in epoch milliseconds; undefined when its first line does not tell. */
  let begun: { inode: number; at: number | undefined } | undefined;
  let held: { handle: number; inode: number } | undefined;
  let lookedAt = 0;
  let isTorn = false;

  /** Whether the file as it stands is to be rotated before a line of this time. */
  const isFull = (at: number, found = fileStateOf(file)): boolean => {
    if (!found?.size) return false;
    if (found.size >= maxBytes) return true;
    if (begun?.inode !== found.ino) begun = { inode: found.ino, at: firstRecordTime(file) };
    return begun.at !== undefined && at - begun.at > maxAgeMs;
  };

  /** Follows the path once a second, as another program may rename the file: one that was rotated is full, a removed one has no name. */
  const stateAt = (at: number): fs.Stats | undefined => {
    const open = held && Math.abs(at - lookedAt) < 1_000 ? fs.fstatSync(held.handle) : undefined;
    if (open && open.nlink > 0 && !isFull(at, open)) return open;
    lookedAt = at;
    return fileStateOf(file);
  };

  const close = (): void => {
    if (held) fs.closeSync(held.handle);
    held = undefined;
  };

  return {
    file,
    /** The paths of it and of the rotated ones, the youngest first, whether they are there or not. */
    files: () => rotatedFiles(file, keep),
    /** One JSON object a line: `ts`, then a record's fields. Rejects when they can't be written, and are lost. False: none. */
    async append(records: readonly LogRecord[]): Promise<boolean> {
      const last = records.at(-1);
      if (!last) return false;
      let found = stateAt(last.at);
      if (isFull(last.at, found)) {
        const done = rotateFile(file, keep, () => isFull(last.at));
        begun = undefined;
        if (done) await onRotated();
        found = fileStateOf(file);
      }
      // Another process may have rotated the file that is open.
      if (held?.inode !== found?.ino) close();
      held ??= openForLines(file);
      // What failed may have left a part of a line.
      const begin = isTorn && lastByteOf(held.handle) !== 10 ? '\n' : '';
      isTorn = true;
      fs.appendFileSync(held.handle, begin + records.map(lineOf).join(''));
      isTorn = false;
      return true;
    },
    /** Lets go of the file; the next line opens it again. */
    close,
  };
}

/** 10, a line break, for an empty file too. */
function lastByteOf(handle: number): number | undefined {
  const { size } = fs.fstatSync(handle);
  const last = Buffer.alloc(1, 10);
  if (size > 0) fs.readSync(handle, last, 0, 1, size - 1);
  return last[0];
}

function openForLines(file: string): { handle: number; inode: number } {
  fs.mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const handle = fs.openSync(file, 'a+', 0o600);
  return { handle, inode: fs.fstatSync(handle).ino };
}

const lineOf = ({ at, fields, asIs }: LogRecord): string =>
  `${JSON.stringify(Object.assign(snakeCased(fields, { ts: isoTime(at) }), asIs))}\n`;

/** The time of a file's first line; undefined when it does not tell. */
export function firstRecordTime(file: string): number | undefined {
  let handle: number | undefined;
  try {
    handle = fs.openSync(file, 'r');
    const start = Buffer.alloc(64);
    const [, ts = ''] = /^\{"ts":"([^"]+)"/.exec(start.toString('utf8', 0, fs.readSync(handle, start))) ?? [];
    const at = Date.parse(ts);
    return Number.isNaN(at) ? undefined : at;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  } finally {
    if (handle !== undefined) fs.closeSync(handle);
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
  const blank = (): Notes => ({ models: new Set(), attempts: 0, usage: noUsage, costUsd: 0, filesSent: 0 });
  const unfinished = (call: OpenCall<Notes>) => endOf(clock.now(), call, { status: 'unfinished' });
  return createCallLog('activity', rules, blank, activityLines, unfinished);
}

/** `NAME.jsonl`: what `lines` makes of the events of calls, and `unfinished` of calls that never said that they ended. */
function createCallLog<Notes>(
  name: string,
  rules: LogRules,
  blank: () => Notes,
  lines: (observation: RecentEvent, call: OpenCall<Notes>) => LogRecord[],
  unfinished: (call: OpenCall<Notes>) => LogRecord,
): Sink {
  const log = createRotatingLog(name, rules);
  const calls = createOpenCalls(blank);
  const linesOf = (observation: RecentEvent) => {
    const call = calls.of(observation);
    return call ? lines(observation, call) : [];
  };
  return {
    name,
    write: observations => log.append(observations.flatMap(linesOf)),
    close: () => log.append(calls.left().map(unfinished)).finally(log.close),
  };
}

function activityLines({ at, event }: RecentEvent, call: OpenCall<Notes>): LogRecord[] {
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

/** `audit.jsonl`: who called what, files that were read and written, refusals. A `begin` without a `call`: its process died. */
export function createAudit(rules: LogRules, clock: Pick<Clock, 'now'>): Sink {
  const unfinished = (call: OpenCall<undefined>) => auditLine(clock.now(), call, 'call', { status: 'unfinished' });
  return createCallLog('audit', rules, () => undefined, auditLines, unfinished);
}

const auditLine = (at: number, who: OpenCall<undefined>, act: string, rest: object = {}): LogRecord => ({
  at,
  fields: { act, ...who, ...rest },
});

const decided = (at: number, call: OpenCall<undefined>, act: string, refused: boolean, rest: object): LogRecord =>
  auditLine(at, call, act, { decision: refused ? 'refused' : 'allowed', ...rest });

function auditLines({ at, event }: RecentEvent, call: OpenCall<undefined>): LogRecord[] {
  switch (event.type) {
    case 'call.start':
      return [auditLine(at, call, 'begin')];
    case 'files.read': {
      const refused = event.skipped.filter(({ code }) => forbidden.includes(code));
      return [
        ...(event.embedded.length > 0 ? [decided(at, call, 'read', false, { files: event.embedded })] : []),
        ...refused.map(({ path, code }) => decided(at, call, 'read', true, { files: [path], reason: code })),
      ];
    }
    case 'files.written': {
      const { path, code } = event;
      const refused = code !== undefined && refusals.includes(code);
      const failed = code !== undefined && !refused;
      return [
        decided(at, call, 'write', refused, { files: [path], ...(failed && { outcome: 'failed' }), reason: code }),
      ];
    }
    case 'agent.call': {
      const { name, outcome, args, reason } = event;
      const refused = outcome === 'refused' || outcome === 'invalid';
      return [decided(at, call, 'agent', refused, { name, outcome, args, reason })];
    }
    case 'call.end': {
      const { status, code, reason } = event;
      const refused = code !== undefined && refusals.includes(code);
      return [decided(at, call, 'call', refused, { status, code, reason })];
    }
    default:
      return [];
  }
}

/** `breadcrumbs.jsonl`: every event with its `type` and its own fields, but for what is asked. */
export function createBreadcrumbs(rules: LogRules): Sink {
  const log = createRotatingLog('breadcrumbs', rules);
  return {
    name: 'breadcrumbs',
    write(observations) {
      const told: LogRecord[] = [];
      for (const { at, event } of observations) if (event.type !== 'call.about') told.push({ at, fields: event });
      return log.append(told);
    },
    close: log.close,
  };
}

import { appendFile, mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isRecord } from '../core/json.ts';
import { type Begun, isCode, putAside, standingOf } from '../telemetry/log/put-aside.ts';

export interface LogRules {
  /** The directory of the logs; made with the first line, for its owner alone. */
  folder: string;
  /** A file that reached this size is put aside before the next lines; 20 MiB. */
  maxBytes?: number;
  /** So is one whose first line is older than this many milliseconds; 7 days. */
  maxAgeMs?: number;
  /** How many files that were put aside are kept; `NAME.jsonl.1` is the youngest; 5. */
  keep?: number;
}

export interface RotatingLog {
  /** The file that is written now. */
  file: string;
  /** The paths of it and of those that were put aside, the youngest first, whether they are there or not. */
  files(): string[];
  /**
   * One JSON object a line: `ts`, then the records' own fields. Rejects when they can't be written: then they are lost. False:
   * there were none.
   */
  append(records: readonly LogRecord[]): Promise<boolean>;
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

/** A file of JSON lines, `NAME.jsonl`. Several processes may write to one. `onPutAside` runs after this one put it aside. */
export function createRotatingLog(
  name: string,
  { folder, maxBytes = 20 * 1024 * 1024, maxAgeMs = week, keep = 5 }: LogRules,
  onPutAside: () => Promise<void> = async () => undefined,
): RotatingLog {
  const file = join(folder, `${name}.jsonl`);
  let begun: Begun | undefined;

  /** Whether the file as it stands is to be put aside before a line of this time. */
  const isFull = async (at: number): Promise<boolean> => {
    const standing = await standingOf(file);
    if (standing.size === 0) return false;
    if (standing.size >= maxBytes) return true;
    if (begun?.inode !== standing.inode) begun = { inode: standing.inode, at: await firstTime(file) };
    return begun.at !== undefined && at - begun.at > maxAgeMs;
  };

  return {
    file,
    files: () => Array.from({ length: keep + 1 }, (_, index) => (index === 0 ? file : `${file}.${index}`)),
    async append(records) {
      const last = records.at(-1);
      if (!last) return false;
      if (await isFull(last.at)) {
        const done = await putAside(file, keep, () => isFull(last.at));
        begun = undefined;
        if (done) await onPutAside();
      }
      await write(file, records.map(lineOf).join(''));
      return true;
    },
  };
}

/** Opens the file anew for each batch: another process may have put it aside in between. */
async function write(file: string, text: string): Promise<void> {
  try {
    await appendFile(file, text, { mode: 0o600 });
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await appendFile(file, text, { mode: 0o600 });
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
export async function firstTime(file: string): Promise<number | undefined> {
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
